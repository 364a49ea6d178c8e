"""What a job by sharded calls has divided over its workers, and what each of them has computed whole."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

DIVISION_FILE = "division.json"
_MOST = 6  # that a text names
_SINGLE_ROWS = (
    "nothing: each call was given one row, so that more workers are no faster. Where the data have more, `tfdp migrate "
    "--batch per-worker` gives each worker rows of its own"
)


@dataclass(frozen=True)
class Part:
    """A layer, model or function that a tape recorded.

    reason: why it was computed whole, empty where it was divided. row_bytes: what is gathered for each row of the
    batch, None where that is not known before it runs.
    """

    name: str
    reason: str
    row_bytes: int | None


@dataclass(frozen=True)
class Division:
    """parts: in the order of their first calls. nothing: why the job ended, where nothing could be divided.
    single_rows: whether all were given one row, which is no reason to end it.
    """

    parts: tuple[Part, ...] = ()
    nothing: str = ""
    single_rows: bool = False

    @property
    def divided(self) -> tuple[Part, ...]:
        """Those of which each worker computed its own rows."""
        return tuple(part for part in self.parts if not part.reason)

    @property
    def whole(self) -> tuple[Part, ...]:
        """Those that every worker computed whole."""
        return tuple(part for part in self.parts if part.reason)

    @property
    def text(self) -> str:
        """What was divided, in words."""
        if self.single_rows:
            return _SINGLE_ROWS
        return _listed(f"{part.name}{_gathered(part)}" for part in self.divided)

    @property
    def text_whole(self) -> str:
        """What was not, and why; empty where all was divided."""
        return _listed(f"{part.name} ({part.reason})" for part in self.whole)


def write_division(folder: Path, division: Division) -> None:
    """Write that of the process with this trace folder."""
    parts = [vars(part) for part in division.parts]
    facts = {"parts": parts, "nothing": division.nothing, "single_rows": division.single_rows}
    (folder / DIVISION_FILE).write_text(json.dumps(facts), "utf-8")


def read_division(folder: Path) -> Division | None:
    """What `write_division` wrote, None of a process that was killed, or does not shard calls."""
    path = folder / DIVISION_FILE
    if not path.exists():
        return None
    facts = json.loads(path.read_text("utf-8"))
    return Division(tuple(Part(**part) for part in facts["parts"]), facts["nothing"], facts["single_rows"])


def _gathered(part: Part) -> str:
    return "" if part.row_bytes is None else f" ({part.row_bytes:,} bytes gathered for each row)"


def _listed(texts: Iterable[str]) -> str:
    found = list(texts)
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more
