"""Where names are read, and which calls are of the file's own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from ..program import Origins

Read: TypeAlias = cst.Name | cst.Attribute | cst.Subscript


def reads(origins: Origins) -> Iterator[Read]:
    """Names, attributes and entries that are read, each as a whole."""
    index = origins.index
    entries = (node for node in index.order if isinstance(node, cst.Subscript) and _is_read(origins, node))
    for node in (*objects(origins), *entries):
        parent = index.parents[node]
        if not (isinstance(parent, cst.Attribute | cst.Subscript) and parent.value is node):
            yield node


def objects(origins: Origins) -> Iterator[cst.Name | cst.Attribute]:
    """Names and attributes that are read, also where something of them is."""
    index = origins.index
    yield from (node for uses in index.names.values() for node in uses if _is_read(origins, node))
    yield from (node for uses in index.attributes.values() for node in uses if _is_read(origins, node))


def _is_read(origins: Origins, node: Read) -> bool:
    index = origins.index
    return not index.is_target(node) and not isinstance(index.parents[node], cst.NameItem | cst.Del)


def is_own(origins: Origins, call: cst.Call) -> bool:
    """Whether it calls a function, or makes an object of a class, of the file."""
    return bool(origins.function(call.func) or origins.lambda_of(call.func) or origins.constructed(call))
