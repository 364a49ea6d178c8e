"""Optimizers that `compile` is given by name or by configuration: what is surely no object that a call of the file
made."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..apis import LOADS, OF_TEXTS
from ..program import Origin, Origins, Problem, is_none, method, parses_arguments, receiver, unfollowed, within_itself

_TEXT = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Dict)


@within_itself(False)
def is_name(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a value is a text or a configuration: written out, parsed from arguments, or loaded from a file."""
    found = origins.of(node)
    return bool(found) and all(_text(origins, o.node) for o in found)


def _text(origins: Origins, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Call):
        loaded = parses_arguments(node, origins) or origins.called(node) in LOADS
        return is_name(origins, receiver(node)) if method(node) in OF_TEXTS else loaded
    if isinstance(node, cst.Attribute | cst.Subscript):
        return origins.names.api(node.value) in LOADS or _is_looked_up(origins, node.value)
    return isinstance(node, _TEXT)


def _is_looked_up(origins: Origins, table: cst.CSTNode) -> bool:
    """Whether what is looked up in a value is a text: in what arguments or a file give, in a table of texts."""
    written = [o.node for o in origins.of(table) if isinstance(o.node, cst.Dict)]
    return is_name(origins, table) and not any(_makes(origins, each) for each in written)


def _makes(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an entry may be something else than a text, a number or a table of such."""
    if isinstance(node, cst.Dict | cst.List | cst.Tuple):
        return any(_makes(origins, e.value) for e in node.elements)
    plain = (cst.SimpleString, cst.ConcatenatedString, cst.Integer, cst.Float, cst.UnaryOperation, cst.BinaryOperation)
    return not isinstance(node, plain) and not (origins.names.api(node) or "").startswith("builtins.")


def unmade_optimizer(
    origins: Origins, code: str, place: cst.CSTNode, optimizer: cst.CSTNode, next_step: str
) -> Problem:
    """An optimizer that no call in the file is known to make."""

    def known(origin: Origin) -> bool:
        made = origin.node
        if not isinstance(made, cst.Call) or origin.path:
            return is_none(origins, made)
        return origins.kind(made.func) is Kind.OPTIMIZER or origins.constructed(made) is not None

    what = "cannot tell where this optimizer is made"
    return Problem.since(origins.index, code, place, what, unfollowed(origins, optimizer, known), next_step)
