"""Whether it decides something that a call fails: then all ranks must know of it, not rank 0 alone."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...outputs import EffectKind
from ..apis import EXITS
from ..program import Origins, nodes, within_itself
from .changing import Changing, Leaves
from .exceptions import Exceptions
from .writers import Writers

_TELLS = frozenset({EffectKind.PRINT, EffectKind.SAVE, EffectKind.SHOW})


class Failing:
    """Asks what follows from an exception at a place: by handlers around it, also around calls of its function."""

    def __init__(self, origins: Origins, writers: Writers, changing: Changing) -> None:
        self._origins, self._index, self._writers, self._changing = origins, origins.index, writers, changing
        self._exceptions = Exceptions(origins)

    @within_itself(False)
    def decides(self, place: cst.CSTNode, skips: bool = False) -> bool:
        """Whether the script goes on in another way after an exception at a place; `skips` tells whether what the
        exception would skip so far does more than write and report."""
        child = place
        for parent in self._index.ancestors(place):
            if isinstance(parent, cst.FunctionDef):
                calls = self._origins.calls_of(parent)
                return any(self.decides(c, skips or not self._stands_alone(c)) for c in calls)
            if isinstance(parent, cst.ClassDef | cst.Lambda):
                return False
            if self._ends_at(parent, child, skips):
                return True
            skips = skips or not all(map(self._only_reports, self._skipped(parent, child)))
            child = parent
        return False

    def _stands_alone(self, call: cst.Call) -> bool:
        return isinstance(self._index.parents[call], cst.Expr)

    def _ends_at(self, parent: cst.CSTNode, child: cst.CSTNode, skips: bool) -> bool:
        """Whether an exception in the body of a node may end there, and something follows from that."""
        if isinstance(parent, cst.With) and child is parent.body:
            return skips and any(self._exceptions.suppresses(item.item) for item in parent.items)
        if not isinstance(parent, cst.Try) or child is not parent.body:
            return False
        caught = [handler for handler in parent.handlers if not self._exceptions.ends(handler)]
        parts = [*(handler.body for handler in caught), *([parent.orelse.body] if parent.orelse is not None else [])]
        return bool(caught) and (skips or not all(map(self._only_reports, parts)))

    def _skipped(self, parent: cst.CSTNode, child: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What an exception in a part of a node skips of it."""
        if isinstance(parent, cst.For | cst.While):
            yield parent.body
        elif isinstance(parent, cst.BaseSuite | cst.SimpleStatementLine):
            yield from parent.body[list(parent.body).index(child) + 1 :]

    def _only_reports(self, part: cst.CSTNode) -> bool:
        """Whether some statements only write, report or raise: the other ranks need nothing of that."""
        inside = set(nodes(part))
        plain = all(self._is_plain(n) for n in inside if isinstance(n, cst.BaseSmallStatement))
        return plain and self._changing.of([part], inside) is Leaves.NOTHING

    def _is_plain(self, statement: cst.BaseSmallStatement) -> bool:
        if not isinstance(statement, cst.Expr):
            return isinstance(statement, cst.Pass | cst.Raise)
        said = statement.value
        if isinstance(said, cst.Call):
            return self._writers.kind(said) in _TELLS or self._origins.called(said) in EXITS
        return isinstance(said, cst.BaseString)
