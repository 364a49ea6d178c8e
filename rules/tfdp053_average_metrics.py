"""Decide and report by values over all workers' examples.

What it does
    Each worker's metric objects have seen its own share of the training data: `metric.result()` becomes
    `dp.metric_result(metric)`, which sums the state variables over the workers. A mean that is kept in Python
    (`total += float(loss)`, `losses.append(loss)`) and decides something is averaged: `dp.average_value(…)`. A decision
    from what is equal on all workers but for its last bits (a validation metric over whole data) or its moment (a
    clock, a file) is rank 0's: `if dp.agree(val_loss < best):`. Conditions on counters and constants stay as they are.

Why
    A worker's own value is that of its share of the examples: shown, it is not the value of the epoch, and workers that
    decide by their own go different ways. One that stops early leaves the others waiting for it; one that lowers its
    rate, or goes back to its best weights, trains another model from then on.

Example
    if val_loss < best:
        best, wait = val_loss, 0
    # becomes
    if dp.agree(val_loss < best):
        best, wait = val_loss, 0

When it refuses
    Where a decision that matters is taken from one worker's examples by a value of which the average is not the value
    over all examples: a maximum, a median, a product; a sum over the worker's own steps that is divided by a number of
    all workers' steps or examples. Where a training step goes by a number that is kept from the step before and made
    from one worker's examples (a weight by the last loss, a running mean), or decides by its batch what it computes.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ._base import INPUT_ONLY, Context, Edit, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    script = context.script
    if not script.trained and not script.fitted.calls:
        return
    for result in script.agreement.results:
        yield Edit(result, lambda n: _summed(context.dp, n), "read the metric over all workers' examples")
    for value in script.agreement.averages:
        yield Edit(
            value, lambda n: build.call(f"{context.dp}.average_value", n), "average what decides over all workers"
        )
    for test in script.agreement.agreed(script.written.effects, script.written.waiting_reads):
        yield Edit(test, lambda n: build.call(f"{context.dp}.agree", n), "take rank 0's decision on all workers")


def _summed(dp: str, node: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    metric = cst.ensure_type(call.func, cst.Attribute).value
    return call.with_changes(func=cst.parse_expression(f"{dp}.metric_result"), args=[cst.Arg(metric)])
