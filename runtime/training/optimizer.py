"""The user's own Keras optimizer, whose gradients are averaged over all ranks before it does anything with them."""

import operator
from typing import Any

from ..foundation import Average, ReduceOp, call_site
from ..framework import as_written
from ..gradients import Compression, Exchange, check_options
from ..job import current, shards_calls
from ..keras import is_averaged, optimizer_of
from .averaging import Averaging, put_on


@as_written
def DistributedOptimizer(  # noqa: N802 - as it is called in other systems, whose scripts move by changing the import
    optimizer: Any,
    *,
    op: ReduceOp = Average,
    compression: Any = Compression.none,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    gradient_predivide_factor: float = 1.0,
    sparse_as_dense: bool = False,
    deduplicate: bool = False,
) -> Any:
    """Average a Keras optimizer's gradients over all ranks, before clipping and before a loss scale's finite test.

    The optimizer stays itself: its class, its state, what it saves. What is saved with it loads where tfdp is not
    installed. Each update through `fit`, `train_on_batch`, `minimize`, `apply_gradients` or `apply` is averaged once.
    In a LossScaleOptimizer, which `compile` puts around it under mixed_float16, the gradients are averaged before that
    one looks for infinities, so that all ranks skip a step or none.

    Args:
        optimizer: an optimizer of Keras 3, Keras 2, tf-keras or their `optimizers.legacy`; its name, such as "adam";
            or its configuration.
        op: `Average`, for a loss that is a mean over the local batch; `Sum`, for one that is a sum divided by a global
            number.
        compression: `dp.Compression.none`, `.fp16` or `.bf16`: what gradients are rounded to before they are sent.
            Changes the result.
        backward_passes_per_step: add up this many calls' gradients on each rank before they are exchanged and applied.
            In between only `iterations` grows. Also with one worker. What is left at the end of training is dropped.
            (Keras 3's own `gradient_accumulation_steps` works too, and exchanges at each call.)
        average_aggregated_gradients: divide what is added up by `backward_passes_per_step`.
        gradient_predivide_factor: dense gradients are divided by it before they are added up over ranks, and by
            size()/factor afterwards. With `Average` only. Changes the last bits.
        sparse_as_dense: turn `tf.IndexedSlices` into dense tensors first. Changes what an optimizer does with rows
            that have no example, and with several slices of one row.
        deduplicate: add up slices of one row. Changes what an optimizer does with several slices of one row. The last
            two hold with one worker too.

    Returns:
        The optimizer that was given, or the one that the name means. With one worker it is left as it is.

    Raises:
        NotInitializedError: `dp.init()` has not run.
        TypeError: no Keras optimizer; one that is averaged already; `compression` cannot compress;
            `backward_passes_per_step` is no integer.
        ValueError: an unknown name; another `op`; a factor or a number of passes that is not greater than 0.
    """
    check_options(op, compression, gradient_predivide_factor)
    passes = _checked_passes(backward_passes_per_step)
    found = optimizer_of(optimizer)
    if is_averaged(found):
        raise TypeError(f"the optimizer at {call_site()} is distributed already: its gradients are averaged once")
    job = current()
    if shards_calls():
        _refuse_options(op, compression, passes, sparse_as_dense or deduplicate)
        return found  # the gradients that it gets are averaged where they are taken
    factor = float(gradient_predivide_factor)
    exchange = Exchange(job, op, None, compression, factor, sparse_as_dense, deduplicate)
    if job.topology.size > 1 or exchange.acts_alone or passes > 1:
        put_on(found, Averaging(exchange, passes, average_aggregated_gradients))
    return found


def _checked_passes(passes: Any) -> int:
    try:
        number = operator.index(passes)
    except TypeError:
        raise TypeError(
            f"backward_passes_per_step is {passes!r} at {call_site()}: a number of calls is needed"
        ) from None
    if number < 1:
        raise ValueError(f"backward_passes_per_step is {number} at {call_site()}: it is at least 1")
    return number


def _refuse_options(op: ReduceOp, compression: Any, passes: int, changed: bool) -> None:
    """With sharded calls gradients are those of one process before an optimizer sees them."""
    if op is not Average or compression is not Compression.none or passes > 1 or changed:
        raise ValueError(
            f"the options of the DistributedOptimizer at {call_site()} change gradients that are those of one process "
            "already, with sharded calls. Leave them out, or use dp.init() without shard_calls"
        )
