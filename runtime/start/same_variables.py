"""Do the ranks' variables stay the same? Averaged gradients of different models train nothing, and nobody notices.

The variables are compared whole before the first exchange of gradients (`same_start`). Later a fingerprint of them
travels inside the exchange that there is anyway: after 1, 2, 4, 8, ... exchanges, and then with every 64th. It covers
all updates before.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..data import Taken, last_taken
from ..foundation import TfdpError, call_site
from ..framework import Variable, floats_of, half_bytes, in_python, name_of
from ..gradients import values_of
from ..job import Job, runs_as_written
from .last_look import NEAR, note_slices
from .row_independence import refuse_mixing
from .same_start import compare, digests, list_number, ranks_and_names

_EVERY = 64
_FINGERPRINT = 16  # half bytes of 64 bits
_BATCH = 8  # half bytes of a hash of which batch has been taken
_NORM = 8  # half bytes of a float32


class _Eager:
    """How many exchanges were called eagerly for each list of variables."""

    def __init__(self) -> None:
        self.exchanges: dict[int, int] = {}


_eager = _Eager()


def watched(variables: Sequence[Variable], sparse: Sequence[Variable], job: Job) -> "Watch | None":
    """Sees whether the ranks hold the same variables, at an exchange of gradients for just this list.

    Args:
        variables: the same list at each exchange; which exchange is the first does not depend on tracing, as ranks
            whose batches have different shapes trace at different steps.
        sparse: those that get slices.

    Raises:
        TfdpError: a model that holds one of the variables mixes the examples of a batch.
    """
    if runs_as_written():  # and starts by itself: before its broadcast the ranks hold different values
        return None
    refuse_mixing(variables)
    return Watch(variables, sparse, job) if variables else None


class Watch:
    """What one exchange of gradients carries of the variables that they are for.

    What travels are half bytes, each a small number that every dtype of gradients holds and whose average over the
    ranks is exact enough: each rank's stand at a place of its own, beside zeros.
    """

    def __init__(self, variables: Sequence[Variable], sparse: Sequence[Variable], job: Job) -> None:
        """`sparse` are those of the variables that get slices: they, and others of their shapes, which may be their
        slots, are compared by norm."""
        shapes = {tuple(each.shape) for each in sparse}
        note_slices(shapes)
        self._variables, self._job, self._site = variables, job, call_site()
        self._near = [each for each in variables if tuple(each.shape) in shapes]
        self._exact = [each for each in variables if tuple(each.shape) not in shapes]
        self._width = _FINGERPRINT + _BATCH + _NORM * len(self._near)
        number = list_number(variables)
        self._before = _eager_count(number) if tf.executing_eagerly() else _graph_count(f"tfdp/exchanges/{number}")
        self._due = _is(self._before & (self._before - 1), 0) | _is(self._before % _EVERY, 0)

    def compared(self, gradients: Sequence[Any]) -> list[Any]:
        """Compares all values before the first exchange: what later operations must wait for in a graph.

        Args:
            gradients: those to be exchanged. In a graph it waits for them: a rank that gets no batch takes no part.

        Raises:
            TfdpError: a variable differs; on every rank.
        """
        waits = [values_of(each) for each in gradients if each is not None]
        with tf.control_dependencies(waits):
            first = _is(self._before, 0)
            found = _where(first, lambda: compare(self._variables, self._job), lambda: tf.constant(True))
        return [] if tf.executing_eagerly() else [found]

    def sent(self, dtype: tf.DType) -> Any:
        """The vector that travels, in a floating `dtype`; zeros where nothing is to be compared."""
        rank, size = self._job.topology.rank, self._job.topology.size

        def filled() -> Any:
            sides = [[rank * self._width, (size - 1 - rank) * self._width]]
            return tf.pad(tf.cast(self._half_bytes(), dtype), sides)

        with tf.device("CPU:0"):
            found = _where(self._due, filled, lambda: tf.zeros([size * self._width], dtype))
            return tf.stop_gradient(found)

    def received(self, total: Any, ranks: int) -> None:
        """Look at what has come: the sum of all ranks' vectors, or their average over `ranks`.

        Raises:
            TfdpError: a variable differs; on every rank, with its name.
        """

        def look() -> Any:
            whole = tf.cast(tf.round(tf.cast(total, tf.float32) * ranks), tf.int32)
            rows = tf.reshape(whole, [self._job.topology.size, self._width])
            prints, norms = rows[:, : _FINGERPRINT + _BATCH], _norms(rows[:, _FINGERPRINT + _BATCH :])
            apart = tf.abs(norms - norms[:1]) > NEAR * tf.abs(norms[:1])
            differs = tf.reduce_any(prints != prints[:1]) | tf.reduce_any(apart)
            return _where(differs, self._refuse, lambda: tf.constant(True))

        with tf.device("CPU:0"):
            looked = _where(self._due, look, lambda: tf.constant(True))
            if not tf.executing_eagerly():
                # The branch reads variables, and TensorFlow keeps no order between it and stateful operations that are
                # given none. This is one of those: collectives that follow wait, and none is cut off by an error.
                with tf.control_dependencies([looked]):
                    tf.raw_ops.VarHandleOp(dtype=tf.bool, shape=[], shared_name="tfdp/looked")

    def _half_bytes(self) -> Any:
        prints = [_fingerprint(each) for each in self._exact]
        whole = [_fingerprint(tf.concat(prints, 1))] if prints else [tf.zeros([1, 8], tf.uint8)]
        norms = [tf.bitcast(_norm(each), tf.uint8) for each in self._near]
        batch = tf.bitcast(in_python(_batch_number, [], tf.int32, []), tf.uint8)
        return half_bytes(tf.concat([tf.reshape(each, [-1]) for each in (*whole, batch, *norms)], 0))

    def _refuse(self) -> Any:
        """All ranks come here together: they have received the same.

        They say what they hold by the store: TensorFlow would not keep a collective here, in a branch that reads
        variables, before those of the script that follow.
        """
        count, names = len(self._exact), [name_of(each) for each in (*self._exact, *self._near)]

        def refuse(before: Any, *arrays: Any) -> Any:
            norms = [np.linalg.norm(np.asarray(array, np.float64)) for array in arrays[count:]]
            said = [json.dumps(last_taken()), *map(int, digests(*arrays[:count])), *map(float, norms)]
            batches, by_rank = np.split(_shared(self._job, said), [1], 1)
            if (batches != batches[0]).any():
                raise TfdpError(_other_batches([Taken(*json.loads(each)) for each in batches[:, 0]], self._site))
            exact, near = by_rank[:, :count], by_rank[:, count:].astype(np.float64)
            differs = np.concatenate([exact != exact[:1], np.abs(near - near[:1]) > NEAR * np.abs(near[:1])], 1)
            raise TfdpError(_message(names, differs, int(before), self._site))

        values = [tf.convert_to_tensor(each) for each in (*self._exact, *self._near)]
        return in_python(refuse, [tf.convert_to_tensor(self._before), *values], tf.bool, [])


def _shared(job: Job, mine: list[Any]) -> Any:
    """What each rank says, by rank: objects, shape `[ranks, len(mine)]`."""
    _alarms.count += 1
    key, ranks = f"variables have come apart/{_alarms.count}", range(job.topology.size)
    job.store.publish(f"{key}/{job.topology.rank}", json.dumps(mine).encode())
    others = {r: json.loads(job.store.fetch(f"{key}/{r}", publisher=r)) for r in ranks if r != job.topology.rank}
    found = np.empty([len(ranks), len(mine)], object)
    for rank in ranks:
        found[rank] = others.get(rank, mine)
    return found


class _Alarms:
    """How often this process has seen variables come apart: equally often on all ranks."""

    count = 0


_alarms = _Alarms()


def _message(names: Sequence[str], differs: Any, updates: int, site: str) -> str:
    which = ranks_and_names(names, differs)
    return (
        f"{which} in the exchange of gradients at {site}, after {updates} exchange(s): the ranks no longer train the "
        "same model. Something gives a variable a value of this rank alone: an assignment of what was computed from "
        "its own examples, or one under a condition that only some ranks met. Assign what is the same on all ranks, "
        "such as dp.allreduce(value)"
    )


def _batch_number() -> Any:
    """A hash of which batch the loops of this rank's script have taken last; 0 where that is not seen."""
    taken = last_taken()
    return np.int32(zlib.crc32(f"{taken.source}/{taken.batch}".encode()) // 2 if taken.batch else 0)


def _other_batches(taken: Sequence[Taken], site: str) -> str:
    said = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(taken))
    return (
        f"the exchange of gradients at {site} is of different batches on the ranks ({said}): a step of one rank meets "
        "another step of the others. A rank has left out a batch, or has taken one more: decide that by a value that "
        "all ranks share, such as dp.agree(answer)"
    )


def _eager_count(number: int) -> int:
    before = _eager.exchanges.get(number, 0)
    _eager.exchanges[number] = before + 1
    return before


def _graph_count(name: str) -> Any:
    """In a graph: how often graphs with a count of this name came here before, in this process; an int64 tensor.

    It is a TensorFlow variable known by name alone. A `tf.Variable` would be captured by the user's function, which
    could then not be saved; a count in Python would cost a call into Python at each step.
    """
    with tf.device("CPU:0"):
        # TensorFlow keeps stateful operations in order that are given no variable: this one and the collectives before
        # it. What is given the handle comes after them too.
        handle = tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[], shared_name=name)
        begun = tf.raw_ops.VarIsInitializedOp(resource=handle)
        before = tf.cond(
            begun,
            lambda: tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.int64),
            lambda: tf.constant(0, tf.int64),
        )
        counted = tf.raw_ops.AssignVariableOp(resource=handle, value=before + 1)
        with tf.control_dependencies([counted]):  # before the exchange, after which it may be counted again
            return tf.identity(before)


def _is(value: Any, number: int) -> Any:
    return value == number if isinstance(value, int) else tf.equal(value, number)


def _where(condition: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    if tf.executing_eagerly():
        return then() if bool(condition) else other()
    return tf.cond(condition, then, other)


def _fingerprint(value: Any) -> Any:
    """64 bits of a tensor's bytes, shape `[1, 8]`: 25 million parameters take 4 ms."""
    return tf.raw_ops.Fingerprint(data=tf.reshape(tf.convert_to_tensor(value), [1, -1]), method="farmhash64")


def _norm(value: Any) -> Any:
    return tf.norm(tf.cast(tf.convert_to_tensor(value), tf.float32))


def _norms(found: Any) -> Any:
    """The float32 numbers of rows of half bytes."""
    return floats_of(tf.reshape(found, [tf.shape(found)[0], -1, 4, 2]))
