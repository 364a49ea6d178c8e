"""Conditions that are surely the same on all ranks, and those that may not be.

A collective that only some ranks reach makes the others wait; a step that only some ranks take is averaged with
another one.
"""

from __future__ import annotations

import libcst as cst

from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.parts import nodes

_COUNTERS = frozenset({"builtins.range", "builtins.enumerate", "builtins.len", "builtins.int"})


def differing(node: cst.CSTNode, origins: Origins) -> cst.CSTNode | None:
    """The first test around the node, in its own function, that asks for more than counters, constants, arguments."""
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            return None
        test = parent.test if isinstance(parent, cst.While | cst.If | cst.IfExp) else None
        if test is not None and child is not test and not alike(test, origins):
            return test
        child = parent
    return None


def alike(test: cst.CSTNode, origins: Origins) -> bool:
    """Whether an expression is surely the same on all ranks."""
    return all(_alike(node, origins) for node in nodes(test))


def _alike(node: cst.CSTNode, origins: Origins) -> bool:
    if isinstance(node, cst.Call):
        return origins.names.api(node.func) in _COUNTERS
    if not isinstance(node, cst.Name):
        return True
    parent = origins.index.parents.get(node)
    if isinstance(parent, cst.Attribute) and parent.attr is node:
        return True  # its object is asked instead
    if origins.names.api(node) is not None:
        return True
    found = origins.of(node)
    return bool(found) and all(_counts(o.node, origins) for o in found)


def _counts(node: cst.CSTNode, origins: Origins) -> bool:
    if isinstance(node, cst.AugAssign):
        return isinstance(node.value, cst.Integer)
    if isinstance(node, cst.Call):
        return (origins.names.api(node.func) or "") in _COUNTERS or parses_arguments(node, origins)
    if isinstance(node, cst.Name | cst.Attribute):
        return origins.names.api(node) is not None
    return isinstance(node, cst.Integer | cst.Float | cst.SimpleString)


def parses_arguments(call: cst.Call, origins: Origins) -> bool:
    """`parser.parse_args()` of an argparse.ArgumentParser."""
    made = origins.one(call.func.value) if isinstance(call.func, cst.Attribute) else None
    maker = made.node if made is not None else None
    return isinstance(maker, cst.Call) and origins.names.api(maker.func) == "argparse.ArgumentParser"
