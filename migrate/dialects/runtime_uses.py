"""Where a script uses the runtime, and what stands there instead: other words for a use, or a line that goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import libcst as cst
import libcst.matchers as m

from ..facts.program import Index, Names, Program, SourceFile
from ..imports import MODULE as RUNTIME
from .horovod import Refused
from .texts import Span

if TYPE_CHECKING:
    from typing_extensions import Self

_ATOMS = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.BaseNumber, cst.SimpleString, cst.List, cst.Dict)
_ARGUMENTS = (
    *_ATOMS,
    cst.BinaryOperation,
    cst.UnaryOperation,
    cst.BooleanOperation,
    cst.Comparison,
    cst.IfExp,
    cst.Lambda,
)
_CLOSED = (cst.Arg, cst.Assign, cst.AnnAssign, cst.Expr, cst.Return, cst.Element, cst.DictElement, cst.Index)


class LeftError(Exception):
    """What is not taken out, and why."""

    def __init__(self, node: cst.CSTNode, message: str) -> None:
        super().__init__(message)
        self.node = node


class RuntimeUses(ABC):
    """What becomes of each use of the runtime in one text. `by_hand`: what to do where one is left."""

    by_hand: ClassVar[str]

    def __init__(self, module: cst.Module) -> None:
        self.file = SourceFile(module)
        self.refused: list[Refused] = []
        self._module = module
        self.imported: list[cst.CSTNode] = []  # the statements that import it, under a name
        self._index = Index(Program(self.file))
        self._names = Names(self._index)
        self._parts: list[Span] = []
        self._lines: set[int] = set()  # that go
        self._dedents: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self._arguments: defaultdict[cst.Call, set[cst.Arg]] = defaultdict(set)  # that go
        self._gone: set[cst.CSTNode] = set()  # statements
        self._done: set[cst.CSTNode] = set()  # uses of the runtime inside of what is replaced as a whole

    @classmethod
    def taken_out(cls, module: cst.Module) -> Self | None:
        """What becomes of a script's uses of the runtime; None where it does not import it."""
        script = cls(module) if RUNTIME in module.code else None
        if script is None or not (script.imports() or script.refused):
            return None
        script.take_out()
        return script

    def spans(self) -> Iterator[Span]:
        """All changes, none of which overlaps another."""
        inside = [*self._parts, *(s for call, gone in self._arguments.items() for s in self._without(call.args, gone))]
        yield from (span for span in inside if span.start[0] not in self._lines)
        yield from (Span((line, 0), (line + 1, 0), "") for line in self._lines)
        for line in self._dedents.keys() - self._lines:
            yield from (Span((line, at), (line, at + count), "") for at, count in self._dedents[line])

    def imports(self) -> list[cst.CSTNode]:
        """The statements that import the runtime, each changed or refused."""
        for node in m.findall(self._module, m.Import() | m.ImportFrom()):
            if RUNTIME not in self.file.code(node):
                continue
            is_usual = m.matches(node, m.Import(names=[m.ImportAlias(asname=m.AsName())])) and self._is_of_runtime(node)
            try:
                if not is_usual:
                    raise LeftError(node, f"`{self.file.code(node)}` is not how a migration imports the runtime")
                self._imported(node)
                self.imported.append(node)
            except LeftError as left:
                self._refuse(node, str(left))
        return self.imported

    def _imported(self, node: cst.CSTNode) -> None:
        """What becomes of the import. Raises LeftError."""
        self._remove(node)

    def _is_of_runtime(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Import) and self.file.code(node.names[0].name) == RUNTIME

    def take_out(self) -> None:
        """Change each use of the runtime, or refuse it."""
        for name in [n for held in self._index.names.values() for n in held if self._names.api(n) == RUNTIME]:
            around = self._index.parents[name]
            if not isinstance(around, cst.Attribute) or around.value is not name:
                self._refuse(name, "the runtime is handed on")
        uses = [(self._of_runtime(n), n) for held in self._index.attributes.values() for n in held]
        for used, node in sorted((use for use in uses if use[0]), key=lambda use: self._index.order[use[1]]):
            try:
                if node not in self._done:
                    self._use(used, node)
            except LeftError as left:
                self._refuse(left.node, str(left))

    def _of_runtime(self, node: cst.CSTNode) -> str:
        """A name of the runtime; empty for others."""
        api = self._names.api(node) or ""
        return api.removeprefix(f"{RUNTIME}.") if api.startswith(f"{RUNTIME}.") else ""

    @abstractmethod
    def _use(self, name: str, node: cst.Attribute) -> None:
        """Change one use of a name of the runtime. Raises LeftError."""

    def _is_closed(self, call: cst.Call) -> bool:
        """Whether any expression may stand in place of the call."""
        return bool(call.lpar) or isinstance(self._index.parents[call], _CLOSED)

    @staticmethod
    def _is_open(value: cst.BaseExpression, may_be_cut: bool) -> bool:
        """Whether a value stands in brackets, or needs them: it would be cut, or it stands in those of its call."""
        return bool(value.lpar) or not isinstance(value, _ATOMS if may_be_cut else _ARGUMENTS)

    def _remove(self, node: cst.CSTNode) -> None:
        """The line of a statement, or of a decorator; blank lines go with it behind another that goes."""
        line = node if isinstance(node, cst.Decorator) else self._index.parents[node]
        first, last = (at for at, _ in self.file.span(line))
        if isinstance(line, cst.SimpleStatementLine):
            block = self._index.parents[line]
            body: Sequence[cst.CSTNode] = block.body if isinstance(block, cst.Module | cst.IndentedBlock) else ()
            if len(line.body) > 1 or line not in body:
                raise LeftError(node, f"`{self.file.code(node)}` does not stand in a line of its own")
            self._gone.add(line)
            if self._gone.issuperset(body):
                self._parts.append(Span(*self.file.span(node), "pass"))
                return
            place = body.index(line)
            blank = all(each.comment is None for each in line.leading_lines)
            first -= len(line.leading_lines) if place and body[place - 1] in self._gone and blank else 0
        self._lines |= set(range(first, last + 1))

    def _without(self, args: Sequence[cst.Arg], gone: set[cst.Arg]) -> Iterator[Span]:
        """What goes of the arguments of a call, with the commas."""
        at = [self.file.span(arg) for arg in args]
        kept = [n for n, arg in enumerate(args) if arg not in gone]
        if not kept:
            yield Span(at[0][0], at[-1][1], "")
            return
        if kept[0] > 0:
            yield Span(at[0][0], at[kept[0]][0], "")
        for before, after in zip(kept, [*kept[1:], len(args)], strict=True):
            if after - before > 1:
                yield Span(at[before][1], at[after - 1][1], "")

    def _refuse(self, node: cst.CSTNode, message: str) -> None:
        self.refused.append(Refused(*self.file.position(node), message, self.by_hand))
