"""Compiled functions: whether all that they change and keep could be put back in another process."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..foundation import Inside, is_elsewhere
from ..framework import around_stages, held_besides, hidden_states, python_in, when_compiled
from ..start import every_variable

_in_stage = Inside()


def watch_steps(seen: Callable[[str], None]) -> None:
    """From now on `seen(reason)` is called with each that is complete, but for stages of datasets, which are looked at
    by themselves; the reason is empty where all could be put back."""

    def compiled(graph: Any) -> None:
        if not _in_stage:
            seen(_unknown(graph))

    around_stages(_of_a_stage)
    when_compiled(compiled)


def watch_seeds(seen: Callable[[str], None]) -> None:
    """From now on `seen(reason)` is called where an operation draws at once by a seed of its own: it goes on by a state
    in its kernel, which nobody can read. What gives operations their seeds is private to TensorFlow."""
    from tensorflow.python.data.util import random_seed as of_datasets
    from tensorflow.python.framework import random_seed

    original = random_seed.get_seed

    @functools.wraps(original)
    def get_seed(op_seed: Any) -> Any:
        is_dataset_s = sys._getframe(1).f_code.co_filename == of_datasets.__file__
        if op_seed is not None and tf.executing_eagerly() and not (is_dataset_s or is_elsewhere()):
            seen("an operation draws by a seed of its own, outside of compiled functions")
        return original(op_seed)

    random_seed.get_seed = get_seed


def _of_a_stage(trace: Callable[[], Any], _: str) -> None:
    with _in_stage.entered():
        trace()


def _unknown(graph: Any) -> str:
    if names := python_in(graph):
        return f"a step runs Python ({', '.join(names)})"
    if names := hidden_states(graph):
        return f"a step uses {', '.join(names)}, which keeps a state"
    if _is_outermost(graph) and held_besides(graph, {id(each.handle) for each in every_variable() if each is not None}):
        return "a step uses an iterator, a table or the like from outside of it"
    return ""


def _is_outermost(graph: Any) -> bool:
    """Whether what a graph captures comes from no other graph."""
    return all(hasattr(outside, "numpy") for outside, _ in graph.captures)
