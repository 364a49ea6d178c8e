"""Functions of batches that are no Keras layers."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import tensorflow as tf

from ..framework import raw, transparent
from ..job import shards_calls, size
from ..start import live_generators, live_variables
from . import division, guard
from .effects import of_code
from .kept import Kept

_F = TypeVar("_F", bound=Callable[..., Any])


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
        owner = _owner(function)
        callee = division.Callee(
            functools.partial(_as_written, function),
            owner,
            name,
            functools.partial(_kept, function),
            is_atom=False,
            state=id(getattr(function, "__self__", 0)),
            code=guard.Code(owner, (function,)),
        )
        return division.called(callee, arguments, options)

    found: _F = called  # type: ignore[assignment]
    return found


def _as_written(function: Any, *arguments: Any, **options: Any) -> Any:
    """By AutoGraph, where it compiles what calls the function."""
    internal = tf.__internal__.autograph
    return internal.tf_convert(function, internal.control_status_ctx())(*arguments, **options)


def _owner(function: Any) -> Any:
    """What a look holds for: a method is another object each time it is asked for."""
    bound = getattr(function, "__self__", None)
    return function if bound is None else getattr(type(bound), function.__name__, function)


def _kept(function: Any) -> Kept:
    variables, generators = ([raw(each) for each in found] for found in (live_variables(), live_generators()))
    before, refused = of_code(function)
    return Kept(variables, [*variables, *generators], before, generators, refused)
