"""Draws of NumPy's random numbers, and the size of their first axis."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument

# Where each takes its `size`. Not those that give an order of examples, as permutation does.
_POSITIONS = {
    "choice": 1,
    "exponential": 1,
    "gamma": 2,
    "integers": 2,
    "laplace": 2,
    "multivariate_normal": 2,
    "normal": 2,
    "randint": 2,
    "random": 0,
    "random_sample": 0,
    "standard_normal": 0,
    "uniform": 2,
}
_AXES = frozenset({"rand", "randn"})  # take the axes one by one
_OF_PYTHON = frozenset({"random.sample", "random.choices"})  # lists, of which no size is asked


@dataclass(frozen=True)
class Draw:
    """size: the length of the first axis, None where one number is drawn. known: whether that is certain."""

    size: cst.BaseExpression | None
    known: bool = True


def numpy_draw(origins: Origins, call: cst.Call) -> Draw | None:
    """The draw that a call is; None for any other call."""
    if origins.names.api(call.func) in _OF_PYTHON:
        return Draw(None, known=False)
    name = _name(origins, call)
    if name is None:
        return None
    if any(a.star for a in call.args):
        return Draw(None, known=False)
    if name in _AXES:
        return Draw(call.args[0].value if call.args else None)
    given = argument(call, "size", _POSITIONS[name])
    if given is None or origins.names.api(given.value) == "builtins.None":
        return Draw(None)
    if not isinstance(given.value, cst.Tuple | cst.List):
        return Draw(given.value)
    first = next(iter(given.value.elements), None)
    return Draw(first.value, known=isinstance(first, cst.Element)) if first is not None else Draw(None)


def _name(origins: Origins, call: cst.Call) -> str | None:
    api = origins.names.api(call.func)
    if api is not None:
        name = api.rpartition(".")[2] if api.startswith("numpy.random.") else ""
    else:
        method = call.func if isinstance(call.func, cst.Attribute) else None
        made = method is not None and origins.kinds(method.value) == {Kind.GENERATOR}
        name = method.attr.value if method is not None and made else ""
    return name if name in _POSITIONS or name in _AXES else None
