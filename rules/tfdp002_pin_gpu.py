"""Give each worker one GPU, by its local rank.

What it does
    Calls `dp.pin_gpu()` after `dp.init()`: one visible GPU for each process, with memory growth. Without a GPU it does
    nothing.

Why
    By default every TensorFlow process takes all memory of all GPUs, so that the second worker fails.

Example
    dp.init()  # tfdp: join the other workers
    dp.pin_gpu()  # tfdp: one GPU per worker

When it refuses
    Where the script chooses devices itself (`set_visible_devices`, `CUDA_VISIBLE_DEVICES`): every worker would use
    the same GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from tfdp.rules._base import Context, Insert, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:
    start = context.script.entry.start
    if not context.script.calls("pin_gpu") and not context.script.calls("init"):
        code = f"{context.dp}.pin_gpu()  # tfdp: one GPU per worker"
        yield Insert(start.anchor, "before" if start.first else "after", code, "pin one GPU to each worker")
