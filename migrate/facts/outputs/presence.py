"""Questions about files whose answer the script itself changes: `if not os.path.exists("data"): make it`.

Each rank would ask for itself, and one that comes late finds what another has begun to make, or to delete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import libcst as cst

from ... import outputs
from ...catalogue import Kind
from ..program import ITER, Index, Origins, nodes, within, within_itself
from .writers import Writers

_FOLDERS = frozenset({"folder", "path"})
_CHANGES = frozenset({"save", "open", "format", "once"}) | _FOLDERS
_HARMLESS = frozenset({"print", "show"})
_ENDS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})
_DRAWS = ("numpy.random.", "random.", "keras.random.", "tensorflow.random.")
_NO_DRAWS = ("RandomState", "default_rng", "Generator", "SeedSequence", "Random", "SystemRandom")
_ITEMS = frozenset({"__getitem__", "__len__", "__iter__", "__next__"})
# Callbacks that write: tfdp.runtime lets them act on rank 0 only.
_BY_ROOT = (".ModelCheckpoint", ".TensorBoard", ".CSVLogger", ".BackupAndRestore", ".RemoteMonitor", ".OrbaxCheckpoint")


class Presence:
    """Finds the statements that ask about files and decide what is written."""

    def __init__(self, origins: Origins, writers: Writers) -> None:
        self._origins, self._writers = origins, writers

    @property
    def _index(self) -> Index:
        return self._origins.index

    @cached_property
    def statements(self) -> tuple[cst.If | cst.While, ...]:
        """Where the ranks' answers may part, and something follows from that besides folders that all of them make."""
        tests = (n for n in self._index.order if isinstance(n, cst.If | cst.While))
        return tuple(s for s in tests if self.asks(s.test) and self._changes(s))

    @cached_property
    def choices(self) -> tuple[cst.IfExp, ...]:
        """`load(path) if os.path.exists(path) else make(path)`, where one of the two writes."""
        found = (n for n in self._index.order if isinstance(n, cst.IfExp))
        return tuple(n for n in found if self.asks(n.test) and self._kinds([n.body, n.orelse]) & _CHANGES)

    def asks(self, node: cst.CSTNode) -> bool:
        """Whether a value says which files there are; what is read from a file, or done for each of them, does not."""
        seen: set[cst.CSTNode] = set()
        todo = [node]
        while todo:
            each = todo.pop()
            if each in seen:
                continue
            seen.add(each)
            if isinstance(each, cst.Call):
                if self._is_presence(each):
                    return True
                todo += self._answers_of(each)
            elif isinstance(each, cst.Name | cst.Attribute):
                made = [o.node for o in self._origins.of(each) if ITER not in o.path]
                todo += [m for m in made if isinstance(m, cst.BaseExpression)]
            else:
                todo += each.children
        return False

    def _is_presence(self, call: cst.Call) -> bool:
        if (api := self._origins.names.api(call.func)) is not None:
            return api in outputs.PRESENCE
        method = call.func if isinstance(call.func, cst.Attribute) else None
        if method is None or self._origins.function(method) is not None:
            return False
        return method.attr.value in outputs.PATH_PRESENCE and self._writers.is_path(method.value)

    def _answers_of(self, call: cst.Call) -> list[cst.BaseExpression]:
        """The values by which a call says which files there are, if it does."""
        api, function = self._origins.names.api(call.func) or "", self._origins.function(call.func)
        if function is not None:
            return [r.value for r in self._index.returns[function] if r.value is not None]
        return [a.value for a in call.args] if api.startswith("builtins.") and api != "builtins.open" else []

    def _changes(self, statement: cst.If | cst.While) -> bool:
        branches = [b for b in (statement.body, statement.orelse) if b is not None]
        later = list(self._later(statement)) if isinstance(statement, cst.While) or self._leaves(statement) else []
        if not later and all(self._harmless(s) for b in branches for s in _plain(b)):
            return False
        return bool(self._kinds([*branches, *later]) & _CHANGES)

    def _harmless(self, statement: cst.CSTNode) -> bool:
        """Whether it makes a folder unless that is there, or says something: each rank may."""
        if isinstance(statement, cst.Pass):
            return True
        call = statement.value if isinstance(statement, cst.Expr) else None
        return isinstance(call, cst.Call) and self._writers.kind(call) in _FOLDERS | _HARMLESS

    def _leaves(self, statement: cst.If) -> bool:
        """Whether what comes after is decided, too. An error where something is missing comes before all writing."""
        absent = isinstance(statement.test, cst.UnaryOperation) and isinstance(statement.test.operator, cst.Not)
        for node in nodes(statement.body):
            if isinstance(node, cst.Return | cst.Continue | cst.Break):
                return True
            ends = isinstance(node, cst.Call) and self._origins.names.api(node.func) in _ENDS
            if (ends or isinstance(node, cst.Raise)) and not absent:
                return True
        return False

    def _later(self, statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What the same function does after the statement."""
        function = self._index.enclosing_function(statement)
        place = self._index.order[statement]
        for call in self._index.calls:
            same = self._index.enclosing_function(call) is function
            if same and self._index.order[call] > place and not within(self._index, call, statement):
                yield call

    def _kinds(self, parts: Iterable[cst.CSTNode]) -> set[str | None]:
        found: set[str | None] = set()
        for call in self._calls(parts):
            found.add(self._writers.kind(call))
        return found

    def _calls(self, parts: Iterable[cst.CSTNode]) -> Iterator[cst.Call]:
        """All calls, also in the file's own functions that are called."""
        todo, seen = list(parts), set[cst.CSTNode]()
        while todo:
            for node in nodes(todo.pop()):
                if not isinstance(node, cst.Call) or node in seen:
                    continue
                seen.add(node)
                yield node
                function = self._origins.function(node.func)
                if function is not None and function not in seen:
                    seen.add(function)
                    todo.append(function.body)

    # --- who may answer -----------------------------------------------------------------------------------------------

    def alone(self, statement: cst.If) -> bool:
        """Whether no call in a statement leaves rank 0 in another state than the others: by a draw, or out of sight."""
        inside = set(nodes(statement))
        return not any(
            self.draws(n, inside) or self._origins.function(n.func) is not None or self._origins.constructed(n)
            for n in inside
            if isinstance(n, cst.Call)
        )

    def draws(self, call: cst.Call, inside: set[cst.CSTNode]) -> bool:
        """Whether a call draws from a generator that is used elsewhere, too, or seeds it."""
        api = self._origins.names.api(call.func)
        if api is not None:
            return api.startswith(_DRAWS) and not api.endswith(_NO_DRAWS) and ".stateless_" not in api
        if not isinstance(call.func, cst.Attribute) or Kind.GENERATOR not in self._origins.kinds(call.func.value):
            return False
        return any(o.node not in inside for o in self._origins.of(call.func.value))

    def out_of_step(self, node: cst.CSTNode) -> bool:
        """Whether a node is run for single items of data, of which each rank has others, or by rank 0's callbacks."""
        function = self._index.enclosing_function(node)
        return function is not None and self._runs_apart(function)

    @within_itself(False)
    def _runs_apart(self, function: cst.FunctionDef) -> bool:
        owner = self._index.enclosing_class(function)
        items = owner is not None and function.name.value in _ITEMS
        by_root = owner is not None and any((b or "").endswith(_BY_ROOT) for b in self._origins.bases(owner))
        apart = items or by_root or function in self._index.generators
        return apart or any(self.out_of_step(c) for c in self._origins.calls_of(function))


def _plain(block: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements of a block, conditions and loops with it replaced by what is in them."""
    for child in block.children:
        if isinstance(child, cst.BaseSmallStatement | cst.With | cst.Try | cst.FunctionDef | cst.ClassDef):
            yield child
        elif isinstance(child, cst.BaseSuite | cst.SimpleStatementLine | cst.If | cst.For | cst.While | cst.Else):
            yield from _plain(child)
