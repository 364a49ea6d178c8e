"""Every variable the script creates, found through the public `tf.variable_creator_scope`.

The runtime enters a creator scope of its own at `dp.init()`, which is asked before ours. So the function that enters
such scopes is wrapped: whichever scope is asked first, what is done to an initial value here is done before the runtime
publishes it.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from ..record import Array, Arrays
from .float64 import python_floats

Creator: TypeAlias = Callable[..., Any]
Triple: TypeAlias = tuple[str, tuple[int, ...], str]


@dataclass(frozen=True)
class _Entry:
    variable: Callable[[], Any]
    name: str


class Registry:
    """The floating-point variables of this process, under keys that are the same in every run of the script.

    forced: initial values by key, for the process that stands for the reference. scatter: None, or the rank whose
    random initial values are moved, so that only a broadcast can make it agree with rank 0. (The job's common seed for
    Python's `random`, from which Keras 3 draws its initializers' seeds, would otherwise hide a missing one.) wide: of
    Python's floats, float64 is made.
    """

    def __init__(self, forced: Arrays, scatter: int | None, *, wide: bool = False) -> None:
        self._wide = wide
        self._forced = forced
        self._scatter = scatter
        self._entries: dict[str, _Entry] = {}
        self._seen: Counter[Triple] = Counter()
        self._initial: dict[str, Array] = {}
        self._creating = False
        self._scope: Any = None

    def install(self) -> None:
        """Watch creations from now on, in scopes entered later and after `clear_session()` too."""
        enter = tf.variable_creator_scope

        def scope(creator: Creator) -> Any:
            return enter(self._watching(creator))

        tf.variable_creator_scope = scope
        self._enter(enter)
        # The names under which Keras 2 and 3 reach it from `clear_session`.
        for module in (tf.compat.v1, tf.compat.v2.compat.v1):
            module.reset_default_graph = self._entering_again(module.reset_default_graph, enter)

    @property
    def creates(self) -> bool:
        """Whether a variable is being created: what is drawn now is its initial value."""
        return self._creating

    def read(self) -> dict[str, Array]:
        """The present value of every living variable that has one; half precisions as float32."""
        values = {}
        for key, variable in self._living().items():
            value = _value(variable)
            if value is not None:
                values[key] = value
        return values

    def load(self, values: Arrays) -> None:
        """Assign `values` by key."""
        living = self._living()
        with tf.init_scope():
            for key, value in values.items():
                living[key].assign(tf.cast(value, living[key].dtype))

    def found(self, keys: Sequence[str]) -> dict[str, Any]:
        """Of `keys`, the variables that live. While a function is traced, they may have no value yet."""
        living = self._living()
        return {key: living[key] for key in keys if key in living}

    def values(self, keys: Iterable[str]) -> list[Array]:
        """The present values of variables that live."""
        values = self.read()
        return [values[key] for key in keys]

    def initial(self) -> Arrays:
        """Values at creation; of variables made while a function was traced, those that are constants of the graph."""
        return self._initial

    def names(self) -> dict[str, str]:
        """Readable names by key."""
        return {key: entry.name for key, entry in self._entries.items()}

    def keys_of(self, sources: list[Any]) -> list[str | None]:
        """The keys of `sources`: tf or Keras variables; None for anything else."""
        # The handle is what a Keras 3 variable and the tf.Variable inside it share.
        by_handle = {id(variable.handle): key for key, variable in self._living().items()}
        return [by_handle.get(id(getattr(source, "handle", None))) for source in sources]

    def _living(self) -> dict[str, Any]:
        pairs = ((key, entry.variable()) for key, entry in self._entries.items())
        return {key: variable for key, variable in pairs if variable is not None}

    def _entering_again(self, reset: Callable[[], None], enter: Callable[[Creator], Any]) -> Callable[[], None]:
        def reset_default_graph() -> None:
            reset()
            self._enter(enter)

        return reset_default_graph

    def _enter(self, enter: Callable[[Creator], Any]) -> None:
        # The scope is closed when its context manager is collected.
        self._scope = enter(self._watching(lambda next_creator, **arguments: next_creator(**arguments)))
        self._scope.__enter__()

    def _watching(self, creator: Creator) -> Creator:
        def watch(next_creator: Creator, **arguments: Any) -> Any:
            if self._creating:
                return creator(next_creator, **arguments)
            self._creating = True
            given: list[Any] = []
            try:
                name = arguments.get("name") or "Variable"
                variable = creator(next_creator, **self._prepared(name, arguments, given))
                self._register(name, variable, given)
            finally:
                self._creating = False
            return variable

        return watch

    def _register(self, name: str, variable: Any, given: list[Any]) -> None:
        if not variable.dtype.base_dtype.is_floating:
            return
        triple = _triple(name, variable)
        key = _key(triple, self._seen[triple])
        self._seen[triple] += 1
        self._entries[key] = _Entry(weakref.ref(variable), variable.name.removesuffix(":0"))
        value = _value(variable) if tf.executing_eagerly() else _constant(given)
        if value is not None:
            self._initial[key] = value

    def _prepared(self, name: str, arguments: Mapping[str, Any], given: list[Any]) -> dict[str, Any]:
        initial = arguments.get("initial_value")
        # A value that comes out of a checkpoint carries bookkeeping of the restore, and is not drawn.
        if initial is None or hasattr(initial, "checkpoint_position"):
            return dict(arguments)

        if self._wide and arguments.get("dtype") is None and python_floats(initial):
            arguments = {**arguments, "dtype": tf.float64}

        def prepared() -> Any:
            # In graphs a step begins before all that is made in a tape's block; an initial value that waited for that
            # could not be lifted out of the function, which TensorFlow then runs in a branch, where Keras' RNNs fail.
            with tf.control_dependencies(None):
                value = initial() if callable(initial) and not isinstance(initial, tf.Variable) else initial
                if self._forced or self._scatter:
                    value = self._changed(name, value, arguments.get("dtype"))
            given[:] = [value]
            return value

        ready = tf.autograph.experimental.do_not_convert(prepared) if callable(initial) else prepared()
        return {**arguments, "initial_value": ready}

    def _changed(self, name: str, initial: Any, dtype: Any) -> Any:
        value = tf.convert_to_tensor(initial, dtype=dtype)
        if not value.dtype.is_floating or not value.shape.is_fully_defined():
            return value
        if self._scatter:
            constant = tf.get_static_value(value)
            # Zeros of slots and biases are not drawn; left as they are, they stay known inside graphs.
            alike = constant is not None and constant.size > 0 and np.ptp(constant) == 0
            return value if alike else value + self._offset(value)
        triple = _triple(name, value)
        forced = self._forced.get(_key(triple, self._seen[triple]))
        return value if forced is None else tf.cast(tf.constant(forced), value.dtype)

    def _offset(self, value: Any) -> Any:
        wide = tf.cast(value, tf.float32)
        seed = [self._scatter, sum(self._seen.values())]
        noise = tf.random.stateless_normal(value.shape, seed) * tf.math.reduce_std(wide)
        return tf.cast(noise, value.dtype)


def _triple(name: str, value: Any) -> Triple:
    shape = tuple(value.shape) if value.shape.is_fully_defined() else (-1,)
    return name, shape, value.dtype.base_dtype.name


def _key(triple: Triple, occurrence: int) -> str:
    name, shape, dtype = triple
    return f"{name}|{'x'.join(map(str, shape))}|{dtype}|{occurrence}"


def _constant(given: list[Any]) -> Array | None:
    value = tf.get_static_value(given[0]) if given and tf.is_tensor(given[0]) else None
    return None if value is None else _wide(value)


def _value(variable: Any) -> Array | None:
    with tf.init_scope():
        # Reading one that is not gives, by TensorFlow version, an error or an empty array.
        if not variable.is_initialized():
            return None
        value = variable.numpy()
    return _wide(value)


def wide_dtype(dtype: Any) -> Any:
    """The dtype in which traces hold `dtype`: NumPy cannot store every half precision."""
    return tf.float32 if dtype.size < 4 else tf.as_dtype(dtype).base_dtype


def _wide(value: Array) -> Array:
    return value.astype(np.float32) if value.dtype.itemsize < 4 else np.array(value)
