"""Start the runtime before the first TensorFlow operation.

What it does
    Imports `tfdp.runtime` and calls `dp.init()` as the first statement under `if __name__ == "__main__":`, or after the
    leading imports where there is no such line, or something of the module's own code needs the workers before it.
    Where the input cannot be sharded, it is `dp.init(shard_calls=True)`: every worker runs the whole script, on whole
    batches, and its own rows of each model call that a gradient tape records. Batch, learning rate and steps stay the
    script's own, and nothing else is changed but what is written and shown.

Why
    The workers find each other, agree on the seed for decisions about data, and from then on give every variable
    rank 0's initial value when it is created. A variable made earlier would start differently on each worker.
    Processes that `multiprocessing` spawns import the script again, and are no workers.

Example
    import tensorflow as tf
    # becomes
    import tensorflow as tf
    import tfdp.runtime as dp

    dp.init()  # tfdp: join the other workers

When it refuses
    Where the module's own code needs the workers, and the script spawns processes.
"""

from __future__ import annotations

from collections.abc import Iterator

from ._base import EVERY_ROAD, Context, Insert, Outcome, Refuse

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    script, start = context.script, context.start
    if script.calls("init"):
        return
    needing = context.entry.needing[0] if context.entry.needing else context.early
    if needing is not None and (spawned := context.entry.spawning):
        where = script.index.place(spawned[0])
        reason = f"the workers must be started before this, and a process that is spawned ({where}) runs it again"
        yield Refuse(needing, reason, 'move this under `if __name__ == "__main__":`, or into the function that trains')
    given = "shard_calls=True" if context.road == "calls" else ""
    code = f"{context.dp}.init({given})  # tfdp: join the other workers"
    yield Insert(start.anchor, "before" if start.first else "after", code, "initialise the runtime")
