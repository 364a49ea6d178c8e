"""Deal the records of the training data to the workers.

What it does
    Puts `dp.shard(…)` around the training dataset: record i goes to rank i mod N. The deal comes as early as it can,
    but after a leading `repeat` and after every stage whose output count depends on content (`filter`, `take`,
    `flat_map` and the like), and before `shuffle` and `batch`. With `--batch global` the training batch becomes
    `dp.local_batch_size(…)`. Validation and test data stay whole.

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
from tfdp.rules._base import Context, Edit, Outcome, SetArg


def outcomes(context: Context) -> Iterator[Outcome]:
    dp = context.dp
    for deal in context.script.deals:
        change = _dealt(dp, deal.order_check)
        yield Edit(deal.node, change, "deal the records to the workers")
    if context.batch == "global" and not context.script.migrated:
        for call in context.script.batches:
            yield SetArg(call, "batch_size", _local(dp), "split the global batch over the workers", position=0)


def _dealt(dp: str, order_check: bool) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    keywords = {"order_check": "True"} if order_check else {}
    return lambda node: build.call(f"{dp}.shard", node, **keywords)


def _local(dp: str) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.call(f"{dp}.local_batch_size", value)

    return change
