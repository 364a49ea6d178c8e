"""A preview of one file in Markdown: each rule with its reason, refusals, then the diff."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .documentation import reasons
from .outcome import Outcome, Verdict
from .streams import printable

_FENCE = re.compile(r"^[ +-]?\s*(`{3,})", re.MULTILINE)
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def render(outcome: Outcome) -> bytes:
    """The preview as UTF-8; empty for a file with nothing to do and nothing to say."""
    if outcome.verdict.leaves_it and not outcome.findings:
        return b""
    return ("\n".join(_lines(outcome)) + "\n").encode("utf-8", "replace")


def _lines(outcome: Outcome) -> Iterator[str]:
    refusals = [f for f in outcome.findings if f.refusal]
    changes = [f for f in outcome.findings if not f.refusal]
    yield f"### {_code(outcome.path)}: {outcome.verdict.word}"
    yield ""
    if outcome.failure is not None:
        place = f"line {outcome.failure.line}: " if outcome.failure.line else ""
        yield f"**error** {place}{_escaped(outcome.failure.reason)}"
        yield ""
    yield from _road(outcome)
    if refusals:
        yield from ("| line | rule | cannot be migrated | next step |", "|---:|---|---|---|")
        for f in refusals:
            yield f"| {f.line} | {f.code} | {_escaped(f.message)} | {_escaped(f.next_step)} |"
        yield ""
    if changes:
        why = reasons()
        yield from ("| line | rule | change | why |", "|---:|---|---|---|")
        for f in changes:
            yield f"| {f.line} | {f.code} | {_escaped(f.message)} | {_escaped(why.get(f.code, ''))} |"
        yield ""
    if outcome.diff:
        text = outcome.diff.decode("utf-8", "replace").replace("\r\n", "\n")
        fence = max(("```", *(found + "`" for found in _FENCE.findall(text))), key=len)
        yield from (f"{fence}diff", text.rstrip("\n"), fence, "")


def _road(outcome: Outcome) -> Iterator[str]:
    """Which road the file goes."""
    road = outcome.road
    if road.said and outcome.verdict is not Verdict.REFUSED:
        yield from (_escaped(road.said), "")


def _code(path: str) -> str:
    quotes = "``" if "`" in path else "`"
    return f"{quotes}{printable(path)}{quotes}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", printable(text))
