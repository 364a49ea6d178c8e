"""Scripts that nobody wrote: what is wrong on sharded input does not go there, and no script crashes the tool.

`TFDP_GENERATED=N` tries N scripts of each kind, others at each run; without it a few, always the same.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from judge import judged, written
from kinds import KINDS

MANY = int(os.environ.get("TFDP_GENERATED", "0"))


def _settings(examples: int) -> settings:
    return settings(
        max_examples=MANY or examples,
        derandomize=not MANY,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_on_sharded_input_is_not_sharded_there(kind: str) -> None:
    @_settings(5)
    @given(st.data())
    def script(data: st.DataObject) -> None:
        case = written(lambda options: data.draw(st.sampled_from(options)), kind)
        what = judged(case).what
        assert what in {"calls", "refused"}, f"{what} without a word:\n{case.text}"

    script()


def test_what_is_exact_does_not_crash_the_tool_and_is_mostly_migrated() -> None:
    """Refusing what is exact is allowed, and counted: `--hypothesis-show-statistics` prints the share."""
    counted: Counter[str] = Counter()

    @_settings(40)
    @given(st.data())
    def script(data: st.DataObject) -> None:
        case = written(lambda options: data.draw(st.sampled_from(options)), None)
        what = judged(case).what
        event(what)
        counted[what] += 1
        assert what != "untouched", f"not taken for a training script:\n{case.text}"

    script()
    assert counted["refused"] < 0.1 * counted.total(), counted
