"""Whether all ranks have another group of batches: what rank 0 makes of what it hears."""

import json
import queue
import threading

import numpy as np
import pytest

from tfdp.runtime.data import common_end
from tfdp.runtime.data.batch_streams import Stream
from tfdp.runtime.data.common_end import CommonEnd, Place
from tfdp.runtime.foundation import TfdpError, errors


class Topology:
    def __init__(self, rank, size):
        self.rank, self.size = rank, size


class Job:
    def __init__(self, rank, size, store):
        self.topology, self.store = Topology(rank, size), store


class Store:
    """As much of the store as is used, for ranks that are threads."""

    def __init__(self):
        self.lock, self.kept = threading.Lock(), {}

    def box(self, key):
        with self.lock:
            return self.kept.setdefault(key, queue.SimpleQueue())

    def publish(self, key, value, readers=None):
        for _ in range(readers or 2):
            self.box(key).put(value)

    def fetch(self, key, timeout=None, publisher=None):  # noqa: ARG002 - as the real one
        return self.box(key).get(timeout=20)


def asked(*contents):
    """What each of three ranks hears that comes with these contents: True, False or the error."""
    store, heard = Store(), [None] * 3

    def ask(rank):
        end = CommonEnd(Job(rank, 3, store), "train.py:7", "s")
        try:
            if contents[rank] == "leaves":
                end.leave(Place(0, 4, 15))
            else:
                heard[rank] = end.go_on(Place(0, 4, 15), contents[rank])
        except errors.TfdpError as error:
            heard[rank] = str(error)

    ranks = [threading.Thread(target=ask, args=[rank]) for rank in range(3)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(20)
    return heard


def test_all_go_on_together():
    assert asked(5, 5, 5) == [True] * 3


def test_all_end_together():
    assert asked(None, None, None) == [False] * 3


@pytest.mark.parametrize("contents", [(5, None, 5), (None, 5, 5), (5, 6, None)])
def test_one_that_has_ended_ends_all(contents, monkeypatch):
    said = []
    monkeypatch.setattr(common_end, "say_once", said.append)
    assert asked(*contents) == [False] * 3
    (line,) = said
    assert line.startswith(f"train.py:7: the batches of rank(s) {contents.index(None)} end after 4 step(s) of pass 0")


@pytest.mark.parametrize("contents", [("leaves", 5, 5), (5, "leaves", 5)])
def test_nobody_waits_for_one_that_has_left(contents, monkeypatch):
    said = []
    monkeypatch.setattr(common_end, "say_once", said.append)
    assert [each for each in asked(*contents) if each is not None] == [False, False]
    assert said == []


def test_batches_that_differ_are_an_error_everywhere():
    messages = asked(5, 5, 6)
    assert len(set(messages)) == 1
    assert "differ on rank(s) 2 from rank 0's: batch 14 of pass 0" in messages[0]


def test_rank_0_does_not_take_back_what_it_has_answered(be_rank):
    """The others may read the answer after rank 0 has ended its pass by the error."""
    job = be_rank(0, 2)
    job.store.fetch = lambda key, publisher: b"1"  # noqa: ARG005 - another hash than that of rank 0's batches
    with pytest.raises(TfdpError, match=r"differ on rank\(s\) 1 from rank 0's"):
        next(iter(Stream(iter([np.zeros(4)] * 4), split=False, check=True).batches()))
    ((answer),) = job.store.values.values()
    assert json.loads(answer) == [[], [1]]
