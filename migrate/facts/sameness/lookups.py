"""Functions that a call finds by a class, a table or an object, and what the bodies of classes give attributes."""

from __future__ import annotations

import libcst as cst

from ..program import DEFINES, Definition, Origins


def runs(origins: Origins, func: cst.BaseExpression) -> list[cst.FunctionDef | cst.Lambda]:
    """The functions that a called expression may stand for."""
    found = origins.one(func)
    made = found.node if found is not None and not found.path else None
    if isinstance(made, cst.FunctionDef | cst.Lambda):
        return [made]
    if isinstance(func, cst.Attribute):
        owner = origins.made(func.value)
        method = origins.method(owner, func.attr.value) if isinstance(owner, cst.ClassDef) else None
        return [method] if method is not None else []
    if isinstance(func, cst.Subscript):
        table = origins.made(func.value)
        elements = table.elements if isinstance(table, cst.Dict | cst.List | cst.Tuple) else ()
        held = (e.value for e in elements)
        return [f for value in held if not value.deep_equals(func) for f in runs(origins, value)]
    called = origins.class_of(func)
    by_call = origins.method(called, "__call__") if called is not None else None
    return [by_call] if by_call is not None else []


def of_classes(origins: Origins, node: cst.Attribute) -> list[Definition]:
    """What the bodies of classes give an attribute: of the class that holds it, of any where that is not known."""
    definitions = origins.index.definitions
    named = [c for c in origins.index.classes if node.attr.value in definitions.get(c, ())]
    holder = origins.made(node.value) if named else None
    owner = holder if isinstance(holder, cst.ClassDef) else origins.class_of(node.value) if named else None
    kin = [c for c in named if owner is None or origins.descends(owner, c) or origins.descends(c, owner)]
    found = [d for c in kin for d in definitions[c][node.attr.value]]
    return [d for d in found if d.value is not None and not isinstance(d.value, DEFINES)]
