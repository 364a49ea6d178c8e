"""Shard the records of the training data over the workers.

What it does
    Puts `dp.shard(…)` around the training dataset: record i goes to rank i mod N. It is sharded as early as it can be,
    but after a leading `repeat` and after every stage whose output count depends on content (`filter`, `take`,
    `flat_map` and the like), and before `shuffle` and `batch`. With `--batch global` the training batch becomes
    `dp.local_batch_size(…)`. Validation and test data stay whole: a function that makes both gets a parameter
    `shard_records=False`, and the calls that make training data pass True.

    A batch that is taken out of arrays, by a slice (`x[i:i + 32]`) or by indices drawn at random, becomes
    `dp.local_rows(…)` of the batch of all workers: each takes the same one and keeps its rows of it. The batch size
    around it becomes `dp.global_batch_size(…)`; with `--batch global` it stays, and `dp.even_batch_size(…)` checks it.

    Arrays that `model.fit` is given become `dp.shard(…)` there; what `validation_split` holds out is held out before
    that, whole. What gives batches (a folder's images; for `fit` a `Sequence`, a generator, a dataset in whose stages
    no place is right) becomes `dp.shard_batches(…)`: batch k goes to rank k mod N, or with `--batch global` each rank
    takes its rows of every batch. So does what a loop goes over, or takes by `next`, and another file makes: its
    shuffles get one order by `dp.common_seed()`.

    Batches padded to their longest record (`padded_batch` without lengths written out) are made by every worker, of all
    workers' records, and `dp.shard_batches(…, split=True)` gives each its rows: they are as long as in one process.

Why
    Without it every worker trains on the same examples. Sharding records, not batches or blocks, makes each global
    step cover exactly the examples of the one-process script's batch.

Example
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
    # becomes
    dataset = dp.shard(tf.data.Dataset.from_tensor_slices((x, y))).shuffle(1000).batch(32)

When it refuses
    Where the training loop is not over a tf.data dataset that can be followed to its source or to another file, a
    stage is not understood, batches of another file would have to be sharded by rows (`--batch global`), or the dataset
    is used outside training as well. Where batches are padded to their longest record, and changed at random or counted
    besides; where a step, or what is mapped over batches, makes rows as long as the longest of a worker's batch. Where
    more than a loop's counter, a NumPy permutation or a NumPy draw chooses the rows of a batch taken out of arrays, or
    a function that makes training batches makes others too. Where the data depend on what each process has for itself:
    `secrets`, `random.SystemRandom()`, a clock. Where a loop takes something else beside each batch of a dataset, one
    after another: `zip(dataset, weights)`, `next(weights)`, `weights[k]` by the number of the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.data import ShardPoint
from ..migrate.facts.keras import POSITIONS, FitData, batch_size_of, held_out_by
from ._base import INPUT_ONLY, Context, Edit, Outcome, Parameter, SetArg

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    script, dp = context.script, context.dp
    common = () if script.migrated else script.shard_plan.common_batches
    own = script.batches if context.batch == "global" and not script.migrated else ()
    switches = script.switches(context.batch)
    for point in script.shard_points:
        keywords = {"order_check": "True"} if point.order_check else {}
        if point.batches:
            keywords = {"split": "True"} if context.batch == "global" or point.rows else {}
        shard = f"{dp}.shard_batches" if point.batches else f"{dp}.shard"
        change = build.calling(shard, **keywords, **switches.keywords(point.node))
        said = f"shard the {_sharded(point)} over the workers"
        yield Edit(point.node, change, said, around=True)
    for call in (c for c in own if c not in common):
        change = build.calling(f"{dp}.local_batch_size", **switches.keywords(call))
        yield SetArg(call, "batch_size", change, "shard the global batch over the workers", position=0)
    for call in common:
        change = build.calling(_whole(context), **switches.keywords(call))
        yield SetArg(call, "batch_size", change, "take the batch of all workers", position=0)
    yield from _of_arrays(context)
    for fit in script.fitted.data:
        if not fit.sharded:
            yield from _of_fit(context, fit)
    for call in script.cache_files:
        yield SetArg(call, "filename", build.calling(f"{dp}.rank_path"), "a cache file for each worker", position=0)
    for function in switches.functions:
        yield Parameter(function, switches.name, "False", "tell training data from others, which stay whole")
    for call, value in switches.calls.items():
        yield SetArg(call, switches.name, build.replacing(value), "these are training data")


def _of_arrays(context: Context) -> Iterator[Outcome]:
    batches, dp = context.script.array_batches, context.dp
    if context.script.migrated:
        return
    per_worker = context.batch == "per-worker"
    size = _whole(context)
    for take in batches.open:
        local = f"{dp}.local_batches" if take.each else f"{dp}.local_rows"
        yield Edit(take.node, build.calling(local), "shard the rows of the batch over the workers")
    for node in (*batches.sizes, *batches.divisors) if per_worker else batches.last_sizes:
        yield Edit(node, build.calling(size), "take the batch of all workers")
    for node in batches.lengths:
        yield Edit(node, build.calling(f"{dp}.sharded_length"), "end where all workers have equally many records")


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


def _sharded(point: ShardPoint) -> str:
    if point.rows:
        return "rows of each batch"
    return "batches" if point.batches else "records"


def _whole(context: Context) -> str:
    """What the batch of all workers is taken with."""
    return f"{context.dp}.{'global' if context.batch == 'per-worker' else 'even'}_batch_size"


def _local(dp: str) -> build.Change:
    return lambda value: build.call(f"{dp}.local_batch_size", batch_size_of(value))
