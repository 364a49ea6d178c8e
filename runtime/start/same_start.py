"""The first time that gradients go through a distributed tape: do all ranks hold the same variables?

Averaged gradients of different models train nothing, and nobody notices. The check costs one small exchange at the
first execution and a test of a flag at the others.
"""

import hashlib
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, call_site
from ..framework import Variable, name_of
from ..job import Job
from ..transports import Label
from .state import creation_ordinals


class _Lists:
    """Lists of variables by identity, with a number for each."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._known: dict[tuple[int, ...], tuple[int, tuple[weakref.ref[Variable], ...]]] = {}
        self.compared_eagerly: set[int] = set()

    def number(self, variables: Sequence[Variable]) -> int:
        """The number of this list of variables, the same each time."""
        identity = tuple(map(id, variables))
        number, references = self._known.get(identity, (-1, ()))
        # An id is used again once its object is gone.
        if number < 0 or any(ref() is not each for ref, each in zip(references, variables, strict=True)):
            number = next(self._numbers)
            self._known[identity] = number, tuple(map(weakref.ref, variables))
        return number


_lists = _Lists()


def check_same_start(variables: Sequence[Variable], job: Job) -> list[Any]:
    """Compare the variables over the ranks, the first time that gradients for just this list are executed.

    Which execution is the first does not depend on tracing: ranks whose batches have different shapes trace at
    different steps.

    Returns:
        What later operations must wait for in a graph.

    Raises:
        TfdpError: a variable differs; on every rank.
    """
    if not variables:
        return []
    number = _lists.number(variables)
    if not tf.executing_eagerly():
        return [_first_time(f"tfdp/compared/{number}", lambda: _compare(variables, job))]
    if number not in _lists.compared_eagerly:
        _lists.compared_eagerly.add(number)
        _compare(variables, job)
    return []


def _first_time(flag: str, action: Callable[[], Any]) -> Any:
    """In a graph: `action()`, a bool tensor, at the first execution in this process of any graph with this flag.

    The flag is a TensorFlow variable known by name alone. A `tf.Variable` would be captured by the user's function,
    which could then not be saved; a Python flag would cost a call into Python at each step.
    """
    with tf.device("CPU:0"):
        # TensorFlow keeps stateful operations in order that are given no variable: this one and the collectives before
        # it. The `If` is given the handle, so it comes after them too; what comes after it must wait for its result.
        handle = tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name=flag)
        done = tf.raw_ops.VarIsInitializedOp(resource=handle)

    def first() -> Any:
        result = action()
        with tf.device("CPU:0"), tf.control_dependencies([result]):
            tf.raw_ops.AssignVariableOp(resource=handle, value=tf.constant(True))
        return result

    return tf.cond(done, lambda: tf.constant(True), first)


def _compare(variables: Sequence[Variable], job: Job) -> Any:
    names, site, places = [name_of(each) for each in variables], call_site(), _places(variables)

    def compare(all_numbers: Any, counts: Any) -> Any:
        if (counts != counts[0]).any():
            raise TfdpError(_other_number(names, job.topology.rank, site))
        numbers = np.reshape(all_numbers, (job.topology.size, 2, len(names)))
        _refuse_other_order(names, numbers[:, 0], job.topology.rank, site)
        by_rank = numbers[:, 1]
        differs = (by_rank != by_rank[0]).any(axis=0)
        if differs.any():
            raise TfdpError(_message(names, by_rank, differs, site))
        return np.True_

    digests = _in_python(_digests, [tf.convert_to_tensor(each) for each in variables], tf.int64, [len(names)])
    digests = tf.concat([tf.constant(places, tf.int64), digests], 0)
    gathered, counts = job.transport.allgather(digests, Label("values of variables before their first gradient", site))
    return _in_python(compare, [gathered, counts], tf.bool, [])


def _other_number(names: Sequence[str], rank: int, site: str) -> str:
    return (
        f"the ranks hold different numbers of variables before their first gradient at {site}; rank {rank} holds "
        f"{len(names)}: {', '.join(names)}. Build the same models and optimizers on all ranks, and restore checkpoints "
        "on all of them"
    )


def _places(variables: Sequence[Variable]) -> list[int]:
    """Of each variable, how many others in the list were created before it; -1 where that is not known.

    Ranks agree in this, whatever else one of them alone has created, as long as they list the variables in one order.
    """
    ordinals = creation_ordinals()
    created = [ordinals.get(id(each.handle), -1) for each in variables]
    order = {ordinal: place for place, ordinal in enumerate(sorted({*created} - {-1}))}
    return [order.get(ordinal, -1) for ordinal in created]


def _refuse_other_order(names: Sequence[str], by_rank: Any, rank: int, site: str) -> None:
    known = (by_rank >= 0).all(axis=0)
    differs = known & (by_rank != by_rank[0]).any(axis=0)
    if not differs.any():
        return
    column = int(np.argmax(differs))
    ranks = np.flatnonzero(by_rank[:, column] != by_rank[0, column]).tolist()
    raise TfdpError(
        f"the variables come in another order on rank(s) {', '.join(map(str, ranks))} than on rank 0 at {site}: number "
        f"{column + 1} is {names[column]} on rank {rank}. Gradients of different variables would be averaged. A set "
        "has another order in each process: use a list or a dict"
    )


def _message(names: Sequence[str], by_rank: Any, differs: Any, site: str) -> str:
    column = int(np.argmax(differs))
    ranks = np.flatnonzero(by_rank[:, column] != by_rank[0, column]).tolist()
    more = f" and {int(differs.sum()) - 1} more variables" if differs.sum() > 1 else ""
    return (
        f"{names[column]}{more} differ on rank(s) {', '.join(map(str, ranks))} from rank 0's before the first gradient "
        f"at {site}: the ranks would train different models. Call dp.broadcast_state(model, optimizer) before the "
        "training loop and after restoring a checkpoint, and build the same models in the same order on all ranks"
    )


def _in_python(function: Callable[..., Any], tensors: Sequence[Any], dtype: Any, shape: Sequence[int]) -> Any:
    if tf.executing_eagerly():
        return tf.constant(function(*(tensor.numpy() for tensor in tensors)), dtype)
    result = tf.numpy_function(function, tensors, dtype)
    result.set_shape(shape)
    return result


def _digests(*arrays: Any) -> Any:
    hashed = (hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).digest() for array in arrays)
    return np.array([int.from_bytes(digest, "little", signed=True) for digest in hashed], np.int64)
