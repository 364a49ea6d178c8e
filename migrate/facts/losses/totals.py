"""Sums and means over the batch of which a loss is a function: taken over the global batch, they make it exact.

With each of them the same on all ranks, the mean of the ranks' losses is the loss of the global batch, and the average
of their gradients is its gradient: the derivative of a collective sum is the sum of the derivatives.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from . import batch_values as batch
from .batch_values import Reduction, Value

Shared = dict[cst.BaseExpression, Reduction]

_OPEN = frozenset({Reduction.UNKNOWN, Reduction.MIXED})
_MOST = 12  # sums in one loss; real ones have two to four
_ROUNDS = 3


class Totals:
    """Which expressions of a file are totals of the batch, and which of them are taken over all ranks."""

    def __init__(self) -> None:
        self.seen: Shared = {}
        self.shared: Shared = {}
        self._settling = False

    def value(self, node: cst.BaseExpression, found: Value) -> Value:
        """What a sum or mean of something gives, where it is what is `found` over the local batch."""
        if found.reduction not in batch.NUMBERS or found.guessed:
            return found
        self.seen[node] = found.reduction
        if node not in self.shared:
            return found
        return batch.WHOLE_SUM if found.reduction is Reduction.SUM else batch.WHOLE_MEAN

    def settled(self, evaluate: Callable[[], Value], forget: Callable[[], None]) -> Value:
        """The value of a loss, with as few totals as needed taken over all ranks where it is no mean otherwise.

        `forget` is called before an evaluation for which other totals are shared.
        """
        found = evaluate()
        if found.reduction not in _OPEN or self._settling:
            return found

        def tried(shared: Shared) -> Value:
            self.shared = shared
            forget()
            return evaluate()

        self._settling = True
        try:
            return self._tried(tried)
        finally:
            self._settling = False

    def _tried(self, tried: Callable[[Shared], Value]) -> Value:
        kept, others, self.seen = self.shared, self.seen, {}
        best = self._enough(tried, kept)
        if best is not kept:
            for node in [n for n in best if n not in kept]:
                fewer = {n: r for n, r in best.items() if n is not node}
                best = fewer if tried(fewer).reduction is Reduction.MEAN else best
        self.seen = {**others, **self.seen}
        return tried(best)

    def _enough(self, tried: Callable[[Shared], Value], kept: Shared) -> Shared:
        """With `kept` the totals that, taken over all ranks, make the loss a mean; only `kept` where none do."""
        tried(kept)
        for _ in range(_ROUNDS):  # what a shared mean is taken from may be summed up again
            every = {**kept, **self.seen}
            means = {n: r for n, r in every.items() if n in kept or r is Reduction.MEAN}  # sums by counts are means
            for shared in (every, means):
                if len(kept) < len(shared) <= len(kept) + _MOST and tried(shared).reduction is Reduction.MEAN:
                    return shared
        return kept
