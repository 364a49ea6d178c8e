"""An outcome as lines for a person: `path:line:col: TFDPnnn message`, and what to do next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .outcome import Failure, Outcome, Verdict
from .streams import printable

if TYPE_CHECKING:
    from ..engine import Finding


_UNCHANGED = {
    Verdict.ALREADY: "unchanged: migrated already",
    Verdict.NO_TRAINING: "no training found",
    Verdict.UNCHANGED: "unchanged",
}


def lines(outcome: Outcome, verbose: bool = False) -> Iterator[str]:
    """What there is to say about a file, in order, coloured; nothing for an unchanged one unless `verbose`."""
    path = printable(outcome.path)
    for finding in outcome.findings:
        yield from _finding(path, finding)
    if outcome.failure is not None:
        yield _failure(path, outcome.failure)
        if verbose and outcome.failure.trace:
            yield outcome.failure.trace.rstrip("\n")
    if not outcome.verdict.leaves_it:
        yield from _road(path, outcome)
    for file, line, launcher, now in outcome.launches:
        works = "" if launcher == "horovodrun" else ", or as it is"
        yield f"{_bold(f'{printable(file)}:{line}')}: starts it by {launcher}: now by `{printable(now)}`{works}"
    conclusion = _conclusion(outcome, verbose)
    if conclusion:
        yield f"{_bold(path)}: {conclusion}"


def _finding(path: str, finding: Finding) -> Iterator[str]:
    code = click.style(finding.code, fg="red" if finding.refusal else "cyan", bold=finding.refusal)
    yield f"{_bold(f'{path}:{finding.line}:{finding.column}')}: {code} {printable(finding.message)}"
    if finding.next_step:
        yield f"    next step: {printable(finding.next_step)}"


def _road(path: str, outcome: Outcome) -> Iterator[str]:
    """Which road the file goes."""
    road = outcome.road
    if road.said and outcome.verdict is not Verdict.REFUSED:
        yield f"{_bold(path)}: {road.said}"


def _failure(path: str, failure: Failure) -> str:
    if failure.named:
        path = "tfdp"
    place = f"{path}:{failure.line}:{failure.column}" if failure.line else path
    return f"{_bold(place)}: {click.style('error', fg='red', bold=True)}: {printable(failure.reason)}"


def _conclusion(outcome: Outcome, verbose: bool) -> str:
    written = f", written to {printable(outcome.written_to)}" if outcome.written_to else ""
    written += f", original kept in {printable(outcome.kept_in)}" if outcome.kept_in else ""
    if outcome.verdict is Verdict.CHANGED:
        return f"migrated{written}"
    if outcome.verdict is Verdict.WOULD_CHANGE:
        return "would be changed"
    count = sum(finding.refusal for finding in outcome.findings)
    places = f"{count} place{'' if count == 1 else 's'}"
    if outcome.verdict is Verdict.PARTIAL:
        return f"migrated in part{written}: {places} to settle before it may run, each marked TODO(tfdp)"
    if outcome.verdict is Verdict.REFUSED:
        return f"not written: {places} to settle first"
    if outcome.verdict.leaves_it and (verbose or written):
        return f"{_UNCHANGED[outcome.verdict]}{written}"
    return ""


def _bold(text: str) -> str:
    return click.style(text, bold=True)
