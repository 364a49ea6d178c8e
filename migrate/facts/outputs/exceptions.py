"""Exceptions after which a script goes on."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..apis import CONTEXT_MAKERS, ENDINGS, ENTERS_CONTEXT, EXITS, SUPPRESSES
from ..program import Origins, is_off, last_name, method, nodes

_ENTERED = 4  # context managers that enter one another
_LEAVES = cst.Return | cst.Break | cst.Continue
_Function = cst.FunctionDef | cst.Lambda


class Exceptions:
    """Answers for handlers and context managers."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index

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


def _names_an_end(node: cst.CSTNode) -> bool:
    return any((last_name(n) or "") in ENDINGS for n in nodes(node) if isinstance(n, cst.Name | cst.Attribute))
