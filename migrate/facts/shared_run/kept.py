"""What the text keeps to rank 0 where every worker runs the whole script: what the runtime does not see."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ... import outputs
from ...outputs import EffectKind
from ..outputs import Ask, Effect, Trackers, Writers, is_on_root, is_plain
from ..program import Origins, method


class Kept:
    """Downloads, runs of trackers, and what packages write or show by code of their own."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._writers = origins, Writers(origins)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """All of it, outside any guard."""
        return (*self._of_packages(), *self._of_runs())

    def writes(self, call: cst.Call) -> bool:
        """Whether a call writes, so that the workers must have started before it."""
        return self._writers.kind(call) not in {None, EffectKind.PRINT}

    def _of_packages(self) -> Iterator[Effect]:
        for call in self._origins.index.calls:
            kind = self._writers.kind(call)
            if kind is None or is_on_root(self._origins, call):
                continue
            by_itself = self._origins.called(call).startswith(outputs.BY_THEMSELVES)
            if kind is EffectKind.FETCH or by_itself or method(call) in outputs.NATIVE_TABLES:
                yield Effect(call, None, kind)

    def _of_runs(self) -> Iterator[Effect]:
        index, told = self._origins.index, set[cst.CSTNode]()
        for node, ask in Trackers(self._origins).uses:
            if is_on_root(self._origins, node):
                continue
            statement = index.parents[node]
            given = isinstance(node, cst.Call) and not told.isdisjoint(index.ancestors(node))
            if ask is Ask.TELLS or given:
                told.add(node)
                yield Effect(node, None, EffectKind.RUN)
            elif ask is Ask.STATES and isinstance(statement, cst.Expr) and self._is_plain(node):
                yield Effect(node, statement, EffectKind.RUN)
            else:
                yield Effect(node, None, EffectKind.READ_RUN)

    def _is_plain(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Call) and is_plain(self._origins, node)
