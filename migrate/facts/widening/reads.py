"""Where names are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import libcst as cst

from ..program import Origins

Read: TypeAlias = cst.Name | cst.Attribute | cst.Subscript
_NESTED = (cst.Element, cst.StarredElement, cst.Tuple, cst.List)
_BINDS = (cst.AssignTarget, cst.AsName, cst.NameItem, cst.Del, cst.FunctionDef, cst.ClassDef)
_HAS_TARGET = (cst.For, cst.CompFor, cst.AnnAssign, cst.AugAssign, cst.NamedExpr)


def reads(origins: Origins) -> Iterator[Read]:
    """Names, attributes and entries that are read, each as a whole."""
    index = origins.index
    for node in index.order:
        if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            continue
        parent = index.parents.get(node)
        inner = isinstance(parent, cst.Attribute | cst.Subscript) and parent.value is node
        label = isinstance(node, cst.Name) and index.is_label(node)
        if not (inner or label or _is_bound(origins, node)):
            yield node


def objects(origins: Origins) -> Iterator[Read]:
    """Names and attributes that are read, also where something of them is."""
    for node in origins.index.order:
        if isinstance(node, cst.Name | cst.Attribute) and not _is_bound(origins, node):
            yield node


def _is_bound(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether something gets this name."""
    parents = origins.index.parents
    child, parent = node, parents.get(node)
    while isinstance(parent, _NESTED):
        child, parent = parent, parents.get(parent)
    if isinstance(parent, cst.Param):
        return parent.name is child
    return isinstance(parent, _BINDS) or (isinstance(parent, _HAS_TARGET) and parent.target is child)
