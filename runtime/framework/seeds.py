"""The generator from which TensorFlow's eager draws, and draws of graphs, take their seeds."""

from __future__ import annotations

from typing import Any


def eager_generator() -> Any:
    """A `random.Random`, or what stands for one. It has no public name; there is none before a seed is set."""
    from tensorflow.python.eager import context

    return getattr(context.context(), "_rng", None)


def set_eager_generator(generator: Any) -> None:
    """Put another in its place."""
    from tensorflow.python.eager import context

    context.context()._rng = generator
