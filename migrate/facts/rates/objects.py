"""Objects whose `learning_rate` may be that of a Keras optimizer, and those whose certainly is not."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import libcst as cst

from ...catalogue import KINDS, Kind
from ..program import Origin, Origins, nodes, parses_arguments, within_itself

RATES = frozenset({"learning_rate", "lr", "_learning_rate", "_lr"})
_SCHEDULE = "keras.optimizers.schedules.LearningRateSchedule"
_KNOWN_BASES = ("tensorflow.", "keras.", "builtins.", "abc.", "typing.")
_FLAGS = "absl.flags.FLAGS"
_HOLDERS = frozenset({"argparse.Namespace", "types.SimpleNamespace"})


def sets_by_name(origins: Origins, attributes: AbstractSet[str]) -> list[cst.Call]:
    """`setattr(x, name, …)` with one of the names, or with a name that is not written out on what may be any object."""
    found = []
    for call in origins.index.calls:
        if origins.names.api(call.func) != "builtins.setattr" or len(call.args) != 3:
            continue
        name = call.args[1].value
        literal = name.evaluated_value if isinstance(name, cst.SimpleString) else None
        if literal in attributes or (literal is None and not plain_object(call.args[0].value, origins)):
            found.append(call)
    return found


def reads_a_rate(node: cst.CSTNode, origins: Origins) -> bool:
    """Whether the learning rate of what may be a Keras optimizer is read in an expression."""
    return any(
        isinstance(n, cst.Attribute) and n.attr.value in RATES and not plain_object(n.value, origins)
        for n in nodes(node)
    )


def plain_object(node: cst.BaseExpression, origins: Origins) -> bool:
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


@within_itself(False)
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


@within_itself(False)
def is_schedule(origins: Origins, owner: cst.ClassDef | None) -> bool:
    """Whether a class of the file is a Keras learning-rate schedule."""
    for base in owner.bases if owner is not None else ():
        api = origins.names.api(base.value)
        if api == _SCHEDULE or (api is not None and KINDS.get(api) is Kind.SCHEDULE):
            return True
        origin = origins.one(base.value)
        above = origin.node if origin is not None else None
        if isinstance(above, cst.ClassDef) and above is not owner and is_schedule(origins, above):
            return True
    return False


def makes_schedule(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a call makes a schedule, of Keras or of the file's own."""
    if not isinstance(node, cst.Call):
        return False
    return origins.kind(node.func) is Kind.SCHEDULE or is_schedule(origins, origins.constructed(node))
