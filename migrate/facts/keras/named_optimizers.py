"""Optimizers that `compile` is given by name or by configuration: what is surely no object that a call of the file
made."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..program import Origin, Origins, Problem, parses_arguments, unfollowed

_TEXT = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Dict)
_TEXT_METHODS = frozenset({"lower", "upper", "strip", "get", "format", "capitalize", "title"})
_LOADS = frozenset(
    {
        *("json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.full_load", "toml.load", "toml.loads"),
        *("tomllib.load", "tomllib.loads", "os.getenv", "os.environ", "absl.flags.FLAGS", "builtins.input"),
        *("configparser.ConfigParser", "keras.optimizers.serialize"),
    }
)


def is_name(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a value is a text or a configuration: written out, parsed from arguments, or loaded from a file."""
    return _is_name(origins, node, set())


def _is_name(origins: Origins, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
    if node in seen:
        return False
    seen.add(node)
    found = [o.node for o in origins.of(node)]
    return bool(found) and all(_text(origins, n, seen) for n in found)


def _text(origins: Origins, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
    if isinstance(node, _TEXT):
        return True
    if isinstance(node, cst.Call):
        method = isinstance(node.func, cst.Attribute) and node.func.attr.value in _TEXT_METHODS
        if method and isinstance(node.func, cst.Attribute):
            return _is_name(origins, node.func.value, seen)
        return parses_arguments(node, origins) or origins.names.api(node.func) in _LOADS
    if isinstance(node, cst.Attribute):
        return origins.names.api(node.value) in _LOADS or _is_loaded(origins, node.value, seen)
    if isinstance(node, cst.Subscript):
        return _is_loaded(origins, node.value, seen)
    return False


def _is_loaded(origins: Origins, node: cst.CSTNode, seen: set[cst.CSTNode]) -> bool:
    """Whether a value is looked up in what arguments or a file give; of a table that is written out, in its entries."""
    found = [o.node for o in origins.of(node)]
    tables = [n for n in found if isinstance(n, cst.Dict)]
    if tables:
        entries = [e.value for t in tables for e in t.elements]
        return len(tables) == len(found) and not any(_makes(origins, e) for e in entries)
    return bool(found) and all(_text(origins, n, seen) for n in found)


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
            return origins.names.api(made) == "builtins.None"
        return origins.kind(made.func) is Kind.OPTIMIZER or origins.constructed(made) is not None

    what = "cannot tell where this optimizer is made"
    return Problem.since(origins.index, code, place, what, unfollowed(origins, optimizer, known), next_step)
