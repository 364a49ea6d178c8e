"""Decide and report by values over all workers' examples.

What it does
    Each worker's metric objects have seen its own share of the training data: `metric.result()` becomes
    `dp.metric_result(metric)`, which sums the state variables over the workers.

Why
    A worker's own value is that of its share of the examples: shown, it is not the value of the epoch.

Example
    print(epoch, mean.result())
    # becomes
    print(epoch, dp.metric_result(mean))

When it refuses
    Never by itself: a decision by a worker's own values is not in the vocabulary of sharded input.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ._base import INPUT_ONLY, Context, Edit, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    script = context.script
    if not script.trained and not script.fitted.calls:
        return
    for result in script.agreement.results:
        yield Edit(result, lambda n: _summed(context.dp, n), "read the metric over all workers' examples")


def _summed(dp: str, node: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    metric = cst.ensure_type(call.func, cst.Attribute).value
    return call.with_changes(func=cst.parse_expression(f"{dp}.metric_result"), args=[cst.Arg(metric)])
