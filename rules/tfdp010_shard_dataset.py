"""Deal the records of the training data to the workers.

What it does
    Puts `dp.shard(…)` around the training dataset: record i goes to rank i mod N. The deal comes as early as it can,
    but after a leading `repeat` and after every stage whose output count depends on content (`filter`, `take`,
    `flat_map` and the like), and before `shuffle` and `batch`. With `--batch global` the training batch becomes
    `dp.local_batch_size(…)`. Validation and test data stay whole: a function that makes both gets a parameter
    `shard_records=False`, and the calls that make training data pass True.

Why
    Without it every worker trains on the same examples. Dealing records, not batches or blocks, makes each global
    step cover exactly the examples of the one-process script's batch.

Example
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
    # becomes
    dataset = dp.shard(tf.data.Dataset.from_tensor_slices((x, y))).shuffle(1000).batch(32)

When it refuses
    Where the training loop is not over a tf.data dataset that can be followed to its source, a stage is not
    understood, the records come in batches from their source, or the dataset is used outside training as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tfdp.migrate import build
from tfdp.rules._base import Context, Edit, Outcome, Parameter, SetArg


def outcomes(context: Context) -> Iterator[Outcome]:
    script, dp = context.script, context.dp
    batches = script.batches if context.batch == "global" and not script.migrated else ()
    switches = script.switches(context.batch)
    for deal in script.deals:
        keywords = {"order_check": "True"} if deal.order_check else {}
        change = _called(f"{dp}.shard", {**keywords, **switches.keywords(deal.node)})
        yield Edit(deal.node, change, "deal the records to the workers")
    for call in batches:
        change = _called(f"{dp}.local_batch_size", switches.keywords(call))
        yield SetArg(call, "batch_size", change, "split the global batch over the workers", position=0)
    for function in switches.functions:
        yield Parameter(function, switches.name, "False", "tell training data from others, which stay whole")
    for call, value in switches.calls.items():
        yield SetArg(call, switches.name, _always(value), "these are training data")


def _called(function: str, keywords: dict[str, str]) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.call(function, value, **keywords)

    return change


def _always(value: str) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    return lambda _: cst.parse_expression(value)
