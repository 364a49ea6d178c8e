"""Training in threads and processes that the script starts: workers would come to their common calls in any order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import libcst as cst

from ..program import Origins, Problem, leading

_STARTS = re.compile(
    r"(threading\.(Thread|Timer)|multiprocessing\.(\w+\.)?(Process|Pool|ThreadPool)|concurrent\.futures\.)"
)
_RUNS = frozenset({"submit", "map", "apply_async", "map_async", "starmap", "imap", "imap_unordered", "run_in_executor"})
_REASON = (
    "this trains in a thread or process of its own, and the workers would not come to their common calls in one order"
)
_NEXT = "train in the script's main thread"


def in_threads(origins: Origins, steps: Iterable[cst.CSTNode]) -> list[Problem]:
    """Where a function that trains is given to what runs it beside the script."""
    index = origins.index
    training = {index.enclosing_function(node) for node in leading(origins, steps)} - {None}
    found = dict.fromkeys(
        call for call in _starting(origins) for value in _given(call) if _runs(origins, value, training)
    )
    owners = {index.enclosing_class(f) for f in training if f is not None and f.name.value == "run"}
    below = [c for c in owners if c is not None and origins.below(c, ("threading.", "multiprocessing."))]
    return [Problem("TFDP080", place, _REASON, _NEXT) for place in (*found, *(c.name for c in below))]


def _starting(origins: Origins) -> Iterator[cst.Call]:
    for call in origins.index.calls:
        if _STARTS.match(origins.called(call)):
            yield call
    for call in origins.index.methods(*_RUNS):
        made = origins.of(cst.ensure_type(call.func, cst.Attribute).value)
        if any(_STARTS.match(origins.called(o.node)) for o in made):
            yield call


def _given(call: cst.Call) -> list[cst.BaseExpression]:
    return [a.value for a in call.args]


def _runs(origins: Origins, value: cst.BaseExpression, training: set[cst.FunctionDef | None]) -> bool:
    if isinstance(value, cst.Lambda):
        return any(origins.function(c.func) in training for c in origins.index.calls if c in set(_calls_in(value)))
    return any(o.node in training for o in origins.of(value))


def _calls_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in node.children:
        yield from _calls_in(child)
