"""Which files a call may be about, by the paths among its arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from ... import outputs
from ..program import Origins, method, receiver

PathKey: TypeAlias = str | cst.CSTNode
"""The text of a path, that of the expression which makes it, or what gives it."""

_NO_READERS = ("argparse.", "builtins.", "os.path.", "pathlib.")


class Paths:
    """Tells what calls out of sight may read a file that others have written."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def written(self, call: cst.CSTNode) -> frozenset[PathKey]:
        """What a writing call is given first, the second of one that moves, or the path that it is a method of."""
        if not isinstance(call, cst.Call):
            return frozenset()
        count = 2 if self._origins.called(call) in outputs.MOVES else 1
        of_path = [receiver(call)] if method(call) in outputs.PATH_METHODS else []
        return frozenset(key for each in (*(a.value for a in call.args[:count]), *of_path) for key in self._keys(each))

    def may_read(self, call: cst.Call, paths: frozenset[PathKey]) -> bool:
        """Whether a call of other code is given one of the paths, by itself or in something."""
        api = self._origins.called(call)
        known = api in outputs.FUNCTIONS or api.startswith(_NO_READERS) or self._origins.function(call.func)
        if known or self._origins.constructed(call):
            return False
        given = (each for argument in call.args for each in _held(argument.value))
        return any(key in paths for each in given for key in self._keys(each))

    def _keys(self, node: cst.BaseExpression) -> Iterator[PathKey]:
        if isinstance(node, cst.SimpleString):
            yield str(node.evaluated_value)
        elif isinstance(node, cst.Name):
            made = [] if self._origins.names.api(node) else [o.node for o in self._origins.of(node)]
            yield from (str(m.evaluated_value) if isinstance(m, cst.SimpleString) else m for m in made)
        elif not isinstance(node, cst.BaseNumber):
            yield self._origins.index.code(node)


def _held(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """An argument, or what a list, tuple or dictionary among the arguments holds."""
    if isinstance(node, cst.List | cst.Tuple | cst.Set | cst.Dict):
        for each in node.elements:
            yield from _held(each.value)
    else:
        yield node
