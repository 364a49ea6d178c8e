"""Everything that keeps a script from having its input sharded, put together."""

from __future__ import annotations

from .counting import uncertain
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
    return tuple(dict.fromkeys(found))


def _data_problems(script: TrainingFile, steps: Steps, batch: str) -> list[Problem]:
    """What cannot be sharded, scaled or counted, where all loops are understood."""
    found = [*script.fitted.unread, *script.shard_plan.problems, *script.array_batches.problems(batch)]
    found += script.rate_problems if batch == "per-worker" else ()
    return [*found, *steps.problems(batch)]
