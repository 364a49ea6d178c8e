"""Questions that may come back to themselves while they are asked: of functions that call themselves, of values made of
one another, of classes that a file defines again."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, TypeVar, cast

H = TypeVar("H")
P = ParamSpec("P")
R = TypeVar("R")
_ROUNDS = 6  # an answer that hangs on itself settles after two or three
_Question = Callable[Concatenate[H, P], R]


def within_itself(answer: object) -> Callable[[_Question[H, P, R]], _Question[H, P, R]]:
    """Decorates a question to a holder of facts: what it answers where it is asked again before it has answered.

    That is what adds nothing to the answer, or "not known". All arguments are hashable.
    """

    def decorate(question: _Question[H, P, R]) -> _Question[H, P, R]:
        opened: set[Hashable] = set()

        @wraps(question)
        def ask(holder: H, /, *args: P.args, **kwargs: P.kwargs) -> R:
            key = (id(holder), args, frozenset(kwargs.items()))
            if key in opened:
                return cast("R", answer)
            opened.add(key)
            try:
                return question(holder, *args, **kwargs)
            finally:
                opened.discard(key)

        return ask

    return decorate


def closure(roots: Iterable[H], further: Callable[[H], Iterable[H]], most: float = math.inf) -> dict[H, None]:
    """Everything that the roots lead to, they included, each once, in the order found.

    With more than `most` things found, what these lead to is left out.
    """
    found = dict.fromkeys(roots)
    todo = list(found)
    while todo and len(found) <= most:
        new = [each for each in dict.fromkeys(further(todo.pop())) if each not in found]
        found.update(dict.fromkeys(new))
        todo += new
    return found


class Answers(ABC, Generic[H, R]):
    """Answers to questions that may come back to themselves; each is kept, unless it hangs on a question still open.

    Where a question comes back to itself, its answer there is `nothing`, which adds nothing to any answer. With
    `settles` it is asked again, with the answer found in place of `nothing`, until that agrees with itself.
    """

    nothing: R
    unknown: R
    settles = False
    most = 4000  # questions for one answer; real scripts stay below a few hundred
    depth = 60  # questions open at once

    def __init__(self) -> None:
        self._answers: dict[H, R] = {}
        self._open: dict[H, R] = {}  # what is taken for the answer meanwhile
        self._used: set[H | None] = set()  # of the open ones those that the present answer hangs on; None: a limit
        self._asked = 0

    @abstractmethod
    def join(self, values: Iterable[R]) -> R:
        """What several possible values are together."""

    @abstractmethod
    def answer(self, question: H) -> R:
        """Answers one question, by others."""

    def ask(self, question: H) -> R:
        """The answer to one question; `unknown` where there are too many on the way to it."""
        if question in self._answers:
            return self._answers[question]
        if question in self._open:
            self._used.add(question)
            return self._open[question]
        self._asked = self._asked + 1 if self._open else 1
        if self._asked > self.most or len(self._open) > self.depth:
            self._used.add(None)
            return self.unknown
        outer = self._used
        self._used = set()
        try:
            found = self._settled(question)
        finally:
            self._open.pop(question, None)
            self._used.discard(question)
            alone = not self._used or not self._open
            self._used.update(outer)
        if alone:
            self._answers[question] = found
        return found

    def is_open(self, question: H) -> bool:
        """Whether a question is being asked; the present answer hangs on that."""
        if question not in self._open:
            return False
        self._used.add(question)
        return True

    def _settled(self, question: H) -> R:
        self._open[question] = self.nothing
        for _ in range(_ROUNDS):
            found = self.answer(question)
            if not self.settles:
                return found
            found = self.join((self._open[question], found))
            if question not in self._used or found == self._open[question]:
                return found
            self._open[question] = found
        return self.unknown

    def forget(self) -> None:
        """Start again, after what the answers rest on has changed."""
        self._answers.clear()
