"""Texts that are nested deeply, and scripts that lead the facts in a circle: what is said of them, and where."""

from __future__ import annotations

import ast
import contextlib
import sys
from collections.abc import Iterator

import libcst as cst

from .facts import Script
from .facts.program import last_name, nodes
from .files import UnreadableSource

# Before 3.11 each call of a Python function takes its part of the C stack, which ends the process where it is used up.
_ROOMY = sys.version_info >= (3, 11)
DEEPEST = 1000 if _ROOMY else 250  # nodes inside one another; what people write has fewer than sixty
_FRAMES = 12 * DEEPEST  # a level takes libcst and the facts up to eight frames; questions to the facts, some hundreds


@contextlib.contextmanager
def room(path: str = "", script: Script | None = None) -> Iterator[None]:
    """Let functions call one another as often as the deepest text that is not refused needs.

    Raises UnreadableSource, with the place, where questions about a script that calls itself come to no end.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    except RecursionError as error:
        if script is None or (said := circle(path, script)) is None:
            raise
        raise said from error
    finally:
        sys.setrecursionlimit(before)


def refuse_deep(path: str, source: str, module: cst.Module) -> None:
    """Raises UnreadableSource, with the place, for a text in which more than DEEPEST nodes are inside one another."""
    level: list[cst.CSTNode] = [module]
    depth = 0
    while level:
        level = [child for node in level for child in node.children]
        depth += 1
    if depth > DEEPEST:
        line, column, chain = _deepest(ast.parse(source))
        what = "this if/elif chain" if chain else "the expression in this statement"
        step = "look the value up in a dictionary" if chain else "split it into several statements"
        reason = f"nested too deeply: {what} has {depth} levels, and tfdp understands {DEEPEST}; {step}"
        raise UnreadableSource(path, line, column, reason)


def _deepest(tree: ast.AST) -> tuple[int, int, bool]:
    """Line and column of the statement that has most of the deepest levels of a tree, and whether by its `elif`s."""
    deepest, found = 0, (0, (1, 1, False))
    todo = [(tree, 0, 0, (1, 1, False), found)]  # depth, that of the statement around, its place, the most before it
    while todo:
        node, depth, start, place, most = todo.pop()
        depth += len(node.values) if isinstance(node, ast.BoolOp | ast.JoinedStr) else 1
        most = max(most, (depth - start, place))
        deepest, found = max((deepest, found), (depth, most))
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If):
                todo.append((child, depth, start, (*place[:2], True), most))
            elif isinstance(child, ast.stmt):
                todo.append((child, depth, depth, (child.lineno, child.col_offset + 1, False), most))
            else:
                todo.append((child, depth, start, place, most))
    return found[1]


def circle(path: str, script: Script) -> UnreadableSource | None:
    """What to say of a script in which the facts come to no end: the function that calls itself, and others by turns.

    None where there is no such function.
    """
    calls = {
        f: {name for n in nodes(f.body) if isinstance(n, cst.Call) and (name := last_name(n.func))}
        for f in script.index.functions
    }
    for function, called in calls.items():
        reached, todo = set[str](), list(called)
        while todo:
            if (name := todo.pop()) not in reached:
                reached.add(name)
                todo += [inner for f in script.index.functions if f.name.value == name for inner in calls[f]]
        if function.name.value in reached:
            name = function.name.value
            reason = f"tfdp comes to no end in following `{name}`, which calls itself, directly or through others"
            step = "write it as a loop, or move it to a module of its own and import it"
            return UnreadableSource(path, *script.position(function), f"{reason}; {step}")
    return None
