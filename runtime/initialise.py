"""The first call of a migrated script."""

import importlib
import sys
from typing import Literal

from .job import Options, current, join
from .machine import share_gfile, share_machine

_DRAWS_HOOK = "_tfdp_draws_hook"  # by which ranks begin to draw alike
# Of a script that another system distributes.
_AS_WRITTEN = Options(same_start=False, row_check=False, as_written=True)


def init(
    *,
    same_start: bool = True,
    row_check: bool = True,
    shard_calls: bool = False,
    batch_norm: Literal["global", "local"] = "global",
) -> None:
    """Join the job that `tfdp run` has started, or be a job of one where it has not.

    Call it before the first TensorFlow operation; calling it again does nothing. Several workers all go on
    with rank 0's state of Python's `random` and of NumPy's legacy generator, seeded by the script before or not, so
    that decisions about data are the same on all ranks; and, with `same_start`, every variable starts with rank 0's
    value. One worker is left as it is: it computes what the script would without tfdp.

    With `row_check`, too, each Keras model is looked at before its first call on a batch: it is compiled once more and
    run on a few rows. If the result for one row changes with the others, training the model is an error. False is for
    models of which axis 0 of what they take is not the batch.

    With `shard_calls` every worker runs the whole script on whole batches, with the same draws; only the outermost
    Keras layer or model calls that a `tf.GradientTape` records, and those of `dp.by_rows`, compute the worker's own
    rows, and the gradients of variables are averaged where they are taken. No data is sharded, no optimizer or tape is
    wrapped, and the model is that of one process, whatever the loss, the batches and the draws are.

    `batch_norm` is for sharded calls: "global" normalises by the whole batch, as one process does, for one exchange a
    layer and direction; "local" by the rows of each worker, whose moving statistics are averaged with the gradients.
    That is what data-parallel training usually does, and another model than one process trains.

    Raises:
        ValueError: `shard_calls` without `same_start`; `batch_norm="local"` without `shard_calls`, or another word.
        LaunchEnvironmentError: the TFDP_* variables are incomplete, or lead nowhere.
        TransportError: TFDP_TRANSPORT asks for what there is not.
        TfdpError: a second call with other arguments, or a call after `shutdown`.
    """

    def hook() -> None:
        from .collective import keep_in_order  # imports TensorFlow, which a job of one need not wait for
        from .start import follow_root

        keep_in_order()
        if not shard_calls:
            if same_start:
                follow_root(row_check)
            return
        from .calls import hook_layers, install
        from .restarts import keep_training

        install()
        hook_training = keep_training()

        def hook_keras() -> None:
            hook_layers()
            hook_training()

        follow_root(False, hook_keras)
        share_gfile()

    if shard_calls and not same_start:
        raise ValueError("dp.init(shard_calls=True) needs same_start=True: all workers compute with the same variables")
    if batch_norm not in ("global", "local"):
        raise ValueError(f'dp.init(batch_norm={batch_norm!r}): it is "global" or "local"')
    if batch_norm == "local" and not shard_calls:
        raise ValueError(
            'dp.init(batch_norm="local") is for sharded calls (shard_calls=True): with sharded input '
            "BatchNormalization has no other statistics than those of a worker's own rows. Leave it out"
        )
    join(Options(same_start, row_check, shard_calls, batch_norm), hook)
    if shard_calls and current().topology.size > 1:
        share_machine()


def join_as_written() -> None:
    """Join the job, for a script that another system distributes: it makes each worker's data and start by itself.

    Nothing is seeded, variables start with each rank's own values until the script broadcasts them, and they are not
    compared over the ranks: one may hold a rank's own data.
    """

    def hook() -> None:
        import tensorflow as tf

        from .collective import keep_in_order

        if (draws := sys.modules.get(_DRAWS_HOOK)) is not None:
            draws.apart()
        from .start import watch_keras

        keep_in_order()
        importlib.import_module(tf.keras.Model.__module__)  # Keras, which turns XLA on by itself where there is a GPU
        watch_keras(_AS_WRITTEN.row_check)

    join(_AS_WRITTEN, hook)
