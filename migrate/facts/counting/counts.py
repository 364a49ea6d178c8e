"""Numbers of steps, and whether they are those of the one-process script or shrink with a worker's share already."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

import libcst as cst

from ...catalogue import BATCHING, STAGES
from ..apis import COMPUTES, COUNTS_EXAMPLES, GIVEN_OUTSIDE, LOCAL_STEPS, ROUNDS, SAME_COUNT, SIZES_OF_FLOWS
from ..data import Arrays, Chain, Datasets, ShardPoint
from ..keras import FitData
from ..program import (
    ITER,
    Origin,
    Origins,
    Problem,
    argument,
    is_none,
    method,
    nodes,
    parses_arguments,
    parts,
    receiver,
    within_itself,
)
from ..rates import Rate, sets_by_name
from .bounds import StepBound, counted

_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo, cst.Power)


class Extent(Enum):
    """What a number of steps covers."""

    WHOLE = "the one-process script's number: to be divided"
    SHARE = "proportional to the length of a sharded dataset: divided already"
    DIVIDED = "divided by dp.local_steps already"
    UNKNOWN = "not certain"


WHOLE = frozenset({"boundaries"})
"""Arguments of schedules that Keras takes for whole numbers of steps."""


@dataclass(frozen=True)
class StepCount:
    """An argument that counts optimizer steps; `down` where a part of one must not be rounded up."""

    call: cst.Call
    keyword: str
    position: int
    value: cst.BaseExpression
    down: bool = False


@dataclass(frozen=True)
class PerStep:
    """An argument that says what happens at each step, and is to be multiplied by the workers."""

    call: cst.Call
    keyword: str


class StepCounts:
    """Answers for the training chains and for the schedules of their optimizers."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        shard_points: Iterable[ShardPoint],
        fitted: Iterable[FitData] = (),
        looped: bool = False,
    ) -> None:
        """fitted: data of Keras' fit, which are sharded where they are given to it, and stay whole elsewhere; looped:
        whether there are training loops besides."""
        self._origins, self._datasets = origins, datasets
        self._arrays = Arrays(origins, datasets)
        self._sharded = {d.node for d in shard_points}
        fitted = tuple(fitted)
        # Where all data are sharded as fit is given them, nothing else in the file knows of the workers.
        self._all_at_fit = bool(fitted) and self._sharded <= {f.data for f in fitted} and not looped
        given = [v for f in fitted for v in (*(value for _, value in f.arrays), f.batches) if v is not None]
        self._whole = {o.node for value in given for o in origins.of(value)}

    def of_takes(self, chains: Iterable[Chain]) -> tuple[StepCount | Problem, ...]:
        """`.take(k)` calls that count batches, hence optimizer steps, and are not divided yet."""
        takes = dict.fromkeys(call for chain in chains for call in _takes(chain))
        return tuple(found for call in takes if (found := self.count(call, "count", 0, ".take()")) is not None)

    def decay(self, rate: Rate) -> PerStep | Problem | None:
        """Keras 2's `decay=`: the rate falls by it at each step, and steps are fewer."""
        if rate.decay is None:
            return None
        if self.extent(rate.decay.value) is Extent.WHOLE:
            return PerStep(rate.call, "decay")
        return _uncertain(rate.decay.value, "decay= falls at each step, and may depend on a worker's share already")

    def to_divide(self, bound: StepBound) -> bool:
        """Whether a loop's number of steps is that of the one-process script."""
        return self.extent(counted(bound)) is Extent.WHOLE

    def uncertain(self, bound: StepBound) -> Problem | None:
        """Why it is not certain what a loop's number of steps covers."""
        if self.extent(counted(bound)) is not Extent.UNKNOWN:
            return None
        return _uncertain(bound.node, "this counts steps, and its value may already shrink with a worker's share")

    def counts_records(self, node: cst.CSTNode) -> bool:
        """Whether a number holds the length of sharded records before they are batched, a share in every batch mode."""
        calls = (n for n in parts(self._origins, node) if isinstance(n, cst.Call))
        sized = (data for call in calls if (data := self._sized(call)) is not None)
        chains = (chain for data in sized for chain in self._datasets.chains(data))
        return any(self._sharded & set(c.nodes) and not self._shards_batches(c) for c in chains)

    def _sized(self, call: cst.Call) -> cst.BaseExpression | None:
        """`data` of `len(data)`, `data.cardinality()`, `tf.data.experimental.cardinality(data)`."""
        api = self._origins.called(call)
        if api:
            sized = api in {"builtins.len", "tensorflow.data.experimental.cardinality"}
            return call.args[0].value if sized and len(call.args) == 1 and not call.args[0].star else None
        return receiver(call) if method(call) in {"cardinality", "__len__"} and not call.args else None

    def count(self, call: cst.Call, keyword: str, position: int, name: str) -> StepCount | Problem | None:
        """An argument that counts steps, if it is to be divided; None where it is omitted or needs nothing."""
        given = argument(call, keyword, position)
        if given is None or is_none(self._origins, given.value):
            return None
        if keyword == "boundaries" and any(self._origins.called(n) == LOCAL_STEPS for n in nodes(given.value)):
            return None
        extent = self.extent(given.value)
        if extent is Extent.WHOLE:
            return StepCount(call, keyword, position, given.value)
        if extent is Extent.UNKNOWN:
            reason = f"{keyword} of {name} counts steps, and its value may already shrink with a worker's share"
            return _uncertain(given.value, reason)
        return None

    # --- what a number covers -----------------------------------------------------------------------------------------

    def extent(self, node: cst.CSTNode) -> Extent:
        """What the number covers, by every value that it can have."""
        found = _same(self._measure(o.node, o.path) for o in self._origins.of(node))
        return Extent.WHOLE if self._all_at_fit and found is Extent.UNKNOWN else found

    def independent(self, node: cst.CSTNode) -> bool:
        """Whether no dataset has part in a number, however it is computed."""
        read = [n for n in parts(self._origins, node) if isinstance(n, cst.Attribute)]
        own = (n for n in read if self._origins.class_of(n.value) is not None)
        return self._arrays.independent(node) and all(self.extent(n) is Extent.WHOLE for n in own)

    @within_itself(Extent.UNKNOWN)
    def _measure(self, node: cst.CSTNode, path: tuple[int, ...]) -> Extent:
        if path == (ITER,):
            return self._of_element(node)
        shaped = len(path) == 1 and isinstance(node, cst.Attribute) and node.attr.value == "shape"
        counts = shaped or self._origins.called(node) in COUNTS_EXAMPLES
        if path or counts:  # `n, width = x.shape`
            return Extent.WHOLE if counts and self._arrays.independent(node) else Extent.UNKNOWN
        match node:
            case cst.List() | cst.Tuple():
                return _same(self.extent(e.value) for e in node.elements)
            case cst.ListComp():
                return self.extent(node.elt)
            case cst.Integer() | cst.Float() | cst.SimpleString() | cst.ImportFrom():
                return Extent.WHOLE  # what another file holds, no sharding of this one has made smaller
            case cst.UnaryOperation():
                return self.extent(node.expression)
            case cst.BinaryOperation():
                return _combined(node.operator, self.extent(node.left), self.extent(node.right))
            case cst.Call():
                return self._of_call(node)
            case cst.Attribute():
                return self._of_attribute(node)
            case cst.Subscript():
                return self._of_subscript(node)
        return Extent.UNKNOWN

    def _of_element(self, node: cst.CSTNode) -> Extent:
        """Of `e` in `for e in (5, 10)`, or in `range(10)`."""
        if isinstance(node, cst.List | cst.Tuple):
            return _same(self.extent(e.value) for e in node.elements)
        numbers = node.args if isinstance(node, cst.Call) and self._origins.called(node) == "builtins.range" else ()
        whole = _same(self.extent(a.value) for a in numbers) is Extent.WHOLE
        return Extent.WHOLE if whole else Extent.UNKNOWN

    def _of_call(self, call: cst.Call) -> Extent:
        api = self._origins.called(call)
        args = [a.value for a in call.args if not a.star]
        if api == LOCAL_STEPS:
            return Extent.DIVIDED
        if api in GIVEN_OUTSIDE:
            return Extent.WHOLE
        if len(args) != len(call.args):
            return Extent.UNKNOWN
        if (data := self._sized(call)) is not None:
            return self._length(data)
        if args and (api in SAME_COUNT or api in ROUNDS):
            return self.extent(args[0])
        if COMPUTES.match(api):
            found = _same(self.extent(a) for a in args)
            return found if found is not Extent.SHARE else Extent.UNKNOWN
        reads = method(call) in {"numpy", "item"} and not args and self._origins.function(call.func) is None
        return self.extent(receiver(call)) if reads else Extent.UNKNOWN

    def _length(self, node: cst.BaseExpression) -> Extent:
        """A dataset's length follows the workers where its batches hold sharded records; an array's never does."""
        chains = self._datasets.chains(node)
        if chains:
            return Extent.SHARE if all(self._shards_batches(c) for c in chains) else Extent.UNKNOWN
        fitted = {o.node for o in self._origins.of(node)}
        whole = self._arrays.is_array(node) or (bool(fitted) and fitted <= self._whole)
        whole = whole and self._arrays.independent(node)
        return Extent.WHOLE if whole else Extent.UNKNOWN

    def _shards_batches(self, chain: Chain) -> bool:
        """Whether a dataset is sharded before it is batched."""
        places = [i for i, link in enumerate(chain.links) for n in link.nodes if n in self._sharded]
        return len(places) == 1 and any(link.call in chain.batches for link in chain.links[places[0] :])

    # --- attributes ---------------------------------------------------------------------------------------------------

    def _of_attribute(self, node: cst.Attribute) -> Extent:
        api = self._origins.names.api(node)
        if api is not None:
            return Extent.UNKNOWN if api.startswith(("tensorflow", "keras", "builtins.")) else Extent.WHOLE
        made = self._origins.of(node.value)
        if node.attr.value == "num_examples":  # of tfds' description of a data set, which is no dataset itself
            return Extent.WHOLE if self._arrays.independent(node, described=True) else Extent.UNKNOWN
        if node.attr.value in SIZES_OF_FLOWS and made and {o.node for o in made} <= self._whole:
            return Extent.WHOLE
        if made and all(isinstance(o.node, cst.Call) and parses_arguments(o.node, self._origins) for o in made):
            return self._unchanged(node.attr.value, [], None)
        owner = self._origins.class_of(node.value) or (made[0].node if len(made) == 1 else None)
        if not isinstance(owner, cst.ClassDef):
            return Extent.UNKNOWN
        own = [d.value for d in self._origins.index.definitions[owner].get(node.attr.value, []) if d.value]
        made_by = (c for c in self._origins.index.calls if self._origins.constructed(c) is owner)
        given = [a.value for c in made_by for a in c.args]
        return self._unchanged(node.attr.value, [*own, *given], owner) if own else Extent.UNKNOWN

    def _unchanged(self, attribute: str, values: list[cst.CSTNode], owner: cst.ClassDef | None) -> Extent:
        """A constant kept under a name: nothing that this file puts there may follow the workers."""
        if sets_by_name(self._origins, {attribute}):
            return Extent.UNKNOWN
        stores = self._origins.index.attribute_stores.get(attribute, ())
        stored = [(v, p) for t, v, p in stores if self._origins.class_of(t.value) in {None, owner}]
        every = [*((v, ()) for v in values), *stored]
        made = (o for v, p in every for o in self._origins.of(v, p) or [Origin(v, p)])
        return Extent.WHOLE if all(self._measure(o.node, o.path) is Extent.WHOLE for o in made) else Extent.UNKNOWN

    def _of_subscript(self, node: cst.Subscript) -> Extent:
        if self._origins.names.api(node.value) in GIVEN_OUTSIDE or self._measure(node.value, (0,)) is Extent.WHOLE:
            return Extent.WHOLE  # also of `x.shape[0]`
        table = self._origins.one(node.value)
        if table is not None and isinstance(table.node, cst.Call) and not table.path:
            return self._measure(table.node, (0,))
        if table is None or not isinstance(table.node, cst.Dict) or table.path or not self._only_read(node.value):
            return Extent.UNKNOWN
        entries = [e for e in table.node.elements if isinstance(e, cst.DictElement)]
        key = node.slice[0].slice
        named = [e.value for e in entries if isinstance(key, cst.Index) and key.value.deep_equals(e.key)]
        plain = len(entries) == len(table.node.elements) and all(isinstance(e.key, cst.SimpleString) for e in entries)
        return _same(self.extent(v) for v in (named if plain and len(named) == 1 else (e.value for e in entries)))

    def _only_read(self, table: cst.BaseExpression) -> bool:
        """Whether a table that has one name is only ever looked up by it."""
        index = self._origins.index
        uses = [index.parents[use] for use in index.names[table.value]] if isinstance(table, cst.Name) else [table]
        return all(isinstance(use, cst.Subscript) and use not in index.subscript_stores for use in uses)


def _takes(chain: Chain) -> list[cst.Call]:
    """The `.take(k)` of batches after the last stage that the sharding has to follow."""
    takes: list[cst.Call] = []
    batched = False
    for link, of_batches in chain.stages:
        facts = STAGES.get(link.stage or "")
        if link.stage in BATCHING:
            batched = of_batches
        elif link.stage == "take" and batched and link.call is not None:
            takes.append(link.call)
        elif facts is not None and facts.counts and not (link.stage == "enumerate" and batched):
            takes.clear()
            batched = False
    return takes


def _combined(operator: cst.BaseBinaryOp, left: Extent, right: Extent) -> Extent:
    """Of an arithmetic operation on two numbers; a share stays one only in what is proportional to it."""
    both = {left, right}
    if Extent.DIVIDED in both:
        return Extent.DIVIDED
    if both == {Extent.WHOLE} and isinstance(operator, _OPERATORS):
        return Extent.WHOLE
    if both == {Extent.SHARE} and isinstance(operator, cst.Add | cst.Subtract):
        return Extent.SHARE
    if both == {Extent.SHARE, Extent.WHOLE}:
        scaled = left is Extent.SHARE and isinstance(operator, cst.Divide | cst.FloorDivide)
        return Extent.SHARE if scaled or isinstance(operator, cst.Multiply) else Extent.UNKNOWN
    return Extent.UNKNOWN


def _same(extents: Iterable[Extent]) -> Extent:
    found = set(extents)
    return found.pop() if len(found) == 1 else Extent.UNKNOWN


def _uncertain(node: cst.CSTNode, reason: str) -> Problem:
    return Problem("TFDP011", node, reason, "write the number of steps of the one-process script as a plain number")
