"""Each `fit` of the script, in order: its state is kept after each epoch, and put back in workers that start again.

The hooks are Keras' public classes `Model` and `CallbackList`. Between the first and the last of a `fit`'s callbacks
nothing of the script runs where all that is known holds: compiled steps, data of arrays or datasets, Keras' own
callbacks. So all that an epoch changes is in variables, generators, iterators and those callbacks.
"""

from __future__ import annotations

import functools
import os
import pathlib
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, call_site, is_elsewhere, say_once
from ..job import current
from ..keras import PACKAGES, begin_in, can_begin_later, is_keras, rate_of
from ..start import count_variables, every_variable
from . import callbacks as known_callbacks
from . import folder, schedules, state
from .folder import FOLDER, Backup
from .iterators import Watch, count_datasets, datasets_made, make_unread

_ARGUMENTS = ("x", "y", "batch_size", "epochs", "verbose", "callbacks", "validation_split", "validation_data")
_DATA = (tf.data.Dataset, np.ndarray, np.number, tf.Tensor, int, float)
# What runs as Python in each epoch, or was compiled before: all of it is to be Keras'.
_KERAS_ALONE = (
    *("evaluate", "get_metrics_result", "make_test_function", "make_train_function", "reset_metrics", "test_step"),
)
_MOST = 32  # fits that are kept
_hooked: set[str] = set()
_fits: list[None] = []  # one for each that has begun
_inside: list[_Fit] = []
_left_alone: list[None] = []
# What compiled functions keep that were made in a `fit` of a model: its next one may run them again.
_unknown_steps: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def hook_fits() -> None:
    """Hook into every Keras that has been imported. One may be at any time: call it now and then."""
    for package in PACKAGES:
        keras: Any = sys.modules.get(package)
        model = getattr(keras, "Model", None)
        if model is None or package in _hooked:
            continue
        _hooked.add(package)
        owner = _owner(model, "fit")
        owner.fit = _fitting(owner.fit)
        called = keras.callbacks.CallbackList
        for name, around in (("on_train_begin", _begun), ("on_epoch_begin", _in_epoch), ("on_epoch_end", _ended)):
            setattr(called, name, around(vars(called)[name]))


def made(ordinal: int, variable: Any) -> None:
    """A variable is made; `ordinal` were before."""
    if _inside:
        _inside[-1].made(ordinal, variable)


def compiled(reason: str) -> None:
    """A function is complete; why what it keeps could not be put back, empty where it could. What `fit` compiles are
    its steps."""
    if _inside and reason:
        _unknown_steps.setdefault(_inside[-1].model, reason)


def begun() -> int:
    """How many fits have begun."""
    return len(_fits)


def is_inside() -> bool:
    """Whether one is running."""
    return bool(_inside)


def leave_alone() -> None:
    """From now on none is kept, nor goes on by itself: a loop around them does."""
    _left_alone.append(None)


def _fitting(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def fit(self: Any, *arguments: Any, **options: Any) -> Any:
        if _inside:
            _inside[-1].refuse("another `fit` runs inside it")
        if _inside or _left_alone or is_elsewhere() or not tf.executing_eagerly():
            return original(self, *arguments, **options)
        own = _Fit(self, {**dict(zip(_ARGUMENTS, arguments, strict=False)), **options})
        _inside.append(own)
        try:
            found = original(self, *arguments, **options)
            own.over()
            return found
        finally:
            _inside.remove(own)
            own.close()

    return fit


def _begun(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def on_train_begin(self: Any, *arguments: Any, **options: Any) -> Any:
        fit = _inside[-1] if _inside else None
        if fit is None or fit.has_begun:
            return original(self, *arguments, **options)
        return fit.begin(self.callbacks, lambda: original(self, *arguments, **options))

    return on_train_begin


def _in_epoch(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def on_epoch_begin(self: Any, epoch: int, *arguments: Any, **options: Any) -> Any:
        rate = rate_of(self.model)
        found = original(self, epoch, *arguments, **options)
        if _inside and not is_elsewhere():
            _inside[-1].epoch_begins(epoch, rate)
        return found

    return on_epoch_begin


def _ended(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def on_epoch_end(self: Any, epoch: int, *arguments: Any, **options: Any) -> Any:
        found = original(self, epoch, *arguments, **options)
        if _inside and not is_elsewhere():
            _inside[-1].epoch_ended(epoch)
        return found

    return on_epoch_end


class _Fit:
    """One `fit`, which is the first of its callbacks to begin and the last to end."""

    def __init__(self, model: Any, asked: dict[str, Any]) -> None:
        self.has_begun = False
        self._number, self.model, self._asked = len(_fits), model, asked
        _fits.append(None)
        self._folder = pathlib.Path(os.environ[FOLDER])
        self._site = call_site()
        self._reason = ""
        self._callbacks: Sequence[Any] = ()
        self._variables = 0
        self._rates: schedules.Rates = []
        self._begun: state.Fingerprint = {}
        self._resumed: Backup | None = None
        self._former: int | None = None  # where the model's next `fit` would have begun
        self._awaited: dict[int, Any] = {}  # what variables had that are yet to be made
        self._at = 0
        self._iterators = 0  # of its data, until the last epoch has ended
        self._epochs = 0
        self._watch = Watch()

    def refuse(self, reason: str) -> None:
        """From now on nothing of this is kept, which is said."""
        if self._reason:
            return
        self._reason = reason
        if current().topology.rank == 0:
            say_once(f"the fit at {self._site} begins anew after a restart: {reason}")

    def begin(self, callbacks: Sequence[Any], original: Callable[[], Any]) -> Any:
        """What `on_train_begin` does, before and after all others."""
        self.has_begun = True
        self._callbacks = callbacks
        self._variables = len(every_variable())
        self._watch.begins()
        if self._number >= _MOST:
            self.refuse(f"{_MOST} others are kept already, each in a file of its own")
            return original()
        self._begun = state.fingerprint(tuple(filter(_is_known, self._data())), self._asked_for())
        if current().topology.rank == 0:  # the others' state is the same
            self._compare_with_the_first_time()
        if reason := self._unknown():
            self.refuse(reason)
            return original()
        found = self._resumed = folder.read(self._folder, self._number)
        if found is None:
            return original()
        self._former = getattr(self.model, "_initial_epoch", None)
        with known_callbacks.going_on(callbacks, found.about["callbacks"]):
            result = original()
        self._go_on(found)
        return result

    def _asked_for(self) -> dict[str, Any]:
        """What of its arguments and callbacks is to be the same each time."""
        numbers = {n: each for n, each in self._asked.items() if isinstance(each, (int, float, str)) and n != "verbose"}
        settings = known_callbacks.settings(self._callbacks)
        return {"what `fit` is given": sorted(numbers.items()), "what its callbacks are given": settings}

    def _write(self, write: Callable[[], None]) -> None:
        """Keep something; where there is no room for it the job goes on without."""
        try:
            write()
        except OSError as error:
            self.refuse(f"nothing could be kept ({error})")

    def _unknown(self) -> str:
        """Why this cannot go on later, as far as its beginning shows."""
        if not can_begin_later(self.model):
            return "Keras 2 has no way for that"
        if self.model.run_eagerly or tf.config.functions_run_eagerly():
            return "its steps run as Python (run_eagerly)"
        if own := [name for name in _KERAS_ALONE if not is_keras(_owner(type(self.model), name))]:
            return f"its {own[0]}() is the script's own, and may remember something"
        if self._asked.get("steps_per_epoch") is not None:
            return "with steps_per_epoch an iterator may go on from epoch to epoch"
        if self._asked.get("validation_steps") is not None:
            return "with validation_steps an iterator may go on from epoch to epoch"
        for each in self._data():
            if not _is_known(each):
                return f"its data are a {type(each).__name__}: arrays and tf.data.Datasets can be begun again"
        return known_callbacks.unknown(self._callbacks) or schedules.unknown(self._callbacks)

    def _data(self) -> tuple[Any, ...]:
        """What it is trained and validated on, one by one."""
        names = ("x", "y", "sample_weight", "validation_data")
        return tuple(each for name in names for each in _flat(self._asked.get(name)))

    def _compare_with_the_first_time(self) -> None:
        """Raise where this process has come here in another way than the first one that came here."""
        before = folder.read_begun(self._folder, self._number)
        if before is None:
            self._write(lambda: folder.write_begun(self._folder, self._number, self._begun))
        elif differs := state.difference(before, self._begun):
            raise TfdpError(
                f"the fit at {self._site} cannot go on after the restart: {differs} is not what it was when it began "
                "the first time. What a script does before must be the same each time: does it go by the time, by "
                "files that it writes itself (a checkpoint that it loads), or by numbers of the operating system? Then "
                "start it without --max-restarts, by hand"
            )

    def _go_on(self, found: Backup) -> None:
        schedules.repeat(self._callbacks, found.about["rates"], self._site)
        make_unread(found.about["iterators"])
        self._watch.forget()
        state.put_back(found.values, found.about)
        self._awaited = {} if found.over else self._younger(found.values)
        # What the callbacks have made by now: BackupAndRestore makes what the optimizer remembers.
        for ordinal, each in self._younger(state.variables()).items():
            self.made(ordinal, each)
        known_callbacks.put_back(self._callbacks, found.about["callbacks"])
        self._rates = list(found.about["rates"])
        self._at = found.epoch + 1
        self.model.stop_training = found.about["stopped"]
        begin_in(self.model, max(self._asked.get("epochs", 1), 1) if found.over else found.epoch + 1)
        if current().topology.rank == 0:
            where = "is over" if found.over else f"goes on with epoch {found.epoch + 2}"
            print(f"tfdp: the fit at {self._site} {where}, as before the restart", file=sys.stderr, flush=True)

    def epoch_begins(self, epoch: int, rate: float) -> None:
        """After all callbacks' `on_epoch_begin`; `rate` was the learning rate before."""
        self._rates.append((epoch, rate, rate_of(self.model)))

    def epoch_ended(self, epoch: int) -> None:
        """After all callbacks' `on_epoch_end`."""
        self._at = epoch
        self._epochs += 1
        self._refuse_unmade()
        if self._watch.of_first == self._iterators:
            self.refuse("an iterator goes on from epoch to epoch")
        self._iterators = self._watch.of_first
        # The first epoch does not tell whether the second has an iterator of its own.
        is_known = self._epochs > 1 or self._resumed is not None
        if is_known and not self.model.stop_training and epoch + 1 < self._asked.get("epochs", 1):
            self._keep(epoch, over=False)

    def made(self, ordinal: int, variable: Any) -> None:
        """A variable is made: with what it had when this was kept, if it was there then."""
        if ordinal not in self._awaited or self._resumed is None:
            return
        kind = self._resumed.about["kinds"][ordinal]
        if state.kind_of(variable) != kind:
            raise TfdpError(
                f"the fit at {self._site} cannot go on after the restart: it makes {state.kind_of(variable)} where it "
                f"made {kind} the first time. Start it without --max-restarts, by hand"
            )
        state.give(variable, self._awaited.pop(ordinal))

    def _younger(self, values: Mapping[int, Any]) -> dict[int, Any]:
        return {ordinal: value for ordinal, value in values.items() if ordinal >= self._variables}

    def _refuse_unmade(self) -> None:
        if self._awaited and self._resumed is not None:
            name = self._resumed.about["kinds"][min(self._awaited)].name
            raise TfdpError(
                f"the fit at {self._site} cannot go on after the restart: {name} was made in its first epochs, and was "
                "not made again. Start it without --max-restarts, by hand"
            )

    def over(self) -> None:
        """After all: the state is that of its end."""
        if self._resumed is not None and self._resumed.over:
            count_variables(self._resumed.about["variables"])
            count_datasets(self._resumed.about["datasets"])
            state.put_back(self._resumed.values, self._resumed.about)
        elif self.has_begun and not self._has_made():
            self._keep(self._at, over=True)

    def close(self) -> None:
        """Whether it is over or has failed."""
        self._watch.close()
        if self._resumed is not None:
            begin_in(self.model, self._former)

    def _keep(self, epoch: int, *, over: bool) -> None:
        if reason := self._late():
            self.refuse(reason)
        if self._reason or current().topology.rank > 0:
            return
        earlier = self._resumed.about["iterators"] if self._resumed is not None else []
        about = {
            **state.drawn(),
            "callbacks": known_callbacks.states(self._callbacks),
            "iterators": [*earlier, *self._watch.made],
            "rates": self._rates,
            "stopped": bool(self.model.stop_training),
            "variables": len(every_variable()),
            "datasets": datasets_made(),
        }
        # A metric that its first batch makes begins with nothing: each epoch does.
        fresh = self._younger_of_metrics()
        held = {ordinal: each for ordinal, each in state.variables().items() if ordinal not in fresh}
        about["kinds"] = {ordinal: state.kind_of(each) for ordinal, each in held.items()}
        values = state.values_of(held)
        self._write(lambda: folder.write(self._folder, Backup(self._number, epoch, over, values, about)))

    def _late(self) -> str:
        """What has come to be since it began that its beginning could not put back."""
        if self.model in _unknown_steps:
            return _unknown_steps[self.model]
        metrics = [part for each in self.model.metrics for part in (each, *(getattr(each, "metrics", None) or ()))]
        if own := [type(each).__name__ for each in metrics if not is_keras(type(each))]:
            return f"the metric {own[0]} is the script's own, and may remember something"
        if self._begun[-1, state.DRAWN] != state.draws():
            return "numbers are drawn in Python while it runs"
        if self._watch.unknown:
            return self._watch.unknown
        return ""

    def _younger_of_metrics(self) -> set[int]:
        of_metrics = {id(each.handle) for metric in self.model.metrics for each in metric.variables}
        younger = self._younger(state.variables())
        return {ordinal for ordinal, each in younger.items() if id(each.handle) in of_metrics}

    def _has_made(self) -> bool:
        """Whether it has made variables: who goes on after it could not make them."""
        return bool(self._younger(state.variables()))


def _owner(cls: type, name: str) -> Any:
    """The class that defines a method."""
    return next(each for each in cls.__mro__ if name in vars(each))


def _flat(data: Any) -> list[Any]:
    if data is None:
        return []
    if isinstance(data, tf.data.Dataset) or _is_table(data):
        return [data]
    return [each for each in tf.nest.flatten(data) if each is not None]


def _is_known(data: Any) -> bool:
    return isinstance(data, _DATA) or _is_table(data)


def _is_table(data: Any) -> bool:
    return type(data).__module__.split(".")[0] == "pandas"
