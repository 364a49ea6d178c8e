"""Whether a script comes to a place whenever it is run, whatever its arguments are and whatever it finds."""

from __future__ import annotations

import libcst as cst

from .program import argument, assigned, exits_before, method, nodes, number, parses_arguments, receiver, ways_into
from .script import Script
from .training import main_guard

_DECIDES = (cst.If, cst.IfExp, cst.BooleanOperation, cst.Match, cst.While, cst.Lambda, cst.BaseComp)
_ENDS = ("sys.exit", "builtins.exit", "builtins.quit", "os._exit", "os.abort", "os.exec", "os.kill")
_MAY_BE_EMPTY = frozenset({"filter", "skip", "take", "take_while"})
_DATA = ("tensorflow.data.", "tensorflow_datasets.")


def is_reached(script: Script, node: cst.CSTNode) -> bool:
    """Whether nothing decides about it and nothing before it may end the script; what fails unasked does not count."""
    return _reached(script, node, _ends(script), ())


def _ends(script: Script) -> list[cst.CSTNode]:
    calls = [c for c in script.index.calls if script.origins.called(c).startswith(_ENDS)]
    parses = [c for c in script.index.calls if parses_arguments(c, script.origins)]
    leaves = [n for n in nodes(script.program.entry.module) if isinstance(n, cst.Raise | cst.Assert)]
    return [*calls, *parses, *leaves]


def _reached(script: Script, node: cst.CSTNode, ends: list[cst.CSTNode], called: tuple[cst.FunctionDef, ...]) -> bool:
    index = script.index
    function = index.enclosing_function(node)
    if exits_before(node, script.origins) or function in called or not _is_straight(script, node):
        return False
    ends = [end for end in ends if not _is_later(script, end, node)]
    if function is None:
        return not ends
    return any(_reached(script, call, ends, (*called, function)) for call in ways_into(script.origins, node))


def _is_later(script: Script, end: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether both are of one function, and the node's first turn is over before the end comes."""
    index = script.index
    if index.enclosing_function(end) is not index.enclosing_function(node):
        return False
    return index.order[end] > index.order[node] or end in index.ancestors(node)


def _is_straight(script: Script, node: cst.CSTNode) -> bool:
    """Whether a run of the function that holds the node comes to it, but for what ends the run before."""
    guard, child = main_guard(script.program.entry.module), node
    for parent in script.index.ancestors(node):
        if isinstance(parent, cst.FunctionDef):
            return child is parent.body and _runs_when_called(script, parent)
        if isinstance(parent, cst.For) and child is not parent.iter and not _turns(script, parent, child):
            return False
        if isinstance(parent, cst.Try | cst.TryStar) and parent.handlers:
            return False
        if isinstance(parent, _DECIDES) and not (parent is guard and child is guard.body):
            return False
        child = parent
    return True


def _runs_when_called(script: Script, function: cst.FunctionDef) -> bool:
    if function.asynchronous is not None or script.index.generators.get(function):
        return False
    made = [d.decorator.func if isinstance(d.decorator, cst.Call) else d.decorator for d in function.decorators]
    kept = ("tensorflow.", "builtins.staticmethod", "builtins.classmethod")
    return all((script.origins.names.api(each) or "").startswith(kept) for each in made)


def _turns(script: Script, loop: cst.For, part: cst.CSTNode) -> bool:
    """Whether it is the body of a loop and certainly runs: over numbers or values written out here, or a dataset."""
    values = loop.iter
    if loop.asynchronous is not None or part is not loop.body:
        return False
    if isinstance(values, cst.Call) and script.origins.called(values) == "builtins.enumerate" and values.args:
        values = values.args[0].value
    if isinstance(values, cst.Call) and script.origins.called(values) == "builtins.range":
        return _counts(script, values)
    return _is_filled(values) or _is_filled(assigned(script.index, values)) or _is_dataset(script, values)


def _counts(script: Script, values: cst.Call) -> bool:
    bounds = [_constant(script, each.value) for each in values.args]
    if any(each.star for each in values.args) or None in bounds or len(bounds) not in {1, 2}:
        return False
    return (bounds[0] or 0) < (bounds[1] or 0) if len(bounds) == 2 else (bounds[0] or 0) > 0


def _constant(script: Script, node: cst.CSTNode) -> float | None:
    value = assigned(script.index, node)
    return number(node) if value is None else number(value)


def _is_filled(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.List | cst.Tuple | cst.Set) and any(isinstance(e, cst.Element) for e in node.elements)


def _is_dataset(script: Script, node: cst.CSTNode) -> bool:
    made = script.origins.made(node)
    while isinstance(made, cst.Call):
        if script.origins.called(made).startswith(_DATA):
            return True
        if not method(made) or method(made) in _MAY_BE_EMPTY:
            return False
        made = script.origins.made(receiver(made))
    return False


def fits_once(script: Script, call: cst.Call) -> bool:
    """Whether a call of `fit` or the like certainly trains for an epoch at least."""
    if any(each.star for each in call.args) or argument(call, "initial_epoch") is not None:
        return False
    epochs = argument(call, "epochs", 3 if method(call) == "fit" else None)
    return epochs is None or (_constant(script, epochs.value) or 0) > 0
