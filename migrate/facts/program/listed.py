"""Lists that a script makes of files, arrays and literals: what is in them, whatever the workers do."""

from __future__ import annotations

import sys

import libcst as cst

from ..apis import ARRAYS, LISTS, LISTS_ELEMENTS, OF_LISTS
from .grown import additions
from .index import Definition, Scope
from .origins import Origins
from .spelling import method, receiver

_DISPLAYS = (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.ListComp, cst.SetComp, cst.DictComp, cst.GeneratorExp)
_STANDARD = sys.stdlib_module_names - {"builtins"}
_DEPTH = 6  # names and functions on the way; real ones stay below three


class Listed:
    """Tells lists from datasets, and from lists that grow while a model is trained."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def is_listed(self, node: cst.CSTNode, depth: int = 0) -> bool:
        """Whether what is iterated over is made of arrays, files or what is written out here."""
        if isinstance(node, _DISPLAYS):
            return True
        if isinstance(node, cst.Call) and self._origins.function(node.func) is None:
            api = self._origins.called(node)
            if ARRAYS.match(api) or LISTS.match(api) or api.partition(".")[0] in _STANDARD:
                return True
            if OF_LISTS.match(api):
                given = [a.value for a in node.args if a.keyword is None and not isinstance(a.value, cst.Lambda)]
                return all(self._origins.function(g) is not None or self._is_listed(g, depth) for g in given)
            if not method(node) or api:
                return False
            return method(node) in LISTS_ELEMENTS or self._is_listed(receiver(node), depth)
        return not isinstance(node, cst.Param) and self._is_listed(node, depth)

    def _is_listed(self, node: cst.CSTNode, depth: int) -> bool:
        if isinstance(node, cst.Subscript):
            return self._is_listed(node.value, depth)
        found = [o.node for o in self._origins.of(node)] if depth < _DEPTH else []
        return bool(found) and all(self.is_listed(n, depth + 1) for n in found if n is not node) and found != [node]

    def put_in(self, made: cst.List) -> list[cst.CSTNode] | None:
        """What is put into a list that starts empty, and what is iterated over for that; None where it is not certain
        that this happens in the same way whatever the workers do."""
        scope = self._origins.index.scope_of(made)
        bound = [d for ds in self._origins.index.definitions[scope].values() for d in ds if _is_bound_to(d, made)]
        if not bound:
            return None
        found: list[cst.CSTNode] = []
        for addition in additions(self._origins, bound):
            within = self.turns(addition.place, scope)
            if within is None:
                return None
            found += [*addition.values, *within]
        return found

    def turns(self, place: cst.CSTNode, scope: Scope | None = None) -> list[cst.CSTNode] | None:
        """What the loops around a place, within its function, iterate over; None where one of them is over anything but
        lists, or the place is not in the scope."""
        found: list[cst.CSTNode] = []
        for above in self._origins.index.ancestors(place):
            if isinstance(above, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                return found if scope in {None, above} else None
            if isinstance(above, cst.While) or (isinstance(above, cst.For) and self._may_train(above)):
                return None
            if isinstance(above, cst.For):
                found.append(above.iter)
        return found

    def _may_train(self, loop: cst.For) -> bool:
        """Steps of `range(steps)` may be divided."""
        counts = isinstance(loop.iter, cst.Call) and self._origins.names.api(loop.iter.func) == "builtins.range"
        return counts or not self.is_listed(loop.iter)


def _is_bound_to(definition: Definition, made: cst.List) -> bool:
    """`paths = []`, `paths, labels = [], []`."""
    value = definition.value
    if isinstance(value, cst.Tuple | cst.List) and len(definition.path) == 1 and definition.path[0] >= 0:
        value = value.elements[definition.path[0]].value if definition.path[0] < len(value.elements) else None
        return definition.kind == "assign" and value is made
    return definition.kind == "assign" and value is made and not definition.path
