"""Give each worker one GPU, by its local rank.

What it does
    Calls `dp.pin_gpu()` after `dp.init()`: one visible GPU for each process, with memory growth. Without a GPU it does
    nothing. What the script says itself about its GPU is taken out: assignments of `CUDA_VISIBLE_DEVICES`,
    `set_visible_devices(…, "GPU")`, and TensorFlow 1's `ConfigProto` with the session that only carries it.
    `tf.device("/gpu:1")` becomes the worker's own `"/gpu:0"`. `set_memory_growth` may stay, and so may a script that
    hides all GPUs (`CUDA_VISIBLE_DEVICES` set to "-1" or "").

Why
    By default every TensorFlow process takes all memory of all GPUs, so that the second worker fails. A GPU that the
    script chooses is the same one for every worker.

Example
    dp.init()  # tfdp: join the other workers
    dp.pin_gpu()  # tfdp: one GPU per worker

When it refuses
    Where the choice of a GPU is part of a larger expression or call, as in `os.environ.update(…)` with other variables.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ._base import EVERY_ROAD, Context, Drop, Edit, Insert, Outcome

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    start = context.start
    if not context.script.calls("pin_gpu") and not context.script.calls("init"):
        code = f"{context.dp}.pin_gpu()  # tfdp: one GPU per worker"
        yield Insert(start.anchor, "before" if start.first else "after", code, "pin one GPU to each worker")
    if context.road == "calls" or context.script.trained or context.script.fitted.calls:
        for statement in context.script.devices.choices:
            yield Drop(statement, "dp.pin_gpu() chooses the GPU")
        for name in context.script.devices.others:
            yield Edit(name, lambda n: _own(cst.ensure_type(n, cst.SimpleString)), "each worker's own GPU is its first")


def _own(name: cst.SimpleString) -> cst.SimpleString:
    head, _, number = name.value.rpartition(":")
    return name.with_changes(value=f"{head}:0{number.lstrip('0123456789')}")
