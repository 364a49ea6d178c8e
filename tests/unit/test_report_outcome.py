"""The exit code, the summary, and the lines a person reads."""

import click
import pytest

from tfdp.migrate.engine import Finding
from tfdp.migrate.report import text
from tfdp.migrate.report.outcome import Failure, Outcome, Verdict, exit_code, failed, summary
from tfdp.migrate.report.streams import coloured, printable

REFUSAL = Finding("TFDP010", 12, 5, "this dataset comes from a parameter", True, "build the dataset in this file")
EDIT = Finding("TFDP020", 30, 7, "scale the learning rate", False)


def lines(outcome: Outcome, verbose: bool = False) -> list[str]:
    return [click.unstyle(line) for line in text.lines(outcome, verbose)]


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], 0),
        ([Verdict.UNCHANGED], 0),
        ([Verdict.CHANGED, Verdict.UNCHANGED], 0),
        ([Verdict.WOULD_CHANGE, Verdict.UNCHANGED], 1),
        ([Verdict.CHANGED, Verdict.REFUSED], 1),
        ([Verdict.FAILED], 2),
        ([Verdict.FAILED, Verdict.REFUSED, Verdict.CHANGED], 2),
        ([Verdict.CHANGED, Verdict.REFUSED, Verdict.FAILED], 2),
    ],
)
def test_the_worst_file_wins(verdicts: list[Verdict], code: int) -> None:
    assert exit_code(verdicts) == code


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        ([Verdict.UNCHANGED, Verdict.REFUSED, Verdict.CHANGED], "1 file migrated, 1 refused, 1 unchanged"),
        ([Verdict.WOULD_CHANGE], "1 file would change"),
        ([Verdict.FAILED, Verdict.FAILED], "2 files failed"),
        ([Verdict.CHANGED, Verdict.REFUSED, Verdict.CHANGED], "2 files migrated, 1 refused"),
        ([Verdict.PARTIAL], "1 file migrated in part"),
        ([Verdict.ALREADY], "unchanged: migrated already"),
        (
            [Verdict.NO_TRAINING] * 3,
            "no training found in 3 files: name the script that is run, as `tfdp migrate train.py` does",
        ),
        ([Verdict.UNCHANGED], "1 file unchanged"),
        ([Verdict.NO_TRAINING, Verdict.ALREADY], "unchanged: 1 file migrated already, 1 without training"),
        ([Verdict.NO_TRAINING, Verdict.CHANGED], "1 file migrated, 1 without training"),
    ],
)
def test_summary(verdicts: list[Verdict], said: str) -> None:
    assert summary(verdicts) == said


def test_a_refusal_has_its_place_its_code_and_the_next_step() -> None:
    assert lines(Outcome("train.py", Verdict.REFUSED, (REFUSAL,))) == [
        "train.py:12:5: TFDP010 this dataset comes from a parameter",
        "    next step: build the dataset in this file",
        "train.py: not written: 1 place to settle first",
    ]


def test_changes_are_listed() -> None:
    said = "train.py:30:7: TFDP020 scale the learning rate"
    assert lines(Outcome("train.py", Verdict.CHANGED, (EDIT,))) == [said, "train.py: migrated"]
    assert lines(Outcome("train.py", Verdict.WOULD_CHANGE, (EDIT,))) == [said, "train.py: would be changed"]
    assert lines(Outcome("train.py", Verdict.CHANGED, written_to="out.py")) == ["train.py: migrated, written to out.py"]


def test_an_unchanged_file_is_passed_over_in_silence() -> None:
    assert lines(Outcome("train.py", Verdict.UNCHANGED)) == []
    assert lines(Outcome("train.py", Verdict.UNCHANGED), verbose=True) == ["train.py: unchanged"]
    assert lines(Outcome("train.py", Verdict.NO_TRAINING), verbose=True) == ["train.py: no training found"]


def test_a_failure_has_its_place_if_it_has_one() -> None:
    assert lines(failed("train.py", Failure("this is UTF-16", 2, 3))) == ["train.py:2:3: error: this is UTF-16"]
    assert lines(failed("train.py", Failure("No such file"))) == ["train.py: error: No such file"]
    assert lines(failed(".", Failure(". is a directory", named=True))) == ["tfdp: error: . is a directory"]


def test_the_traceback_of_an_internal_error_is_for_those_who_ask() -> None:
    outcome = failed("train.py", Failure("internal error", trace="Traceback\n  line\n"))
    assert lines(outcome) == ["train.py: error: internal error"]
    assert lines(outcome, verbose=True) == ["train.py: error: internal error", "Traceback\n  line"]


def test_a_name_or_a_message_cannot_steer_the_terminal() -> None:
    evil = Finding("TFDP001", 1, 1, "a\x1b[2Jb", False)
    said = "".join(lines(Outcome("x\x1b]0;y\n.py", Verdict.UNCHANGED, (evil,))))
    assert "\x1b" not in said
    assert "\n" not in said
    assert printable("é\udcff\t") == "é\\udcff\\t"


class Stream:
    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "environ", "expected"),
    [
        (True, {}, True),
        (False, {}, False),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (False, {"FORCE_COLOR": "1"}, True),
        (False, {"FORCE_COLOR": ""}, False),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"TERM": "dumb"}, False),
        (False, {"TERM": "dumb", "FORCE_COLOR": "1"}, True),
    ],
)
def test_colour_only_on_a_terminal_unless_the_environment_says_otherwise(
    terminal: bool, environ: dict[str, str], expected: bool
) -> None:
    assert coloured(Stream(terminal), environ) is expected  # type: ignore[arg-type]


def test_a_closed_stream_has_no_colour() -> None:
    assert coloured(None, {}) is False
