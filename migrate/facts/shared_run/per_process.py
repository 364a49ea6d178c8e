"""What each process makes for itself: clocks, process numbers, the system's chance; all else is the same on all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..agreement import Agreement
from ..apis import BESIDE_TRAINING, OF_ITEMS
from ..data import seed_place
from ..outputs import Written
from ..program import Problem, argument, leading
from ..sameness import Mark, Sameness, Seedings, own_maker
from ..training_file import TrainingFile
from .trains import TrainingCalls

_CODE = "TFDP080"
_DATA = "this goes into training, and depends on what each process makes for itself: workers would compute other things"
_STEPS = "how often this loop runs depends on what each process makes for itself: workers would take unequal steps"
_DECIDES = (
    "this decides what training does, by what each process has for itself, and not all workers certainly come here"
)
_SEEDS = "each process makes this seed for itself, and not all workers certainly come here together"
_NEXT = "draw it with a seed (random.Random(seed), np.random.default_rng(seed)), or take dp.agree(value)"
_ASK = "decide where all workers come together, by dp.agree(…), or by something else than a clock"
_SEED = "seed with a number, or make the seed where the script starts"


class PerProcess:
    """Finds where such values reach training: what rank 0 can say for all, and what is a problem."""

    def __init__(
        self, script: TrainingFile, training: TrainingCalls, agreement: Agreement, same: Sameness, written: Written
    ) -> None:
        """`same` answers before anything is made equal."""
        self._script, self._origins, self._index = script, script.origins, script.index
        self._training, self._agreement, self._first, self._written = training, agreement, same, written

    # --- what rank 0 says for all -------------------------------------------------------------------------------------

    @cached_property
    def seeds(self) -> tuple[cst.BaseExpression, ...]:
        """Seeds that each process makes for itself, where rank 0's can be given to all."""
        return tuple(s for s in self._own_seeds if self._agreement.may_agree(s))

    @cached_property
    def tests(self) -> tuple[cst.BaseExpression, ...]:
        """Tests whose answer has to be rank 0's: clocks, and which files there are."""
        return self._agreement.agreed(self._written.effects, self._written.waiting_reads)

    @cached_property
    def _own_seeds(self) -> tuple[cst.BaseExpression, ...]:
        seedings = Seedings(self._origins, self._first, self._agreement.certain).all()
        given = [s.seed for s in seedings if s.own and s.seed is not None]
        given += [a.value for c, _ in self._script.seeds if (a := argument(c, "seed", 0)) is not None]
        for call in self._index.methods("shuffle"):
            place = seed_place(call)
            found = argument(call, *place) if place is not None else None
            given += [found.value] if found is not None else []
        return tuple(seed for seed in dict.fromkeys(given) if Mark.PROCESS in self._first.of(seed))

    # --- problems -----------------------------------------------------------------------------------------------------

    def problems(self) -> Iterator[Problem]:
        """What goes into training and cannot be rank 0's by itself."""
        yield from (self._problem(seed, _SEEDS, _SEED) for seed in self._own_seeds if seed not in self.seeds)
        yield from (
            self._problem(value, _DATA, _NEXT) for value in dict.fromkeys(self._inputs()) if self._is_own(value)
        )
        yield from (self._problem(h, _STEPS, _NEXT) for h in self._headers() if Mark.PROCESS in self._same.length(h))
        yield from (self._problem(test, _DECIDES, _ASK) for test in self._undecided())

    @cached_property
    def _same(self) -> Sameness:
        return self._agreement.sameness.after(self._own_seeds)

    def _is_own(self, value: cst.BaseExpression) -> bool:
        """Whether a value, or what an object of the file gives item by item, is each process's own."""
        owners = [self._origins.constructed(o.node) for o in self._origins.of(value)]
        if not owners or None in owners:
            return Mark.PROCESS in self._same.of(value)
        methods = (self._origins.method(c, name) for c in owners if c is not None for name in sorted(OF_ITEMS))
        given = [g for m in methods if m is not None for g in self._index.given_back(m)]
        return Mark.PROCESS in self._same.all(given)

    def _problem(self, value: cst.CSTNode, reason: str, next_step: str) -> Problem:
        return Problem.since(self._index, _CODE, value, reason, own_maker(self._origins, value), next_step)

    def _inputs(self) -> Iterator[cst.BaseExpression]:
        """What losses are computed from, what Keras is given, and how optimizers are made."""
        for gradient in self._script.gradients:
            yield from gradient.made_of
        for fit in self._script.fitted.by_keras:
            yield from (a.value for a in fit.call.args if a.keyword is None or a.keyword.value not in BESIDE_TRAINING)
        made = (c for c in self._index.calls if self._origins.kind(c.func) is Kind.OPTIMIZER)
        yield from (a.value for c in made for a in c.args)

    def _headers(self) -> list[cst.BaseExpression]:
        """What the loops around training go over, each once."""
        places = leading(self._origins, self._training.steps)
        around = dict.fromkeys(each for place in places for each in self._index.loops_around(place))
        return [each.iter for each in around if isinstance(each, cst.For)]

    def _undecided(self) -> list[cst.BaseExpression]:
        tests = self._agreement.deciding(self._written.effects, self._written.waiting_reads)
        return [t for t in tests if t not in self.tests and Mark.PROCESS in self._same.of(t)]
