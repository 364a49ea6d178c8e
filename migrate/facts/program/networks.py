"""What is a model or a layer: what holds weights, and gives one value for each example."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from .index import ITER, Origin
from .origins import Origins
from .spelling import method

LAYERS = ("keras.layers.", "keras.applications.")


def holds_weights(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether the value is a model or a layer, whose attributes are weights."""
    found = origins.of(node)
    return bool(found) and all(_is_layer(origins, o) for o in found)


def _is_layer(origins: Origins, origin: Origin) -> bool:
    made = origin.node
    if isinstance(made, cst.ClassDef) and not origin.path:
        return is_network(origins, made)
    if isinstance(made, cst.Subscript):
        made = made.value
        return isinstance(made, cst.Attribute) and made.attr.value == "layers"
    if isinstance(made, cst.Attribute):
        return made.attr.value == "layers" and origin.path == (ITER,)
    if not isinstance(made, cst.Call) or origin.path:
        return False
    if (owner := origins.constructed(made)) is not None:
        return is_network(origins, owner)
    named = method(made) == "get_layer" or origins.called(made).startswith(LAYERS)
    return named or origins.kind(made.func) is Kind.MODEL


def is_network(origins: Origins, owner: cst.ClassDef) -> bool:
    """Whether a class of the file is a model or a layer."""
    return Kind.MODEL in origins.base_kinds(owner) or origins.below(owner, LAYERS)
