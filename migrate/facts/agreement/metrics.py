"""Keras' metric objects: which examples they see, and where their results are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import libcst as cst

from ..apis import METRIC_SUMS
from ..data import Datasets
from ..program import ITER, Origins, method, receiver, within_itself
from ..training import Loops, TrainingLoop

_METRICS = "keras.metrics."


class Seen(Enum):
    """Which examples a metric is updated with between two resets."""

    SHARDED = "each worker's own"
    WHOLE = "all, on every worker"
    BOTH = "both in turn, or unknown ones"


@dataclass(frozen=True)
class Result:
    """`metric.result()`; `summed` says that adding up the ranks' states gives the result over all examples."""

    call: cst.Call
    seen: Seen
    summed: bool


class Metrics:
    """Finds the results of metric objects."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        loops: tuple[TrainingLoop, ...],
        finder: Loops,
        sharded: Collection[cst.CSTNode],
    ) -> None:
        self._origins, self._datasets, self._finder, self._sharded = origins, datasets, finder, sharded
        self._index, self._loops = origins.index, {loop.loop for loop in loops}

    @within_itself(None)
    def result(self, call: cst.Call) -> Result | None:
        """The facts of a call of `result()` on metric objects; None for any other call."""
        made = self._made(receiver(call)) if method(call) == "result" and not call.args else []
        if not made:
            return None
        updates = [u for m in made for u in self.updates.get(m, ())]
        seen = {s for u in updates for s in self._seen(u, ())}
        which = seen.pop() if len(seen) == 1 and all(m in self.updates for m in made) else Seen.BOTH
        exact = {self._class(m) for m in made} <= METRIC_SUMS
        return Result(call, which, exact and which is Seen.SHARDED and not self._finder.is_compiled(call))

    @cached_property
    def updates(self) -> dict[cst.CSTNode, list[cst.Call]]:
        """Metric object -> the calls that update it."""
        found: dict[cst.CSTNode, list[cst.Call]] = {}
        for call in self._index.calls:
            updated = receiver(call) if method(call) == "update_state" else call.func
            for made in self._made(updated) if not self._origins.called(call) else ():
                found.setdefault(made, []).append(call)
        return found

    def _made(self, node: cst.CSTNode) -> list[cst.Call]:
        """The calls that make the metric objects that an expression can be; empty where it is not certainly one."""
        found: list[cst.Call] = []
        for origin in self._origins.of(node):
            elements: list[cst.CSTNode] = [origin.node]
            if isinstance(origin.node, cst.List | cst.Tuple) and origin.path == (ITER,):
                elements = [o.node for e in origin.node.elements for o in self._origins.of(e.value)]
            elif origin.path:
                return []
            for each in elements:
                if not isinstance(each, cst.Call) or self._class(each) is None:
                    return []
                found.append(each)
        return found

    def _class(self, made: cst.Call) -> str | None:
        """The name of the metric's class; of the file's own, ""."""
        api = self._origins.called(made)
        if api.startswith(_METRICS) and api.count(".") == 2 and api.removeprefix(_METRICS)[:1].isupper():
            return api.removeprefix(_METRICS)
        owner = self._origins.constructed(made)
        bases = self._origins.bases(owner) if owner is not None else ()
        return "" if any((b or "").startswith(_METRICS) for b in bases) else None

    def _seen(self, node: cst.CSTNode, calls: tuple[cst.CSTNode, ...]) -> Iterator[Seen]:
        """The examples in the innermost loop over data around an update, for each way to it."""
        if node in calls or len(calls) > 8:
            return
        for loop in self._index.loops_around(node):
            if loop in self._loops:
                yield Seen.SHARDED
                return
            if isinstance(loop, cst.For) and (chains := self._datasets.chains(self._datasets.unwrap(loop.iter))):
                nodes = {n for c in chains for n in c.nodes}
                sharded = any(c.sharded is not None for c in chains) or any(n in self._sharded for n in nodes)
                yield Seen.SHARDED if sharded else Seen.WHOLE
                return
        callers = self._origins.calls_into(node)
        for caller in callers:
            yield from self._seen(caller, (*calls, node))
        if not callers:
            yield Seen.WHOLE
