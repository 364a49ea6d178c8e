"""Learning rates that a script replaces while it trains: the new one would not be scaled."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.conditions import parses_arguments
from tfdp.migrate.facts.origins import Origin, Origins
from tfdp.migrate.facts.parts import nodes
from tfdp.migrate.facts.problem import Problem

RATES = frozenset({"learning_rate", "lr", "_learning_rate", "_lr"})
_ASSIGNS = frozenset({"assign", "assign_add", "assign_sub"})
_SETS = re.compile(r"(keras\.backend\.(batch_set_value|set_value|update\w*)|tensorflow\.(compat\.v1\.)?assign\w*)$")
_KNOWN_BASES = ("tensorflow.", "keras.", "builtins.", "abc.", "typing.")
_FLAGS = "absl.flags.FLAGS"
_CONTAINS = (cst.BaseElement, cst.BaseDictElement, cst.Tuple, cst.List, cst.Dict)
_HOLDERS = frozenset({"argparse.Namespace", "types.SimpleNamespace"})


def rate_changes(origins: Origins) -> list[Problem]:
    """Places that assign the learning rate of what may be a Keras optimizer."""
    targets = [t for name in sorted(RATES) for t, _, _ in origins.index.attribute_stores.get(name, ())]
    found: list[cst.CSTNode] = [t for t in targets if not _plain_object(t.value, origins)]
    found += [c for c in sets_by_name(origins, RATES) if not _plain_object(c.args[0].value, origins)]
    found += [c for c in origins.index.calls if _assigns(c, origins)]
    found += [a for name in sorted(RATES) for a in origins.index.attributes.get(name, ()) if _kept(a, origins)]
    reason = "the learning rate is assigned here, where it would replace the scaled one"
    next_step = "give the optimizer a tf.keras.optimizers.schedules schedule"
    return [Problem("TFDP020", node, reason, next_step) for node in dict.fromkeys(found)]


def sets_by_name(origins: Origins, attributes: AbstractSet[str]) -> list[cst.Call]:
    """`setattr(x, name, …)` with one of the names, or with a name that is not written out on what may be any object."""
    found = []
    for call in origins.index.calls:
        if origins.names.api(call.func) != "builtins.setattr" or len(call.args) != 3:
            continue
        name = call.args[1].value
        literal = name.evaluated_value if isinstance(name, cst.SimpleString) else None
        if literal in attributes or (literal is None and not _plain_object(call.args[0].value, origins)):
            found.append(call)
    return found


def reads_a_rate(node: cst.CSTNode, origins: Origins) -> bool:
    """Whether the learning rate of what may be a Keras optimizer is read in an expression."""
    return any(
        isinstance(n, cst.Attribute) and n.attr.value in RATES and not _plain_object(n.value, origins)
        for n in nodes(node)
    )


def _assigns(call: cst.Call, origins: Origins) -> bool:
    if isinstance(call.func, cst.Attribute) and call.func.attr.value in _ASSIGNS:
        return _may_be_a_rate(call.func.value, origins)
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "_set_hyper":
        return Kind.OPTIMIZER in origins.kinds(call.func.value) or origins.class_of(call.func.value) is None
    if _SETS.match(origins.names.api(call.func) or ""):
        return not call.args or _may_be_a_rate(call.args[0].value, origins, unknown=True)
    return False


def _kept(rate: cst.Attribute, origins: Origins) -> bool:
    """Whether an optimizer's rate is put into a container, out of which it may be assigned unseen."""
    if Kind.OPTIMIZER not in origins.kinds(rate.value):
        return False
    node: cst.CSTNode = rate
    while isinstance(origins.index.parents[node], _CONTAINS):
        node = origins.index.parents[node]
    return node is not rate and isinstance(origins.index.parents[node], cst.Assign | cst.AnnAssign | cst.Return)


def _may_be_a_rate(node: cst.BaseExpression, origins: Origins, unknown: bool = False) -> bool:
    """Whether a variable may be a rate.

    With `unknown`, one that comes from anywhere but this file's expressions is taken for it.
    """
    if reads_a_rate(node, origins):
        return True
    for origin in origins.of(node):
        if isinstance(origin.node, cst.FunctionDef | cst.ClassDef):
            continue
        if reads_a_rate(origin.node, origins) or (unknown and isinstance(origin.node, cst.Param)):
            return True
    return False


def _plain_object(node: cst.BaseExpression, origins: Origins) -> bool:
    """Whether the object is certainly no Keras optimizer: of the file's own class, a module, or parsed arguments."""
    if origins.names.api(node) == _FLAGS:
        return True
    found = origins.of(node)
    return bool(found) and all(_plain_origin(o, origins) for o in found)


def _plain_origin(origin: Origin, origins: Origins) -> bool:
    node = origin.node
    parsed = isinstance(node, cst.Call) and parses_arguments(node, origins)
    if parsed or origin.path:
        return parsed and origin.path in {(), (0,)}
    if isinstance(node, cst.Call):
        owner = origins.constructed(node)
        if owner is None:
            return origins.names.api(node.func) in _HOLDERS
        return _no_optimizer(owner, origins)
    return isinstance(node, cst.Import) or (isinstance(node, cst.ClassDef) and _no_optimizer(node, origins))


def _no_optimizer(owner: cst.ClassDef, origins: Origins) -> bool:
    """Whether everything that the class descends from is known, and is no optimizer of Keras."""
    for base in owner.bases:
        api = origins.names.api(base.value)
        origin = origins.one(base.value)
        if api is not None:
            keras = api.startswith("keras.optimizers.") and not api.startswith("keras.optimizers.schedules.")
            if keras or not api.startswith(_KNOWN_BASES):
                return False
            continue
        above = origin.node if origin is not None else None
        if not isinstance(above, cst.ClassDef) or above is owner or not _no_optimizer(above, origins):
            return False
    return True
