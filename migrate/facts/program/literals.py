"""Arguments that are written out: numbers, texts; through names where they have one value."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from .origins import Origins


def text(origins: Origins, node: cst.CSTNode) -> str | None:
    """A text, or the last part of an API's name (`tf.keras.losses.Reduction.SUM`), in small letters."""
    origin = origins.one(node)
    if origin is not None and not origin.path and isinstance(origin.node, cst.SimpleString):
        return str(origin.node.evaluated_value).lower()
    api = origins.names.api(node) or (origins.names.api(origin.node) if origin is not None else None) or ""
    return api.rpartition(".")[2].lower() if ".Reduction." in api else None


def is_none(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an expression is None, as it is written."""
    return origins.names.api(node) == "builtins.None"


def is_off(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an argument is None or False."""
    return origins.names.api(node) in {"builtins.None", "builtins.False"}


def spelled(module: cst.Module, text: str) -> int:
    """How often a text stands in a module, as a value."""
    found = (node for node in m.findall(module, m.SimpleString()) if isinstance(node, cst.SimpleString))
    return sum(node.evaluated_value == text for node in found)


def number(node: cst.CSTNode) -> float | None:
    """The value of a number that is written out here, `8` or `8.0`."""
    return float(node.evaluated_value) if isinstance(node, cst.Integer | cst.Float) else None
