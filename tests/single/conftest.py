"""One process that is told it is a rank of a larger job, for what needs no other rank."""

import os

import pytest

from tfdp.runtime.foundation import ReduceOp, Topology
from tfdp.runtime.gradients import FINGERPRINT
from tfdp.runtime.job import membership as job


class Shelf:
    """A store that remembers what was published and never waits."""

    def __init__(self):
        self.values = {}

    def publish(self, key, value, readers=None):  # noqa: ARG002 - the store's signature
        self.values[key] = value

    def fetch(self, key, timeout=None, publisher=None):  # noqa: ARG002 - the store's signature
        return self.values[key]


class Echo:
    """A transport that records the calls; every rank is this one."""

    def __init__(self, size):
        self.name, self.size, self.calls = "echo", size, []

    def allreduce(self, tensors, op, label):
        self.calls.append(("allreduce", op, len(tensors), label))
        passed = self._passed(tensors)
        if label.tensors[-1:] == (FINGERPRINT,):  # each rank's stands at a place of its own
            passed[-1] = self._of_all(passed[-1], op)
        return passed

    def _of_all(self, mine, op):
        import tensorflow as tf

        own = tf.reduce_sum(tf.reshape(mine, [self.size, -1]), 0)
        return tf.tile(own / self.size if op is ReduceOp.AVERAGE else own, [self.size])

    def allgather(self, tensor, label):
        import tensorflow as tf

        self.calls.append(("allgather", label))
        (tensor,) = self._passed([tensor])
        return tf.concat([tensor] * self.size, 0), tf.fill([self.size], tf.shape(tensor, tf.int64)[0])

    def _passed(self, tensors):
        import tensorflow as tf

        if tf.executing_eagerly():
            return list(tensors)
        passed = tf.numpy_function(lambda *arrays: list(arrays), list(tensors), [each.dtype for each in tensors])
        for after, before in zip(passed, tensors, strict=True):
            after.set_shape(before.shape)
        return passed


@pytest.fixture
def be_rank(monkeypatch):
    """`be_rank(1, 3)` makes this process rank 1 of 3, until the test ends; gives the job."""

    def become(rank, size):
        topology = Topology(rank, size, rank, size, 0, 1)
        current = job.Job(topology, Shelf(), Echo(size), 1234)
        monkeypatch.setattr(job._process, "job", current)
        monkeypatch.setattr(job._process, "pid", os.getpid())
        return current

    return become


@pytest.fixture(autouse=True)
def one_worker(be_rank):
    """Without more said, the job has one worker."""
    return be_rank(0, 1)
