"""What the optimizers of two runs have in common beyond the steps that are compared: their numbers and schedules.

Twenty steps do not tell a schedule that decays every 10,000 steps from one that decays every 20,000, nor a threshold
for clipping that no gradient has come to: both are compared as they are set. Pure Python, no processes.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SETTINGS_FILE = "optimizers.json"
# The steps at which schedules are asked for their rate: from 0 to some eight million, closer than a factor of 1.5.
STEPS = (0, *(part << power for power in range(22) for part in (2, 3)))
# A number of steps that was divided and rounded otherwise shifts a schedule by this many.
SLACK = 2
_RATE, _NUMBER = 0.01, 1e-6


@dataclass(frozen=True)
class Optimizer:
    """One that has updated variables. kind: its class. numbers: of its configuration, without the rate.

    rates: where its rate is a schedule, at each of `STEPS` the least, the exact and the largest rate near it.
    """

    kind: str
    numbers: Mapping[str, float]
    rates: tuple[tuple[float, float, float], ...] = ()


@dataclass(frozen=True)
class Settings:
    """What is known of the optimizers.

    text: in words. rank: the first whose optimizer is another, None where all is well. schedule: it is its rate's
    schedule that is another.
    """

    text: str
    rank: int | None = None
    schedule: bool = False


def write_settings(folder: Path, optimizers: Sequence[Optimizer]) -> None:
    """Write those of the process with this trace folder, in the order in which they were made."""
    (folder / SETTINGS_FILE).write_text(json.dumps([vars(one) for one in optimizers]), "utf-8")


def read_settings(folder: Path) -> list[Optimizer] | None:
    """What `write` wrote, None of a process that was killed."""
    path = folder / SETTINGS_FILE
    if not path.exists():
        return None
    facts = json.loads(path.read_text("utf-8"))
    return [Optimizer(one["kind"], one["numbers"], tuple(map(tuple, one["rates"]))) for one in facts]


def judge_settings(
    reference: Sequence[Optimizer] | None, ranks: Sequence[Sequence[Optimizer] | None]
) -> Settings | None:
    """Compare those of every rank with the reference's; None where there is nothing to compare."""
    if not reference:
        return None
    for rank, own in enumerate(ranks):
        if not own:
            return Settings(f"not compared: rank {rank} did not come to update anything with one")
        if [one.kind for one in own] != [one.kind for one in reference]:
            return Settings("not compared: the ranks use other optimizers than the reference")
        for ours, wanted in zip(own, reference, strict=True):
            text = _number(ours, wanted)
            schedule = "" if text else _schedule(ours, wanted)
            if text or schedule:
                return Settings(f"rank {rank}: {wanted.kind}: {text or schedule}", rank, bool(schedule))
    several = f"{len(reference)} optimizers" if len(reference) > 1 else "one optimizer"
    schedules = sum(1 for one in reference if one.rates)
    beyond = f", and {'its rate' if len(reference) == 1 else 'their rates'} in the steps to come" if schedules else ""
    return Settings(f"{several}, set as in the reference{beyond}")


def _number(ours: Optimizer, wanted: Optimizer) -> str:
    for name in sorted(ours.numbers.keys() & wanted.numbers.keys()):
        one, other = ours.numbers[name], wanted.numbers[name]
        if abs(one - other) > _NUMBER * max(abs(one), abs(other)):
            return f"{name} is {one:g}, the reference's is {other:g}"
    return ""


def _schedule(ours: Optimizer, wanted: Optimizer) -> str:
    """The first step of some weight at which the rate is another one."""
    if not (ours.rates and wanted.rates):
        return ""
    room = _RATE * max(abs(exact) for _, exact, _ in wanted.rates)
    for step, (_, exact, _), (least, expected, largest) in zip(STEPS, ours.rates, wanted.rates, strict=True):
        if not least - room <= exact <= largest + room:
            return f"its schedule gives the rate {exact:.4g} at step {step}, the reference's {expected:.4g}"
    return ""
