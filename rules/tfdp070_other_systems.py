"""Scripts that another system distributes already.

What it does
    Horovod and SMDDP: the runtime has their names, so that `import horovod.tensorflow as hvd` becomes
    `import tfdp.runtime.horovod.tensorflow as hvd`, and the script trains as it did: it shards its data, seeds, scales
    its rate, divides its steps, broadcasts and writes as it says. Left out are the argument
    `experimental_run_tf_function`, and the brackets of `optimizer.variables()` in broadcasts, which Keras 3 does not
    take. A proof runs the original on as many processes, with Horovod's functions in their plain meaning, and compares
    each rank with its own. HorovodRunner becomes the runtime's Runner, on processes of one machine.

    `tf.distribute`: MirroredStrategy, MultiWorkerMirroredStrategy (without TF_CONFIG) and OneDeviceStrategy are taken
    out: statements in `with strategy.scope():` stand without it, `strategy.experimental_distribute_dataset(data)` is
    the data, `strategy.run(step, args=(batch,))` is `step(batch)`, `strategy.reduce(…, losses, axis=None)` the losses,
    and `strategy.num_replicas_in_sync` is 1. What is left is migrated by the other rules, as a script for one device
    is. Where a script does anything else with its strategies, such as handing them on, making them in a branch or
    asking for values of replicas, they stay, and what makes one becomes `tf.distribute.get_strategy()`: TensorFlow's
    own strategy of one replica, which does all that others do. The strategy's batch, which is that of all replicas, is
    kept (sharded calls); a batch that is multiplied by the number of replicas is that of one. `--target single` writes
    the script for one device.

    DTensor: `from tensorflow.experimental import dtensor` becomes `from tfdp.runtime import dtensor`, the same words
    on one device, where no layout splits anything; sharded calls divide the calls of the model. Weights are replicated:
    a layout that shards one is an error where it is made.

Why
    Two systems that both shard data or average gradients train wrongly together. Under Horovod nothing of a script need
    be understood to train as it did, if the names do what they did. With one replica that has the whole batch, a loss
    that is divided by the global batch, and sums over replicas, are those of the whole batch.

Example
    import horovod.tensorflow as hvd
    # becomes
    import tfdp.runtime.horovod.tensorflow as hvd

When it refuses
    What of Horovod the runtime has not: join, elastic jobs, process sets, Adasum, Spark and Ray, hooks of TensorFlow 1
    (in a branch it is said, and an error where the script comes to it); `--batch`, `--shard` and rates for a script
    that says these itself. Keras' optimizers for DTensor; BytePS, MPI, Ray. Other strategies, and ways to one that are
    not calls by its name; cluster resolvers, TF_CONFIG that is read, `has_strategy()`. A step on replicas whose loss is
    a mean over each replica's examples trains as on one device: over N replicas the strategy added up N means.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import EVERY_ROAD, Context, Outcome

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
