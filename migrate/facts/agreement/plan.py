"""What all ranks come to alike, and which results of metrics are made those of all examples (SEMANTICS.md 6).

Values that decide are alike on all ranks: where input is sharded a script keeps within the vocabulary, and where calls
are, what it asks of its machine is rank 0's.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import libcst as cst

from ..apis import CALLS_IT
from ..program import Later, Origins, StepNumbers, reaching, tests_around, within
from ..training import TrainingLoop, loop_exits
from .metrics import Metrics, Seen


class Agreement:
    """Which places all ranks reach, and which metrics are summed."""

    def __init__(
        self,
        origins: Origins,
        loops: tuple[TrainingLoop, ...],
        *,
        fits: Collection[cst.CSTNode] = (),
        metrics: Metrics | None = None,
    ) -> None:
        """`fits` are calls of Keras' fit, or others that train. `metrics` are given where each rank has its share of
        the records."""
        self._origins, self._index, self._loops, self._fits = origins, origins.index, loops, fits
        self._metrics = metrics
        self._steps = StepNumbers(origins, [loop.loop for loop in loops])

    @cached_property
    def results(self) -> tuple[cst.Call, ...]:
        """Results of metrics that each rank has of its own examples, and that are to be those of all."""
        metrics = self._metrics
        if metrics is None or not (self._loops or self._fits):
            return ()
        found = (metrics.result(call) for call in self._index.methods("result"))
        return tuple(r.call for r in found if r is not None and r.summed and self.certain(r.call))

    def is_of_all(self, call: cst.Call) -> bool:
        """Whether a metric's `result()` is, or is made, that of all examples, each counted as in one process.

        Of other calls, whether they update a metric that is known.
        """
        if self._metrics is None:
            return False
        found = self._metrics.result(call)
        if found is None:
            return any(call in calls for calls in self._metrics.updates.values())
        return found.seen is Seen.WHOLE or call in self.results

    def certain(self, node: cst.CSTNode, called: tuple[cst.FunctionDef, ...] = ()) -> bool:
        """Whether all ranks reach the node alike, also through the calls that lead to it."""
        child = node
        for parent in self._index.ancestors(node):
            if isinstance(parent, cst.ExceptHandler | cst.Lambda):
                return False
            if isinstance(parent, cst.GeneratorExp) and child is not parent.for_in:
                return False  # asked for as far as somebody asks, as `any` and `next` do
            if isinstance(parent, cst.FunctionDef):
                if child is not parent.body or parent in called:  # a call of itself, by ranks that are alike in it
                    return True
                return len(called) < 8 and self._called_alike(parent, (*called, parent))
            child = parent
        return True

    def _called_alike(self, function: cst.FunctionDef, called: tuple[cst.FunctionDef, ...]) -> bool:
        for use in self._index.names.get(function.name.value, ()):
            given = self._index.parents[use]
            handed_on = isinstance(given, cst.Arg) and self._origins.called(self._index.parents[given]) not in CALLS_IT
            if handed_on and any(d.value is function for d in reaching(self._index, use)):
                return False
        return all(self.certain(c, called) for c in self._origins.calls_of(function))

    def equal_ends(self, loop: TrainingLoop) -> set[cst.CSTNode]:
        """The `break`s, `return`s and `while`s of a training loop to whose end all ranks come, by no step count."""
        whiles = [o for o in (loop.loop, *loop.outer) if isinstance(o, cst.While)]
        places = [*((e, e) for e in loop_exits(loop)), *((o, o.body) for o in whiles)]
        return {end for end, place in places if self._ends_alike(place)}

    def _ends_alike(self, node: cst.CSTNode) -> bool:
        innermost = self._index.loops_around(node)[:1]
        around = tests_around(node, self._origins)
        tests = [t for t in around if all(within(self._index, t, loop) for loop in innermost)]
        return bool(tests) and self.certain(node) and Later.COUNT not in self._steps.all(tests)
