"""Start the runtime before the first TensorFlow operation.

What it does
    Imports `tfdp.runtime` and calls `dp.init()` after the leading imports, or as the first statement under
    `if __name__ == "__main__":` where nothing of TensorFlow runs before that.

Why
    The workers find each other, agree on the seed for decisions about data, and from then on give every variable
    rank 0's initial value when it is created. A variable made earlier would start differently on each worker.

Example
    import tensorflow as tf
    # becomes
    import tensorflow as tf
    import tfdp.runtime as dp

    dp.init()  # tfdp: join the other workers

When it refuses
    Never by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import Context, Insert, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:
    start = context.script.entry.start
    if not context.script.calls("init"):
        code = f"{context.dp}.init()  # tfdp: join the other workers"
        yield Insert(start.anchor, "before" if start.first else "after", code, "initialise the runtime")
