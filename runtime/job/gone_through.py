"""Generators that rank 0 alone is given: it goes through them, and all others as far as it has."""

import collections
import itertools
import types
from collections.abc import Iterable, Iterator
from typing import Any

_ONCE = (types.GeneratorType, map, filter, zip, enumerate)  # what is gone through once, and may compute at each turn


class GoneThrough:
    """The generators among the arguments of a call, in their order."""

    def __init__(self, arguments: Iterable[Any]) -> None:
        self._generators = [each for each in arguments if isinstance(each, _ONCE)]
        self.turns = [0] * len(self._generators)  # at the end one more

    def watched(self, argument: Any) -> Any:
        """The argument; of a generator one that gives the same, and counts."""
        if not isinstance(argument, _ONCE):
            return argument
        return self._counting(argument, next(n for n, each in enumerate(self._generators) if each is argument))

    def _counting(self, generator: Iterator[Any], number: int) -> Iterator[Any]:
        while True:
            self.turns[number] += 1
            try:
                found = next(generator)
            except StopIteration:
                return
            yield found

    def follow(self, turns: Iterable[int]) -> None:
        """Goes as far as another rank has gone."""
        for generator, count in zip(self._generators, turns, strict=True):
            collections.deque(itertools.islice(generator, count), maxlen=0)
