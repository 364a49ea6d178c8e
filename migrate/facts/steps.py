"""All that counts a script's optimizer steps, and is divided where each step covers more examples."""

from __future__ import annotations

from functools import cached_property

import libcst as cst

from .counting import (
    OwnSchedule,
    PerStep,
    Schedules,
    StepBound,
    StepBounds,
    StepCount,
    StepCounts,
    StepMeans,
    Uncounted,
    steps_of,
)
from .program import Problem
from .training_file import TrainingFile


class Steps:
    """The facts of a script's steps; none of them where it shards its data already.

    Everything is computed on first use and never changes.
    """

    def __init__(self, file: TrainingFile) -> None:
        self._file, self._origins, self._datasets = file, file.origins, file.datasets

    @cached_property
    def _numbers(self) -> StepCounts:
        file = self._file
        return StepCounts(self._origins, self._datasets, file.shard_points, file.fitted.data, bool(file.loops))

    # --- where training ends ------------------------------------------------------------------------------------------

    @cached_property
    def _takes(self) -> tuple[StepCount | Problem, ...]:
        return () if self._file.migrated else self._numbers.of_takes(self._file.chains)

    @property
    def takes(self) -> tuple[cst.Call, ...]:
        """`.take(k)` calls of training chains that count batches, hence optimizer steps, and have to be divided."""
        return tuple(f.call for f in self._takes if isinstance(f, StepCount))

    @cached_property
    def _ends(self) -> tuple[StepBound | Problem, ...]:
        return () if self._file.migrated else StepBounds(self._origins, self._datasets, self._file.loops).find()

    @cached_property
    def _agreed(self) -> frozenset[cst.CSTNode]:
        """Where training ends on all workers at once."""
        return frozenset(e for loop in self._file.loops for e in self._file.agreement.equal_ends(loop))

    @property
    def _bounds(self) -> tuple[StepBound | Problem, ...]:
        return tuple(f for f in self._ends if type(f) is not Problem or f.node not in self._agreed)

    @property
    def other_ends(self) -> tuple[Problem, ...]:
        """Where training ends on all workers at once, by no number of steps that is known: it may be one."""
        return tuple(f for f in self._ends if type(f) is Problem and f.node in self._agreed)

    @cached_property
    def bounds(self) -> tuple[StepBound, ...]:
        """Numbers of steps in the headers and exits of training loops that have to be divided."""
        return tuple(b for b in self._bounds if isinstance(b, StepBound) and self._numbers.to_divide(b))

    @cached_property
    def _fits(self) -> tuple[StepCount | Problem, ...]:
        file = self._file
        calls = () if file.migrated else file.fitted.data
        found = [steps_of(f, self._numbers) for f in calls]
        return tuple(f for f in found if f is not None)

    @property
    def of_fits(self) -> tuple[StepCount, ...]:
        """Numbers of steps in an epoch of Keras' fit that have to be divided."""
        return tuple(f for f in self._fits if isinstance(f, StepCount))

    @cached_property
    def of_means(self) -> tuple[cst.Name, ...]:
        """Numbers of steps by which sums over a worker's own steps are divided."""
        if self._file.migrated:
            return ()
        takes = [f.value for f in self._takes if isinstance(f, StepCount)]
        means = StepMeans(self._origins, self._numbers, [*takes, *(b.node for b in self.bounds)])
        return means.of(self._file.loops)

    # --- what changes from step to step -------------------------------------------------------------------------------

    @cached_property
    def _changes(self) -> tuple[StepCount | OwnSchedule | PerStep | Problem, ...]:
        if self._file.migrated:
            return ()
        rates = self._file.rates
        decays = [found for rate in rates if (found := self._numbers.decay(rate)) is not None]
        return (*Schedules(self._origins, self._numbers).of(s for r in rates for s in r.schedules), *decays)

    @property
    def of_schedules(self) -> tuple[StepCount, ...]:
        """Arguments of learning-rate schedules that count steps, and have to be divided."""
        return tuple(f for f in self._changes if isinstance(f, StepCount))

    @property
    def own_schedules(self) -> tuple[OwnSchedule, ...]:
        """Learning-rate schedules of the file's own classes, which have to see the one-process script's steps."""
        return tuple(f for f in self._changes if isinstance(f, OwnSchedule))

    @property
    def decays(self) -> tuple[PerStep, ...]:
        """Arguments by which a learning rate falls at each step."""
        return tuple(f for f in self._changes if isinstance(f, PerStep))

    # --- what is not understood ---------------------------------------------------------------------------------------

    def problems(self, batch: str) -> list[Problem]:
        """What cannot be divided; where steps stay what they are, only numbers that count records."""
        ends = [p for p in self._bounds if type(p) is Problem]
        bounds = [b for b in self._bounds if isinstance(b, StepBound)]
        unknown = [p for b in bounds if (p := self._numbers.uncertain(b)) is not None]
        uncounted = (p for p in self._bounds if isinstance(p, Uncounted))
        counted = (*self._takes, *self._changes, *uncounted, *unknown, *self._fits)
        found = [f for f in counted if isinstance(f, Problem)]
        return [*ends, *(p for p in found if batch == "per-worker" or self._numbers.counts_records(p.node))]
