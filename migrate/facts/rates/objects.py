"""Objects whose `learning_rate` may be that of a Keras optimizer, and those whose certainly is not."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import libcst as cst

from ...catalogue import Kind
from ..apis import RATES
from ..program import Origin, Origins, nodes, parses_arguments


def sets_by_name(origins: Origins, attributes: AbstractSet[str]) -> list[cst.Call]:
    """`setattr(x, name, …)` with one of the names, or with a name that is not written out on what may be any object."""
    found = []
    for call in (c for c in origins.calls_to("builtins.setattr") if len(c.args) == 3):
        name = call.args[1].value
        literal = name.evaluated_value if isinstance(name, cst.SimpleString) else None
        if literal in attributes or (literal is None and not plain_object(call.args[0].value, origins)):
            found.append(call)
    return found


def reads_a_rate(node: cst.CSTNode, origins: Origins) -> bool:
    """Whether the learning rate of what may be a Keras optimizer is read in an expression."""
    return any(may_be_rate(n, origins) for n in nodes(node))


def may_be_rate(node: cst.CSTNode, origins: Origins) -> bool:
    """Whether a node is the learning rate of what may be a Keras optimizer."""
    return isinstance(node, cst.Attribute) and node.attr.value in RATES and not plain_object(node.value, origins)


def plain_object(node: cst.BaseExpression, origins: Origins) -> bool:
    """Whether the object is certainly no Keras optimizer: of the file's own class, a module, or parsed arguments."""
    if origins.names.api(node) == "absl.flags.FLAGS":
        return True
    found = origins.of(node)
    return bool(found) and all(_plain_origin(o, origins) for o in found)


def _plain_origin(origin: Origin, origins: Origins) -> bool:
    node = origin.node
    parsed = isinstance(node, cst.Call) and parses_arguments(node, origins)
    if parsed or origin.path:
        return parsed and origin.path in {(), (0,)}
    owner = node if isinstance(node, cst.ClassDef) else origins.constructed(node)
    if owner is not None:
        return all(_is_no_optimizer(base or "") for base in origins.bases(owner))
    return isinstance(node, cst.Import) or origins.called(node) in {"argparse.Namespace", "types.SimpleNamespace"}


def _is_no_optimizer(base: str) -> bool:
    """Whether a class of a library is known, and no optimizer of Keras."""
    keras = base.startswith("keras.optimizers.") and not base.startswith("keras.optimizers.schedules.")
    return base.startswith(("tensorflow.", "keras.", "builtins.", "abc.", "typing.")) and not keras


def makes_schedule(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a call makes a schedule, of Keras or of the file's own."""
    if not isinstance(node, cst.Call):
        return False
    own = origins.below(origins.constructed(node), "keras.optimizers.schedules.")
    return own or origins.kind(node.func) is Kind.SCHEDULE
