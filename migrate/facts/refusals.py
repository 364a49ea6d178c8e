"""Everything that keeps a script from having its input sharded, put together."""

from __future__ import annotations

from .counting import uncertain
from .hazards import unplaced
from .program import Problem
from .steps import Steps
from .training_file import TrainingFile
from .untaught import averaged_twice, escaped, general, on_calls, untaught, unwrapped


def refusals(script: TrainingFile, steps: Steps, batch: str) -> tuple[Problem, ...]:
    """All problems of a script in a batch mode, also those that the author ignores.

    Of a script that keeps within the vocabulary; for others they say what is not understood of their data, steps and
    rates.
    """
    if shared := on_calls(script):
        return tuple(shared)
    loops = script.unread_loops
    found = [*loops] if loops else _data_problems(script, steps, batch)
    found += [*untaught(script), *escaped(script), *unwrapped(script), *script.fitted.averaging.problems]
    found += [*averaged_twice(script), *general(script)]
    if not script.migrated:
        found += [*uncertain(script.fitted.data, script.agreement.certain), *script.unlike_seeds]
    found += _written(script)
    return tuple(dict.fromkeys(found))


def _written(script: TrainingFile) -> list[Problem]:
    """What is written where it cannot be guarded, and what reads it where it cannot wait."""
    certain = script.agreement.certain
    found = [p for e in script.written.effects if (p := unplaced(e, script.origins, certain)) is not None]
    reason = "this reads what rank 0 writes, under a condition that may differ by worker"
    next_step = "read the file outside the condition"
    return [*found, *(Problem("TFDP050", s, reason, next_step) for s in script.written.waiting_reads if not certain(s))]


def _data_problems(script: TrainingFile, steps: Steps, batch: str) -> list[Problem]:
    """What cannot be sharded, scaled or counted, where all loops are understood."""
    found = [*script.fitted.unread, *script.shard_plan.problems, *script.array_batches.problems(batch)]
    found += script.rate_problems if batch == "per-worker" else ()
    return [*found, *steps.problems(batch)]
