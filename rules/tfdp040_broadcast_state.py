"""Start all workers from rank 0's variables.

What it does
    Calls `dp.broadcast_state(model, optimizer)` before the outermost training loop, or, where that makes the model
    itself, as a loop over folds does, before the loop in it: whatever variables exist then, new or restored from a
    checkpoint, take rank 0's values. Variables that a model makes later, on its first call, take
    them at creation, from `dp.init()` on.

Why
    Averaged gradients keep equal variables equal; they never make different ones equal.

Example
    for epoch in range(epochs):
        train(model, optimizer)
    # becomes
    dp.broadcast_state(model, optimizer)  # tfdp: every worker starts from rank 0's variables
    for epoch in range(epochs):
        train(model, optimizer)

When it refuses
    Where a variable that the loss reads, or one of a model, is assigned what each worker makes from its own examples:
    running statistics, codebooks, a bias from an epoch's residuals, a first batch, the loss of a batch in a callback.
    Where training assigns to one what each worker draws itself: noise on weights.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ._base import INPUT_ONLY, Context, Insert, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    script = context.script
    if script.calls("broadcast_state") or script.calls("broadcast_variables"):
        return
    places: dict[cst.CSTNode, list[str] | None] = {}
    for loop in script.loops:
        place, names = script.state(loop)
        earlier = places.get(place, [])
        places[place] = None if names is None or earlier is None else list(dict.fromkeys([*earlier, *names]))
    for before, names in places.items():
        call = f"{context.dp}.broadcast_state({', '.join(names or ())})"
        code = f"{call}  # tfdp: every worker starts from rank 0's variables"
        yield Insert(before, "before", code, "start from rank 0's variables")
