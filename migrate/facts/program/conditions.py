"""Conditions that are surely the same on all ranks, and those that may not be.

A collective that only some ranks reach makes the others wait; a step that only some ranks take is averaged with
another one; an update that only some apply makes their models different ones.
"""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from .flow import reaching, within
from .origins import Origin, Origins

_COUNTERS = frozenset(
    {
        "builtins.range",
        "builtins.enumerate",
        "builtins.len",
        "builtins.int",
        "tfdp.runtime.local_steps",
        "tfdp.runtime.size",
    }
)
_ELEMENTWISE = (
    "cast constant equal not_equal greater greater_equal less less_equal logical_and logical_or logical_not "
    "math.equal math.not_equal math.mod math.floormod"
)
_OF_ALIKE = frozenset(f"tensorflow.{name}" for name in _ELEMENTWISE.split())  # functions of their arguments alone
_EQUAL = frozenset(f"tfdp.runtime.{name}" for name in ("agree", "metric_result", "average_value", "on_root", "size"))
_CHANGES = frozenset({"assign", "assign_add", "assign_sub"})
_DEPTH = 12  # conditions on which a value depends, one after another; real ones stay below three


def differing(node: cst.CSTNode, origins: Origins) -> cst.CSTNode | None:
    """The first test around the node, in its own function, that asks for more than counters, constants, arguments."""
    return _differing(node, origins, 0)


def exits_before(node: cst.CSTNode, origins: Origins) -> list[cst.CSTNode]:
    """`return`, `break` and `continue` of the node's own function that can keep it from being reached."""
    index = origins.index
    around = [each for each in index.loops_around(node) if each is not node]
    place = index.order.get(node, len(index.order))
    found: list[cst.CSTNode] = []
    for each in index.exits.get(index.enclosing_function(node), ()):
        own, earlier = index.loops_around(each), index.order[each] < place
        if isinstance(each, cst.Return):
            leaves = earlier or any(loop in around for loop in own)
        else:
            leaves = bool(own) and own[0] in around and (earlier or isinstance(each, cst.Break))
        found += [each] if leaves else []
    return found


def alike(test: cst.CSTNode, origins: Origins) -> bool:
    """Whether an expression is surely the same on all ranks."""
    return _alike(test, origins, 0)


def _differing(node: cst.CSTNode, origins: Origins, depth: int, asked: cst.CSTNode | None = None) -> cst.CSTNode | None:
    """`asked` is a name of which the question is whether it is alike: a test of it (`while step < n:`) adds nothing."""
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            return None
        test = parent.test if isinstance(parent, cst.While | cst.If | cst.IfExp) else None
        if test is not None and child is not test:
            itself = asked is not None and within(origins.index, asked, test)
            if not itself and not _alike(test, origins, depth):
                return test
        child = parent
    return None


def _alike(node: cst.CSTNode, origins: Origins, depth: int) -> bool:
    if depth > _DEPTH:
        return False
    if node in origins.settled:
        return True
    if isinstance(node, cst.Call):
        return _call(node, origins, depth)
    if origins.names.api(node) is not None:
        return True
    if isinstance(node, cst.Comparison) and _asks_for_none(node, origins):
        return not isinstance(node.left, cst.Name) or _steady(node.left, origins, depth)
    if isinstance(node, cst.Attribute):
        if node.attr.value == "iterations" and origins.kinds(node.value) == {Kind.OPTIMIZER}:
            return True
        found = origins.of(node)
        if all(o.node is node for o in found):
            return _alike(node.value, origins, depth)  # an attribute of arguments, of a counter
        return _steady_stores(node, origins, depth) and all(_counts(o, origins, depth) for o in found)
    if isinstance(node, cst.Name):
        found = origins.of(node)
        return bool(found) and _steady(node, origins, depth) and all(_counts(o, origins, depth) for o in found)
    return all(_alike(child, origins, depth) for child in node.children)


def _call(node: cst.Call, origins: Origins, depth: int) -> bool:
    api = origins.names.api(node.func)
    if api in _EQUAL:
        return True
    if api in _OF_ALIKE | _COUNTERS:
        return all(_alike(arg.value, origins, depth) for arg in node.args)
    method = node.func if isinstance(node.func, cst.Attribute) and api is None else None
    return method is not None and method.attr.value == "numpy" and _alike(method.value, origins, depth)


def _asks_for_none(node: cst.Comparison, origins: Origins) -> bool:
    """`value is None`: which values there are at all is the same on all ranks, unless a condition differs."""
    named = isinstance(node.left, cst.Name | cst.Attribute)
    targets = [c.comparator for c in node.comparisons if isinstance(c.operator, cst.Is | cst.IsNot)]
    return named and len(targets) == len(node.comparisons) and origins.names.api(targets[0]) == "builtins.None"


def _steady(name: cst.Name, origins: Origins, depth: int) -> bool:
    """Whether no binding of the name is made under a condition that may differ."""
    definitions = reaching(origins.index, name)
    bound = [d.statement for d in definitions if d.kind in {"assign", "other"}] if len(definitions) > 1 else []
    return all(_differing(statement, origins, depth + 1, name) is None for statement in bound)


def _steady_stores(node: cst.Attribute, origins: Origins, depth: int) -> bool:
    stores = [target for target, _, _ in origins.index.attribute_stores.get(node.attr.value, ())]
    return len(stores) < 2 or all(_differing(target, origins, depth + 1) is None for target in stores)


def _counts(origin: Origin, origins: Origins, depth: int) -> bool:
    node = origin.node
    if isinstance(node, cst.AugAssign):
        return isinstance(node.value, cst.Integer)
    if isinstance(node, cst.Call):
        api = origins.names.api(node.func) or ""
        element = api == "builtins.enumerate" and origin.path[1:] != (0,)  # not its counter
        return (
            (api in _COUNTERS and not element)
            or parses_arguments(node, origins)
            or _counting_variable(origin, origins, depth)
        )
    if isinstance(node, cst.Name | cst.Attribute):
        return origins.names.api(node) is not None
    return isinstance(node, cst.Integer | cst.Float | cst.SimpleString)


def _counting_variable(origin: Origin, origins: Origins, depth: int) -> bool:
    """`tf.Variable(0)` that is only counted up or set to numbers, on all ranks alike."""
    made = origin.node
    if not isinstance(made, cst.Call) or origin.path or origins.names.api(made.func) != "tensorflow.Variable":
        return False
    first = made.args[0].value if made.args else None
    if not isinstance(first, cst.Integer):
        return False  # a variable of floating point may be trained
    changes = [c for c in origins.index.calls if isinstance(c.func, cst.Attribute) and c.func.attr.value in _CHANGES]
    own = [c for c in changes if any(o.node is made for o in origins.of(cst.ensure_type(c.func, cst.Attribute).value))]
    return all(
        _differing(c, origins, depth + 1) is None and all(isinstance(a.value, cst.Integer) for a in c.args) for c in own
    )


def parses_arguments(call: cst.Call, origins: Origins) -> bool:
    """`parser.parse_args()` of an argparse.ArgumentParser."""
    made = origins.one(call.func.value) if isinstance(call.func, cst.Attribute) else None
    maker = made.node if made is not None else None
    return isinstance(maker, cst.Call) and origins.names.api(maker.func) == "argparse.ArgumentParser"
