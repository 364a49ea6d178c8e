"""Give all workers one value of what each process makes for itself.

What it does
    For sharded calls, where every worker runs the whole script and must compute the same: a seed that is made of a
    clock, a process number or the system's chance becomes rank 0's, `np.random.seed(dp.agree(int(time.time())))`, and
    so does a decision by a clock, or by which files there are, that says what training does:
    `if dp.agree(time.time() > end):`. Draws of Python, NumPy, TensorFlow and Keras follow the job's seed by themselves,
    also where the script gives none.

Why
    The workers share the calls of one model: they must come to them in one order, with the same batch.

Example
    np.random.seed(int(time.time()))
    # becomes
    np.random.seed(dp.agree(int(time.time())))

When it refuses
    Where a clock, a process number, a UUID or the system's chance goes into a loss, into what `fit` is given, an
    optimizer or the number of steps; where such a seed is made, or such a decision taken, where not all workers
    certainly come together. Where a thread or process that the script starts trains; where the script replaces what a
    gradient tape or Keras' layers do; where variables are trained without a gradient tape, and nothing else trains:
    nothing could be shared.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ._base import CALLS_ONLY, Context, Edit, Outcome

ROADS = CALLS_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    own = context.script.on_calls.per_process
    for seed in own.seeds:
        yield Edit(seed, lambda n: build.call(f"{context.dp}.agree", n), "take rank 0's seed on all workers")
    for test in own.tests:
        yield Edit(test, lambda n: build.call(f"{context.dp}.agree", n), "take rank 0's decision on all workers")
