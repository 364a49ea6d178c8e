"""Whether a script comes to a place whenever it is run, whatever its arguments are."""

from __future__ import annotations

import libcst as cst

from .program import exits_before, ways_into
from .script import Script
from .training import main_guard

_DECISIONS = (cst.If, cst.IfExp, cst.BooleanOperation, cst.Match, cst.ExceptHandler, cst.Lambda, cst.BaseComp)
_ENDS = frozenset({"sys.exit", "os._exit", "builtins.exit", "builtins.quit"})


def is_reached(script: Script, node: cst.CSTNode) -> bool:
    """Whether nothing decides about it: loops are taken to run, and what raises an error to go on."""
    ends = [call for call in script.index.calls if script.origins.called(call) in _ENDS]
    last = all(script.index.enclosing_function(call) is None and _undecided(script, call) for call in ends)
    return last and _reached(script, node, ())


def _reached(script: Script, node: cst.CSTNode, called: tuple[cst.CSTNode, ...]) -> bool:
    function = script.index.enclosing_function(node)
    if exits_before(node, script.origins) or not _undecided(script, node) or function in called:
        return False
    if function is None:
        return True
    return any(_reached(script, call, (*called, function)) for call in ways_into(script.origins, node))


def _undecided(script: Script, node: cst.CSTNode) -> bool:
    """Whether no condition stands around a place, up to the function that holds it."""
    guard = main_guard(script.program.entry.module)
    for parent in script.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef):
            return True
        if isinstance(parent, _DECISIONS) and parent is not guard:
            return False
    return True
