"""Exceptions that one worker's examples may raise, and after which the script goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..apis import CONTEXT_MAKERS, ENDINGS, ENTERS_CONTEXT, EXITS, SUPPRESSES
from ..program import Frames, Origins, is_off, last_name, method, nodes, number, tests_around
from .marks import Mark, Marks

_ENTERED = 4  # functions of the file that are looked into for what raises
_LEAVES = cst.Return | cst.Break | cst.Continue
_DIVIDES = cst.Divide | cst.FloorDivide | cst.Modulo
_Function = cst.FunctionDef | cst.Lambda


class Exceptions:
    """`value` gives the marks of a value."""

    def __init__(self, origins: Origins, value: Callable[[cst.CSTNode, Frames], Marks]) -> None:
        self._origins, self._index, self._value = origins, origins.index, value

    def before(self, place: cst.CSTNode, frames: Frames = ()) -> Iterator[cst.CSTNode]:
        """Calls, and the like, before a place in its own function or at it, that may raise by this worker's examples,
        where the function goes on after that."""
        child, last = place, self._index.order[place]
        for parent in self._index.ancestors(place):
            tried = self._tried(parent, child)
            earlier = nodes(tried) if tried is not None else ()
            yield from (n for n in earlier if self._index.order[n] <= last and self._may_raise(n, frames))
            yield from self._may_be_none(parent, child, frames)
            if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                return
            child = parent

    def _may_be_none(self, parent: cst.CSTNode, child: cst.CSTNode, frames: Frames) -> Iterator[cst.CSTNode]:
        """`next(v for v in batch if …)` where it is caught that there is none."""
        block = self._index.parents[parent] if isinstance(parent, cst.ExceptHandler) else parent
        if not isinstance(block, cst.Try) or (parent is block and child not in {block.body, block.orelse}):
            return
        if any(map(self.ends, block.handlers)):
            asked = (n for n in nodes(block.body) if self._origins.called(n) == "builtins.next")
            for call in (n for n in asked if isinstance(n, cst.Call) and len(n.args) == 1):
                made = self._origins.made(call.args[0].value)
                if isinstance(made, cst.GeneratorExp) and self._is_own(made, frames):
                    yield call

    def _tried(self, parent: cst.CSTNode, child: cst.CSTNode) -> cst.CSTNode | None:
        """What of a node around a place, or before it, may end by an exception after which the script goes on."""
        if isinstance(parent, cst.ExceptHandler):
            return None if self.ends(parent) else cst.ensure_type(self._index.parents[parent], cst.Try).body
        if isinstance(parent, cst.Try) and child in {parent.body, parent.orelse}:
            return parent.body if self._catches(parent) else None
        if isinstance(parent, cst.With) and child is parent.body:
            return parent.body if any(self.suppresses(item) for item in self._contexts(parent)) else None
        if isinstance(parent, cst.FunctionDef) and child is parent.body:
            wrapped = any(self.suppresses(d.decorator) or self._wraps(d.decorator) for d in parent.decorators)
            return parent.body if wrapped else None
        return None

    # --- what goes on after an exception ------------------------------------------------------------------------------

    def ends(self, handler: cst.ExceptHandler) -> bool:
        """Whether the exception says that there is no more, or that somebody stopped the script."""
        return handler.type is not None and _names_an_end(handler.type)

    def _catches(self, block: cst.Try) -> bool:
        """Whether training goes on after an exception in the block."""
        if any(self._goes_on(handler) for handler in block.handlers):
            return True
        return block.finalbody is not None and any(isinstance(n, _LEAVES) for n in nodes(block.finalbody))

    def _goes_on(self, handler: cst.ExceptHandler) -> bool:
        last = handler.body.body[-1] if isinstance(handler.body, cst.IndentedBlock) and handler.body.body else None
        leaving = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
        called = self._origins.called(leaving.value) if isinstance(leaving, cst.Expr) else ""
        return not (self.ends(handler) or isinstance(leaving, cst.Raise | cst.Break) or called in EXITS)

    def _contexts(self, block: cst.With) -> Iterator[cst.BaseExpression]:
        """What a `with` statement enters, also one by one in its block, by an ExitStack."""
        yield from (item.item for item in block.items)
        for call in (n for n in nodes(block.body) if isinstance(n, cst.Call)):
            if method(call) in ENTERS_CONTEXT and call.args:
                yield call.args[0].value

    def suppresses(self, context: cst.BaseExpression, within: tuple[cst.CSTNode, ...] = ()) -> bool:
        """Whether a context manager may let its statements end by an exception."""
        if len(within) > _ENTERED or context in within:
            return False
        further = (*within, context)
        made = [o.node for o in self._origins.of(context)]
        return any(self._may_suppress(node, further) for node in dict.fromkeys((context, *made)))

    def _may_suppress(self, made: cst.CSTNode, within: tuple[cst.CSTNode, ...]) -> bool:
        if isinstance(made, cst.Call) and self._origins.called(made) == SUPPRESSES:
            return not any(_names_an_end(arg.value) for arg in made.args)
        owner = self._origins.class_of(made) if isinstance(made, cst.BaseExpression) else None
        if owner is not None:
            leaving = self._origins.method(owner, "__exit__")
            return self._keeps_quiet(leaving) if leaving is not None else SUPPRESSES in self._origins.bases(owner)
        function = self._generator(made.func if isinstance(made, cst.Call) else made)
        yields = self._index.generators.get(function, ()) if function is not None else ()
        return any(self._is_kept(each, within) for each in yields)

    def _keeps_quiet(self, leaving: cst.FunctionDef) -> bool:
        """Whether an `__exit__` may say that all is well: it gives something else than None and False."""
        given = self._index.returned(leaving)
        return any(not is_off(self._origins, value) and not _names_an_end(value) for value in given)

    def _generator(self, func: cst.CSTNode) -> cst.FunctionDef | None:
        """The generator that contextlib makes a context manager of."""
        function = self._origins.function(func) if isinstance(func, cst.BaseExpression) else None
        if function is None:
            made = self._origins.made(func)
            wraps = isinstance(made, cst.Call) and self._origins.called(made) in CONTEXT_MAKERS and bool(made.args)
            return self._origins.function(made.args[0].value) if isinstance(made, cst.Call) and wraps else None
        named = (self._origins.names.api(d.decorator) for d in function.decorators)
        return function if any(api in CONTEXT_MAKERS for api in named) else None

    def _wraps(self, decorator: cst.BaseExpression) -> bool:
        """Whether a decorator of the file calls what it decorates where exceptions of that are caught."""
        found = self._origins.one(decorator.func if isinstance(decorator, cst.Call) else decorator)
        if found is None or not isinstance(found.node, cst.FunctionDef | cst.ClassDef):
            return False
        calls = (n for n in nodes(found.node.body) if isinstance(n, cst.Call) and not self._origins.called(n))
        return any(self._origins.function(call.func) is None and self._is_kept(call, ()) for call in calls)

    def _is_kept(self, place: cst.CSTNode, within: tuple[cst.CSTNode, ...]) -> bool:
        """Whether what is raised where a generator has given back its value does not leave it."""
        child = place
        for parent in self._index.ancestors(place):
            if isinstance(parent, _Function):
                return False
            if isinstance(parent, cst.Try) and child is parent.body and self._catches(parent):
                return True
            entered = self._contexts(parent) if isinstance(parent, cst.With) and child is parent.body else ()
            if any(self.suppresses(item, within) for item in entered):
                return True
            child = parent
        return False

    # --- what raises --------------------------------------------------------------------------------------------------

    def _may_raise(self, node: cst.CSTNode, frames: Frames) -> bool:
        """Whether a worker's own examples may decide that an exception is raised here."""
        if isinstance(node, cst.Call):
            return any(self._is_own(a.value, frames) for a in node.args) or self._raises_inside(node, frames)
        if isinstance(node, cst.Assert):
            return self._is_own(node.test, frames)
        if isinstance(node, cst.Raise):
            return any(self._is_own(test, frames) for test in tests_around(node, self._origins))
        if isinstance(node, cst.Subscript):
            indices = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
            far = any(number(index) for index in indices[:1]) and self._is_own(node.value, frames)
            return far or any(self._is_own(index, frames) for index in indices)
        divides = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _DIVIDES)
        return isinstance(node, cst.BinaryOperation) and divides and self._is_own(node.right, frames)

    def _is_own(self, node: cst.CSTNode, frames: Frames) -> bool:
        return Mark.LOCAL in self._value(node, frames)

    def _raises_inside(self, call: cst.Call, frames: Frames) -> bool:
        """Whether a function of the file raises by a worker's own examples that it is not given."""
        function = self._origins.function(call.func)
        if function is None or len(frames) >= _ENTERED or any(entered is function for entered, _ in frames):
            return False
        inside = (*frames, (function, call))
        raising = (n for n in nodes(function.body) if isinstance(n, cst.Raise | cst.Assert | cst.Call))
        return any(self._may_raise(n, inside) for n in raising if not isinstance(n, cst.Call) or not n.args)


def _names_an_end(node: cst.CSTNode) -> bool:
    return any((last_name(n) or "") in ENDINGS for n in nodes(node) if isinstance(n, cst.Name | cst.Attribute))
