"""The names of what can be wrong with a migrated script, and what a diagnosis is made of."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum


class Cause(str, Enum):
    """What is wrong; the value is its name in reports."""

    ORIGINAL = "another original"
    START = "start not shared"
    NOT_SHARDED = "data not sharded"
    SHARDED_TWICE = "data sharded twice"
    ORDERS = "data differ by rank"
    BATCH = "batch size"
    EXAMPLES = "other examples"
    TAIL = "uneven tail"
    NOT_AVERAGED = "gradient not averaged"
    AVERAGED_TWICE = "gradient averaged twice"
    SUMMED = "gradient summed"
    DIVIDED = "gradient divided once more"
    LATE = "gradient averaged too late"
    PENALTY = "penalty averaged"
    LOSS_SUM = "loss is no mean"
    RATE = "learning rate"
    UPDATE = "update"
    DECISION = "ranks decide differently"
    STEPS = "number of steps"
    DIVISION = "division of calls"


@dataclass(frozen=True)
class Diagnosis:
    """text: one sentence, without the name of the cause."""

    cause: Cause
    text: str

    def __str__(self) -> str:
        return f"{self.cause.value}: {self.text}"


def place(site: str) -> str:
    """A line of the script for a sentence: `train.py:12 (in step)`."""
    found = re.fullmatch(r"(.*)(:\d+.*)", site)
    return os.path.basename(found[1]) + found[2] if found else site


def places(sites: Sequence[str]) -> str:
    """Several, `and` between the last two."""
    shown = list(dict.fromkeys(place(site) for site in sites))
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]])) if shown else "an unknown place"


def ranks(numbers: Sequence[int]) -> str:
    """`rank 1`, `ranks 1 and 2`."""
    shown = [str(number) for number in numbers]
    return f"rank {shown[0]}" if len(shown) == 1 else f"ranks {', '.join(shown[:-1])} and {shown[-1]}"
