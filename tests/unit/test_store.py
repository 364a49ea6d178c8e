"""The store over real socketpairs: the server's thread and the ranks' connections, all in this process."""

import os
import threading

import pytest
from in_threads import PATIENCE, in_thread

from tfdp.runtime.agent.store_server import StoreServer
from tfdp.runtime.foundation import (
    JobAborted,
    LaunchEnvironmentError,
    RankFinishedError,
    StoreEvictedError,
    StoreTimeout,
)
from tfdp.runtime.store import HELLO, LAST, REFUSED, WELCOME, Frame, SocketStore, SoloStore
from tfdp.runtime.store.client import _receive


class Ranks:
    """A server and the connections of `size` ranks to it."""

    def __init__(self, size, limit_bytes=2**30):
        self.server = StoreServer(size, "job", limit_bytes)
        self.fds = [os.dup(end.fileno()) for end in self.server.ends.values()]
        self.server.start()
        self.lost = [threading.Event() for _ in range(size)]
        self.stores = [SocketStore(fd, rank, "job", PATIENCE, self.lost[rank].set) for rank, fd in enumerate(self.fds)]


@pytest.fixture
def ranks():
    made = []

    def make(*args, **kwargs):
        made.append(Ranks(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.server.close()
        assert all(lost.wait(PATIENCE) for lost in each.lost), "the end of the server is noticed by every rank"


def test_what_one_rank_publishes_the_others_fetch(ranks):
    zero, one, two = ranks(3).stores
    zero.publish("k", b"value")
    assert one.fetch("k") == b"value"
    assert two.fetch("k") == b"value"
    with pytest.raises(StoreEvictedError, match=r"rank 1 cannot fetch 'k': it was published for 2 readers"):
        one.fetch("k")


def test_a_fetch_waits_for_the_publication(ranks):
    zero, one = ranks(2).stores
    result = in_thread(one.fetch, "late")
    zero.publish("late", b"")
    assert result() == b""


def test_several_threads_wait_for_several_keys(ranks):
    zero, one = ranks(2).stores
    results = {key: in_thread(one.fetch, key) for key in "abcdef"}
    for key in "fdbeca":
        zero.publish(key, key.encode() * 3)
    assert {key: result() for key, result in results.items()} == {key: key.encode() * 3 for key in "abcdef"}


def test_what_all_say_comes_back_by_rank(ranks):
    stores = ranks(3).stores
    results = [in_thread(store.gather, "k", str(rank).encode() * rank) for rank, store in enumerate(stores)]
    assert [result() for result in results] == [[b"", b"1", b"22"]] * 3
    results = [in_thread(store.gather, "k", b"again") for store in stores]
    assert [result() for result in results] == [[b"again"] * 3] * 3


def test_nobody_waits_for_what_a_rank_that_has_ended_does_not_say(ranks):
    job = ranks(3)
    results = [in_thread(job.stores[rank].gather, "k", b"") for rank in (0, 2)]
    job.server.finished(1)
    for result in results:
        with pytest.raises(RankFinishedError, match="rank 1 has ended without having said it"):
            result()
    with pytest.raises(RankFinishedError, match="rank 1 has ended"):
        job.stores[0].gather("later", b"")


def test_a_failure_ends_what_all_were_to_say(ranks):
    job = ranks(2)
    result = in_thread(job.stores[0].gather, "k", b"")
    job.server.abort("rank 1 ended with signal SIGKILL")
    with pytest.raises(JobAborted, match="SIGKILL"):
        result()
    with pytest.raises(JobAborted, match="SIGKILL"):
        job.stores[0].gather("k", b"")


def test_large_values_go_both_ways_at_once(ranks):
    zero, one = ranks(2).stores
    data = os.urandom(2**20) * 24
    sending = [in_thread(zero.publish, "up", data), in_thread(one.publish, "down", data[::-1])]
    assert one.fetch("up") == data
    assert zero.fetch("down") == data[::-1]
    for sent in sending:
        sent()


def test_a_timeout_names_the_key_and_later_values_do_not_answer_it(ranks):
    zero, one = ranks(2).stores
    with pytest.raises(StoreTimeout, match=r"rank 1 has waited 0.01 s at \S+ for 'never', which nobody has published"):
        one.fetch("never", timeout=0.01)
    zero.publish("never", b"now")
    assert one.fetch("never") == b"now"


def test_a_full_store_says_that_a_value_was_dropped(ranks):
    zero, one = ranks(2, limit_bytes=10).stores
    zero.publish("a", b"12345678")
    zero.publish("b", b"12345678")
    assert one.fetch("b") == b"12345678"
    with pytest.raises(StoreEvictedError, match="Set TFDP_STORE_BYTES higher"):
        one.fetch("a")


def test_the_first_failure_ends_every_wait_and_every_later_fetch(ranks):
    job = ranks(2)
    result = in_thread(job.stores[1].fetch, "never")
    job.server.abort("rank 0 ended with signal SIGKILL")
    with pytest.raises(JobAborted, match="rank 0 ended with signal SIGKILL"):
        result()
    with pytest.raises(JobAborted, match="rank 0 ended with signal SIGKILL"):
        job.stores[1].fetch("other")


def test_a_publisher_that_has_ended_is_not_waited_for(ranks):
    job = ranks(3)
    result = in_thread(job.stores[1].fetch, "never", publisher=0)
    job.stores[0].publish("last", b"word")
    job.server.finished(0)
    with pytest.raises(RankFinishedError, match=r"rank 1 cannot fetch 'never': rank 0 has ended without having"):
        result()
    assert job.stores[1].fetch("last", publisher=0) == b"word"


def test_a_publisher_that_waits_at_its_end_is_not_waited_for(ranks):
    job = ranks(3)
    early = in_thread(job.stores[1].fetch, "never", publisher=0)
    last = in_thread(job.stores[0].gather, LAST, b"0")
    for fetch in (early, lambda: job.stores[2].fetch("other", publisher=0)):
        with pytest.raises(RankFinishedError, match="rank 0 has ended without having published it"):
            fetch()
    others = [in_thread(job.stores[rank].gather, LAST, b"0") for rank in (1, 2)]
    assert [each() for each in (last, *others)] == [[b"0"] * 3] * 3
    job.stores[0].publish("other", b"after all")
    assert job.stores[2].fetch("other", publisher=0) == b"after all"


def test_a_rank_may_end_after_another_has_given_up_waiting_for_it(ranks):
    job = ranks(2)
    job.stores[0]._stall_seconds = 0.01
    with pytest.raises(StoreTimeout):
        job.stores[0].gather("k", b"")
    job.server.finished(1)
    with pytest.raises(RankFinishedError, match="rank 1 has ended"):
        job.stores[0].gather("k", b"")


def test_a_fetch_ends_when_nobody_is_left_to_publish(ranks):
    job = ranks(3)
    result = in_thread(job.stores[2].fetch, "never")
    job.server.finished(0)
    job.server.finished(1)
    with pytest.raises(RankFinishedError, match="all other ranks have ended"):
        result()


def test_a_second_process_cannot_be_the_same_rank():
    server = StoreServer(1, "job", 10)
    connection = server.ends[0].dup()
    server.start()
    answers = []
    for pid in (b"100", b"200"):
        for part in Frame(HELLO, key="job", value=pid).buffers():
            connection.sendall(part)
        answers.append(_receive(connection))
    assert answers[0].kind == WELCOME
    assert answers[1].kind == REFUSED
    assert "process 100 is rank 0 already; process 200 cannot be it too" in answers[1].value.decode()
    server.close()
    connection.close()


def test_another_job_is_refused():
    server = StoreServer(1, "job", 10)
    fd = os.dup(server.ends[0].fileno())
    server.start()
    with pytest.raises(LaunchEnvironmentError, match="runs another job"):
        SocketStore(fd, 0, "other", PATIENCE, lambda: None)
    server.close()


def test_a_file_descriptor_that_is_something_else():
    reader, writer = os.pipe()
    with pytest.raises(LaunchEnvironmentError, match=f"file descriptor {reader} does not lead to the launcher"):
        SocketStore(reader, 0, "job", PATIENCE, lambda: None)
    os.close(reader)
    os.close(writer)
    with pytest.raises(LaunchEnvironmentError, match="file descriptors are not passed on to grandchildren"):
        SocketStore(reader, 0, "job", PATIENCE, lambda: None)


def test_alone_there_is_nothing_to_fetch():
    store = SoloStore()
    store.publish("k", b"value")
    with pytest.raises(RankFinishedError, match="nobody can publish 'k': this job has one worker"):
        store.fetch("k", timeout=600)
