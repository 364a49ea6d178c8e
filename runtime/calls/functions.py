"""Functions of batches that are no Keras layers."""

from __future__ import annotations

import functools
import operator
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tensorflow as tf

from ..framework import leave_ours, raw, transparent
from ..job import shards_calls, size
from ..keras import is_keras
from ..start import live_generators, live_variables
from . import division, guard, replaced
from .callee import Callee
from .compiled_inside import plain_of
from .kept import Kept
from .own_code import tensors_of
from .stateless import generator_state, of_keras

_F = TypeVar("_F", bound=Callable[..., Any])
_OWN = ("tensorflow", "tfdp")  # whose modules no script calls


def by_rows(function: _F) -> _F:
    """A function that gives each row of a batch a result of its own, as `dp.init(shard_calls=True)` divides it.

    Where a `tf.GradientTape` records a call, each worker computes its own rows of the tensors that have the batch's
    length, and all results are gathered. All operations are seen: a function that does with rows what is not known to
    keep them apart, draws by rows that cannot be told, writes, or leaves tensors elsewhere when it is first called is
    called whole. With one worker, or without `shard_calls`, the function is given back as it is.

    Raises:
        TfdpError: where a call that has been divided does so later.
    """
    if not shards_calls() or size() == 1:
        return function
    name = getattr(function, "__qualname__", type(function).__qualname__)

    @transparent
    @functools.wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        return division.called(functools.partial(_callee, function, name), arguments, options)

    found: _F = called  # type: ignore[assignment]
    return found


def matmul(left: Any, right: Any) -> Any:
    """`left @ right`, as `by_rows` would divide it."""
    return by_rows(operator.matmul)(left, right)


def hook_modules() -> None:
    """Divides the calls of all `tf.Module`s that are no Keras layers, of classes there are and classes yet to be made,
    as `by_rows` would."""

    def made(cls: type[Any], /, **options: Any) -> None:
        super(tf.Module, cls).__init_subclass__(**options)
        _hook(cls)

    tf.Module.__init_subclass__ = classmethod(made)
    leave_ours()
    for each in _below(tf.Module):
        _hook(each)


def _below(owner: type[Any]) -> Iterator[type[Any]]:
    for each in type.__subclasses__(owner):
        yield each
        yield from _below(each)


def compiled(function: Any, call: Callable[..., Any]) -> Callable[..., Any] | None:
    """`call`, which is that of a `tf.function`, divided, where that is the call of a module; else None."""
    if not division.is_due():
        return None
    plain, owner = plain_of(function)
    if not (isinstance(plain, types.FunctionType) and isinstance(owner, tf.Module) and _is_scripts(type(owner))):
        return None
    written = next((vars(base)["__call__"] for base in type(owner).__mro__ if "__call__" in vars(base)), None)
    if getattr(written, "python_function", None) != plain:
        return None  # another method
    bound = types.MethodType(plain, owner)
    callee = functools.partial(_callee, bound, type(owner).__qualname__, call=call)
    return lambda *arguments, **options: division.called(callee, arguments, options)


def _is_scripts(owner: type[Any]) -> bool:
    return not is_keras(owner) and owner.__module__.split(".")[0] not in _OWN


def _hook(owner: type[Any]) -> None:
    """A call that is a `tf.function` is left, as it is saved by what it is: see `compiled`."""
    original = vars(owner).get("__call__")
    if not isinstance(original, types.FunctionType) or not _is_scripts(owner):
        return

    # With the name of our module, from which AutoGraph knows that it is not to be compiled.
    @functools.wraps(original, assigned=("__name__", "__qualname__", "__doc__"))
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        function = types.MethodType(original, self)
        return division.called(functools.partial(_callee, function, owner.__qualname__), arguments, options)

    setattr(owner, "__call__", called)  # noqa: B010 - mypy takes no assignment to a method


def _callee(function: Any, name: str, call: Callable[..., Any] | None = None) -> Callee:
    owner = _owner(function)
    return Callee(
        call or functools.partial(_as_written, function),
        owner,
        name,
        _kept,
        is_atom=False,
        state=_state(function),
        code=guard.Code(owner, function, replaced.functions()),
        takes_arrays=True,
    )


def _state(function: Any) -> Any:
    """Which method of an object it is, the object's parts, and which attributes of that, or of the modules in it, hold
    tensors."""
    bound = getattr(function, "__self__", None)
    parts = list(_parts(bound))
    modules = (bound, *(each for each in parts if isinstance(each, tf.Module)))
    return getattr(function, "__qualname__", ""), id(bound), tuple(map(id, parts)), tuple(map(tensors_of, modules))


def _parts(thing: Any) -> Iterator[Any]:
    """The modules and layers that an object holds, also in lists and dictionaries."""
    for value in getattr(thing, "__dict__", {}).values():
        held = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else [value]
        yield from (each for each in held if isinstance(each, tf.Module) or hasattr(each, "_flatten_layers"))


def _as_written(function: Any, *arguments: Any, **options: Any) -> Any:
    """By AutoGraph, where it compiles what calls the function: it takes `float(x)` for a tensor, with a gradient."""
    internal = tf.__internal__.autograph
    status = internal.control_status_ctx()
    called = internal.tf_convert(function, status) if status.status.name == "ENABLED" else function
    return called(*arguments, **options)


def _owner(function: Any) -> Any:
    """What a look, and a graph, hold for, as long as it lives: the object that a method is of, where it can be kept
    track of. A method is another object each time it is asked for."""
    bound = getattr(function, "__self__", None)
    if bound is None:
        return function
    try:
        hash(bound), weakref.ref(bound)
    except TypeError:
        return getattr(type(bound), function.__name__, function)
    return bound


def _kept() -> Kept:
    variables, generators = ([raw(each) for each in found] for found in (live_variables(), live_generators()))
    needed = [*variables, *map(raw, generator_state())]
    return Kept(needed, [*variables, *generators], list(of_keras()), generators)
