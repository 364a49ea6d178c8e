"""Where every worker computes everything, for no exchange can be made there.

`tf.vectorized_map` and Jacobians run a graph for many rows at once, and lose gradients that functions define. What
`tf.data` maps over its elements runs in threads of its own, ahead of the script, and a thread of the script's own could
meet another one's exchanges on other workers. `tf.autodiff.ForwardAccumulator` pushes tangents forward, which no
division of rows knows of. Nothing public tells of the first.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..foundation import Inside, is_elsewhere
from ..framework import around_stages, transparent

_LOOPS = ("reduce", "scan", "take_while")  # what AutoGraph makes of a loop over a dataset
_ENTERED, _THREAD = "_tfdp_entered_while_accumulating", "_tfdp_entered_elsewhere"  # of a tape
_mapping, _staging, _accumulating = Inside(), Inside(), Inside()


def is_mapping() -> bool:
    """Whether this thread makes a graph for `tf.vectorized_map`, `tape.jacobian` or `tape.batch_jacobian`."""
    return bool(_mapping)


def is_without_exchanges() -> bool:
    """Whether this thread makes a graph that can have none: one for many rows at once, or a stage of a dataset."""
    return bool(_mapping or _staging)


def is_accumulating() -> bool:
    """Whether an accumulator of this thread records."""
    return bool(_accumulating)


def is_entered_accumulating(tape: Any) -> bool:
    """Whether a tape was entered where an accumulator records: all that it records is computed by all workers."""
    return bool(vars(tape).get(_ENTERED))


def is_entered_elsewhere(tape: Any) -> bool:
    """Whether a tape was entered in another thread than the main one, where nothing is divided: as those are that
    TensorFlow takes for `tf.py_function`."""
    return bool(vars(tape).get(_THREAD))


def places() -> tuple[bool, ...]:
    """In which of these places this thread is."""
    return bool(_mapping), bool(_staging), bool(_accumulating), is_elsewhere()


def watch_graphs_without_exchanges() -> None:
    """From now on `is_mapping` and `is_without_exchanges` know."""
    from tensorflow.python.ops.parallel_for import control_flow_ops

    map_rows = control_flow_ops.pfor

    @functools.wraps(map_rows)
    def pfor(*arguments: Any, **options: Any) -> Any:
        with _mapping.entered():
            return map_rows(*arguments, **options)

    control_flow_ops.pfor = pfor
    around_stages(_trace_stage)


def _trace_stage(trace: Callable[[], Any], name: str) -> None:
    is_loop = any(each in name for each in _LOOPS)
    with contextlib.nullcontext() if is_loop else _staging.entered():
        trace()


def watch_tapes() -> None:
    """From now on `is_accumulating`, `is_entered_accumulating` and `is_entered_elsewhere` know."""
    accumulator, tape = tf.autodiff.ForwardAccumulator, tf.GradientTape
    enter, leave, begin = accumulator.__enter__, accumulator.__exit__, tape.__enter__

    @functools.wraps(enter)
    def entered(self: Any) -> Any:
        found = enter(self)
        _accumulating.depth += 1
        return found

    @functools.wraps(leave)
    def left(self: Any, *what: Any) -> Any:
        _accumulating.depth -= 1
        return leave(self, *what)

    @functools.wraps(begin)
    def begun(self: Any) -> Any:
        vars(self)[_ENTERED], vars(self)[_THREAD] = is_accumulating(), is_elsewhere()
        return begin(self)

    accumulator.__enter__, accumulator.__exit__ = entered, left
    tape.__enter__ = transparent(begun)
