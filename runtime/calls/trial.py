"""Code of the script's own is tried in a graph before it is looked at, for what its operations may do with rows."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..framework import functions_run, only_reads
from .guard import Nested, built_of
from .look_sights import LookSight
from .once import build, no_graph
from .own_sight import moments
from .sight import Draw, Moments, Undivided, seen
from .swallowed import answering
from .ways import Way

Tensor = Any


class Trial(LookSight):
    """Sees code of the script's own in a graph that is not run, for the operations that it has."""

    def __init__(self, writable: Sequence[Any]) -> None:
        """`writable`: variables that may be written."""
        self._writable = {id(each.handle) for each in writable}
        self.nested: dict[Any, Nested] = {}
        self.given: Sequence[int] = ()
        self.way = Way({}, ())

    def drawn(self, draw: Draw) -> Tensor:
        """Numbers of the kind."""
        return draw.imitate(draw.shape)

    def normalised(self, values: Tensor, weights: Tensor | None, axes: list[int], *, live: bool) -> Moments:  # noqa: ARG002
        """Those of some rows."""
        return moments(values, weights, axes)

    def looked_up(self, table: Any, rows: Tensor, look_up: Callable[[Tensor], Tensor]) -> Tensor:  # noqa: ARG002
        """The lookup."""
        return look_up(rows)

    def executes(self, kind: str, inputs: Sequence[Any]) -> None:
        """What does more than to compute would do so when the call is looked at; what is written can be put back."""
        if "PyFunc" in kind or not (only_reads(kind) or self._may_write(inputs)):
            self.refuse(f"keeps a state, or does more than to compute (operation {kind})")

    def _may_write(self, inputs: Sequence[Any]) -> bool:
        captured = {id(inside): id(outside) for outside, inside in tf.compat.v1.get_default_graph().captures}
        handles = [captured.get(id(each), id(each)) for each in inputs if each.dtype == tf.resource]
        return bool(handles) and self._writable.issuperset(handles)

    def meets(self, nested: Nested) -> None:
        """To be looked at by itself."""
        self.nested[nested.key] = nested

    def gives(self, factors: Sequence[int], way: Way, *, parts_ways: bool) -> None:  # noqa: ARG002
        """Remembered."""
        self.given, self.way = factors, way


def tried(
    call: Callable[..., Any],
    structure: Any,
    by_rows: Sequence[bool],
    *,
    eagerly: bool,
    writable: Sequence[Any],
) -> Trial:
    """What such code does with rows in a call with these arguments and options.

    eagerly: whether it is to be called so. writable: variables that it may write.

    Raises:
        Undivided: it may mix rows, or cannot be built into a graph.
    """
    trial = Trial(writable)
    structure = tf.nest.map_structure(lambda each: each, structure)  # lists of its own
    rows = [each for each, of_rows in zip(tf.nest.flatten(structure), by_rows, strict=True) if of_rows]
    call = functools.partial(built_of, call, length=rows[0].shape[0], eagerly=eagerly)
    try:
        with answering(), functions_run(eagerly=False), seen(trial, rows):
            build(call, *structure)
    except Exception as error:  # whatever is no graph
        raise Undivided(no_graph(error)) from error
    return trial
