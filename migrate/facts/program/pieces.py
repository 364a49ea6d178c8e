"""What an expression is made of, with the names in it replaced by what they stand for."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from .index import ITER
from .origins import Origins

DEFINES = (cst.FunctionDef, cst.ClassDef, cst.Param, cst.Import, cst.ImportFrom)
"""Origins that are no expressions."""
_LIMIT = 400  # nodes of one value; real ones stay below a hundred


def nodes(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The node and everything below it."""
    todo = [node]
    while todo:
        yield (each := todo.pop())
        todo += reversed(each.children)


def statements(body: cst.BaseSuite) -> list[cst.CSTNode]:
    """Those of a body, each by itself."""
    lines = body.body if isinstance(body, cst.IndentedBlock) else [body]
    simple = (cst.SimpleStatementLine, cst.SimpleStatementSuite)
    return [part for line in lines for part in (line.body if isinstance(line, simple) else [line])]


def hanging_on(question: cst.If | cst.While) -> list[cst.CSTNode]:
    """The statements of all its ways, of an `elif` itself."""
    other = question.orelse
    otherwise = statements(other.body) if isinstance(other, cst.Else) else [other] if other is not None else []
    return [*statements(question.body), *otherwise]


def is_of_names(target: cst.BaseExpression) -> bool:
    """Whether all that is assigned to gets a name."""
    if isinstance(target, cst.Tuple | cst.List):
        return all(is_of_names(each.value) for each in target.elements)
    return isinstance(target, cst.Name)


def parts(origins: Origins, node: cst.CSTNode) -> list[cst.CSTNode]:
    """Every node of the value, following names and the file's own functions, but not into what is iterated over."""
    seen: dict[cst.CSTNode, None] = {}
    todo = [node]
    while todo and len(seen) < _LIMIT:
        for each in nodes(todo.pop()):
            if each in seen:
                continue
            seen[each] = None
            if isinstance(each, cst.Name | cst.Call):
                found = [o for o in origins.of(each) if ITER not in o.path and o.node is not each]
                todo += [o.node for o in found if not isinstance(o.node, DEFINES)]
    return list(seen)
