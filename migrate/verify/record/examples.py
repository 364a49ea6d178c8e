"""Which examples each process trained on, and whether the ranks' together are the reference's: pure NumPy.

Examples are known by their content. A process notes what its training steps get: elements of a `tf.data` pipeline (kind
`stream`), or, where none is read, the arrays a `tf.function` with a tape in it is called with (`argument`).
"""

import base64
import json
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from .trace import Array

EXAMPLES_FILE = "examples.jsonl"
# Of the parts of an element, labels and the like have few distinct rows; they cannot say which example it is.
_TELLING = 0.5
_OFTEN = 0.8

DeliveryKind: TypeAlias = Literal["stream", "argument"]
Part: TypeAlias = tuple[str, int]
Bags: TypeAlias = Mapping[int, Mapping[Part, Counter[int]]]


@dataclass(frozen=True)
class Delivery:
    """One element. step: the step it came before. site: where the script takes it. turn: which pass over the data at
    this site, from 0. last: nothing else was delivered before the tape was entered. drawn: its pipeline draws random
    numbers. parts: uint64, for each tensor that has rows, the hash of each row."""

    step: int
    kind: DeliveryKind
    site: str
    turn: int
    last: bool
    drawn: bool
    parts: tuple[Array, ...]


@dataclass(frozen=True)
class Data:
    """What is known about the examples.

    outcome: `shared` (each step's examples are the reference's, and each went to one rank), `broken`, or `unfollowed`,
    where they cannot be told apart. text: the same in words. step, ranks: where `broken` shows first. examples: how
    many each rank read, by pass over the data. whole: where `broken` shows first every rank read all.
    """

    outcome: Literal["shared", "broken", "unfollowed"]
    text: str
    step: int | None = None
    ranks: tuple[int, ...] = ()
    examples: tuple[tuple[int, ...], ...] = ()
    whole: bool = False


def write_examples(folder: Path, deliveries: Sequence[Delivery]) -> None:
    """Append to what is known of the process with this trace folder. One piece a line: it may be killed at any time."""
    with (folder / EXAMPLES_FILE).open("a", encoding="utf-8") as file:
        file.writelines(
            json.dumps({**vars(one), "parts": [_packed(part) for part in one.parts]}) + "\n" for one in deliveries
        )


def read_examples(folder: Path) -> list[Delivery]:
    """What `write` wrote, without a last line that is not complete."""
    path = folder / EXAMPLES_FILE
    lines = path.read_text("utf-8").splitlines(keepends=True) if path.exists() else []
    facts = [json.loads(line) for line in lines if line.endswith("\n")]
    return [Delivery(**{**one, "parts": tuple(_unpacked(part) for part in one["parts"])}) for one in facts]


def _packed(part: Array) -> str:
    return base64.b64encode(part.astype("<u8").tobytes()).decode()


def _unpacked(text: str) -> Array:
    return np.frombuffer(base64.b64decode(text), "<u8")


def judge_examples(
    reference: Sequence[Delivery],
    ranks: Sequence[Sequence[Delivery]],
    steps: int,
    idle: Container[tuple[int, int]] = (),
) -> Data:
    """Compare the ranks' examples with the reference's in the first `steps` steps.

    idle: pairs of step and rank whose gradient counts for no example.
    """
    every = [reference, *ranks]
    kind: DeliveryKind = "stream" if all(_trained(one, "stream") for one in every) else "argument"
    chosen = [_trained(one, kind) for one in every]
    reason = _unfollowed(chosen, steps)
    if reason:
        return Data("unfollowed", reason)
    counts = _counts(chosen[1:], steps)
    wanted = _bags(chosen[0], steps)
    read = [
        _bags(one, steps, [step for step in range(steps) if (step, rank) in idle])
        for rank, one in enumerate(chosen[1:])
    ]
    parts = _telling(wanted)
    if not parts:
        return Data("unfollowed", "not followed: what the steps read has no rows")
    if any(_first_broken(wanted, read, steps, part) is None for part in parts):
        return Data("shared", _shared_text(wanted, parts, counts), examples=counts)
    most = max(parts, key=lambda part: _read_rightly(wanted, read, part))
    if not _read_rightly(wanted, read, most):
        text = "no rank read an example of the reference's; they are computed or drawn where they are read"
        return Data("unfollowed", f"not followed: {text}", examples=counts)
    if kind == "argument" and _whole(wanted, read, parts, steps):
        text = "every rank's training step is given the same arrays; which of their rows it trains on is not seen"
        return Data("unfollowed", f"not followed: {text}", examples=counts)
    # Where a loop before the longest one is broken, too, its step comes first.
    sites = dict.fromkeys(site for bag in wanted.values() for site, _ in bag)
    first = [found for site in sites if (found := _where(wanted, read, steps, site)) is not None]
    step, part = min(first, default=(_first_broken(wanted, read, steps, most) or 0, most))
    return _broken(wanted, read, part, step, counts)


def judge_whole(reference: Sequence[Delivery], ranks: Sequence[Sequence[Delivery]], steps: int) -> Data:
    """Whether every rank read all of the reference's examples in each of the first `steps` steps."""
    every = [reference, *ranks]
    kind: DeliveryKind = "stream" if all(_trained(one, "stream") for one in every) else "argument"
    chosen = [_trained(each, kind) for each in every]
    reason = _unfollowed([[replace(one, drawn=False) for one in each] for each in chosen], steps)
    if reason:
        return Data("unfollowed", reason)
    wanted, *read = (_bags(one, steps) for one in chosen)
    total = sum(max((sum(rows.values()) for rows in bag.values()), default=0) for bag in wanted.values())
    for step in range(steps):
        odd = tuple(rank for rank, bags in enumerate(read) if bags.get(step) != wanted.get(step))
        if odd:
            text = f"step {step}, {_named(odd)}: the examples are not, to the last bit, the reference's"
            return Data("unfollowed", f"not followed: {text}", step, odd)
    return Data("shared", f"each of the reference's {total} examples was read by every rank, in the same step")


# --- what can be judged -----------------------------------------------------------------------------------------------


def _trained(deliveries: Sequence[Delivery], kind: DeliveryKind) -> list[Delivery]:
    """Those from sites that feed training: evaluation's are never the last thing read before a tape is entered.

    What is read about as often as that belongs to it: a step may read from two places.
    """
    steps: dict[str, set[int]] = {}
    for one in deliveries:
        if one.kind == kind:
            steps.setdefault(one.site, set()).add(one.step)
    last = {one.site for one in deliveries if one.kind == kind and one.last}
    often = _OFTEN * max((len(steps[site]) for site in last), default=0)
    sites = {site for site, seen in steps.items() if site in last or len(seen) >= max(often, 2)}
    return [one for one in deliveries if one.kind == kind and one.site in sites]


def _unfollowed(chosen: Sequence[Sequence[Delivery]], steps: int) -> str:
    if not steps:
        return "not followed: not every rank came to the end of the first step"
    if not all(chosen):
        return "not followed: the steps take their examples neither from a dataset nor as a tf.function's arguments"
    if any(one.drawn for deliveries in chosen for one in deliveries):
        return "not followed: the input pipeline draws random numbers, so an example is not the same in two runs"
    if steps > 1 and len(chosen[0]) == 1:
        return "not followed: all examples are read once, before the first step"
    if any(_sites(one) != _sites(chosen[0]) for one in chosen):
        return "not followed: the ranks read their examples at other places than the reference"
    return ""


def _sites(deliveries: Sequence[Delivery]) -> int:
    return len({one.site for one in deliveries})


def _telling(wanted: Bags) -> list[Part]:
    """The parts whose rows can say which example it is."""
    names = dict.fromkeys(part for parts in wanted.values() for part in parts)
    distinct = {part: len(_all(wanted, part)) for part in names}
    return [part for part in names if distinct[part] >= _TELLING * max(distinct.values())]


def _where(wanted: Bags, read: Sequence[Bags], steps: int, site: str) -> tuple[int, Part] | None:
    """The first step in which a site's examples are broken, and the part that shows it; None where all is well, or
    nothing of it is known."""
    mine = {step: {part: rows for part, rows in bag.items() if part[0] == site} for step, bag in wanted.items()}
    found = []
    for part in _telling(mine):
        step = _first_broken(wanted, read, steps, part)
        if step is None:
            return None
        found.append((_read_rightly(wanted, read, part), step, part))
    known, step, part = max(found, default=(0, 0, (site, 0)))
    return (step, part) if known else None


# --- multisets of rows ------------------------------------------------------------------------------------------------


def _bags(deliveries: Sequence[Delivery], steps: int, without: Container[int] = ()) -> Bags:
    """By step and part, how often each row was read. Sites are numbered: lines differ between two texts."""
    numbers = {site: number for number, site in enumerate(dict.fromkeys(one.site for one in deliveries))}
    bags: dict[int, dict[Part, Counter[int]]] = {}
    for one in deliveries:
        if one.step < steps and one.step not in without:
            bag = bags.setdefault(one.step, {})
            for number, rows in enumerate(one.parts):
                bag.setdefault((f"{numbers[one.site]}", number), Counter()).update(rows.tolist())
    return bags


def _at(bags: Bags, step: int, part: Part) -> Counter[int]:
    return bags.get(step, {}).get(part, Counter())


def _all(bags: Bags, part: Part) -> Counter[int]:
    return sum((bag.get(part, Counter()) for bag in bags.values()), Counter())


def _total(read: Sequence[Bags], part: Part) -> Counter[int]:
    return sum((_all(one, part) for one in read), Counter())


def _read_rightly(wanted: Bags, read: Sequence[Bags], part: Part) -> int:
    """How many of the reference's rows any rank read, in whichever step."""
    return (_all(wanted, part) & _total(read, part)).total()


def _shared(wanted: Bags, read: Sequence[Bags], step: int, part: Part) -> bool:
    return sum((_at(one, step, part) for one in read), Counter()) == _at(wanted, step, part)


def _first_broken(wanted: Bags, read: Sequence[Bags], steps: int, part: Part) -> int | None:
    """The first step in which the ranks' rows are not, together, the reference's."""
    return next((step for step in range(steps) if not _shared(wanted, read, step, part)), None)


def _whole(wanted: Bags, read: Sequence[Bags], parts: Sequence[Part], steps: int) -> bool:
    return all(
        _at(one, step, part) == _at(wanted, step, part) for one in read for step in range(steps) for part in parts
    )


def _counts(ranks: Sequence[Sequence[Delivery]], steps: int) -> tuple[tuple[int, ...], ...]:
    """How many examples each rank read, by pass."""
    rows = [Counter[int]() for _ in ranks]
    for rank, deliveries in enumerate(ranks):
        for one in deliveries:
            if one.site == deliveries[0].site and one.step < steps:
                rows[rank][one.turn] += max((len(part) for part in one.parts), default=0)
    turns = sorted({turn for each in rows for turn in each})
    return tuple(tuple(each[turn] for each in rows) for turn in turns)


# --- words ------------------------------------------------------------------------------------------------------------


def _shared_text(wanted: Bags, parts: Sequence[Part], counts: Sequence[Sequence[int]]) -> str:
    total = sum(_all(wanted, parts[0]).values())
    by_rank = [sum(each[rank] for each in counts) for rank in range(len(counts[0]))] if counts else []
    said = ", ".join(f"rank {rank} {count}" for rank, count in enumerate(by_rank))
    # A pass by Keras is not told from the next: how many epochs came to their end is said by what the proof covers.
    passes = f", in {len(counts)} passes over them," if len(counts) > 1 else ""
    of = f"each of the reference's {total} examples{passes}"
    return f"{of} was read by one rank, in the same step ({said})"


def _broken(wanted: Bags, read: Sequence[Bags], part: Part, step: int, counts: tuple[tuple[int, ...], ...]) -> Data:
    expected = _at(wanted, step, part)
    bags = [_at(one, step, part) for one in read]
    found = sum(bags, Counter[int]())
    missing, extra = expected - found, found - expected
    again = {row for row in extra if sum(row in bag for bag in bags) > 1}
    strange = {row for row in extra if row not in expected}
    said = list(_words(expected, missing, len(again), len(strange)))
    guilty = tuple(rank for rank, bag in enumerate(bags) if any(row in bag for row in extra))
    if len({bag.total() for bag in bags}) > 1:
        said.append("the ranks read " + ", ".join(str(bag.total()) for bag in bags) + " examples")
    whole = all(bag == expected for bag in bags)
    if whole:
        said = [f"every rank read all {expected.total()} examples: they are not sharded"]
    ranks = guilty or tuple(range(len(bags)))
    return Data("broken", f"step {step}, {_named(ranks)}: {'; '.join(said)}", step, ranks, counts, whole)


def _words(expected: Counter[int], missing: Counter[int], again: int, strange: int) -> Iterator[str]:
    of = f"of the reference's {expected.total()} examples"
    if missing:
        yield f"{missing.total()} {of} were read by no rank"
    if again:
        yield f"{again} examples were read by more than one rank"
    if strange:
        yield f"{strange} examples are not of this step"
    if not (missing or again or strange):
        yield "examples were read more often than in the reference"


def _named(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"
