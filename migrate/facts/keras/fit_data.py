"""What a model is fitted to: arrays, a dataset that can be followed, or something that gives whole batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ..apis import EXAMPLES, POSITIONS
from ..data import Arrays, Chain, Datasets, shuffles_of
from ..program import Origins, Problem, argument, is_none, method, nodes, number
from .fits import Fit

_ORDERED = "tfdp.runtime.fit_callbacks"


@dataclass(frozen=True)
class FitData:
    """The data of one `fit`, of which one of the three is not empty.

    `arrays` are the arguments whose rows are sharded, by keyword; `chains` what a tf.data dataset may be; `batches` an
    object that gives one batch after the other. `split` is the `validation_split` that is in force, `drawn` what draws
    the order of the data where they come in batches.
    """

    fit: Fit
    arrays: tuple[tuple[str, cst.BaseExpression], ...] = ()
    chains: tuple[Chain, ...] = ()
    batches: cst.BaseExpression | None = None
    split: cst.Arg | None = None
    sharded: bool = False
    drawn: tuple[cst.Call, ...] = ()

    @property
    def data(self) -> cst.BaseExpression:
        """What is given as `x`."""
        given = given_to(self.fit.call, "x")
        assert given is not None
        return given


def given_to(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """The value of an argument of `fit`."""
    found = argument(call, name, POSITIONS[name])
    return found.value if found is not None else None


def batch_size_of(value: cst.BaseExpression | None) -> cst.BaseExpression:
    """The batch size for what `fit` is given as it: Keras' own is 32."""
    omitted = value is None or (isinstance(value, cst.Name) and value.value == "None")
    return cst.Integer("32") if omitted or value is None else value


def ordered_callbacks(origins: Origins, fit: Fit) -> bool:
    """Whether a fit's callbacks go through `dp.fit_callbacks(…)` already."""
    given = given_to(fit.call, "callbacks")
    made = [given, *(o.node for o in origins.of(given))] if given is not None else []
    return any(origins.called(n) == _ORDERED for n in made)


def has_callbacks(origins: Origins, fit: Fit) -> bool:
    """Whether a fit is given callbacks, which may write files."""
    given = given_to(fit.call, "callbacks")
    if given is None or is_none(origins, given):
        return False
    return origins.called(given) != _ORDERED or (isinstance(given, cst.Call) and bool(given.args))


def held_out_by(function: str, arrays: Iterable[str], split: str) -> str:
    """The source of `validation_data` for what `validation_split` holds out of arrays."""
    held = [f"{function}({array}, {split})" for array in arrays]
    return f"({', '.join(held)})" if len(held) > 1 else held[0]


class FitCalls:
    """Answers for all calls of `fit` in a file."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._datasets = origins, datasets
        self._arrays = Arrays(origins, datasets)

    def of(self, fit: Fit) -> FitData | Problem:
        """What the model is fitted to; a Problem where that cannot be told, or not be sharded."""
        call = fit.call
        if fit.method != "fit":
            next_step = "write model.fit(generator, …), with the same arguments"
            return _problem(call, "fit_generator is gone from Keras", next_step)
        if any(a.star for a in call.args):
            return _problem(call, "the arguments of fit are given by * or **", "write the arguments of fit out")
        x = given_to(call, "x")
        if x is None or is_none(self._origins, x):
            return _problem(call, "fit is called without data", "give the training data as the first argument")
        if self._sharded(x):
            return FitData(fit, sharded=True)
        chains = self._datasets.chains(x)
        if self._whole(fit, x, chains):
            return self._of_arrays(fit)
        if self._given(call, "y"):
            return _problem(call, "fit is given both a dataset and y", "put the targets into the dataset")
        if chains and len(chains) < len(self._origins.of(x)):
            return _problem(call, "these data are not the same each time, nor always understood", "call fit twice")
        sharded = bool(chains) and all(c.sharded is not None for c in chains)
        drawn = shuffles_of(self._origins, x)
        return FitData(fit, chains=chains, batches=None if chains else x, sharded=sharded, drawn=drawn)

    # --- kinds of data ------------------------------------------------------------------------------------------------

    def _whole(self, fit: Fit, x: cst.BaseExpression, chains: tuple[Chain, ...]) -> bool:
        """Whether the data are arrays: nothing else has targets, weights or a batch size beside it."""
        if chains or self.gives_batches(x):
            return False
        beside = any(self._given(fit.call, name) for name in ("y", "sample_weight", "batch_size", "validation_split"))
        display = isinstance(x, cst.Dict | cst.List | cst.Tuple)
        return beside or display or self._arrays.is_array(x)

    def gives_batches(self, node: cst.BaseExpression) -> bool:
        """Whether a value is certainly a generator, a `Sequence`, or what an ImageDataGenerator flows."""
        found = self._origins.of(node)
        return bool(found) and all(not o.path and self._gives_batches(o.node) for o in found)

    def _gives_batches(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.GeneratorExp):
            return True
        if not isinstance(node, cst.Call):
            return False
        function = self._origins.function(node.func)
        if function is not None:
            return function in self._origins.index.generators
        owner = self._origins.constructed(node)
        if owner is not None:
            return self._origins.below(owner, "", (".Sequence", ".PyDataset", ".Iterator"))
        return method(node).startswith("flow") or self._origins.called(node).endswith(".TimeseriesGenerator")

    def _of_arrays(self, fit: Fit) -> FitData | Problem:
        call = fit.call
        found = [(name, value) for name in EXAMPLES if (value := given_to(call, name)) is not None]
        parts = tuple((name, value) for name, value in found if not is_none(self._origins, value))
        split = argument(call, "validation_split", POSITIONS["validation_split"])
        if split is None or self._given(call, "validation_data") or number(split.value) == 0:
            return FitData(fit, arrays=parts)
        if split.keyword is None:
            return _problem(call, "validation_split is given by its position", "write validation_split=… out")
        twice = [split.value, *(value for _, value in parts)]
        if any(not self._steady(value) for value in twice):
            reason = "the last part of these data is held out, for which they would be computed twice"
            return _problem(call, reason, "give the data names of their own before fit")
        return FitData(fit, arrays=parts, split=split)

    # --- values -------------------------------------------------------------------------------------------------------

    def _sharded(self, node: cst.BaseExpression) -> bool:
        calls = [node] if isinstance(node, cst.Call) else [o.node for o in self._origins.of(node)]
        shards = {"tfdp.runtime.shard", "tfdp.runtime.shard_batches"}
        return bool(calls) and all(self._origins.called(c) in shards and not self._datasets.chains(c) for c in calls)

    def _given(self, call: cst.Call, name: str) -> bool:
        value = given_to(call, name)
        return value is not None and not is_none(self._origins, value)

    def _steady(self, node: cst.BaseExpression) -> bool:
        """Whether an expression has the same value when it is written twice."""
        return not any(isinstance(n, cst.Call) and not self._pure(n) for n in nodes(node))

    def _pure(self, call: cst.Call) -> bool:
        api = self._origins.called(call)
        name = api or method(call)
        draws = ("rand", "shuffle", "permutation", "choice", "sample", "pop", "next")
        if not name or any(draw in name for draw in draws):
            return False
        known = api.startswith(("numpy.", "tensorflow.", "keras.utils.to_categorical", "builtins."))
        return known or name in {"astype", "reshape", "copy", "numpy", "to_numpy", "transpose"}


def _problem(node: cst.CSTNode, reason: str, next_step: str) -> Problem:
    return Problem("TFDP010", node, reason, next_step)
