"""Training by `fit`, `minimize` and custom `train_step`.

What it does
    Recognises these ways to train. They are not migrated yet.

Why
    A file in which one of them trains and only the rest is migrated would train wrongly in silence.

Example
    model.fit(x, y)  # refused

When it refuses
    Always, for now.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdp.rules._base import Context, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:  # noqa: ARG001
    yield from ()
