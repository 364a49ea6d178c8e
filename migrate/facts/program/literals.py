"""Arguments that are written out: numbers, axes, texts; through names where they have one value."""

from __future__ import annotations

import libcst as cst

from .asking import within_itself
from .origins import Origins
from .spelling import argument


@within_itself(None)
def ints(origins: Origins, node: cst.CSTNode) -> tuple[int, ...] | None:
    """The integers of `2`, `-1`, `[1, 2]`; () for None; None where they are not known."""
    if is_none(origins, node):
        return ()
    origin = origins.one(node)
    if origin is None or origin.path:
        return None
    found = origin.node
    if is_none(origins, found):
        return ()
    if isinstance(found, cst.Integer):
        return (found.evaluated_value,)
    if isinstance(found, cst.UnaryOperation) and isinstance(found.operator, cst.Minus):
        inner = ints(origins, found.expression)
        return (-inner[0],) if inner and len(inner) == 1 else None
    if isinstance(found, cst.Tuple | cst.List) and found.elements:
        parts = [ints(origins, e.value) if isinstance(e, cst.Element) else None for e in found.elements]
        return None if any(not p for p in parts) else tuple(n for p in parts for n in p or ())
    return None


def axes(origins: Origins, call: cst.Call, position: int) -> tuple[int, ...] | None:
    """The axes that a call names; () where it names none, None where they are not known."""
    given = argument(call, "axis", position)
    if any(a.star for a in call.args):
        return None
    return () if given is None else ints(origins, given.value)


def text(origins: Origins, node: cst.CSTNode) -> str | None:
    """A text, or the last part of an API's name (`tf.keras.losses.Reduction.SUM`), in small letters."""
    origin = origins.one(node)
    if origin is not None and not origin.path and isinstance(origin.node, cst.SimpleString):
        return str(origin.node.evaluated_value).lower()
    api = origins.names.api(node) or (origins.names.api(origin.node) if origin is not None else None) or ""
    return api.rpartition(".")[2].lower() if ".Reduction." in api else None


def plain(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an argument is a number, True, False or None."""
    if isinstance(node, cst.UnaryOperation):
        return plain(origins, node.expression)
    return isinstance(node, cst.Integer | cst.Float) or origins.names.api(node) in {
        "builtins.True",
        "builtins.False",
        "builtins.None",
    }


def is_none(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an expression is None, as it is written."""
    return origins.names.api(node) == "builtins.None"


def is_off(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an argument is None or False."""
    return origins.names.api(node) in {"builtins.None", "builtins.False"}


def number(node: cst.CSTNode) -> float | None:
    """The value of a number that is written out here, `8` or `8.0`."""
    return float(node.evaluated_value) if isinstance(node, cst.Integer | cst.Float) else None
