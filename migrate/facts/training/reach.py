"""Which calls run when a trained loss is computed: not those by which the same functions are used for testing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..apis import CALLED
from ..program import DEFINES, Definition, Origins, Slice, within
from .loops import TrainingLoop
from .ways import frames


def reached(origins: Origins, loops: Iterable[TrainingLoop]) -> frozenset[cst.Call]:
    """The calls that give the losses of the loops' gradients, and those that lead from the loops to them."""
    loops = tuple(loops)
    walk = _Run(origins, loops)
    walk.add(value for loop in loops for value in loop.gradient.made_of)
    led = [c for loop in loops for c in loop.calls]
    return frozenset(n for n in (*walk.seen, *led) if isinstance(n, cst.Call))


class _Run(Slice):
    """All that runs: whole bodies of functions, and what is bound in each step."""

    def __init__(self, origins: Origins, loops: tuple[TrainingLoop, ...]) -> None:
        super().__init__(origins)
        self._loops = loops
        for function, call in (frame for loop in loops for frame in frames(origins, loop.calls)):
            self.entered.setdefault(function, []).append(call)

    def further(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        yield from super().further(node)
        if isinstance(node, cst.Call):
            for function in self._functions(node):
                yield from self.enter(node, function)
                yield function.body

    def _functions(self, call: cst.Call) -> list[cst.FunctionDef]:
        """What a call of the file's own functions, objects and classes runs."""
        origins = self._origins
        owner, made = origins.class_of(call.func), origins.constructed(call)
        found = [origins.function(call.func)]
        found += [origins.method(owner, name) for name in CALLED] if owner is not None else []
        found += [origins.method(made, "__init__")] if made is not None else []
        return [f for f in found if f is not None]

    def follows(self, definition: Definition) -> bool:
        """Values from before the loop are the same for all steps; the batches are no part of what runs."""
        place, loops = definition.statement, [loop.loop for loop in self._loops]
        if isinstance(definition.value, DEFINES) or (definition.kind == "for" and place in loops):
            return False
        function = self._index.enclosing_function(place)
        inside = any(within(self._index, place, loop) for loop in loops)
        return inside or (function in self.entered and not any(within(self._index, loop, function) for loop in loops))
