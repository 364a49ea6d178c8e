"""Questions that come back to themselves: kept, limited, and asked until the answer agrees with itself."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tfdp.migrate.facts.program import Answers

_LEADS_TO = {"leaf": (), "loop": ("loop", "leaf"), "one": ("other",), "other": ("one", "leaf")}


class _Reached(Answers[str, frozenset[str]]):
    """What a question leads to; of a loop, as often as it is gone through."""

    nothing: frozenset[str] = frozenset()
    unknown = frozenset({"unknown"})

    def __init__(self, *, settles: bool, grows: bool = False) -> None:
        super().__init__()
        self.settles, self._grows = settles, grows

    def join(self, values: Iterable[frozenset[str]]) -> frozenset[str]:
        return frozenset().union(*values)

    def answer(self, question: str) -> frozenset[str]:
        found = self.join(self.ask(each) for each in _LEADS_TO[question])
        return frozenset({question, *(f"{each}'" for each in found)} if self._grows else {question, *found})


@pytest.mark.parametrize("settles", [False, True])
def test_a_question_that_comes_back_to_itself_adds_nothing_there(settles: bool) -> None:
    answers = _Reached(settles=settles)
    assert answers.ask("loop") == {"loop", "leaf"}
    assert answers.ask("one") == answers.ask("other") == {"one", "other", "leaf"}


def test_what_never_agrees_with_itself_is_unknown() -> None:
    assert _Reached(settles=True, grows=True).ask("loop") == {"unknown"}
    assert _Reached(settles=False, grows=True).ask("loop") == {"loop", "leaf'"}


def test_an_answer_that_a_limit_cut_short_is_not_kept() -> None:
    answers = _Reached(settles=False)
    answers.depth = 0
    assert answers.ask("loop") == {"loop", "unknown"}
    answers.depth = 60
    assert answers.ask("leaf") == {"leaf"}
