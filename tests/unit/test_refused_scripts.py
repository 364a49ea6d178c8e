"""Whole scripts that are refused, one for each reason: their first line has the mode, the code and the words.

fixtures/scripts/refused/<reason>.py begins with `# refused: CODE: words`, or `# refused in global mode: CODE: words`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

SCRIPTS = sorted((Path(__file__).parents[2] / "fixtures" / "scripts" / "refused").glob("*.py"))
_FIRST = re.compile(r"# refused( in global mode)?: (TFDP\d{3}): (.+)")


def expected(path: Path) -> tuple[str, str, str]:
    """Mode, code and words of the first line."""
    found = _FIRST.fullmatch(path.read_text().splitlines()[0])
    assert found, f"{path}: the first line does not say what is expected"
    return "global" if found[1] else "per-worker", found[2], found[3]


@pytest.mark.parametrize("path", SCRIPTS, ids=[p.stem for p in SCRIPTS])
def test_refused(path: Path) -> None:
    mode, code, words = expected(path)
    source = path.read_bytes()
    result = engine.migrate(path.name, source, Policy(batch=mode))
    assert result.refused
    assert result.after == source
    assert all(f.refusal and f.next_step for f in result.findings)
    first = result.findings[0]
    assert first.code == code
    assert words in first.message
    assert first.line > 1


def test_each_code_that_refuses_is_shown() -> None:
    assert {expected(path)[1] for path in SCRIPTS} >= {"TFDP002", "TFDP070", "TFDP075"}
