"""TensorFlow 1 sessions, estimators and graph-mode optimizers.

What it does
    Recognises TensorFlow 1 code in a training script.

Why
    Sessions and graph-mode optimizers need rules of their own, which do not exist yet.

Example
    optimizer = tf.compat.v1.train.AdamOptimizer(0.001)  # refused

When it refuses
    Always, for now.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import EVERY_ROAD, Context, Outcome

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
