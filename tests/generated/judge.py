"""What the tool makes of a generated script, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fragments import finish, loss, start
from kinds import EXACT, KINDS, Kind
from pen import Pen
from sketch import ROADS

from tfdp.migrate import engine

MODES = ("per-worker", "global")


@dataclass(frozen=True)
class Case:
    """A generated script, and what is wrong in it: nothing, or a fragment of one kind."""

    text: str
    mode: str
    road: str
    kind: str | None = None


@dataclass(frozen=True)
class Verdict:
    """`refused`, `rewritten` (exact, as far as the fragment says), `accepted` or `untouched`; and what was said."""

    what: str
    said: tuple[tuple[str, int, str], ...]
    after: str

    @property
    def silent(self) -> bool:
        """Whether the script would train another model, and nobody would know."""
        return self.what in ("accepted", "untouched")


def written(choose: Callable[[Sequence[Any]], Any], name: str | None) -> Case:
    """A script all of whose fragments are exact, or one with a fragment of that kind: the rest of it is plain."""
    pen = Pen(choose)
    if name is None:
        return _exact(pen)
    kind = KINDS[name]
    s = start(pen, kind.roads, plain=True)
    kind.build(s)
    return Case(finish(s), pen.pick(kind.modes), s.road, name)


def _exact(pen: Pen) -> Case:
    s = start(pen, ROADS)
    taken = set()
    for _ in range(pen.pick((0, 1, 1, 2))):
        place = pen.pick([name for name, kind in EXACT.items() if s.road in kind.roads and kind.part not in taken])
        taken.add(EXACT[place].part)
        EXACT[place].build(s)
    if "loss" not in taken:
        loss(s)
    return Case(finish(s), pen.pick(MODES), s.road)


def judged(case: Case) -> Verdict:
    """The tool's answer. Raises what the tool raises, and SyntaxError for a script that is none."""
    compile(case.text, "generated.py", "exec")
    result = engine.migrate("generated.py", case.text.encode(), case.mode, shard="input")  # type: ignore[arg-type]
    said = tuple((f.code, f.line, f.message) for f in result.findings if f.refusal)
    after = result.after.decode()
    if result.refused:
        return Verdict("refused", said, after)
    if not result.changed:
        return Verdict("untouched", said, after)
    compile(after, "generated.py", "exec")
    return Verdict("rewritten" if _exactly(case, after) else "accepted", said, after)


def _exactly(case: Case, after: str) -> bool:
    kind: Kind | None = KINDS[case.kind] if case.kind else None
    return kind is None or any(mark in after for mark in kind.exact_if)
