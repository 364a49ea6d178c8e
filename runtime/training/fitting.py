"""The callbacks of a `fit` on several ranks: in which order, who writes, and what all ranks decide alike.

No collective stands in a guard: what only rank 0 does is left out of the other ranks' lists, and the callbacks that
exchange something are on every rank, in the same places.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import Max, TfdpError, call_site, say_once
from ..framework import as_written, keyed, name_of
from ..job import current, shards_calls
from ..keras import Hooks, is_keras, named_in, rate_of, variables_of
from ..start import reads
from .callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback
from .epoch_logs import metric_variables

_WRITERS = (
    "BackupAndRestore",
    "CSVLogger",
    "ModelCheckpoint",
    "OrbaxCheckpoint",
    "ProgbarLogger",
    "RemoteMonitor",
    "TensorBoard",
)
# Packages whose callbacks log a run to somewhere: one run, not one for each rank.
_LOGGERS = ("aim", "clearml", "comet_ml", "dvclive", "mlflow", "neptune", "tqdm", "tqdm_keras", "wandb")
_STATISTICS = ("BatchNormalization", "Normalization", "SyncBatchNormalization")
_BATCH_HOOKS = ("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")
_PLAIN = (bool, int, float, str, type(None), np.number)


@as_written
def fit_callbacks(callbacks: Any = None) -> Any:
    """The callbacks for `fit(…, callbacks=dp.fit_callbacks(callbacks))`, which every rank calls.

    Before the given ones: the broadcast of rank 0's variables, and the logs over all ranks' examples, so that early
    stopping, plateaus and best checkpoints are decided from the same values. Of the given ones those that write
    (checkpoints, TensorBoard, CSV, backups, remote monitors, run loggers) act on rank 0 only; what they count and keep
    in public attributes, such as a checkpoint's `best`, is rank 0's on all ranks at the end of each epoch. After them:
    who wants to stop training stops all ranks, at the same batch where a batch can decide it; a backup that rank 0 has
    restored is where all ranks go on; the learning rate is rank 0's. At the end of `fit` the ranks wait for what rank 0
    still writes.

    Args:
        callbacks: what `fit` takes: None, a callback, a nested list of them, or a `CallbackList`.

    Returns:
        A list, or a `CallbackList` for one. With one worker `callbacks` itself.
    """
    if current().topology.size == 1:
        return callbacks
    members = getattr(callbacks, "callbacks", None)
    given = list(_flat(callbacks if members is None else members))
    arranged = _arranged(given)
    if members is None:
        return arranged
    return type(callbacks)(arranged, model=getattr(callbacks, "model", None), **(callbacks.params or {}))


def _flat(callbacks: Any) -> Iterator[Any]:
    if isinstance(callbacks, (list, tuple)):
        for each in callbacks:
            yield from _flat(each)
    elif callbacks is not None:
        yield callbacks


def _arranged(given: Sequence[Any]) -> list[Any]:
    root = current().topology.rank == 0
    first = [each for each in given if isinstance(each, (BroadcastGlobalVariablesCallback, MetricAverageCallback))]
    if not any(isinstance(each, BroadcastGlobalVariablesCallback) for each in first):
        first.insert(0, BroadcastGlobalVariablesCallback())
    if not any(isinstance(each, MetricAverageCallback) for each in first):
        first.append(MetricAverageCallback())
    own = [each for each in given if each not in first]
    writers = [each for each in own if writes(each)]
    if not root:
        own = [each for each in own if each not in writers]
        _silence(own)
    # The lists may differ by rank: `if rank() == 0: callbacks.append(…)` is a habit.
    answers = [any(map(decides_in_batches, own)), bool(writers)]
    asked = collectives.allreduce(tf.constant(answers, tf.int32), Max, name="callbacks of fit").numpy()
    last: list[Any] = [_InStep(writers, bool(asked[1]))]
    if asked[0]:
        last.append(_StopAtBatch())
    # One model before the logs: validation of models that differ in their moving averages has no one result.
    return [_OneModel(), *first, *own, *last, *([] if shards_calls() else [_Trains()])]


def writes(callback: Any) -> bool:
    """Whether a callback leaves something behind outside the process, so that one rank must do it.

    With sharded calls one of the script's own does what it does on every rank, as it may do more than to write: the
    files that it writes are rank 0's, as all of the script's are.
    """
    cls = type(callback)
    if cls.__module__.split(".")[0] in _LOGGERS:
        return True
    return named_in(callback, _WRITERS) and (is_keras(cls) or not shards_calls())


def decides_in_batches(callback: Any) -> bool:
    """Whether one of its hooks for batches could end the training."""
    if isinstance(callback, Hooks):
        return False
    if named_in(callback, ("TerminateOnNaN",)) or any(hook in vars(callback) for hook in _BATCH_HOOKS):
        return True
    own = [cls for cls in type(callback).__mro__ if cls is not object and not is_keras(cls)]
    return any(hook in vars(cls) for cls in own for hook in _BATCH_HOOKS)


def _silence(callbacks: Sequence[Any]) -> None:
    """Keras' own callbacks say what they decide on rank 0 only."""
    for each in callbacks:
        if is_keras(type(each)) and getattr(each, "verbose", None):
            each.verbose = 0


class _OneModel(Hooks):
    """Before validation, and at the end of an epoch, what no gradient reaches is rank 0's: moving averages."""

    def __init__(self) -> None:
        super().__init__()
        self._in_epoch = False

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._in_epoch = True

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        self._share()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._share()

    def _share(self) -> None:
        if not self._in_epoch:
            return
        self._in_epoch = False
        # Keras 2 counts the state of a metric among a model's weights where it is the model's attribute.
        metrics = {id(each.handle) for each in metric_variables(self.model)}
        weights = [each for each in self.model.non_trainable_weights if id(each.handle) not in metrics]
        shared = [each for each in keyed(weights).values() if tf.as_dtype(each.dtype).is_floating]
        if not shared:
            return
        sums = [tf.reduce_sum(tf.cast(tf.convert_to_tensor(each), tf.float64)) for each in shared]
        rows = collectives.allgather(tf.stack(sums)[None], name="untrained variables of an epoch").numpy()
        differ = [each for each, column in zip(shared, rows.T, strict=True) if (column != column[0]).any()]
        self._refuse(differ)
        collectives.broadcast_variables(differ)

    def _refuse(self, differ: Sequence[Any]) -> None:
        """Raise where a variable that training reads would be overwritten: the ranks have trained with other values."""
        known = {id(each.handle) for layer in self._stock_layers() for each in layer.non_trainable_weights}
        own = [each for each in differ if id(each.handle) not in known and reads(self.model, each)]
        if own:
            raise TfdpError(
                f"{name_of(own[0])} of the model trained at {call_site()} differs between the ranks: something "
                "gives it a value of the rank's own examples, and the model is trained with it. Assign what is the "
                "same on all ranks, such as dp.allreduce(value)"
            )

    def _stock_layers(self) -> Iterator[Any]:
        """Keras' own layers that hold no others, and those derived from them that keep statistics: rank 0's count."""
        for layer in self.model._flatten_layers():
            alone = len(list(layer._flatten_layers(include_self=False))) == 0
            if (is_keras(type(layer)) and alone) or named_in(layer, _STATISTICS):
                yield layer


class _InStep(Hooks):
    """After all others: the decisions and the state that all ranks share."""

    def __init__(self, writers: Sequence[Any], written: bool) -> None:
        super().__init__()
        self._writers = writers
        self._written = written

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        _resume_alike(self.model, self.params)
        self._agree(0, "begin of fit")

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._agree(epoch, "begin of an epoch")

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._agree(epoch, "end of an epoch")
        if self._written:
            self._take_over()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        if self._written:
            self._take_over()
            collectives.barrier("end of fit")
        if isinstance(getattr(self.model, "_training_state", None), _Resumed):
            self.model._training_state = None

    def _agree(self, epoch: int, where: str) -> None:
        stop = float(bool(self.model.stop_training))
        rate = rate_of(self.model)
        rows = collectives.allgather(tf.constant([[stop, epoch, rate]], tf.float64), name=where).numpy()
        if (rows[:, 1] != rows[0, 1]).any():
            epochs = ", ".join(f"rank {rank}: {int(each)}" for rank, each in enumerate(rows[:, 1]))
            raise TfdpError(f"the ranks are in different epochs of the fit at {call_site()} ({epochs})")
        if rows[:, 0].any() and not stop:
            self.model.stop_training = True
        if rate != rows[0, 2] and not np.isnan(rows[:, 2]).any():
            self._take_rate(float(rows[0, 2]))

    def _take_rate(self, rate: float) -> None:
        say_once(f"{call_site()}: the learning rate differs by rank; rank 0's is taken")
        self.model.optimizer.learning_rate = rate

    def _take_over(self) -> None:
        """Rank 0's public numbers and strings of the callbacks that only it has run."""
        state = [(type(each).__name__, _plain(each)) for each in self._writers]
        for each, (kind, values) in zip(self._writers, collectives.broadcast_object(state), strict=False):
            if type(each).__name__ == kind:
                vars(each).update(values)


def _plain(callback: Any) -> dict[str, Any]:
    found = vars(callback).items()
    return {name: value for name, value in found if name[0] != "_" and isinstance(value, _PLAIN) and name != "verbose"}


class _Trains(Hooks):
    """At the end of a `fit` that has run an epoch, and taken no step in it, an error: Keras only warns."""

    def __init__(self) -> None:
        super().__init__()
        self._before: list[float] = []

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        self._before = self._before or self._state()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        if self._before and self._before == self._state():
            raise TfdpError(
                f"the fit at {call_site()} took no training step on any rank: no rank has the examples of one batch. "
                "Look for a batch_size with drop_remainder=True that is larger than a rank's share of the examples"
            )

    def _state(self) -> list[float]:
        """What a step changes; nothing where Keras' own optimizer has nothing to train, or the model is to be built."""
        optimizer = getattr(self.model, "optimizer", None)
        try:
            trained = list(keyed(self.model.trainable_variables).values())
        except ValueError:  # Keras 2 says so
            return []
        if optimizer is None or not trained:
            return []
        sums = [tf.reduce_sum(tf.abs(tf.cast(tf.convert_to_tensor(each), tf.float64))) for each in trained]
        return [float(each) for each in (optimizer.iterations, *sums)]


class _StopAtBatch(Hooks):
    """After all others, where a hook for batches could end the training on one rank."""

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        stop = tf.constant(int(bool(self.model.stop_training)), tf.int32)
        if int(collectives.allreduce(stop, Max, name="stop at a batch")):
            self.model.stop_training = True


class _Resumed:
    """On the other ranks in place of what Keras 2 reads after `on_train_begin`: where rank 0's backup goes on."""

    def __init__(self, epoch: int, step: int) -> None:
        self._begin = epoch, step

    def maybe_load_initial_counters_from_ckpt(self, *_: Any, **__: Any) -> tuple[int, int]:
        return self._begin


def _resume_alike(model: Any, params: dict[str, Any]) -> None:
    """A backup that rank 0 has restored says in which epoch all ranks go on."""
    root = current().topology.rank == 0
    state = getattr(model, "_training_state", None)
    counters = None
    if root and state is not None:  # Keras 2
        counters = state.maybe_load_initial_counters_from_ckpt(params.get("steps"), None, mode="train")
    optimizer: Any = getattr(model, "optimizer", None)
    held = len(variables_of(optimizer))
    resumed = getattr(model, "_initial_epoch", None), counters, held
    epoch, counters, held_by_root = collectives.broadcast_object(resumed, name="where fit begins")
    resumes = counters is not None and counters[0] is not None
    if (resumes or held < held_by_root) and model.built and hasattr(optimizer, "build"):
        # What an optimizer remembers is made at its first update, and in Keras 2 restored then: now, so that it can be
        # broadcast. tf-keras' backup has made it already, on rank 0.
        optimizer.build(model.trainable_variables)
    if root:
        return
    if hasattr(model, "_initial_epoch"):
        model._initial_epoch = epoch
    if resumes:
        model._training_state = _Resumed(*counters)
