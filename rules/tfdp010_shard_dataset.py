"""Shard the records of the training data over the workers.

What it does
    Puts `dp.shard(…)` around the training dataset: record i goes to rank i mod N. It is sharded as early as it can be,
    but after a leading `repeat` and after every stage whose output count depends on content (`filter`, `take`,
    `flat_map` and the like), and before `shuffle` and `batch`. With `--batch global` the training batch becomes
    `dp.local_batch_size(…)`. Validation and test data stay whole: a function that makes both gets a parameter
    `shard_records=False`, and the calls that make training data pass True.

    Arrays that `model.fit` is given become `dp.shard(…)` there; what `validation_split` holds out is held out before
    that, whole.

Why
    Without it every worker trains on the same examples. Sharding records, not batches or blocks, makes each global
    step cover exactly the examples of the one-process script's batch.

Example
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
    # becomes
    dataset = dp.shard(tf.data.Dataset.from_tensor_slices((x, y))).shuffle(1000).batch(32)

When it refuses
    Asked for by `--shard input` alone, where a word of the script is not in its vocabulary, the records are not batched
    in the file, a stage counts batches that hold other examples on each worker, or the dataset is used outside training
    as well.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.keras import POSITIONS, FitData, batch_size_of, held_out_by
from ._base import INPUT_ONLY, Context, Edit, Outcome, Parameter, SetArg

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    script, dp = context.script, context.dp
    batches = script.batches if context.batch == "global" and not script.migrated else ()
    switches = script.switches(context.batch)
    for point in script.shard_points:
        keywords = {"order_check": "True"} if point.order_check else {}
        change = build.calling(f"{dp}.shard", **keywords, **switches.keywords(point.node))
        yield Edit(point.node, change, "shard the records over the workers", around=True)
    for call in batches:
        change = build.calling(f"{dp}.local_batch_size", **switches.keywords(call))
        yield SetArg(call, "batch_size", change, "shard the global batch over the workers", position=0)
    for fit in script.fitted.data:
        if not fit.sharded:
            yield from _of_fit(context, fit)
    for call in script.cache_files:
        yield SetArg(call, "filename", build.calling(f"{dp}.rank_path"), "a cache file for each worker", position=0)
    for function in switches.functions:
        yield Parameter(function, switches.name, "False", "tell training data from others, which stay whole")
    for call, value in switches.calls.items():
        yield SetArg(call, switches.name, build.replacing(value), "these are training data")


def _of_fit(context: Context, fit: FitData) -> Iterator[Outcome]:
    """Arrays that a model is fitted to; what `validation_split` holds out is taken before sharding."""
    call, dp = fit.fit.call, context.dp
    code = cst.Module([]).code_for_node
    split = code(fit.split.value) if fit.split is not None else None
    keywords = {"validation_split": split} if split is not None else {}
    for name, _ in fit.arrays:
        change = build.calling(f"{dp}.shard", **keywords)
        yield SetArg(call, name, change, "shard the records over the workers", position=POSITIONS[name])
    if split is not None:
        held_out = build.replacing(held_out_by(f"{dp}.held_out", (code(value) for _, value in fit.arrays), split))
        message = "hold out whole what validation_split holds out"
        yield SetArg(call, "validation_split", held_out, message, becomes="validation_data")
    if context.batch == "global" and fit.arrays:
        yield SetArg(call, "batch_size", _local(dp), "shard the global batch over the workers", position=2)


def _local(dp: str) -> build.Change:
    return lambda value: build.call(f"{dp}.local_batch_size", batch_size_of(value))
