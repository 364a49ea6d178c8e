"""Questions about files whose answer the script itself changes: `if not os.path.exists("data"): make it`.

Each rank would ask for itself, and one that comes late finds what another has begun to make, or to delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from functools import cached_property

import libcst as cst

from ... import outputs
from ...catalogue import Kind
from ...outputs import EffectKind
from ..apis import OF_ITEMS, SEEDED
from ..program import ITER, Origins, closure, entered, leading, method, nodes, receiver, within
from .writers import Writers

_CHANGES = frozenset({EffectKind.SAVE, EffectKind.OPEN, EffectKind.OPEN_FORMAT, EffectKind.ONCE}) | outputs.FOLDERS
_HARMLESS = frozenset({EffectKind.PRINT, EffectKind.SHOW}) | outputs.FOLDERS


class Presence:
    """Finds the statements that ask about files and decide what is written."""

    def __init__(self, origins: Origins, writers: Writers) -> None:
        self._origins, self._index, self._writers = origins, origins.index, writers

    @cached_property
    def statements(self) -> tuple[cst.If | cst.While, ...]:
        """Where the ranks' answers may part, and something follows from that besides folders that all of them make."""
        tests = (n for n in self._index.order if isinstance(n, cst.If | cst.While))
        return tuple(s for s in tests if self.asks(s.test) and self._changes(s))

    def asks(self, node: cst.CSTNode) -> bool:
        """Whether a value says which files there are; what is read from a file, or done for each of them, does not."""
        return any(self._is_presence(n) for n in closure([node], self._made_of))

    def _is_presence(self, node: cst.CSTNode) -> bool:
        if (api := self._origins.called(node)) or not isinstance(node, cst.Call):
            return api in outputs.PRESENCE
        named = method(node) in outputs.PATH_PRESENCE and self._origins.function(node.func) is None
        return named and self._writers.is_path(receiver(node))

    def _made_of(self, node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        """The values by which a value says which files there are, if it does."""
        if isinstance(node, cst.Name | cst.Attribute):
            made = [o.node for o in self._origins.of(node) if ITER not in o.path]
            return [m for m in made if isinstance(m, cst.BaseExpression)]
        if not isinstance(node, cst.Call):
            return node.children
        if (function := self._origins.function(node.func)) is not None:
            return self._index.returned(function)
        api = self._origins.called(node)
        return [a.value for a in node.args] if api.startswith("builtins.") and api != "builtins.open" else []

    def _changes(self, statement: cst.If | cst.While) -> bool:
        branches = [b for b in (statement.body, statement.orelse) if b is not None]
        later = self._later(statement) if isinstance(statement, cst.While) or self._leaves(statement) else []
        harmless = not later and all(self._is_harmless(s) for b in branches for s in _plain(b))
        return not harmless and self._writes([*branches, *later])

    def _is_harmless(self, statement: cst.CSTNode) -> bool:
        """Whether it makes a folder unless that is there, or says something: each rank may."""
        call = statement.value if isinstance(statement, cst.Expr) else None
        says = isinstance(call, cst.Call) and self._writers.kind(call) in _HARMLESS
        return says or isinstance(statement, cst.Pass)

    def _leaves(self, statement: cst.If) -> bool:
        """Whether what comes after is decided, too. An error where something is missing comes before all writing."""
        absent = isinstance(statement.test, cst.UnaryOperation) and isinstance(statement.test.operator, cst.Not)
        inside = list(nodes(statement.body))
        ends = any(isinstance(n, cst.Raise) or self._origins.called(n) in outputs.ENDS for n in inside)
        return (ends and not absent) or any(isinstance(n, cst.Return | cst.Continue | cst.Break) for n in inside)

    def _later(self, statement: cst.CSTNode) -> list[cst.Call]:
        """What the same function does after the statement."""
        index, function = self._index, self._index.enclosing_function(statement)
        after = (c for c in index.calls if index.order[c] > index.order[statement] and not within(index, c, statement))
        return [c for c in after if index.enclosing_function(c) is function]

    def _writes(self, parts: Iterable[cst.CSTNode]) -> bool:
        """Whether some parts of the script change files, themselves or by the file's own functions."""
        calls = (n for part in entered(self._origins, parts) for n in nodes(part) if isinstance(n, cst.Call))
        return any(self._writers.kind(call) in _CHANGES for call in calls)

    # --- who may answer -----------------------------------------------------------------------------------------------

    def alone(self, statement: cst.If) -> bool:
        """Whether no call in a statement leaves rank 0 in another state than the others: by a draw, or out of sight."""
        inside = set(nodes(statement))
        return not any(
            self.draws(n, inside) or self._origins.function(n.func) is not None or self._origins.constructed(n)
            for n in inside
            if isinstance(n, cst.Call)
        )

    def draws(self, call: cst.Call, inside: AbstractSet[cst.CSTNode]) -> bool:
        """Whether a call draws from a generator that is used elsewhere, too, or seeds it."""
        if api := self._origins.called(call):
            return SEEDED.match(api) is not None
        if not method(call) or Kind.GENERATOR not in self._origins.kinds(receiver(call)):
            return False
        return any(o.node not in inside for o in self._origins.of(receiver(call)))

    def out_of_step(self, node: cst.CSTNode) -> bool:
        """Whether a node is run for single items of data, of which each rank has others, or by rank 0's callbacks."""
        around = (self._index.enclosing_function(n) for n in leading(self._origins, [node]))
        return any(self._runs_apart(function) for function in around if function is not None)

    def _runs_apart(self, function: cst.FunctionDef) -> bool:
        owner = self._index.enclosing_class(function)
        item = owner is not None and function.name.value in OF_ITEMS
        return item or function in self._index.generators or self._origins.below(owner, "", outputs.WRITING_CALLBACKS)


def _plain(block: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements of a block, conditions and loops with it replaced by what is in them."""
    for child in block.children:
        if isinstance(child, cst.BaseSmallStatement | cst.With | cst.Try | cst.FunctionDef | cst.ClassDef):
            yield child
        elif isinstance(child, cst.BaseSuite | cst.SimpleStatementLine | cst.If | cst.For | cst.While | cst.Else):
            yield from _plain(child)
