"""Passes over the data, as a script's loops and Keras' `fit` make them."""

from __future__ import annotations

import dis
import math
import sys
import threading
import time
from collections.abc import Callable, Sized
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from ..record import BYTES, FEWEST, SECONDS, Pass, Passes
from . import iterators
from .frames import KERAS, frames, inside


class WatchedPasses:
    """Wraps Keras' list of callbacks, and iterators of datasets outside of graphs."""

    def __init__(self, moment: Callable[[], tuple[int, int]]) -> None:
        """moment: the step, and how many gradients have been taken in it."""
        self.found = Passes()
        self._moment = moment
        self._epoch: Pass | None = None
        self._in_life: int | None = None  # batches in an epoch of a `fit` that gets fewer
        self._batches: WeakKeyDictionary[Any, float | None] = WeakKeyDictionary()
        self._loops: WeakKeyDictionary[Any, Pass] = WeakKeyDictionary()
        self._given: list[Pass] = []  # of each batch since a gradient was taken last

    def install(self) -> None:
        """For the rest of the process."""
        callbacks = tf.keras.callbacks.CallbackList
        told = {
            "on_epoch_begin": self._begin_epoch,
            "on_train_batch_end": self._end_batch,
            "on_epoch_end": self._end_epoch,
            "on_train_end": self._end_fit,
        }
        for name, tell in told.items():
            setattr(callbacks, name, _telling(getattr(callbacks, name), tell))
        iterators.wrap(self._following)
        begin = tf.data.Dataset.__iter__

        def __iter__(this: Any) -> Any:  # noqa: N807
            made = begin(this)
            if tf.executing_eagerly():
                self._batches[made] = _batches(this)
            return made

        tf.data.Dataset.__iter__ = tf.autograph.experimental.do_not_convert(__iter__)

    def taken(self) -> None:
        """A gradient is taken: what gave a batch last is trained on, and what gave one of several that go together."""
        for one in self._given:
            together = one is self._given[-1] or self._given.count(one) == 1
            one.trains = one.trains or (together and not one.over)
        self._given = []

    def _made(self) -> int:
        """How many updates there have been, with one whose gradient has been taken."""
        step, gradients = self._moment()
        return step + bool(gradients)

    def shorten(self, given: dict[str, Any]) -> None:
        """Give the epochs of `fit`, which is called with these arguments by name, fewer batches where they are long."""
        batches = _batches_of(given)
        short = self.found.epoch(batches)
        self._in_life = None if short is None else batches
        if short is not None:
            given["steps_per_epoch"] = short

    def watch_sharded_batches(self) -> None:
        """Loops over batches that the runtime shards end as those of the reference do."""
        # Not at the top: all instruments are in place before anything of the runtime is imported.
        from ....runtime.data import ShardedBatches

        elements = ShardedBatches._elements

        def _elements(this: Any) -> Any:
            one = self.found.begin(self._made(), None)
            one.ends = True
            for element in elements(this):
                one.given += 1
                self._given.append(one)
                yield element
                if self.found.cut(one):
                    return
            one.over = True

        ShardedBatches._elements = _elements  # type: ignore[method-assign,assignment]

    # --- Keras --------------------------------------------------------------------------------------------------------

    def _begin_epoch(self, callbacks: Any, number: int) -> None:
        known = getattr(callbacks, "params", None) or {}
        if self.found.fit is None and known.get("epochs"):
            self.found.fit = (self._made(), known["epochs"] - number)
        steps = known.get("steps") if self._in_life is None else self._in_life
        self._epoch = self.found.begin(self._made(), steps, trains=True)

    def _end_batch(self, _: Any, number: int) -> None:
        if self._epoch is not None:
            self._epoch.done(number + 1, self._made())

    def _end_epoch(self, _: Any, __: int) -> None:
        if self._epoch is not None:
            self._epoch.end(self._made())
        self._epoch = None

    def _end_fit(self, _: Any, __: int) -> None:
        self.found.fit = None

    # --- loops --------------------------------------------------------------------------------------------------------

    def _following(self, following: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def followed(this: Any) -> Any:
            if not tf.executing_eagerly() or self._epoch is not None or _apart(sys._getframe(1)):
                return following(this)
            one = self._loops.get(this)
            if one is None:
                one = self._loops[this] = self.found.begin(self._made(), self._batches.get(this))
                one.ends = _loops(sys._getframe(1))
            elif not one.over:
                one.done(one.given, self._made())
            if self.found.cut(one):
                one.end(self._made())
                raise StopIteration
            try:
                element = following(this)
            except (StopIteration, tf.errors.OutOfRangeError):
                one.end(self._made())
                raise
            one.given += 1
            self._given.append(one)
            return element

        followed.__name__ = following.__name__
        return tf.autograph.experimental.do_not_convert(followed)  # type: ignore[no-any-return]


class Fitting:
    """Says when the reference has recorded enough: past the end of an epoch, where that does not take long."""

    def __init__(self, folder: Path, found: Passes, stop: Callable[[], None] | None) -> None:
        """stop: ends the process, also from another thread: what comes after the last step may take long, too. None
        where it may end between two steps only."""
        self._folder = folder
        self._found = found
        self._stop = stop
        self._alarm: threading.Timer | None = None
        self._late: float | None = None

    def enough(self, done: int) -> bool:
        """Whether to stop after `done` updates."""
        if done >= FEWEST - 1 and self._late is None:
            self._late = time.monotonic() + SECONDS
            self._set_alarm()
        late = self._late is not None and time.monotonic() > self._late
        size = sum(file.stat().st_size for file in self._folder.glob("step-*.npz"))
        return self._found.enough(done) or (done >= FEWEST and (late or size > BYTES))

    def _set_alarm(self) -> None:
        if self._stop is not None:
            self._alarm = threading.Timer(SECONDS, self._stop)
            self._alarm.daemon = True
            self._alarm.start()


def _telling(method: Callable[..., Any], tell: Callable[[Any, int], None]) -> Callable[..., Any]:
    def told(this: Any, *args: Any, **options: Any) -> Any:
        tell(this, next((int(one) for one in args if isinstance(one, int)), 0))
        return method(this, *args, **options)

    told.__name__ = method.__name__
    return tf.autograph.experimental.do_not_convert(told)  # type: ignore[no-any-return]


def _batches(dataset: Any) -> float | None:
    count = int(dataset.cardinality())
    if count == tf.data.UNKNOWN_CARDINALITY:
        return None
    return math.inf if count == tf.data.INFINITE_CARDINALITY else count


def _apart(frame: Any) -> bool:
    """Whether it is Keras that asks for a batch, for a loop of its own, or a stream of the runtime's."""
    names = (one.f_globals.get("__name__") or "" for one in frames(frame))
    return any(name.startswith(KERAS) or name.endswith("batch_streams") for name in names)


def _loops(frame: Any) -> bool:
    """Whether a `for` asks for a batch, and so goes on after it when there is none; another call may be lost then."""
    asking = next((one for one in frames(frame) if not inside(one)), None)
    return asking is not None and dis.opname[asking.f_code.co_code[asking.f_lasti]] == "FOR_ITER"


def _batches_of(given: dict[str, Any]) -> int | None:
    """How many batches an epoch of `fit` has, None where that is not known or there is no end."""
    x, steps = given.get("x"), given.get("steps_per_epoch")
    if steps is not None:
        return int(steps)
    if isinstance(x, tf.data.Dataset):
        count = _batches(x)
        return None if count is None or math.isinf(count) else int(count)
    arrays = [part for part in tf.nest.flatten(x) if part is not None]
    if isinstance(x, (np.ndarray, tf.Tensor, dict, list, tuple)) and all(hasattr(part, "shape") for part in arrays):
        rows = int(len(arrays[0]) * (1.0 - (given.get("validation_split") or 0.0)))
        return math.ceil(rows / (given.get("batch_size") or 32))
    return len(x) if isinstance(x, Sized) else None
