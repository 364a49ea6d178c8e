"""What one process recorded while it trained: a folder with one `.npz` file per step and one `header.json`.

A file per step, so that a process that dies leaves what it had seen, and so that the ranks read the reference's states
one at a time. Keys of variables are strings: creation name, shape, dtype and the occurrence number of that triple.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Arrays: TypeAlias = Mapping[str, Array]

HEADER, LOCK, START = "header.json", "lock.json", "start.npz"


@dataclass(frozen=True)
class Call:
    """One outermost `gradient()` call.

    loss: sum of the target's elements, local to the process; times the number of processes where their gradients are
    added up, not averaged. weight: the examples it counts for, where the script gives them. inner: asked
    while another tape was open (a penalty). sources: keys in order; those without a gradient are not in `gradients`,
    which are dense, float32 or float64. combined: how the tape itself combined the gradients of the ranks: `mean`,
    `sum`, `weighted`, `WHOLE` where each computes the loss of the whole batch, or empty. site: the line that asked.
    """

    loss: float
    weight: float | None
    inner: bool
    sources: tuple[str, ...]
    gradients: Arrays
    combined: str = ""
    site: str = ""


WHOLE = "whole"


@dataclass(frozen=True)
class Note:
    """Something that a script did which may explain a difference, and never decides about one. site: the line."""

    what: str
    site: str


SHARDED = "sharded"  # records or rows were sharded over the ranks
SHARDED_AGAIN = "sharded again"  # ... of which a rank had its share already
ORDERS_DIFFER = "orders differ"  # ... after a shuffle that gave each rank another order
BY_FILE = "sharded by file"  # whole files, in life: the proof shards their records
SAME_BATCH = "batch"  # each of a rank's batches has this many records: the site is the number
RATE_SCALED = "rate scaled"
RATE_SCALED_AGAIN = "rate scaled again"
INPUT_AVERAGED = "input averaged"  # a gradient for something that is no variable was combined over the ranks


@dataclass(frozen=True)
class Step:
    """From entering a tape to the first tape entered after the trained variables changed. States: arrays by key."""

    before: Arrays
    calls: tuple[Call, ...]
    after: Arrays
    closed: bool


@dataclass(frozen=True)
class Header:
    """outcome: `complete` (the asked number of steps), `ended` (the script came to its end), `crashed`, `diverged`
    (more gradient calls in a step than the reference).

    names: key -> readable name. compute: dtype in which the model computes. seeded, shuffled: the seeds that the script
    gave to `tf.random.set_seed` and to `shuffle`, in order. sources: of each structure of arrays made a dataset,
    a number for its content. neutralised: what computes otherwise than in life. notes: each once. kept: what draws, and
    normalises by the batch at hand, and computes as in life.
    """

    outcome: str
    names: Mapping[str, str] = field(default_factory=dict)
    compute: str = "float32"
    seeded: tuple[int, ...] = ()
    shuffled: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    neutralised: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    kept: tuple[Note, ...] = ()


_LISTS, _NOTES = ("seeded", "shuffled", "sources"), ("neutralised", "notes", "kept")


@dataclass(frozen=True)
class Lock:
    """What the migrated run takes over from the reference: `trained` and `slots` before every step but the first."""

    trained: tuple[str, ...]
    slots: tuple[str, ...]
    calls: tuple[int, ...]


class Trace:
    """Reading and writing of one process's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write_step(self, index: int, step: Step) -> None:
        """Write step `index`, from 0, in one piece: a process may be killed at any time."""
        arrays: dict[str, Array] = {"calls": np.array(json.dumps([_about(call) for call in step.calls]))}
        arrays["closed"] = np.array(step.closed)
        for part in ("before", "after"):
            arrays.update({f"{part}/{key}": value for key, value in getattr(step, part).items()})
        for number, call in enumerate(step.calls):
            arrays.update({f"gradient{number}/{key}": value for key, value in call.gradients.items()})
        self._write_arrays(self._step_file(index), arrays)

    def step(self, index: int) -> Step | None:
        """Step `index`, None where the process did not come to it."""
        if not self._step_file(index).exists():
            return None
        with np.load(self._step_file(index)) as file:
            parts: dict[str, dict[str, Array]] = {}
            for name in file.files:
                part, _, key = name.partition("/")
                parts.setdefault(part, {})[key] = file[name]
        about = json.loads(str(parts["calls"][""]))
        calls = tuple(_call(facts, parts.get(f"gradient{number}", {})) for number, facts in enumerate(about))
        return Step(parts.get("before", {}), calls, parts.get("after", {}), bool(parts["closed"][""]))

    def idle_steps(self, steps: int) -> list[int]:
        """The steps in which this process's gradients count for no example."""
        return [index for index in range(steps) if any(about["weight"] == 0 for about in self._about(index))]

    def closed_steps(self) -> int:
        """How many steps ended with an update."""
        count = 0
        while (step := self.step(count)) is not None and step.closed:
            count += 1
        return count

    def write_header(self, header: Header) -> None:
        """Write `header.json`: the last thing a process does."""
        facts = {"outcome": header.outcome, "names": dict(header.names), "compute": header.compute}
        lists = {name: list(getattr(header, name)) for name in _LISTS}
        notes = {name: [[note.what, note.site] for note in getattr(header, name)] for name in _NOTES}
        self._write_text(HEADER, json.dumps({**facts, **lists, **notes}))

    def header(self) -> Header | None:
        """The header, None for a process that was killed."""
        if not (self.folder / HEADER).exists():
            return None
        facts = json.loads((self.folder / HEADER).read_text("utf-8"))
        notes = [tuple(Note(what, site) for what, site in facts[name]) for name in _NOTES]
        lists = [tuple(facts[name]) for name in _LISTS]
        return Header(facts["outcome"], facts["names"], facts["compute"], *lists, *notes)

    def write_start(self, initial: Arrays) -> None:
        """Write the values the variables were created with."""
        self._write_arrays(self.folder / START, dict(initial))

    def start(self) -> dict[str, Array]:
        """The values the variables were created with."""
        with np.load(self.folder / START) as file:
            return {key: file[key] for key in file.files}

    def write_lock(self, lock: Lock) -> None:
        """Write what the migrated runs need to know besides the states."""
        facts = {"trained": list(lock.trained), "slots": list(lock.slots), "calls": list(lock.calls)}
        self._write_text(LOCK, json.dumps(facts))

    def lock(self) -> Lock:
        """What `write_lock` wrote."""
        facts = json.loads((self.folder / LOCK).read_text("utf-8"))
        return Lock(tuple(facts["trained"]), tuple(facts["slots"]), tuple(facts["calls"]))

    def _about(self, index: int) -> list[dict[str, Any]]:
        if not self._step_file(index).exists():
            return []
        with np.load(self._step_file(index)) as file:
            return list(json.loads(str(file["calls"])))

    def _step_file(self, index: int) -> Path:
        return self.folder / f"step-{index:05d}.npz"

    def _write_arrays(self, path: Path, arrays: dict[str, Array]) -> None:
        part = path.with_suffix(".part")
        with part.open("wb") as stream:
            savez: Any = np.savez  # its annotation takes every keyword for `allow_pickle`
            savez(stream, **arrays)
        os.replace(part, path)

    def _write_text(self, name: str, text: str) -> None:
        part = self.folder / f"{name}.part"
        part.write_text(text, "utf-8")
        os.replace(part, self.folder / name)


def steps_in(folder: Path) -> int:
    """How many steps a process that records into `folder` has written so far."""
    return sum(1 for _ in folder.glob("step-*.npz"))


_FACTS = ("loss", "weight", "inner", "combined", "site")


def _about(call: Call) -> dict[str, Any]:
    return {**{name: getattr(call, name) for name in _FACTS}, "sources": list(call.sources)}


def _call(facts: Mapping[str, Any], gradients: Arrays) -> Call:
    named = {name: facts[name] for name in _FACTS}
    return Call(sources=tuple(facts["sources"]), gradients=gradients, **named)
