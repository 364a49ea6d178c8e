"""What the tool makes of a generated script, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fragments import finish, loss, start
from kinds import EXACT, KINDS
from pen import Pen
from sketch import ROADS

from tfdp.migrate import engine
from tfdp.rules._base import Policy


@dataclass(frozen=True)
class Case:
    """A generated script, and what is wrong in it where its records are sharded: nothing, or a fragment of one kind."""

    text: str
    road: str
    kind: str | None = None


@dataclass(frozen=True)
class Verdict:
    """`refused`, `untouched`, or the road: `input` where that may be sharded, else `calls`; and what was said."""

    what: str
    said: tuple[tuple[str, int, str], ...]


def written(choose: Callable[[Sequence[Any]], Any], name: str | None) -> Case:
    """A script all of whose fragments are exact, or one with a fragment of that kind: the rest of it is plain."""
    pen = Pen(choose)
    if name is None:
        return _exact(pen)
    kind = KINDS[name]
    s = start(pen, kind.roads, plain=True)
    kind.build(s)
    return Case(finish(s), s.road, name)


def _exact(pen: Pen) -> Case:
    s = start(pen, ROADS)
    taken = set()
    for _ in range(pen.pick((0, 1, 1, 2))):
        place = pen.pick([name for name, kind in EXACT.items() if s.road in kind.roads and kind.part not in taken])
        taken.add(EXACT[place].part)
        EXACT[place].build(s)
    if "loss" not in taken:
        loss(s)
    return Case(finish(s), s.road)


def judged(case: Case) -> Verdict:
    """The tool's answer. Raises what the tool raises, and SyntaxError for a script that is none."""
    compile(case.text, "generated.py", "exec")
    source = case.text.encode()
    result = engine.migrate("generated.py", source, Policy("input"))
    if result.refused:
        result = engine.migrate("generated.py", source)
    said = tuple((f.code, f.line, f.message) for f in result.findings if f.refusal)
    if result.refused:
        return Verdict("refused", said)
    if not result.changed:
        return Verdict("untouched", said)
    compile(result.after, "generated.py", "exec")
    return Verdict(result.road or "", said)
