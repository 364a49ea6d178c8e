"""Previews for CI: Markdown that shows what it says, and annotations that GitHub reads as they are meant."""

import pytest

from tfdp.migrate.engine import Finding
from tfdp.migrate.report import diff, github, markdown
from tfdp.migrate.report.outcome import Failure, Outcome, Verdict, failed
from tfdp.rules import RULES

CHANGE = Finding("TFDP010", 3, 11, "shard the records over the workers", False)
REFUSAL = Finding("TFDP090", 7, 5, "this loss is a | sum, 100% of it", True, "use `tf.reduce_mean`\nhere")


def change(path: str = "train.py", before: bytes = b"a\n", after: bytes = b"b\n") -> Outcome:
    return Outcome(path, Verdict.WOULD_CHANGE, (CHANGE,), diff=diff.unified(path, before, after))


def test_markdown_names_each_change_with_its_reason_then_the_diff() -> None:
    lines = markdown.render(change()).decode().splitlines()
    assert lines[0] == "### `train.py`: would change"
    row = next(line for line in lines if "TFDP010" in line)
    assert row.startswith("| 3 | TFDP010 | shard the records over the workers | Without it every worker trains on")
    assert lines[-7:-1] == ["--- a/train.py", "+++ b/train.py", "@@ -1 +1 @@", "-a", "+b", "```"]
    assert lines.count("```diff") == 1


def test_markdown_of_refusals_keeps_the_table_whole() -> None:
    text = markdown.render(Outcome("train.py", Verdict.REFUSED, (REFUSAL,))).decode()
    row = next(line for line in text.splitlines() if "TFDP090" in line)
    assert row == r"| 7 | TFDP090 | this loss is a \| sum, 100% of it | use \`tf.reduce\_mean\`\nhere |".replace(
        r"\nhere", r"\\nhere"
    )


def test_a_fence_is_longer_than_any_in_the_diff() -> None:
    text = markdown.render(change(after=b"'''\n```python\n````\n'''\n")).decode()
    assert "`````diff\n" in text
    assert text.rstrip().endswith("`````")


@pytest.mark.parametrize("render", [markdown.render, github.render])
def test_nothing_for_an_unchanged_file(render) -> None:
    assert render(Outcome("train.py", Verdict.UNCHANGED)) == b""


def test_github_annotates_each_place_and_groups_the_diff() -> None:
    lines = github.render(change()).decode().splitlines()
    assert lines[0].startswith(
        "::warning file=train.py,line=3,col=11,title=TFDP010::shard the records over the workers%0A"
    )
    assert lines[1] == "::group::train.py: would change"
    assert lines[-1] == "::endgroup::"
    assert not any(line.startswith("::") for line in lines[2:-1])


def test_github_escapes_what_would_end_a_property_or_a_line() -> None:
    outcome = Outcome("a,b:c%.py", Verdict.REFUSED, (REFUSAL,))
    (line,) = github.render(outcome).decode().splitlines()
    assert line == (
        "::error file=a%2Cb%3Ac%25.py,line=7,col=5,title=TFDP090::this loss is a | sum, 100%25 of it%0A"
        "next step: use `tf.reduce_mean`%0Ahere"
    )


def test_github_reports_a_file_that_could_not_be_read() -> None:
    (line,) = github.render(failed("train.py", Failure("this is not valid Python", 3, 5))).decode().splitlines()
    assert line == "::error file=train.py,line=3,col=5,title=tfdp::this is not valid Python"


def test_bytes_that_are_no_utf8_do_not_break_a_preview() -> None:
    assert b"```diff" in markdown.render(change(before=b"\xff\n"))
    assert b"::group::" in github.render(change(before=b"\xff\n"))


def test_every_rule_says_why() -> None:
    from tfdp.migrate.report.documentation import reasons

    assert set(reasons()) == {rule.code for rule in RULES}
    assert all(reason.endswith((".", "?")) for reason in reasons().values())
