"""What runs what: the calls that lead to a place, and the functions that a place runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from .asking import closure
from .origins import Origins
from .pieces import nodes


def leading(origins: Origins, places: Iterable[cst.CSTNode]) -> dict[cst.CSTNode, None]:
    """The places, and all calls, and reads of properties, that lead to the functions that hold them."""
    return closure(places, lambda place: ways_into(origins, place))


def ways_into(origins: Origins, place: cst.CSTNode) -> list[cst.CSTNode]:
    """The calls, and reads of properties, that run the function that holds a place."""
    around = origins.index.scope_of(place)
    if isinstance(around, cst.Lambda) and (named := origins.calls_of_lambda(around)):
        return [*named]
    function = origins.index.enclosing_function(place)
    if function is None:
        return []
    read = function in origins.index.properties.get(function.name.value, ())
    return [*origins.calls_of(function), *(origins.index.attributes[function.name.value] if read else ())]


def entered(origins: Origins, places: Iterable[cst.CSTNode]) -> dict[cst.CSTNode, None]:
    """The places, and all functions of the file that are called in them."""

    def called(place: cst.CSTNode) -> Iterator[cst.FunctionDef]:
        found = (origins.function(n.func) for n in nodes(place) if isinstance(n, cst.Call))
        return (function for function in found if function is not None)

    return closure(places, called)
