"""What runs what: the calls that lead to a place, and the functions that a place runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from .asking import closure
from .origins import Origins
from .pieces import nodes


def leading(origins: Origins, places: Iterable[cst.CSTNode]) -> dict[cst.CSTNode, None]:
    """The places, and all calls that lead to the functions that hold them."""

    def callers(place: cst.CSTNode) -> list[cst.Call]:
        function = origins.index.enclosing_function(place)
        return origins.calls_of(function) if function is not None else []

    return closure(places, callers)


def entered(origins: Origins, places: Iterable[cst.CSTNode]) -> dict[cst.CSTNode, None]:
    """The places, and all functions of the file that are called in them."""

    def called(place: cst.CSTNode) -> Iterator[cst.FunctionDef]:
        found = (origins.function(n.func) for n in nodes(place) if isinstance(n, cst.Call))
        return (function for function in found if function is not None)

    return closure(places, called)
