"""A preview of one file as workflow commands of GitHub Actions: annotations on its lines, and the diff in the log.

The format: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from .documentation import reasons
from .outcome import Outcome, Verdict
from .streams import printable


def render(outcome: Outcome) -> bytes:
    """Lines for stdout, in UTF-8; empty for a file with nothing to do and nothing to say."""
    lines = [*_annotations(outcome), *_log(outcome)]
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _annotations(outcome: Outcome) -> Iterator[str]:
    file = os.path.relpath(outcome.path) if os.path.exists(outcome.path) else outcome.path
    why = reasons()
    if outcome.failure is not None:
        failure = outcome.failure
        place = {"line": failure.line, "col": failure.column} if failure.line else {}
        yield _command("error", failure.reason, file=file, **place, title="tfdp")
    for f in outcome.findings:
        text = f"{f.message}\n{'next step: ' + f.next_step if f.refusal else why.get(f.code, '')}".rstrip("\n")
        yield _command("error" if f.refusal else "warning", text, file=file, line=f.line, col=f.column, title=f.code)
    if not outcome.verdict.leaves_it:
        yield from _road(outcome, file)


def _road(outcome: Outcome, file: str) -> Iterator[str]:
    """Which road the file goes."""
    road = outcome.road
    if road.said and outcome.verdict is not Verdict.REFUSED:
        yield _command("notice", road.said, file=file, title="tfdp")


def _log(outcome: Outcome) -> Iterator[str]:
    if outcome.diff:
        yield f"::group::{_data(printable(outcome.path))}: {outcome.verdict.word}"
        yield outcome.diff.decode("utf-8", "replace").rstrip("\n")
        yield "::endgroup::"


def _command(name: str, message: str, **properties: str | int) -> str:
    given = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {given}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
