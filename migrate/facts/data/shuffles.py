"""What draws an order on the way of data of which no more is understood than that they come in batches."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..program import Origin, Origins, argument

_OF_FILES = frozenset({"tensorflow.data.experimental.make_csv_dataset"})  # shuffle unless told not to
_MADE = "tensorflow.data."


def shuffles_of(origins: Origins, data: cst.BaseExpression) -> tuple[cst.Call, ...]:
    """The calls that shuffle what the data may be made of: stages of datasets, and makers that shuffle."""
    return tuple(dict.fromkeys(_found(origins, data, set())))


def _found(origins: Origins, node: cst.CSTNode, seen: set[Origin]) -> Iterator[cst.Call]:
    for origin in origins.of(node):
        if origin not in seen:
            seen.add(origin)
            yield from _in_origin(origins, origin.node, seen)


def _in_origin(origins: Origins, made: cst.CSTNode, seen: set[Origin]) -> Iterator[cst.Call]:
    if isinstance(made, cst.Tuple | cst.List):
        for element in made.elements:
            yield from _found(origins, element.value, seen)
    elif isinstance(made, cst.GeneratorExp | cst.ListComp):
        yield from _found(origins, made.elt, seen)
    elif isinstance(made, cst.Call):
        yield from _in_call(origins, made, seen)


def _in_call(origins: Origins, call: cst.Call, seen: set[Origin]) -> Iterator[cst.Call]:
    api, function = origins.names.api(call.func), origins.function(call.func)
    if function is not None:
        for returned in origins.index.returns[function]:
            if returned.value is not None:
                yield from _found(origins, returned.value, seen)
    elif api is not None:
        shuffled = argument(call, "shuffle")
        if api in _OF_FILES and (shuffled is None or origins.names.api(shuffled.value) != "builtins.False"):
            yield call
        for arg in call.args if api.startswith(_MADE) else ():
            yield from _found(origins, arg.value, seen)
    elif isinstance(call.func, cst.Attribute):
        if call.func.attr.value == "shuffle":
            yield call
        yield from _found(origins, call.func.value, seen)
