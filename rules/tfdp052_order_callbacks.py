"""Put the callbacks of `fit` in the order that several workers need.

What it does
    `callbacks=…` of `model.fit` becomes `callbacks=dp.fit_callbacks(…)`; where it is omitted, `dp.fit_callbacks()`. At
    the start of training that brings the model and its optimizer into step with rank 0's; at the end of each epoch it
    combines the metrics over all workers before any of the script's own callbacks sees them, lets those that write
    files do so on rank 0 only, and makes all workers stop where one does. Where every worker runs the whole script,
    only callbacks that are given are put there, and all that is done is that those that write files do so on rank 0.

Why
    `EarlyStopping`, `ReduceLROnPlateau` and `ModelCheckpoint(save_best_only=True)` decide by metrics: by those of one
    worker's share they would decide otherwise on each, and a worker that stops early leaves the others waiting for it.

Example
    model.fit(x, y, callbacks=[keras.callbacks.EarlyStopping("loss")])
    # becomes
    model.fit(x, y, callbacks=dp.fit_callbacks([keras.callbacks.EarlyStopping("loss")]))

When it refuses
    Where every worker runs the whole script, and a `fit` is given `*` or `**`, which may hold callbacks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.keras import POSITIONS
from ._base import EVERY_ROAD, Context, Edit, Outcome, SetArg

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    if context.road == "calls":
        yield from _writing(context)
        return
    for call in context.script.fitted.open_callbacks:
        change = _ordered(context.dp)
        yield SetArg(call, "callbacks", change, "put the callbacks in order", position=POSITIONS["callbacks"])


def _writing(context: Context) -> Iterator[Outcome]:
    given, message = context.script.on_calls.callbacks, "let callbacks write on rank 0 only"
    for call in given.calls:
        yield SetArg(call, "callbacks", _ordered(context.dp), message, position=POSITIONS["callbacks"])
    for value in given.in_dictionaries:
        yield Edit(value, _ordered(context.dp), message)


def _ordered(dp: str) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        if value is None or (isinstance(value, cst.Name) and value.value == "None"):
            return cst.parse_expression(f"{dp}.fit_callbacks()")
        return build.call(f"{dp}.fit_callbacks", value)

    return change
