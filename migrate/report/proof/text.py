"""A verification in a terminal's few lines; the whole table is in the page and in the JSON."""

from __future__ import annotations

from collections.abc import Iterator

import click

from ...verify.judge import LIMIT, Row
from ...verify.proof import COMPARED, Proof
from ..streams import printable
from .account import Account, Verdict

MOST_ROWS = 10
WHOLE = "its lines are those of the text that ran; --html and --json have all of it"
_COLOUR = {Verdict.PROVED: "green", Verdict.NOT_PROVED: "red"}
_WORD = {
    Verdict.PROVED: "trains the same model",
    Verdict.NOT_PROVED: "does NOT train the same model",
    Verdict.COULD_NOT_COMPARE: "the migrated script failed",
    Verdict.COULD_NOT_DECIDE: "it differs by what may be rounding of float32, and nothing could tell",
    Verdict.COULD_NOT_RUN: "nothing is proved, and nothing is disproved",
}


def lines(account: Account, *, whole: bool = False) -> Iterator[str]:
    """What there is to say, coloured, the verdict first. whole: every variable, not only the worst."""
    verdict = account.verdict
    word = click.style(verdict.shout, fg=_COLOUR.get(verdict, "yellow"), bold=True)
    yield f"{click.style(printable(account.script), bold=True)}: {word}: {_WORD[verdict]}"
    if account.against:
        yield f"  original: {printable(account.compared_with)}"
    for line in account.why.splitlines():
        yield f"  {printable(line)}"
    proof = account.proof
    if proof is not None and proof.diagnosis:
        yield f"  likely cause: {proof.diagnosis}"
    if account.failed and account.failed.short:
        yield from (click.style(f"  | {printable(line)}", dim=True) for line in account.failed.short.splitlines())
        yield click.style(f"  {WHOLE}", dim=True)
    yield "  " + ", ".join(f"{name} {value}" for name, value in account.options.items())
    if proof is not None and not proof.nothing_compared:
        yield from _figures(proof, whole)


def _figures(proof: Proof, whole: bool) -> Iterator[str]:
    if proof.points:
        yield from _losses(proof)
        yield from _differences(proof)
    yield from _table(proof, len(proof.table) if whole else MOST_ROWS)
    if proof.coverage:
        yield f"  covered: {proof.coverage.text}"
    if proof.rounding and proof.proved:
        yield f"  rounding: {printable(proof.rounding.text)}"
    if proof.float64 is not None:
        yield f"  variables after all steps, free in float64: {proof.float64:.1e} (limit {LIMIT:.0e})"
    for name, found in (("examples", proof.data), ("files", proof.effects), ("optimizers", proof.settings)):
        if found:
            yield f"  {name}: {printable(found.text)}"
    for name, said in proof.of_calls.items():
        yield f"  {name}: {printable(said)}"
    for what in proof.neutralised:
        yield f"  neutralised in both runs: {what}"


def _losses(proof: Proof) -> Iterator[str]:
    first, last = proof.points[0].losses, proof.points[-1].losses
    for number, ((wanted, ours), (then, mean)) in enumerate(zip(first, last, strict=False)):
        of = f" {number + 1}" if len(first) > 1 else ""
        yield f"  loss{of}: reference {wanted:.6g} → {then:.6g}, migrated {ours:.6g} → {mean:.6g}"


def _differences(proof: Proof) -> Iterator[str]:
    parts = []
    for name in COMPARED:
        value, limit = getattr(proof, name), getattr(proof.limits, name)
        text = f"{name} {value:.1e} ({proof.held_to(name)})"
        parts.append(text if value <= limit else click.style(text, fg="red"))
    yield f"  largest relative difference in {len(proof.points)} steps: {', '.join(parts)}"


def _table(proof: Proof, most: int) -> Iterator[str]:
    if not proof.table:
        return
    rows = proof.table if most >= len(proof.table) else sorted(proof.table, key=lambda row: -_excess(row, proof))[:most]
    width = max(len("variable"), *(len(row.variable) for row in rows))
    yield click.style(f"  {'variable':<{width}}  gradient    update", dim=True)
    for row in rows:
        yield f"  {printable(row.variable):<{width}}  {_cell(row.gradient)}  {_cell(row.update)}"
    left = len(proof.table) - len(rows)
    if left:
        yield click.style(f"  and {left} more, with smaller differences (-v lists all)", dim=True)


def _excess(row: Row, proof: Proof) -> float:
    """The larger difference of a variable, in parts of its limit."""
    return max((row.gradient or 0.0) / proof.limits.gradient, (row.update or 0.0) / proof.limits.update)


def _cell(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1e}"
