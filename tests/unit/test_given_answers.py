"""What rank 0 was answered, found by another rank over a real store: by place, else by words."""

import os
import pickle

import pytest
from in_threads import PATIENCE

from tfdp.runtime.agent.store_server import StoreServer
from tfdp.runtime.store import Answer, Given, SocketStore, Taken


@pytest.fixture
def sides():
    server = StoreServer(2, "job", 2**30)
    ends = [os.dup(end.fileno()) for end in server.ends.values()]
    server.start()
    zero, one = (SocketStore(fd, rank, "job", PATIENCE, lambda: None) for rank, fd in enumerate(ends))
    yield Given(zero), Taken(one, lambda: True)
    server.close()


def _given(given, *asked):
    for place, said, value in asked:
        given.put(Answer(place, said, False, pickle.dumps(value)))
    given.end()


def _taken(taken, place, said):
    answer = taken.take(place, said)
    return None if answer is None else pickle.loads(answer.value)


def test_answers_are_found_by_place_and_those_before_by_their_words(sides):
    given, taken = sides
    _given(given, (b"a", b"x", 1), (b"b", b"y", 2), (b"c", b"x", 3))
    assert _taken(taken, b"b", b"y") == 2
    assert _taken(taken, b"c", b"x") == 3
    assert _taken(taken, b"elsewhere", b"y") is None, "taken already: it was this rank's own"
    assert _taken(taken, b"elsewhere", b"x") == 1


def test_a_question_that_rank_0_never_asks_drops_no_answer(sides):
    given, taken = sides
    _given(given, (b"a", b"x", 1), (b"b", b"y", 2), (b"a", b"x", 3))
    assert _taken(taken, b"elsewhere", b"z") is None
    assert _taken(taken, b"elsewhere", b"x") == 1
    assert [_taken(taken, b"a", b"x"), _taken(taken, b"b", b"y"), _taken(taken, b"a", b"x")] == [1, 2, 3]
