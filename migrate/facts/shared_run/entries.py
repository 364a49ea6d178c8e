"""Whether a file is run, or only gives other files functions and classes by which they train."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..program import Origins, within_itself

_CALLED_AS_THEY_ARE = ("tensorflow.", "builtins.", "functools.", "abc.", "numba.", "typing.")
"""Whose decorators call nothing by themselves."""


class Entries:
    """Asks whether the file's own code comes to the places where it trains."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index

    def trains_nothing_itself(self, steps: Iterable[cst.CSTNode]) -> cst.CSTNode | None:
        """The first step, where the file's own code certainly comes to none: another file has to call it."""
        every = list(steps)
        return every[0] if every and not any(map(self._is_run, every)) else None

    @within_itself(False)
    def _is_run(self, node: cst.CSTNode) -> bool:
        """Whether the module's own code may come to a node, by any call or other use of the name of its function."""
        function = self._index.enclosing_function(node)
        if function is None or self._is_handed_on(function):
            return True
        if callers := self._origins.calls_of(function):
            return any(map(self._is_run, callers))
        name = function.name.value
        uses = [*self._index.names.get(name, ()), *self._index.attributes.get(name, ())]
        if any(self._is_run(n) for n in uses if n is not function.name and not self._index.is_label(n)):
            return True
        owner = self._index.enclosing_class(function)
        return (
            owner is not None and (bool(owner.bases) or _is_special(name)) and any(map(self._is_run, self._uses(owner)))
        )

    def _uses(self, owner: cst.ClassDef) -> list[cst.CSTNode]:
        """Where a class of the file is named: what is made of it, Keras or another library may call."""
        return [n for n in self._index.names.get(owner.name.value, ()) if n is not owner.name]

    def _is_handed_on(self, function: cst.FunctionDef) -> bool:
        """Whether a decorator takes the function, as those of command lines do."""
        made = [d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators]
        named = [self._origins.names.api(each) for each in made]
        return any(api is not None and not api.startswith(_CALLED_AS_THEY_ARE) for api in named)


def _is_special(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")
