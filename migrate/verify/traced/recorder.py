"""Where one step ends and the next begins, told from the outside by the tapes entered and the variables changed.

Closing a step by looking at the variables, instead of watching an optimizer, sees every kind of update: Keras
optimizers, hand-written ones, `assign_sub` on a concrete variable class.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

import numpy as np

from ..record import Array, Arrays, Call, Lock, Step, Trace


class Variables(Protocol):
    """The variables of the running script, by key."""

    def read(self) -> dict[str, Array]:
        """The present value of every living floating-point variable."""

    def initial(self) -> Arrays:
        """The values with which variables were created, where they were known then."""


@dataclass
class _Open:
    before: dict[str, Array]
    calls: list[Call] = field(default_factory=list)

    def changed(self, now: Arrays) -> bool:
        trained = {key for call in self.calls for key in call.sources}
        known = [key for key in trained if key in self.before and key in now]
        return any(not np.array_equal(self.before[key], now[key], equal_nan=True) for key in known)


def _nothing(*_: int) -> None:
    pass


class Recorder:
    """Writes a `Trace` and, given the reference's, puts each step of this process on the reference's state first.

    Step 0 is not overwritten: a wrong start must be seen. Only trained variables and slots are: a learning rate taken
    over from the reference would hide a missing scale. entered: told the step of every outermost tape; taken: told that
    a gradient is taken. free: nothing is overwritten. enough: asked after each update, with their number, whether to
    stop at it.
    """

    def __init__(
        self,
        variables: Variables,
        trace: Trace,
        steps: int,
        stop: Callable[[str], NoReturn],
        reference: Trace | None = None,
    ) -> None:
        self._variables = variables
        self._trace = trace
        self._steps = steps
        self._stop = stop
        self._reference = reference
        self._lock: Lock | None = reference.lock() if reference else None
        self._open: _Open | None = None
        self._start: dict[str, Array] = {}
        self.index = 0
        self.free = False
        self.enough: Callable[[int], bool] = lambda done: done == self._steps
        self.entered: Callable[[int], None] = _nothing
        self.taken: Callable[[], None] = _nothing

    def start(self) -> Arrays:
        """The first known value of every variable, from before it was first updated."""
        return {**self._start, **self._variables.initial()}

    @property
    def locked(self) -> tuple[str, ...]:
        """The keys of the variables that are put on the reference's state."""
        return (*self._lock.trained, *self._lock.slots) if self._lock and not self.free else ()

    def moment(self) -> tuple[int, int]:
        """The present step, and how many gradients have been taken in it."""
        return self.index, len(self._open.calls) if self._open else 0

    def enter(self, assignable: Container[str] | None = None) -> Arrays:
        """An outermost tape is entered. Returns the values to assign before anything else is done.

        assignable: keys of the variables that can be, None for all. A graph knows those that were there when it was
        traced: not the slots of another model's optimizer, first used later.
        """
        now = self._variables.read()
        if self._open is not None and self._open.calls:
            if not self._open.changed(now):
                self.entered(self.index)
                return {}
            self._close(now)
            if self.enough(self.index):
                self._stop("complete")
        self.entered(self.index)
        state = {key: value for key, value in self._state(now).items() if assignable is None or key in assignable}
        self._open = _Open({**now, **state})
        self._start = {**now, **self._start}
        return state

    def call(self, call: Call) -> None:
        """An outermost `gradient()` has its result, and no variable has been changed with it yet."""
        self.taken()
        if self._open is None:
            self._open = _Open({})
        # Models and slots that are built on first use appear only after the tape was entered. Once one gradient of the
        # step has been taken, an optimizer may have changed its slots already.
        known = {**self._variables.read(), **(self._variables.initial() if self._open.calls else {})}
        self._open.before = {**known, **self._open.before}
        self._start = {**self._open.before, **self._start}
        self._open.calls.append(call)
        if self._lock and self.index < len(self._lock.calls) and len(self._open.calls) > self._lock.calls[self.index]:
            self._write(self._open.before, closed=False)
            self._stop("diverged")

    def averaged(self, given: Arrays, found: Arrays, shares: int) -> None:
        """An optimizer has averaged the gradients `given`, by key, and goes on with `found`.

        Calls whose results went to it as they were are those that it averaged. What was done to a gradient in between
        makes it another one, which the update tells about. shares: how many times the mean `found` is.
        """
        for number, call in enumerate(self._open.calls if self._open else ()):
            mine = {k: found[k] for k, g in call.gradients.items() if k in given and _equal(g, given[k])}
            if mine and self._open is not None and not call.combined:
                combined = "mean" if shares == 1 else "sum"
                gradients = {**call.gradients, **mine}
                self._open.calls[number] = replace(
                    call, gradients=gradients, combined=combined, loss=call.loss * shares
                )

    def finish(self) -> None:
        """The script is at its end, or fails: close or keep what is open."""
        if self._open is None or not self._open.calls:
            return
        now = self._variables.read()
        if self._open.changed(now):
            self._close(now)
        else:
            self._write(now, closed=False)
        self._open = None

    def _close(self, now: Arrays) -> None:
        self._write(now, closed=True)
        self._open = None
        self.index += 1

    def _write(self, after: Arrays, *, closed: bool) -> None:
        assert self._open is not None
        # Slots made by the update itself.
        late = {key: value for key, value in self._variables.initial().items() if key in after}
        before = {**late, **self._open.before}
        self._trace.write_step(self.index, Step(before, tuple(self._open.calls), after, closed))

    def _state(self, now: Arrays) -> dict[str, Array]:
        """The reference's state before this step, for the variables that exist."""
        step = self._reference.step(self.index) if self._reference and self.index else None
        return {key: step.before[key] for key in self.locked if key in step.before and key in now} if step else {}


def _equal(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=True)
