"""Losses for which averaging gradients over workers is not exact.

What it does
    Classifies the loss of every trained gradient: a mean over the batch, a sum, one value per example, or not
    understood. Terms of the weights alone (L2) may be added to a mean. Gradients of a sum and of one value per example
    are added up instead of averaged (TFDP030). In a loss that is another function of sums and means over the batch,
    such as Dice or the root of a mean, each of them is taken over the global batch; a sum that is divided by a sum over
    the data alone, such as the elements that a mask leaves, is divided by the mean of all workers' divisors.

Why
    The average of the workers' gradients is the gradient of the whole batch only for a mean over equal shares. A sum is
    wrong by the factor N; a ratio of sums, such as a masked mean, by whatever the workers' sums differ.

Example
    loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
    # becomes, in code that only training runs
    loss = tf.reduce_sum(losses * mask) / dp.allreduce(tf.reduce_sum(mask))
    # and in a loss that validation computes too, where no tape records and nothing is exchanged
    loss = tf.reduce_sum(losses * mask) / dp.global_mean(tf.reduce_sum(mask))

When it refuses
    For every loss that is not certainly one of these: for a sum with terms of the weights, for losses that couple
    examples in other ways, also on the way to the loss (in a layer, a model, an activation, a function mapped over
    batches, a `train_step` or the loop around a step: what divides by a norm of all examples, takes away their mean,
    turns their order round, pairs them or goes along their axis), where a shared sum stands under a condition that
    may differ by worker, in a `tf.function` that training and evaluation share, or in a gradient that trains
    nothing, and for weights of examples with a compiled loss of one number.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ._base import INPUT_ONLY, Context, Edit, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    for share in context.script.shared_totals.found:
        op = {"op": f"{context.dp}.Sum"} if share.adds_up and share.trained else {}
        name = "allreduce" if share.trained else "global_sum" if share.adds_up else "global_mean"
        done = "add up over the global batch" if share.adds_up else "take the mean over all workers"
        yield Edit(share.node, build.calling(f"{context.dp}.{name}", **op), done)
