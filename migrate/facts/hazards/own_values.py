"""What each process makes for itself, of its clock, its number or chance that no seed decides, and trains by."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import BESIDE_TRAINING, COUNTED_STAGES
from ..data import Chain
from ..keras import Fit
from ..program import Origins, Problem, leading
from ..sameness import BY_PROCESS, Sameness, own_maker
from ..training import TrainingLoop

_DATA = "the training data depend on what each process makes for itself: the workers' shares would not fit together"
_STEPS = "how often this loop runs depends on what each process makes for itself: workers would take unequal steps"
_RATE = "the optimizer depends on what each process makes for itself: the workers' models would drift apart"
_LOSS = "this loss depends on what each process makes for itself: workers would train by different losses"
_NEXT = "draw it with a seed (random.Random(seed), np.random.default_rng(seed)), or take dp.broadcast_object(value)"


class OwnValues:
    """Finds them by the marks of what decides about the data, the number of steps and the update."""

    def __init__(self, origins: Origins, sameness: Sameness) -> None:
        self._origins, self._sameness = origins, sameness

    def problems(self, chains: Iterable[Chain], fits: Iterable[Fit], loops: Iterable[TrainingLoop]) -> list[Problem]:
        """chains: the training datasets; fits: the calls of Keras' fit."""
        of_loops = list(loops)
        data = dict.fromkeys([*self._of_chains(chains), *self._of_fits(fits), *self._of_loops(of_loops)])
        found = [self._problem("TFDP010", value, _DATA) for value in data if self._is_own(value)]
        headers = [h for h in self._headers(of_loops) if not BY_PROCESS.isdisjoint(self._sameness.length(h))]
        found += [self._problem("TFDP011", header, _STEPS) for header in headers]
        made = (c for c in self._origins.index.calls if self._origins.kind(c.func) is Kind.OPTIMIZER)
        given = (a.value for c in made for a in c.args)
        found += [self._problem("TFDP020", value, _RATE) for value in given if self._is_own(value)]
        if not found:  # else the losses are made of that
            targets = dict.fromkeys(loop.gradient.target for loop in of_loops if loop.gradient.target is not None)
            found = [self._problem("TFDP030", loss, _LOSS) for loss in targets if self._is_own(loss)]
        return found

    def _is_own(self, value: cst.BaseExpression) -> bool:
        made = [value]
        function = self._origins.function(value)
        if function is not None:  # `from_generator(records)`
            made += self._origins.index.given_back(function)
        return any(not BY_PROCESS.isdisjoint(self._sameness.of(each)) for each in made)

    def _problem(self, code: str, value: cst.BaseExpression, reason: str) -> Problem:
        index = self._origins.index
        return Problem.since(index, code, value, reason, own_maker(self._origins, value), _NEXT)

    def _of_chains(self, chains: Iterable[Chain]) -> Iterator[cst.BaseExpression]:
        for link in (link for chain in chains for link in chain.links):
            if link.stage is None or link.stage in COUNTED_STAGES:
                yield from (a.value for a in link.call.args if a.keyword is None or a.keyword.value != "seed")

    def _of_fits(self, fits: Iterable[Fit]) -> Iterator[cst.BaseExpression]:
        for fit in fits:
            yield from (a.value for a in fit.call.args if a.keyword is None or a.keyword.value not in BESIDE_TRAINING)

    def _of_loops(self, loops: Iterable[TrainingLoop]) -> Iterator[cst.BaseExpression]:
        for loop in loops:
            yield from loop.arrays
            yield from (take.node for take in loop.takes)

    def _headers(self, loops: Iterable[TrainingLoop]) -> list[cst.BaseExpression]:
        """What the loops around a training step go over, each once."""
        places = leading(self._origins, [call for loop in loops for call in loop.calls])
        around = dict.fromkeys(each for place in places for each in self._origins.index.loops_around(place))
        return [each.iter for each in around if isinstance(each, cst.For)]
