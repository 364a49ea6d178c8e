"""All ranks hold rank 0's variables before the first forward pass.

Rank 0 publishes the initial value of each variable at the moment it is created and goes on; the others read it when
they create theirs. No collective is involved, so a variable that rank 0 alone creates makes nobody wait.
"""

import gc
import json
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from .. import collective as collectives
from ..foundation import Min, RankFinishedError, StoreError, TfdpError, call_site
from ..framework import Key, Keys, Variable, as_written, collect, is_followed, keyed, lifted, stream_element
from ..job import Job, current, is_initialized, stream_mask
from .keras_models import made_to_be_looked_at, watch_keras
from .settings import RATE, differing, note_begun, settings_of

_GONE: weakref.ref[Any] = weakref.ref(set())


class _Following:
    """What is installed in a process whose variables start with rank 0's values."""

    def __init__(self, job: Job, row_check: bool, at_creation: Callable[[], None] = lambda: None) -> None:
        self._job, self._row_check, self._at_creation = job, row_check, at_creation
        self._keys = Keys()
        self._lock = threading.Lock()
        self._created: dict[Key, weakref.ref[Variable]] = {}
        self._generators: list[weakref.ref[Variable]] = []
        self._every: list[weakref.ref[Variable]] = []
        self.made: Callable[[int, Variable], None] = lambda _, __: None
        self._scope: Any = None

    def enter(self) -> None:
        """See all variables that are created from now on, in this thread and its tf.functions."""
        # The scope closes when this object is garbage-collected; hence the reference.
        self._scope = tf.variable_creator_scope(self.create)
        self._scope.__enter__()

    def live(self) -> dict[Key, Variable]:
        """The variables seen at their creation that still exist."""
        with self._lock:
            seen = [(key, reference()) for key, reference in self._created.items()]
        return {key: variable for key, variable in seen if variable is not None}

    def count(self) -> int:
        """How many variables were seen at their creation."""
        with self._lock:
            return len(self._created)

    def every(self) -> list[Variable | None]:
        """All variables that were seen at their creation, of whatever dtype; None for each that is gone."""
        with self._lock:
            return [each() for each in self._every]

    def miss(self, count: int) -> None:
        """So many are counted as if they had been made, and were gone."""
        with self._lock:
            self._every += [_GONE] * max(0, count - len(self._every))

    def generators(self) -> list[Variable]:
        """The states of random generators that were seen at their creation and still exist."""
        with self._lock:
            self._generators = [each for each in self._generators if each() is not None]
            return [state for each in self._generators if (state := each()) is not None]

    def create(self, next_creator: Callable[..., Variable], **arguments: Any) -> Variable:
        """A link in TensorFlow's chain of variable creators."""
        initial, name = arguments.get("initial_value"), arguments.get("name")
        watch_keras(self._row_check)
        self._at_creation()
        if initial is None or not is_initialized() or made_to_be_looked_at():
            return next_creator(**arguments)
        keys: list[Key] = []
        states: list[bool] = []
        begun: list[float] = []

        @as_written
        def converted() -> Any:
            value = initial() if callable(initial) else initial
            # The initial value that a pending checkpoint restore supplies is a tensor in a wrapper.
            return tf.convert_to_tensor(getattr(value, "wrapped_value", value), dtype=arguments.get("dtype"))

        @as_written
        def followed() -> Any:
            tensor = _computed(converted)
            element = stream_element(name)
            if element is not None and tensor.dtype.is_integer and tensor.shape.rank == 1:
                states.append(True)
                return _own_stream(tensor, element, self._job.topology.rank)
            if not is_followed(tensor.dtype):
                return tensor
            with self._lock:
                key = self._keys.next(name, tensor.dtype, tensor.shape)
            keys.append(key)
            if key.name == RATE and tensor.shape.rank == 0 and hasattr(tensor, "numpy"):
                begun.append(float(tensor))
            return self._exchanged(tensor, key, call_site())

        variable = next_creator(**{**arguments, "initial_value": followed})
        if begun:
            note_begun(variable, begun[-1])
        with self._lock:
            ordinal = len(self._every)
            self._every.append(weakref.ref(variable))
            if keys:
                self._created[keys[-1]] = weakref.ref(variable)
            if states:
                self._generators.append(weakref.ref(variable))
        self.made(ordinal, variable)
        return variable

    def _exchanged(self, tensor: Any, key: Key, site: str) -> Any:
        """Rank 0's value of the tensor: at once where it is known, else as part of the graph that initialises it."""
        dtype = tensor.dtype.as_numpy_dtype

        def exchange(array: Any) -> Any:
            if self._job.topology.rank == 0:
                self._job.store.publish(f"variable/{key}", _packed(np.asarray(array)))
                return array
            return _unpacked(self._fetch(key, site), dtype)

        if hasattr(tensor, "numpy"):
            value = exchange(tensor.numpy())
            return tf.convert_to_tensor(value) if tf.executing_eagerly() else _delivered(value, tensor)
        # Stateful, it would wait for what the step does before, and TensorFlow could not take it out of the step: it
        # would build the step a second time, which draws once more what the first has drawn.
        result = tf.numpy_function(exchange, [tensor], tensor.dtype, stateful=False)
        result.set_shape(tensor.shape)
        return result

    def _fetch(self, key: Key, site: str) -> bytes:
        try:
            return self._job.store.fetch(f"variable/{key}", publisher=0)
        except (StoreError, RankFinishedError) as error:
            raise type(error)(
                f"the variable {key} that rank {self._job.topology.rank} creates at {site} has no initial value from "
                f"rank 0 ({error}): rank 0 must create it too. Create it on all ranks, or on rank 0 alone"
            ) from error


def _computed(initial: Callable[[], Any]) -> Any:
    """An initial value; where a `tf.function` is being traced, of what it computes, or already known.

    TensorFlow lifts the initialisers of a function's variables out of it, which it cannot where they come after a
    collective, as those of slots do: those are lifted here. What it cannot lift in one process, such as a draw of a
    generator, it leaves in the function, which then runs its initialisers in a branch.
    """
    if tf.executing_eagerly() or not tf.inside_function():
        return initial()
    with tf.control_dependencies(None):
        tensor = initial()
    known = lifted(tensor)
    return tensor if known is None else known


def _delivered(value: Any, like: Any) -> Any:
    """A known value in a graph, by an operation that can be lifted out of it: one that waits for no other.

    Not as a constant, of which a graph holds 2 GB at most.
    """
    with tf.control_dependencies(None):
        result = tf.numpy_function(lambda: value, [], like.dtype, stateful=False)
    result.set_shape(like.shape)
    return result


_following: _Following | None = None


def follow_root(row_check: bool, at_creation: Callable[[], None] = lambda: None) -> None:
    """From now on every variable starts with rank 0's value; with one worker nothing changes.

    With `row_check` every Keras model is looked at before its first calls: does it mix the examples of a batch?

    It covers variables made eagerly, in Keras models built by their first call, in `tf.function`s while they are
    traced, and optimizers' slots, and goes on until `dp.shutdown()`. The state of random generators is made different
    by rank instead (rank 0's is unchanged). Not covered: variables made in other threads or in TF1 graphs, and string
    variables. `at_creation` is called before each variable is made. `dp.init()` calls it.
    """
    global _following  # noqa: PLW0603 - one per process, as TensorFlow's own scope is
    job = current()
    if job.topology.size == 1 or _following is not None:
        return
    _following = _Following(job, row_check, at_creation)
    _following.enter()
    _enter_again_after_reset(_following)


def live_variables() -> list[Variable]:
    """The variables that were created since `dp.init` and still exist, in the order of their creation."""
    return list(_following.live().values()) if _following else []


def every_variable() -> list[Variable | None]:
    """In the order of their creation all variables since `dp.init`, random generators' states too; None: it is gone."""
    return _following.every() if _following else []


def tell_of_variables(made: Callable[[int, Variable], None]) -> None:
    """From now on `made` is called with each variable that is made, and how many had been before."""
    if _following is not None:
        _following.made = made


def count_variables(count: int) -> None:
    """Where fewer were made than so many, as by a process that has left something out, the others are gone."""
    if _following is not None:
        _following.miss(count)


def variables_created() -> int:
    """How many variables were created since `dp.init`, those included that are gone."""
    return _following.count() if _following else 0


def live_generators() -> list[Variable]:
    """The states of random generators that were created since `dp.init` and still exist."""
    return _following.generators() if _following else []


def creation_ordinals() -> dict[int, int]:
    """When each variable that still exists was created, counted on this rank, by `id` of its handle."""
    return {id(variable.handle): ordinal for ordinal, variable in enumerate(live_variables())}


def _enter_again_after_reset(following: _Following) -> None:
    """`keras.backend.clear_session` drops the scope with the graph that keeps it; all Keras do so by these names."""
    for module in (tf.compat.v1, tf.compat.v2.compat.v1):
        original = module.reset_default_graph

        def reset_default_graph(original: Callable[[], None] = original) -> None:
            original()
            following.enter()

        module.reset_default_graph = reset_default_graph


@as_written
def broadcast_state(*objects: object) -> None:
    """Give all variables that exist now rank 0's values. Every rank calls it, before the training loop or after a
    restore.

    Args:
        objects: models and optimizers (built or not), tf.Modules, checkpoints, variables, lists and dicts of them;
            none: every variable created since `dp.init()` that still exists. The state of random generators stays
            each rank's own, and so do variables that only rank 0 has.

    Raises:
        TfdpError: a rank has a variable that rank 0 has not, or a number among the settings of a model or optimizer
            that is another; or no objects are given and `dp.init()` ran with `same_start=False`.
        TypeError: an object that can hold no variables.
    """
    job = current()
    if job.topology.size == 1:
        return
    mine = keyed(collect(objects)) if objects else _live()
    if tf.executing_eagerly():
        mine = {key: mine[key] for key in _common(mine, settings_of(objects), job)}
    collectives.broadcast_variables(list(mine.values()))


def _live() -> dict[Key, Variable]:
    if _following is None:
        raise TfdpError(
            f"dp.broadcast_state() at {call_site()} has no objects, and with dp.init(same_start=False) no variables "
            "are recorded: name the models and optimizers"
        )
    gc.collect()  # what waits for it is dropped on one rank and not yet on another
    return _following.live()


def _common(mine: dict[Key, Variable], settings: list[Any], job: Job) -> list[Key]:
    """The keys that all ranks have, in rank 0's order. `settings`: numbers that are to be the same on all."""
    roots: list[Key]
    roots, expected = collectives.broadcast_object((list(mine), settings), name="broadcast_state")
    known = set(roots)
    extra = [key for key in mine if key not in known]
    # The first numbers are 0 as soon as one rank has what rank 0 has not, so that all of them raise.
    held = tf.constant([not extra, settings == expected, *(key in mine for key in roots)], tf.int32)
    fine, alike, *everywhere = collectives.allreduce(held, Min, name="broadcast_state").numpy().tolist()
    if not fine:
        found = f"the variable {extra[0]} and {len(extra) - 1} more" if extra else "nothing more, but another rank has,"
        raise TfdpError(
            f"rank {job.topology.rank} has {found} beyond those of rank 0 at {call_site()}: build the model and the "
            "optimizer on all ranks in the same way"
        )
    if not alike:
        raise TfdpError(differing(settings, expected, job.topology.rank))
    return [key for key, common in zip(roots, everywhere, strict=True) if common]


def _own_stream(state: Any, element: int, rank: int) -> Any:
    """The generator's state with this rank's mask on the element that chooses the stream."""
    mask = stream_mask(rank)
    if mask == 0:
        return state
    flipped = tf.one_hot(element % state.shape[0], state.shape[0], on_value=mask, off_value=0)
    return tf.bitwise.bitwise_xor(state, tf.cast(flipped, state.dtype))


def _packed(array: Any) -> bytes:
    """Shape and data. One element stands for all where they are equal: slots and biases start as zeros."""
    data = np.ascontiguousarray(array).reshape(-1)
    words = data.view(np.uint8).reshape(data.size, data.itemsize)
    if data.size > 1 and (words[0] == words[-1]).all() and (words == words[0]).all():
        data = data[:1]
    return json.dumps(list(array.shape)).encode() + b"\n" + data.tobytes()


def _unpacked(payload: bytes, dtype: Any) -> Any:
    shape, _, data = payload.partition(b"\n")
    values = np.frombuffer(data, dtype)
    dimensions = json.loads(shape)
    if values.size == 1:
        return np.full(dimensions, values[0], dtype)
    return values.reshape(dimensions).copy()
