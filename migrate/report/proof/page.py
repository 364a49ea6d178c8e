"""A verification as one HTML page that needs nothing else: no script, no network, no other file."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ...verify.judge import Row
from ...verify.proof import FailedRun, Proof
from . import changes, chart, curves
from .account import Account
from .curves import Curve
from .style import CSS

# A browser that follows this policy can fetch nothing, whatever a script's text holds.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WORD = {
    "proved": "The migrated script trains the same model.",
    "not proved": "The migrated script does not train the same model.",
    "could not be compared": "The migrated script failed: nothing is proved, and nothing is disproved.",
    "could not be decided": "The runs differ by what may be rounding of float32, and nothing could tell.",
    "could not run": "Nothing is proved, and nothing is disproved.",
}
_SIGNS = {"+": "add", "-": "del", "…": "gap", " ": ""}


def render(account: Account) -> str:
    """The page's text, to be written as UTF-8."""
    title = f"{account.script}: {account.verdict.word}"
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f'<meta name="generator" content="tfdp verify"><title>{escape(title)}</title><style>{CSS}</style>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(_body(account))
        + "\n</body></html>\n"
    )


def _body(account: Account) -> Iterator[str]:
    yield _header(account)
    proof = account.proof
    if proof is not None:
        if proof.points:
            yield _tiles(proof)
            yield from _plots(proof)
        yield from _variables(proof)
        if not proof.nothing_compared:
            yield from _checked(proof)
            yield from _calls(proof)
            yield from _neutralised(proof)
    yield from _diff(account)
    yield from _reference(account)
    yield from _about(account)


def _header(account: Account) -> str:
    verdict = account.verdict
    parts = [
        f'<h1>{escape(account.script)}</h1><p><span class="verdict">{verdict.shout}</span> {_WORD[verdict.word]}</p>'
    ]
    if account.proof is not None and account.proof.diagnosis:
        parts.append(f"<p><b>Likely cause:</b> {escape(account.proof.diagnosis)}</p>")
    if account.why:
        parts.append(f"<pre>{escape(account.why)}</pre>")
    if account.failed and account.failed.traceback:
        parts.append(_traceback(account.failed))
    parts.append(_list({**({"original": account.compared_with} if account.against else {}), **account.options}))
    return f'<header class="{verdict.word.replace(" ", "-")}">{"".join(parts)}</header>'


def _traceback(failed: FailedRun) -> str:
    summary = "The traceback: its lines are those of the text that ran"
    shown = f"<pre>{escape(failed.traceback)}</pre>"
    return f"<details><summary>{summary}</summary>{shown}</details>"


def _tiles(proof: Proof) -> str:
    tiles = []
    for name, of in (("loss", "mean loss"), ("gradient", "averaged gradient"), ("update", "update of a variable")):
        value, limit = getattr(proof, name), getattr(proof.limits, name)
        over = "" if value <= limit else " over"
        tiles.append(f'<div class="tile{over}"><span>{of}</span><b>{value:.1e}</b><span>limit {limit:.0e}</span></div>')
    return f'<div class="tiles">{"".join(tiles)}</div>'


def _plots(proof: Proof) -> Iterator[str]:
    failed = proof.failure.step if proof.failure else None
    yield '<h2>Step by step</h2><div class="plots">'
    shown = curves.losses(proof)
    several = max(len(point.losses) for point in proof.points)
    text = "Loss. The line is one process with the global batch, the marks are the mean over the workers."
    if several > curves.MOST_LOSSES:
        text += f" Of {several} gradients in a step, the first {curves.MOST_LOSSES} are shown."
    yield _figure("Loss by step", shown, chart.render("Loss by step", shown, failed=failed), text, failed)
    shown = curves.differences(proof)
    text = (
        "Largest relative differences. Before each step the workers are given the reference's variables, so that each "
        "step is judged by itself and differences do not add up: what is shown for the weights is what one step makes."
    )
    drawing = chart.render("Largest relative differences by step", shown, log=True, failed=failed)
    yield _figure("Differences by step", shown, drawing, text, failed)
    yield "</div>"


def _figure(title: str, shown: tuple[Curve, ...], drawing: str, text: str, failed: int | None) -> str:
    keys = []
    for curve in shown:
        sample = '<i class="dot"></i>' if curve.points else "<i></i>"
        limit = "" if curve.limit is None else '<i class="dashed"></i>limit'
        keys.append(f'<span class="c{curve.colour}">{sample}{escape(curve.name)}{limit}</span>')
    keys += [] if failed is None else [f'<span class="not-proved"><i></i>first failure, step {failed}</span>']
    legend = f'<div class="legend">{"".join(keys)}</div>'
    return f"<figure><b>{title}</b>{legend}{drawing}<figcaption>{escape(text)}</figcaption></figure>"


def _variables(proof: Proof) -> Iterator[str]:
    if not proof.table:
        return
    yield "<h2>Variables</h2>"
    text = "Largest relative difference over all steps and workers. A slot of an optimizer has no gradient."
    yield f'<p class="note">{text}</p>'
    head = '<tr><th>variable</th><th class="number">gradient</th><th class="number">update</th></tr>'
    yield f'<div class="scroll"><table class="figures"><thead>{head}</thead><tbody>'
    yield from (_variable(row, proof) for row in proof.table)
    yield "</tbody></table></div>"


def _variable(row: Row, proof: Proof) -> str:
    cells = _cell(row.gradient, proof.limits.gradient) + _cell(row.update, proof.limits.update)
    return f"<tr><td><code>{escape(row.variable)}</code></td>{cells}</tr>"


def _cell(value: float | None, limit: float) -> str:
    if value is None:
        return '<td class="number">-</td>'
    return f'<td class="number{"" if value <= limit else " over"}">{value:.1e}</td>'


def _checked(proof: Proof) -> Iterator[str]:
    found = {"Examples": proof.data, "Files": proof.effects, "Optimizers": proof.settings}
    said = {name: each.text for name, each in found.items() if each}
    if proof.coverage:
        said["Covered"] = proof.coverage.text
    if proof.rounding and proof.proved:
        said["Rounding"] = proof.rounding.text
    if said:
        yield "<h2>Examples, files and optimizers</h2>"
        yield from (f"<p><b>{name}:</b> {escape(text)}</p>" for name, text in said.items())


def _calls(proof: Proof) -> Iterator[str]:
    if proof.calls:
        yield "<h2>Sharded calls</h2>"
        yield f"<p>{escape(proof.road)}</p>"
    if proof.division:
        gathered = [("" if part.row_bytes is None else f"{part.row_bytes:,}") for part in proof.division.parts]
        yield '<div class="scroll"><table class="figures"><thead><tr><th>call</th><th>divided</th>'
        yield '<th class="number">bytes gathered for each row</th></tr></thead><tbody>'
        for part, size in zip(proof.division.parts, gathered, strict=True):
            how = f"no: {part.reason}" if part.reason else "yes"
            cells = f"<td><code>{escape(part.name)}</code></td><td>{escape(how)}</td>"
            yield f'<tr>{cells}<td class="number">{size}</td></tr>'
        yield "</tbody></table></div>"


def _neutralised(proof: Proof) -> Iterator[str]:
    yield "<h2>What was neutralised</h2>"
    if proof.kept:
        yield f"<p>{'These compute' if proof.neutralised else 'Nothing was neutralised: these compute'} as in life:</p>"
        yield "<ul>"
        yield from (f"<li>{escape(what)}</li>" for what in proof.kept)
        yield "</ul>"
        if not proof.neutralised:
            return
    if not proof.neutralised:
        yield "<p>Nothing was found that had to be.</p>"
        return
    text = "These differ by worker by their nature. In both runs of the proof they are made alike."
    yield f'<p class="note">{text}</p><ul>'
    yield from (f"<li>{escape(what)}</li>" for what in proof.neutralised)
    yield "</ul>"


def _diff(account: Account) -> Iterator[str]:
    rows = list(changes.rows(account.original, account.migrated)) if account.migrated else []
    if not rows:
        return
    yield "<h2>The change</h2>"
    yield '<div class="scroll"><table class="code"><tbody>'
    for row in rows:
        old, new = (str(number or "") for number in (row.old, row.new))
        cells = f'<td class="line">{old}</td><td class="line">{new}</td><td>{row.sign}</td><td>{escape(row.text)}</td>'
        yield f'<tr class="{_SIGNS[row.sign]}">{cells}</tr>'
    yield "</tbody></table></div>"


def _reference(account: Account) -> Iterator[str]:
    if account.reference:
        text = escape(changes.text(account.reference))
        summary = "The reference: the one-process script that the migrated one must equal"
        yield f'<details><summary>{summary}</summary><div class="scroll"><pre>{text}</pre></div></details>'


def _about(account: Account) -> Iterator[str]:
    yield "<h2>How it was made</h2>"
    took = {"made": account.made, "took": f"{account.seconds:.0f} s"}
    yield _list({**{name: value for name, value in took.items() if value}, **account.versions})


def _list(facts: dict[str, str]) -> str:
    return f"<dl>{''.join(f'<dt>{escape(name)}</dt><dd>{escape(value)}</dd>' for name, value in facts.items())}</dl>"
