"""What a script writes and shows, by one answer to which places all ranks come to alike."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ..counting import shown
from ..keras import Fit
from ..program import Origins
from ..training import TrainingLoop
from .effects import Certain, Effect, Effects


@dataclass(frozen=True)
class Trains:
    """Where a script trains.

    `loops` are its training loops, as far as they are understood; `fits` the calls of Keras' fit, `by_keras` these and
    those of `train_on_batch`; `steps` more calls that train, or that every rank has to make. Without `at_all` it is not
    asked what the script writes.
    """

    loops: tuple[TrainingLoop, ...]
    fits: tuple[Fit, ...]
    by_keras: tuple[Fit, ...]
    steps: tuple[cst.CSTNode, ...] = ()
    at_all: bool = True


class Written:
    """Everything is computed on first use and never changes."""

    def __init__(
        self,
        origins: Origins,
        trains: Trains,
        *,
        certain: Certain,
        together: Callable[[], Collection[cst.CSTNode]],
        kept: Callable[[Effect], bool] | None = None,
        reads: Callable[[cst.CSTNode], bool] = lambda _: True,
    ) -> None:
        """`certain` tells whether all ranks reach a node alike, `together` which nodes become collective calls;
        `kept` and `reads` which effects, and statements that read, are not left to the runtime; all by default."""
        self._origins, self._trains, self._certain, self._together = origins, trains, certain, together
        self._kept, self._reads = kept, reads

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What is written and shown, outside any guard."""
        return self._effects.all(self._certain, self._kept) if self._trains.at_all else ()

    @property
    def shown(self) -> tuple[tuple[cst.Call, int], ...]:
        """Calls of a Keras model that show their progress on every rank, with the position of `verbose`."""
        calls = shown(self._origins, self._trains.by_keras)
        index, guards = self._origins.index, {e.guard for e in self.effects if e.guard is not None and not e.shared}
        return tuple(
            (c, p)
            for c, p in calls
            if not self._effects.on_root(c) and not any(above in guards for above in index.ancestors(c))
        )

    @cached_property
    def waiting_reads(self) -> tuple[cst.CSTNode, ...]:
        """Statements that read files which rank 0 may still be writing."""
        return tuple(s for s in self._effects.waiting(self.effects, self._certain) if self._reads(s))

    @cached_property
    def last_reads(self) -> tuple[cst.CSTNode, ...]:
        """Statements in which rank 0 deletes files that other workers may still be reading."""
        return self._effects.last_reads(self.effects, self._certain)

    def may_follow(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `second` can run after `first`."""
        return self._effects.may_follow(first, second)

    @cached_property
    def _effects(self) -> Effects:
        trains = self._trains
        return Effects(self._origins, trains.loops, frozenset(self._together()), trains.fits, trains.steps)
