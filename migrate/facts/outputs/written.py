"""What a script writes and shows where each worker has its share of the records: rank 0 alone is to do it.

Such a script keeps within the vocabulary, which has few ways to write and none to read what was written.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import libcst as cst

from ...outputs import EffectKind
from ..apis import ONLY_COMPUTES
from ..counting import shown
from ..keras import Fit
from ..program import Origins, method, nodes
from .guards import is_on_root
from .writers import Writers

_TRAINED = ("trainable_variables", "trainable_weights")
_METHODS = frozenset({"format", "join", "numpy", "strftime"})  # that only compute
_HAPPENS = (cst.Await, cst.NamedExpr, cst.Yield)


@dataclass(frozen=True)
class Effect:
    """A call that writes or shows.

    guard: the statement that rank 0 alone can run in its stead; None where all ranks compute what the call is given, or
    the call itself is changed.
    """

    call: cst.Call | cst.Attribute | cst.Name
    guard: cst.Expr | None
    kind: EffectKind


class Written:
    """Everything is computed on first use and never changes."""

    def __init__(self, origins: Origins, fits: Iterable[Fit], *, trains: bool) -> None:
        """`fits`: the calls of Keras' fit. Where nothing `trains`, it is not asked what the script writes."""
        self._origins, self._index = origins, origins.index
        self._fits, self._trains = tuple(fits), trains

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What is written and shown, outside any guard."""
        # What has trainable variables is a model, whatever class out of sight has made it.
        trained = (node.value for name in _TRAINED for node in self._index.attributes.get(name, ()))
        models = (*(fit.model for fit in self._fits), *trained)
        writers = Writers(self._origins, {o.node for model in models for o in self._origins.of(model)})
        calls = self._index.calls if self._trains else ()
        kinds = ((call, writers.kind(call)) for call in calls if not is_on_root(self._origins, call))
        return tuple(Effect(call, self._guard(call, kind), kind) for call, kind in kinds if kind is not None)

    def _guard(self, call: cst.Call, kind: EffectKind) -> cst.Expr | None:
        statement = self._index.parents[call]
        if not isinstance(statement, cst.Expr):
            return None
        if kind is EffectKind.PRINT:  # to make a text of something may do anything
            return statement if all(isinstance(each.value, cst.SimpleString) for each in call.args) else None
        return statement if kind is EffectKind.SAVE and is_plain(self._origins, call) else None

    @property
    def shown(self) -> tuple[tuple[cst.Call, int], ...]:
        """Calls of a Keras model that show their progress on every rank, with the position of `verbose`."""
        guards = {e.guard for e in self.effects if e.guard is not None}
        return tuple(
            (c, p)
            for c, p in shown(self._origins, self._fits)
            if not is_on_root(self._origins, c) and not any(above in guards for above in self._index.ancestors(c))
        )

    def may_follow(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `second` can run after `first`: by the text, or by a loop around both, where their ways part."""
        return any(self._follows(a, b) for a in self._ways(first) for b in self._ways(second))

    def _follows(self, first: tuple[cst.CSTNode, ...], second: tuple[cst.CSTNode, ...]) -> bool:
        a, b = next(((a, b) for a, b in zip(first, second, strict=False) if a is not b), (first[-1], second[-1]))
        common = set(self._index.loops_around(a)) & set(self._index.loops_around(b))
        return bool(common) or self._index.order[a] < self._index.order[b]

    def _ways(self, node: cst.CSTNode, depth: int = 0) -> list[tuple[cst.CSTNode, ...]]:
        """The calls that lead to a node, the outermost first, for each way through the script's own functions."""
        function = self._index.enclosing_function(node)
        callers = self._origins.calls_of(function) if function is not None and depth < 8 else []
        ways = ((*way, node) for caller in callers[:8] for way in self._ways(caller, depth + 1))
        return list(islice(ways, 64)) or [(node,)]


def is_plain(origins: Origins, call: cst.Call) -> bool:
    """Whether nothing happens where it is computed what a call is given."""
    inside = [node for given in call.args for node in nodes(given.value)]
    calls = (node for node in inside if isinstance(node, cst.Call))
    if any(isinstance(node, _HAPPENS) for node in inside):
        return False
    return all(ONLY_COMPUTES.match(origins.called(each)) or method(each) in _METHODS for each in calls)
