"""Why the dependence of a value on the batch is not known, though that of all it is made of is."""

from __future__ import annotations

import libcst as cst

from ..program import Origins, Unknown, outside

NOT_KNOWN = "cannot tell whether this loss is a mean over the batch"
_REASONS: tuple[tuple[tuple[type[cst.CSTNode], ...], str], ...] = (
    ((cst.Attribute,), "is an attribute whose value is not followed"),
    ((cst.Subscript,), "takes parts of a value, which may be other than whole examples"),
    (
        (cst.BinaryOperation, cst.AugAssign, cst.Comparison, cst.UnaryOperation),
        "puts values together that depend on the batch in different ways",
    ),
    ((cst.List, cst.Tuple, cst.Dict, cst.ListComp, cst.GeneratorExp, cst.DictComp), "holds several values"),
    ((cst.Name, cst.Import, cst.ImportFrom), "has no value in this file that can be followed"),
)


def cause(origins: Origins, node: cst.CSTNode) -> Unknown:
    """The reason that the kind of the expression gives."""
    if isinstance(node, cst.Call):
        return outside(origins, node) or Unknown(node, "gives a result whose dependence on the batch is not known")
    found = next((reason for kinds, reason in _REASONS if isinstance(node, kinds)), None)
    return Unknown(node, found or "is a value that is not followed")


def cause_of_loss(origins: Origins, node: cst.CSTNode) -> Unknown:
    """The same of what Keras is given for a loss."""
    if isinstance(node, cst.FunctionDef | cst.Lambda):
        return Unknown(node, "returns what is not known to be one value for each example, or their mean")
    if isinstance(node, cst.SimpleString):
        return Unknown(node, "is not the name of a Keras loss that is a mean over the batch")
    found = outside(origins, node) if isinstance(node, cst.Call) else None
    return found or Unknown(node, "is not a loss that is known to be a mean over the batch")
