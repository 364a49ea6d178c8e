"""What a plan writes runs where its names have values, and where the runtime has started: else it is refused."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

import libcst as cst

from ..rules._base import Context, Edit, Guard, Insert, Outcome, Parameter, Refuse, Rule, SetArg, place
from .facts.program import argument, certainly_bound, nodes, within
from .facts.training import Body

_EARLY = "this runs before the place where the workers can be started, which must come first here"
_LATER = "move this below the imports, or into the function that trains"


def first_early(context: Context, outcomes: Iterable[tuple[Rule, Outcome]]) -> cst.CSTNode | None:
    """The first place at which a plan calls the runtime before it has started."""
    places = (place(o) for _, o in outcomes if _is_early(context, o))
    return min(places, key=context.script.position, default=None)


def out_of_place(
    context: Context, imported: bool, outcomes: Collection[tuple[Rule, Outcome]]
) -> list[tuple[Rule, Refuse]]:
    """The refusals for what would fail by its place. imported: whether the script starts the runtime itself."""
    script, dp = context.script, context.dp
    found: list[tuple[Rule, Refuse]] = []
    added = {(o.function, o.name) for _, o in outcomes if isinstance(o, Parameter)}
    for rule, outcome in outcomes:
        if not imported and _is_early(context, outcome):
            found.append((rule, Refuse(place(outcome), _EARLY, _LATER)))
        if isinstance(outcome, Insert):
            read = _reads(outcome.code)
            anchor, after, written = outcome.anchor, outcome.where == "after", _first_line(outcome.code)
        elif (made := _made(outcome)) is not None:
            node, expression = made
            written = cst.Module([]).code_for_node(expression)
            read = _reads(f"({written})") - _names(node)
            anchor, after = script.index.statement_of(node), False
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


def _calls_runtime(dp: str, outcome: Outcome) -> bool:
    """Whether an outcome writes what only works when the runtime has started."""
    if isinstance(outcome, Guard):
        return True
    made = _made(outcome)
    if made is None:
        return isinstance(outcome, Insert) and dp in _reads(outcome.code)
    return dp in _reads(f"({cst.Module([]).code_for_node(made[1])})") - _names(made[0])


def _is_early(context: Context, outcome: Outcome) -> bool:
    """Whether an outcome calls the runtime in what runs with the module's own code, before the runtime's start."""
    index, start, node = context.script.index, context.start, place(outcome)
    if node is start.anchor or not _calls_runtime(context.dp, outcome):
        return False
    scope = index.scope_of(node)
    if isinstance(scope, Body) and (run := context.entry.at_import.get(scope)) is not None:
        node, scope = run, index.scope_of(run)
    while isinstance(scope, cst.ClassDef):
        scope = index.scope_of(scope)
    if not isinstance(scope, cst.Module) or index.root(start.anchor) is not scope:
        return False
    return index.order[node] < index.order[start.anchor] or (not start.first and within(index, node, start.anchor))
