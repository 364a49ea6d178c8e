"""Questions that may come back to themselves while they are asked: of functions that call themselves, of values made of
one another, of classes that a file defines again."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

H = TypeVar("H")
P = ParamSpec("P")
R = TypeVar("R")
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
