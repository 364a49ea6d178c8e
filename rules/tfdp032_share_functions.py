"""Share the calls of functions of variables over the workers.

What it does
    For sharded calls: where a loss is computed by a function of the script's own that reads variables, and no layer,
    model or `tf.Module` is called in it, the function is put into `dp.by_rows(…)`. When it is first called it is looked
    at: where all its operations keep rows apart, each worker computes its own rows, and all are gathered; else it is
    called whole.

Why
    The calls of layers, models and modules are seen as they are made; a plain function looks like any other.

Example
    prediction = network(images)
    # becomes
    prediction = dp.by_rows(network)(images)

When it refuses
    Never by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ._base import CALLS_ONLY, Context, Edit, Outcome

ROADS = CALLS_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    for call in context.script.on_calls.functions.calls:
        message = "each worker computes its own rows, if no row depends on others"
        yield Edit(call.func, lambda n: build.call(f"{context.dp}.by_rows", n), message)
