"""A replay memory: examples drawn from what the script itself collects while it trains.

Each worker plays for itself: the memories differ, and a draw of one is no share of another's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..counting import around
from ..data import numpy_draw
from ..keras import FitData
from ..outputs import repeated
from ..program import ITER, Origins, Problem, additions, attribute_additions, closure, reaching, within


def replayed(origins: Origins, fits: Iterable[FitData]) -> list[Problem]:
    """Fits, in a loop, of examples that are drawn from a container which that loop fills."""
    reason = "these examples are drawn from a memory that is filled in training: each worker's would hold others"
    next_step = "train on recorded examples, as arrays or a tf.data.Dataset that is made before training"
    found = (f for f in fits if f.arrays and _drawn_from_memory(origins, f))
    return [Problem("TFDP010", f.fit.call, reason, next_step) for f in found]


def _drawn_from_memory(origins: Origins, fit: FitData) -> bool:
    loops = around(origins, fit.fit.call)
    if not loops:
        return False
    roots: list[cst.CSTNode] = [value for _, value in fit.arrays]
    made_of = closure(roots, lambda node: _leading(origins, node))
    calls = [n for n in made_of if isinstance(n, cst.Call)]
    drawn = any(numpy_draw(origins, c) is not None or origins.called(c).startswith("random.") for c in calls)
    return drawn and any(_fills(origins, loop, n) for loop in loops for n in made_of)


def _fills(origins: Origins, loop: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Whether a loop puts something into what was made before it."""
    if isinstance(node, cst.Name):
        definitions = reaching(origins.index, node)
        if any(within(origins.index, d.statement, loop) for d in definitions):
            return False
        added = additions(origins, definitions)
    elif isinstance(node, cst.Attribute) and origins.names.api(node) is None:
        if any(within(origins.index, value, loop) for value, _ in origins.stored(node)):
            return False
        added = attribute_additions(origins, node)
    else:
        return False
    region = repeated(origins, (), [loop])
    return any(p in region for each in added for p in origins.index.ancestors(each.place))


def _leading(origins: Origins, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a value is made of, one step back; also what loops and comprehensions go over."""
    yield from node.children
    if isinstance(node, cst.Name):
        for definition in reaching(origins.index, node):
            function = definition.scope
            if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                bound = (origins.bind(c, function).get(definition.name) for c in origins.calls_of(function))
                yield from (b for b in bound if b is not None)
            elif isinstance(definition.value, cst.BaseExpression):
                yield definition.value
    elif isinstance(node, cst.Call) and (called := origins.function(node.func)) is not None:
        yield from origins.index.returned(called)
    elif isinstance(node, cst.Attribute):
        yield from (v for v, path in origins.stored(node) if isinstance(v, cst.BaseExpression) and ITER not in path)
