"""What a plan writes runs where its names have values, and where the runtime has started: else it is refused."""

from __future__ import annotations

import ast
from collections.abc import Collection

import libcst as cst

from ..rules._base import Edit, Insert, Outcome, Parameter, Refuse, Rule, SetArg
from .facts import Script
from .facts.program import argument, certainly_bound, nodes, within

_EARLY = "this runs before the place where the workers can be started, which must come first here"
_LATER = "move this below the imports, or into the function that trains"


def out_of_place(
    script: Script, dp: str, imported: bool, outcomes: Collection[tuple[Rule, Outcome]]
) -> list[tuple[Rule, Refuse]]:
    """The refusals for what would fail by its place. imported: whether the script starts the runtime itself."""
    found: list[tuple[Rule, Refuse]] = []
    added = {(o.function, o.name) for _, o in outcomes if isinstance(o, Parameter)}
    for rule, outcome in outcomes:
        if isinstance(outcome, Insert):
            read = _reads(outcome.code)
            anchor, after, written = outcome.anchor, outcome.where == "after", _first_line(outcome.code)
        elif (made := _made(outcome)) is not None:
            node, expression = made
            written = cst.Module([]).code_for_node(expression)
            read = _reads(f"({written})") - _names(node)
            anchor, after = script.index.statement_of(node), False
            if dp in read and not imported and _is_early(script, node):
                found.append((rule, Refuse(node, _EARLY, _LATER)))
        else:
            continue
        read -= {dp, *(name for function, name in added if within(script.index, anchor, function))}
        missing = [n for n in sorted(read) if not certainly_bound(script.origins, n, anchor, after)]
        if missing:
            reason = f"`{written}` belongs here, and {missing[0]} may have no value yet"
            found.append((rule, Refuse(anchor, reason, f"make {missing[0]} before this, on every way to it")))
    return found


def _first_line(code: str) -> str:
    return code.partition("  # ")[0].splitlines()[0]


def _reads(code: str) -> set[str]:
    """The names that code reads and does not bind itself."""
    every = list(ast.walk(ast.parse(code)))
    names = [n for n in every if isinstance(n, ast.Name)]
    own = {n.id for n in names if not isinstance(n.ctx, ast.Load)}
    own |= {n.arg for n in every if isinstance(n, ast.arg)}
    return {n.id for n in names} - own


def _names(node: cst.CSTNode) -> set[str]:
    return {n.value for n in nodes(node) if isinstance(n, cst.Name)}


def _made(outcome: Outcome) -> tuple[cst.CSTNode, cst.BaseExpression] | None:
    """The node that an outcome changes, and the expression that it makes of it."""
    if isinstance(outcome, Edit):
        return outcome.node, outcome.change(outcome.node)
    if isinstance(outcome, SetArg):
        present = argument(outcome.call, outcome.keyword, outcome.position)
        return outcome.call, outcome.change(present.value if present is not None else None)
    return None


def _is_early(script: Script, node: cst.CSTNode) -> bool:
    """Whether a place of the module's own code runs before the runtime's start."""
    index, start = script.index, script.entry.start
    scope = index.scope_of(node)
    while isinstance(scope, cst.ClassDef):
        scope = index.scope_of(scope)
    if not isinstance(scope, cst.Module) or index.root(start.anchor) is not scope:
        return False
    return index.order[node] < index.order[start.anchor] or (not start.first and within(index, node, start.anchor))
