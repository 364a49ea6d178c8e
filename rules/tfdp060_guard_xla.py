"""Keep XLA away from training steps that average gradients.

What it does
    Sets `jit_compile=False` where a fitted model is compiled with `jit_compile=True`, and where a function that takes
    or applies trained gradients is compiled by `tf.function(jit_compile=True)`. Where every worker runs the whole
    script, and the workers share the calls of its models, it does so for every function.

Why
    A training step waits for the other workers in the middle. XLA cannot compile that: it stops at the first step.
    XLA draws random numbers by itself: without it dropout has other masks, as in one process without `jit_compile`.

Example
    model.compile(optimizer="adam", loss="mse", jit_compile=True)
    # becomes
    model.compile(optimizer=dp.DistributedOptimizer(dp.scale_optimizer("adam")), loss="mse", jit_compile=False)

When it refuses
    Where the workers share the calls of models, and XLA is turned on by what has no switch: `tf.xla.experimental`, a
    dictionary of arguments.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ._base import EVERY_ROAD, Context, Outcome, SetArg

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    message = "XLA cannot compile a step that waits for other workers"
    if context.road == "calls":
        message += "; random numbers are then those of a run without XLA"
        for call, keyword, position in context.script.on_calls.compiled.switches:
            yield SetArg(call, keyword, lambda _: cst.Name("False"), message, position=position)
        return
    for call, keyword in context.script.compiled_by_xla:
        yield SetArg(call, keyword, lambda _: cst.Name("False"), message)
