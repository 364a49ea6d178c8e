"""Keep XLA away from training steps that average gradients.

What it does
    Sets `jit_compile=False` where a fitted model is compiled with `jit_compile=True`, and where a function that takes
    or applies trained gradients is compiled by `tf.function(jit_compile=True)`.

Why
    A training step waits for the other workers in the middle. XLA cannot compile that: it stops at the first step.

Example
    model.compile(optimizer="adam", loss="mse", jit_compile=True)
    # becomes
    model.compile(optimizer=dp.DistributedOptimizer(dp.scale_optimizer("adam")), loss="mse", jit_compile=False)

When it refuses
    Never by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ._base import EVERY_ROAD, Context, Outcome, SetArg

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    for call, keyword in context.script.compiled_by_xla:
        message = "XLA cannot compile a step that waits for other workers"
        yield SetArg(call, keyword, lambda _: cst.Name("False"), message)
