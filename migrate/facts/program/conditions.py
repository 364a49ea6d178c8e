"""What decides whether a place is reached."""

from __future__ import annotations

import libcst as cst

from .origins import Origins
from .pieces import nodes
from .spelling import method, receiver


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


def tests_around(node: cst.CSTNode, origins: Origins) -> list[cst.BaseExpression]:
    """The tests around a place in its own function, the innermost first."""
    found: list[cst.BaseExpression] = []
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
            break
        found += _tests_of(parent, child)
        child = parent
    return found


def _tests_of(parent: cst.CSTNode, child: cst.CSTNode) -> list[cst.BaseExpression]:
    """What decides in a node whether one of its parts is reached."""
    if isinstance(parent, cst.While | cst.If | cst.IfExp):
        return [parent.test] if child is not parent.test else []
    if isinstance(parent, cst.Match):
        return [parent.subject] if child is not parent.subject else []
    if isinstance(parent, cst.BooleanOperation):
        return [parent.left] if child is parent.right else []
    if isinstance(parent, cst.BaseComp) and child is not parent.for_in:
        return [test.test for loop in nodes(parent.for_in) if isinstance(loop, cst.CompFor) for test in loop.ifs]
    return []


def parses_arguments(call: cst.Call, origins: Origins) -> bool:
    """`parser.parse_args()` of an argparse.ArgumentParser."""
    made = origins.one(receiver(call)) if method(call) else None
    return made is not None and origins.called(made.node) == "argparse.ArgumentParser"
