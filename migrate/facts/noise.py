"""NumPy's random numbers inside the model: all workers would have the same ones."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.problem import Problem

# Not those that choose examples, as permutation, choice and randint do: these must be the same on all workers.
_NUMBERS = frozenset(
    {
        "exponential",
        "gamma",
        "laplace",
        "multivariate_normal",
        "normal",
        "rand",
        "randn",
        "random",
        "random_sample",
        "standard_normal",
        "uniform",
    }
)


def common_noise(origins: Origins, reached: Iterable[cst.Call]) -> list[Problem]:
    """Draws among the calls that run for a trained loss."""
    return [
        Problem(
            "TFDP013",
            call,
            "all workers draw the same numbers here: NumPy's generators are common to them, for decisions about data",
            "draw what goes into the model by TensorFlow, as tf.random.normal(shape) does",
        )
        for call in reached
        if _draws(origins, call)
    ]


def _draws(origins: Origins, call: cst.Call) -> bool:
    api = origins.names.api(call.func)
    if api is not None:
        return api.startswith("numpy.random.") and api.rpartition(".")[2] in _NUMBERS
    method = call.func if isinstance(call.func, cst.Attribute) else None
    return method is not None and method.attr.value in _NUMBERS and origins.kinds(method.value) == {Kind.GENERATOR}
