"""Where the number of the step is used for what is not known.

A widened script has fewer steps. All that it does with what counts them is held against a list of what is known:
to show it, to go on counting, to end training where that number is divided, and to say where the examples are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import ASSIGNS, READS_NUMBER
from ..program import Later, Origins, StepNumbers, fold, is_of_names, method, nodes, reaching, receiver
from .reads import reads

_COMPUTES = ("builtins.int", "builtins.float", "builtins.str", "builtins.round", "builtins.format")
_SHOWS = ("builtins.print", "tensorflow.print", "tensorflow.summary.", "logging.")
_BAR = "keras.utils.Progbar"
_ENDS = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr, cst.Return, cst.Yield)
_QUESTIONS = (cst.If, cst.IfExp, cst.While)


class Counted:
    """What a file does with the number of the step.

    shown: calls that show or write what they are given. divided: where a number of steps is divided. asked: questions
    that are known otherwise; judged: what else is.
    """

    def __init__(
        self,
        origins: Origins,
        pace: StepNumbers,
        *,
        shown: Collection[cst.CSTNode],
        divided: Collection[cst.CSTNode],
        asked: Collection[cst.CSTNode],
        judged: Collection[cst.CSTNode],
    ) -> None:
        self._origins, self._index, self._pace = origins, origins.index, pace
        self._shown, self._divided, self._asked, self._judged = shown, divided, asked, judged
        self._counts: dict[cst.CSTNode, bool] = {}

    def odd(self) -> Iterator[cst.CSTNode]:
        """Where it is used for something else."""
        calls = (call for call in self._index.calls if self._origins.function(call.func))
        for read in (*reads(self._origins), *calls):
            if self._count(read) and not self._is_known(read):
                yield read

    def _count(self, node: cst.CSTNode) -> bool:
        """Whether a name counts steps, or is given what is computed from one that does."""
        if node not in self._counts:
            self._counts[node] = False  # while it is being asked
            self._counts[node] = self._pace.begins(node) or any(map(self._counts_in, self._given(node)))
        return self._counts[node]

    def _given(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """What a name is given, by calls of its function, too; what such a call gives back."""
        if isinstance(node, cst.Call):
            function = self._origins.function(node.func)
            yield from self._index.given_back(function) if isinstance(function, cst.FunctionDef) else ()
        elif Later.COUNT not in self._pace.of(node):
            return
        elif isinstance(node, cst.Name):
            for definition in reaching(self._index, node):
                if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
                    yield from self._passed(definition.scope, definition.name)
                elif definition.kind != "for" and definition.value is not None:
                    yield definition.value
        elif isinstance(node, cst.Attribute):
            yield from (value for value, _ in self._origins.stored(node))

    def _passed(self, function: cst.FunctionDef, name: str) -> Iterator[cst.CSTNode]:
        bound = (self._origins.bind(call, function).get(name) for call in self._origins.calls_of(function))
        yield from (value for value in bound if value is not None)

    def _counts_in(self, value: cst.CSTNode) -> bool:
        return any(self._count(each) for each in nodes(value) if isinstance(each, cst.Name | cst.Attribute | cst.Call))

    def _is_known(self, read: cst.BaseExpression) -> bool:
        if read in self._divided or self._pace.is_in_own_change(read):
            return True
        if any(each in self._judged for each in (read, *self._index.ancestors(read))):
            return True
        node: cst.CSTNode = read
        for above in self._index.ancestors(read):
            if above in self._shown or above in self._divided:
                return True
            if isinstance(above, _QUESTIONS) and above.test is node:
                return above in self._asked
            if isinstance(above, cst.Call) and not self._computes(above, node):
                return self._takes(above, node)
            if isinstance(above, _ENDS):
                return _is_named(above)  # and counts steps, too
            if self._says_which(above):
                return True
            if isinstance(above, cst.BaseExpression) and Later.COUNT not in self._pace.of(above):
                return True  # such as a sum over the steps divided by their number
            if isinstance(above, cst.BaseStatement | cst.BaseSmallStatement | cst.CompFor | cst.Lambda):
                return isinstance(above, cst.Expr)
            node = above
        return False

    def _says_which(self, above: cst.CSTNode) -> bool:
        """Whether it says which numbers are drawn."""
        return isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "seed"

    def _computes(self, call: cst.Call, part: cst.CSTNode) -> bool:
        """Whether a call gives the same number, of which `part` is what is called, or an argument."""
        if part is call.func:
            return method(call) in READS_NUMBER and not call.args
        return fold(self._origins.called(call)).startswith(_COMPUTES)

    def _takes(self, call: cst.Call, part: cst.CSTNode) -> bool:
        """Whether what a call does with it is known: it counts on, it is a function of the file, or only shows it."""
        if part is call.func:
            return method(call) in ASSIGNS
        if self._origins.kind(call.func) is Kind.PROGRESS or self._shows_progress(call):
            return True
        is_followed = isinstance(self._origins.function(call.func), cst.FunctionDef) or self._origins.constructed(call)
        return bool(is_followed) or fold(self._origins.called(call)).startswith(_SHOWS)

    def _shows_progress(self, call: cst.Call) -> bool:
        if not isinstance(call.func, cst.Attribute):
            return False
        made = [origin.node for origin in self._origins.of(receiver(call))]
        bars = [self._origins.called(each) == _BAR for each in made]
        return Kind.PROGRESS in self._origins.kinds(receiver(call)) or (bool(bars) and all(bars))


def _is_named(end: cst.CSTNode) -> bool:
    """Whether what is assigned gets a name, under which it is found again."""
    if isinstance(end, cst.Assign):
        return all(is_of_names(each.target) for each in end.targets)
    return not isinstance(end, cst.AnnAssign | cst.AugAssign) or is_of_names(end.target)
