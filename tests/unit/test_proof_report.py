"""What a proof looks like: the JSON, the page and its plots, the terminal's lines. Proofs are made by hand."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import click
import pytest

pytest.importorskip("numpy")

from tfdp.migrate.report.proof import chart, curves, data, page, text
from tfdp.migrate.report.proof.account import Account, Verdict
from tfdp.migrate.report.proof.changes import rows
from tfdp.migrate.report.proof.curves import Curve
from tfdp.migrate.report.proof.scale import Axis, counted, linear, logarithmic
from tfdp.migrate.report.steps import Steps
from tfdp.migrate.verify.judge import Failure, Limits, Point, Rounding, Row
from tfdp.migrate.verify.proof import FailedRun, Proof

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts" / "smddp_mnist"


def proof(**parts: Any) -> Proof:
    points = tuple(
        Point(step, ((2.0 / (step + 1), 2.0 / (step + 1) + 1e-8), (0.5, 0.5)), 1e-8 * step, 1e-7, 2e-7, 1e-9)
        for step in range(12)
    )
    facts: dict[str, Any] = {
        "script": "train.py",
        "np": 2,
        "batch": "per-worker",
        "steps": 12,
        "seed": 1,
        "proved": True,
        "loss": 1.1e-7,
        "gradient": 1e-7,
        "update": 2e-7,
        "failure": None,
        "reason": "",
        "table": (Row("dense/kernel (64x10)", 1e-7, 2e-7), Row("adam/dense_kernel_momentum (64x10)", None, 1e-8)),
        "neutralised": ("batch statistics: so",),
        "points": points,
    }
    return Proof(**{**facts, **parts})


def failed() -> Proof:
    points = proof().points
    wrong = Point(7, ((0.25, math.nan), (0.5, math.inf)), math.inf, 1.0, 0.5, 1e-3)
    return proof(
        proved=False,
        loss=math.inf,
        gradient=1.0,
        update=0.5,
        failure=Failure(7, 1, "dense/kernel (64x10)", "gradient", 1.0, 1e-5, "differs by 1, the limit is 1e-05"),
        reason="step 7, rank 1: gradient of dense/kernel (64x10) differs by 1, the limit is 1e-05",
        diagnosis="the gradients are <b>added up</b>",
        points=(*points[:7], wrong),
        table=(Row("dense/kernel (64x10)", 1.0, 0.5),),
    )


def account(of: Proof | None, **parts: Any) -> Account:
    facts: dict[str, Any] = {
        "script": "train.py",
        "against": None,
        "options": {"processes": "2", "batch": "per-worker", "steps": "12"},
        "proof": of,
        "original": (SCRIPTS / "before.py").read_bytes(),
        "migrated": (SCRIPTS / "after.py").read_bytes(),
        "reference": b"print('reference')\n",
        "seconds": 31.4,
        "made": "2026-01-02 03:04 UTC",
        "versions": {"Python": "3.11", "tensorflow-cpu": "2.21.0"},
    }
    return Account(**{**facts, **parts})


STUCK = account(None, reason="train.py: the reference failed in step 0:\nNameError: x", migrated=b"", reference=b"")
FAILED_RUN = FailedRun(
    cause="rank 1 failed in step 0 at train.py:13 (in load): ValueError: <three> batches",
    hint="",
    place="train.py:13",
    short='Traceback (most recent call last):\n  File "train.py", line 17, in load\nValueError: <three> batches',
    traceback="Traceback (most recent call last):\n  all of the frames\nValueError: <three> batches",
    error="ValueError: <three> batches",
)
CRASHED = account(
    proof(proved=False, could_not_compare=True, failed_run=FAILED_RUN, reason=FAILED_RUN.reason, points=(), table=())
)
UNDECIDED = Rounding("float64", None, {}, "float64 does not decide (it fails there): it is not known to be rounding")
ALL = {
    "proved": account(proof()),
    "not proved": account(failed()),
    "could not be compared": CRASHED,
    "could not be decided": account(proof(proved=False, rounding=UNDECIDED, reason=UNDECIDED.text)),
    "could not run": STUCK,
}


# --- the answer -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of", "verdict"),
    [
        (proof(), Verdict.PROVED),
        (failed(), Verdict.NOT_PROVED),
        (None, Verdict.COULD_NOT_RUN),
        (proof(proved=False, timed_out=True), Verdict.COULD_NOT_RUN),
        (proof(proved=False, could_not_compare=True), Verdict.COULD_NOT_COMPARE),
        (proof(proved=False, randomness_kept=True), Verdict.COULD_NOT_RUN),
        (proof(proved=False, rounding=UNDECIDED), Verdict.COULD_NOT_DECIDE),
        (proof(proved=False, rounding=replace(UNDECIDED, passed=False)), Verdict.NOT_PROVED),
    ],
)
def test_only_a_proof_is_a_success(of: Proof | None, verdict: Verdict) -> None:
    assert account(of).verdict is verdict
    assert (verdict.exit_code == 0) == (of is not None and of.proved)
    assert of is None or bool(of) == of.proved, "`if prove(…)` means what it says"


@pytest.mark.parametrize("name", ALL)
def test_json_is_strict_and_has_the_verdict(name: str) -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    found = json.loads(data.render(ALL[name]), parse_constant=refuse)
    assert (found["format"], found["verdict"]) == (data.FORMAT, name)


def test_a_migrated_run_that_failed_is_told_by_its_cause_and_its_traceback_is_folded() -> None:
    said = [click.unstyle(line) for line in text.lines(CRASHED)]
    assert said[:3] == [
        "train.py: COULD NOT BE COMPARED: the migrated script failed",
        f"  {FAILED_RUN.cause}",
        "  | Traceback (most recent call last):",
    ]
    assert not any("neutralised" in line for line in said), "nothing was compared"
    found = json.loads(data.render(CRASHED))
    assert (found["exit"], found["reason"]) == (2, FAILED_RUN.cause)
    assert (found["failed_run"]["place"], found["failed_run"]["traceback"]) == ("train.py:13", FAILED_RUN.traceback)
    shown = page.render(CRASHED)
    cause, folded = shown.index("ValueError: &lt;three&gt; batches"), shown.index("<details>")
    assert cause < folded < shown.index("all of the frames") < shown.index("</details>")
    assert 'class="could-not-be-compared"' in shown


def test_json_has_every_step_and_variable() -> None:
    found = json.loads(data.render(ALL["not proved"]))
    assert found["largest"]["loss"] == "inf"
    assert found["steps"][7]["losses"] == [
        {"reference": 0.25, "migrated": "nan"},
        {"reference": 0.5, "migrated": "inf"},
    ]
    assert found["failure"]["rank"] == 1
    assert found["variables"] == [{"variable": "dense/kernel (64x10)", "gradient": 1.0, "update": 0.5}]
    assert found["limits"] == {"loss": 1e-6, "gradient": 1e-5, "update": 1e-4}


def test_the_terminal_shows_the_worst_variables_first() -> None:
    many = tuple(Row(f"layer{n}/kernel (3)", n * 1e-8, None) for n in range(30))
    lines = [re.sub(r"\x1b\[\d+m", "", line) for line in text.lines(account(proof(table=many)))]
    assert lines[0] == "train.py: PROVED: trains the same model"
    assert "  loss 1: reference 2 → 0.166667, migrated 2 → 0.166667" in lines
    shown = [line.split()[0] for line in lines if line.startswith("  layer")]
    assert shown == [f"layer{n}/kernel" for n in range(29, 19, -1)]
    assert "  and 20 more, with smaller differences (-v lists all)" in lines
    whole = [line for line in text.lines(account(proof(table=many)), whole=True) if line.startswith("  layer")]
    assert len(whole) == 30


def test_the_terminal_is_told_the_limits_of_the_scripts_dtypes() -> None:
    limits = Limits(0.008, 0.05, 0.1)
    lines = "\n".join(text.lines(account(proof(limits=limits))))
    assert "loss 1.1e-07 (limit 8e-03), gradient 1.0e-07 (limit 5e-02), update 2.0e-07 (limit 1e-01)" in lines
    rounding = Rounding("float64", True, {"gradient": 0.05}, "it is rounding")
    lines = "\n".join(text.lines(account(proof(limits=limits, rounding=rounding))))
    assert "loss 1.1e-07 (limit 8e-03), gradient 1.0e-07 (limit 5e-02: decided by float64), update" in lines


# --- axes and curves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [[2.3, 0.1], [0.0, 0.0], [5.0], [-3.0, 1e6], [], [1e-12, 3e-12]])
def test_a_linear_axis_holds_its_values_and_few_ticks(values: list[float]) -> None:
    axis = linear(values)
    assert all(0 <= axis.place(value) <= 1 for value in values)
    assert 2 <= len(axis.ticks) <= 10
    assert axis.ticks[0] == pytest.approx(axis.low)
    assert axis.place(axis.high) == 1


def test_a_logarithmic_axis_keeps_a_place_for_zero() -> None:
    axis = logarithmic([0.0, 3e-8, 1e-4])
    assert (axis.low, axis.high) == (pytest.approx(1e-9), pytest.approx(1e-4))
    assert axis.place(0.0) == 0
    assert axis.place(3e-8) > axis.place(1e-8) > 0
    assert not logarithmic([1e-8, 1e-7]).zero


@pytest.mark.parametrize("count", [0, 1, 2, 20, 1000])
def test_steps_have_whole_ticks(count: int) -> None:
    axis = counted(count)
    assert all(tick == int(tick) for tick in axis.ticks)
    assert len(axis.ticks) <= 11
    assert axis.place(max(count - 1, 0)) in (0, 1)


def test_values_beyond_the_ends_stay_in_the_plot() -> None:
    assert (Axis(0, 1, ()).place(math.inf), Axis(0, 1, ()).place(-5)) == (1, 0)


def test_each_loss_has_a_line_and_marks() -> None:
    shown = curves.losses(proof())
    assert [(c.name, c.colour, c.points) for c in shown] == [
        ("reference, gradient 1 of 2", 0, False),
        ("migrated, mean over the ranks, gradient 1 of 2", 0, True),
        ("reference, gradient 2 of 2", 1, False),
        ("migrated, mean over the ranks, gradient 2 of 2", 1, True),
    ]
    assert shown[1].values[0] == 2.0 + 1e-8


def test_a_gap_interrupts_a_line() -> None:
    drawn = chart.render("x", [Curve("a", (1.0, math.nan, 2.0, 3.0, None))])
    assert drawn.count("<polyline") == 2
    assert chart.render("x", [Curve("a", ())]).startswith("<svg")


# --- the change -------------------------------------------------------------------------------------------------------


def test_the_change_has_the_numbers_of_both_sides() -> None:
    before = "".join(f"line {n}\n" for n in range(1, 31)).encode()
    after = before.replace(b"line 5\n", b"line five\n").replace(b"line 30\n", b"line 30\nline 31\n")
    found = [(row.sign, row.old, row.new, row.text) for row in rows(before, after)]
    assert ("-", 5, None, "line 5") in found
    assert ("+", None, 5, "line five") in found
    assert ("+", None, 31, "line 31") in found
    assert ("…", None, None, "") in found
    assert list(rows(before, before)) == []


def test_any_bytes_have_a_change() -> None:
    assert [row.text for row in rows(b"# coding: latin-1\nx = '\xe9'\n", b"\xff\n") if row.sign == "-"][1] == "x = 'é'"


# --- the page ---------------------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """All tags of a page; those that are open at its end."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", ALL)
def test_the_page_is_whole_and_fetches_nothing(name: str) -> None:
    tags = Tags(page.render(ALL[name]))
    assert tags.open == []
    assert not {"script", "link", "img", "iframe", "a"} & {tag for tag, _ in tags.seen}
    assert not any({"src", "href", "onload"} & set(attributes) for _, attributes in tags.seen)


def test_the_page_of_a_proof() -> None:
    shown = page.render(ALL["proved"])
    for part in ("PROVED", "dense/kernel (64x10)", "1.0e-07", "batch statistics: so", "dp.scale_lr(0.001)", "2.21.0"):
        assert part in shown
    assert shown.count("<svg") == 2


def test_the_page_of_a_failure_escapes_what_it_is_told() -> None:
    shown = page.render(account(failed(), script="<u>.py", original=b"x = '<script>'\n"))
    assert "&lt;b&gt;added up&lt;/b&gt;" in shown
    assert "<script>" not in shown
    assert "<u>" not in shown
    assert 'class="failed"' in shown
    assert "first failure, step 7" in shown
    assert 'class="number over">1.0e+00' in shown


MEASURE = """<script>addEventListener("load", () => {
  const cut = [...document.querySelectorAll("svg")].flatMap(svg => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text, polyline, circle.mark")].filter(part => {
      const box = part.getBoundingClientRect();
      return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
        || box.bottom > frame.bottom + 1;
    }).map(part => part.outerHTML);
  });
  const ticks = [...document.querySelectorAll("svg")].map(svg => [...svg.querySelectorAll("text.tick")]
    .map(tick => tick.getBoundingClientRect()));
  const apart = (a, b) => a.right <= b.left || b.right <= a.left || a.bottom <= b.top || b.bottom <= a.top;
  const overlaps = ticks.flatMap(all => all.flatMap((a, i) => all.slice(i + 1).filter(b => !apart(a, b)))).length;
  const lines = [...document.querySelectorAll("polyline")].map(line => getComputedStyle(line).stroke);
  document.body.dataset.measured = JSON.stringify({
    wide: document.documentElement.scrollWidth - innerWidth, cut, overlaps,
    colours: new Set(lines).size, loaded: performance.getEntriesByType("resource").length,
    small: Math.min(...[...document.querySelectorAll("svg text")].map(t => t.getBoundingClientRect().height))});
});</script></body>"""


def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium or Chrome on this machine")


def look(shown: str, folder: Path, *options: str) -> str:
    """What Chromium makes of a page."""
    file = folder / "page.html"
    file.write_text(shown, "utf-8")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    common = ["--headless", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", *sandbox]
    command = [browser(), *common, *options, file.as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=120, text=True).stdout


@pytest.mark.parametrize("width", [1200, 500])
def test_a_browser_shows_the_page(tmp_path: Path, width: int) -> None:
    policy = "; script-src 'unsafe-inline'\">"
    shown = page.render(ALL["not proved"]).replace("style-src 'unsafe-inline'\">", f"style-src 'unsafe-inline'{policy}")
    measuring = shown.replace("</body>", MEASURE)
    found = re.search(r'data-measured="([^"]*)"', look(measuring, tmp_path, f"--window-size={width},900", "--dump-dom"))
    assert found is not None
    measured = json.loads(found[1].replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">"))
    assert measured["cut"] == []
    assert measured["overlaps"] == 0
    assert measured["wide"] <= 0, "it scrolls sideways"
    assert measured["colours"] == 4
    assert measured["loaded"] == 0
    assert measured["small"] >= 8


def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    look(page.render(ALL["proved"]), tmp_path, f"--screenshot={tmp_path / 'page.png'}", "--window-size=1100,900")
    image = (tmp_path / "page.png").read_bytes()
    assert struct.unpack(">II", image[16:24]) == (1100, 900)
    assert len(image) > 20_000, "an empty page takes less"


# --- progress ---------------------------------------------------------------------------------------------------------


class Stream:
    """A stream that is, or is not, a terminal."""

    def __init__(self, terminal: bool) -> None:
        self.text, self._terminal = "", terminal

    def isatty(self) -> bool:
        return self._terminal

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass


def test_progress_in_a_log_is_a_line_for_each_run() -> None:
    stream: Any = Stream(terminal=False)
    with Steps(5, stream, {}) as steps:
        for run in ("the reference", "the migrated script"):
            for step in range(3):
                steps.at(run, step)
    assert stream.text == "the reference: step 0 of 5, 0 s\nthe migrated script: step 0 of 5, 0 s\n"


def test_progress_on_a_terminal_is_gone_at_the_end() -> None:
    stream: Any = Stream(terminal=True)
    with Steps(5, stream, {}) as steps:
        steps.at("the reference", 3)
    assert "the reference: step 3 of 5" in stream.text
    assert stream.text.endswith("\r\x1b[K")
