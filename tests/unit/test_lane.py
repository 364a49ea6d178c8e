"""The way to TensorFlow's collectives, without TensorFlow: the ranks are threads, the collectives are imagined."""

import os
import sys
import threading

import pytest

from tfdp.runtime.foundation import CollectiveMismatchError, JobAborted, RankFinishedError, StallError
from tfdp.runtime.transports import Label
from tfdp.runtime.transports._arena import DEFAULT_BYTES, FINISHED, Arena
from tfdp.runtime.transports._call import Call
from tfdp.runtime.transports._lane import Lane

PATIENCE = 30.0
CALL = Call("allreduce Sum", (("float32", (3,)),), Label("step", "train.py:8"))
OTHER = Call("allreduce Sum", (("float32", (4,)),), Label("step", "train.py:9"))


class Ranks:
    """Two lanes over one arena, and what each has been told to break off with."""

    def __init__(self, stall_seconds=PATIENCE):
        fd = Arena.create(2, DEFAULT_BYTES)
        self.arena = Arena(fd, 2)
        self.broken = ["", ""]
        self.told = [threading.Event(), threading.Event()]
        self.lanes = [Lane(Arena(fd, 2), rank, stall_seconds, self._breaker(rank)) for rank in (0, 1)]
        os.close(fd)

    def _breaker(self, rank):
        def break_off(text):
            self.broken[rank] = text
            self.told[rank].set()

        return break_off

    def both(self, *functions):
        """Run one function on each rank at once; gives results or errors."""
        found = [None, None]

        def run(rank):
            try:
                found[rank] = functions[rank](self.lanes[rank])
            except Exception as error:
                found[rank] = error

        threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()
        return found

    def enter(self, first=CALL, second=CALL):
        return self.both(lambda lane: lane.enter(first, 10, 1), lambda lane: lane.enter(second, 20, 2))


@pytest.fixture
def ranks():
    made = Ranks()
    yield made
    for lane in made.lanes:
        lane.leave()  # else the process would wait at its end for a reason


def test_each_learns_the_numbers_of_all(ranks):
    assert ranks.enter() == [[(10, 1), (20, 2)]] * 2
    for lane in ranks.lanes:
        lane.leave()
    assert ranks.enter() == [[(10, 1), (20, 2)]] * 2


def test_another_call_is_an_error_on_both_and_leaves_the_lane_free(ranks):
    for error in ranks.enter(CALL, OTHER):
        assert isinstance(error, CollectiveMismatchError)
        assert "train.py:8" in str(error)
        assert "train.py:9" in str(error)
    assert ranks.enter() == [[(10, 1), (20, 2)]] * 2


def test_threads_take_turns(ranks):
    order = []

    def twice(lane):
        def second():
            lane.enter(OTHER)
            order.append("second began")
            lane.leave()

        lane.enter(CALL)
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.3)
        order.append("first ended")
        lane.leave()
        thread.join(PATIENCE)

    assert ranks.both(twice, twice) == [None, None]
    assert sorted(order[:2]) == ["first ended"] * 2
    assert order[2:] == ["second began"] * 2


def test_the_end_of_the_job_breaks_off_what_is_under_way(ranks):
    ranks.enter()
    ranks.arena.abort(2, "rank 1 ended with signal SIGKILL")
    assert ranks.told[0].wait(PATIENCE)
    said = "rank 0 was in allreduce Sum named 'step' of float32[3] at train.py:8 when the job ended: rank 1 ended with"
    assert said in ranks.broken[0]
    reason = ranks.lanes[0].failed(ValueError("cancelled"), lost=True)
    assert isinstance(reason, JobAborted)
    assert said in str(reason)


def test_a_collective_that_does_not_end_is_a_stall_for_all():
    ranks = Ranks(stall_seconds=0.3)
    ranks.enter()
    assert all(told.wait(PATIENCE) for told in ranks.told)
    assert any(text.startswith("StallError: rank") and "at train.py:8 for 0 s" in text for text in ranks.broken)
    assert ranks.arena.aborted()
    kinds = {type(lane.failed(ValueError(), lost=True)) for lane in ranks.lanes}
    assert StallError in kinds
    assert kinds <= {StallError, JobAborted}
    for lane in ranks.lanes:
        lane.leave()
        with pytest.raises(JobAborted):
            lane.enter(CALL)


def test_an_error_of_this_ranks_own_breaks_the_job(ranks):
    ranks.enter()
    assert ranks.lanes[0].failed(MemoryError("no room"), lost=False) is None
    assert "rank 0 left allreduce Sum named 'step'" in ranks.arena.aborted()
    assert "because of MemoryError: no room" in ranks.arena.aborted()


@pytest.mark.parametrize("collective_was", ["broken off", "lost before that"])
def test_a_rank_that_ends_in_a_collective_says_why_once(ranks, monkeypatch, capsys, collective_was):
    ranks.enter()
    ranks.arena.abort(2, "rank 1 ended with signal SIGKILL")
    assert ranks.told[0].wait(PATIENCE)
    said = ranks.broken[0] if collective_was == "broken off" else "UnavailableError: Socket closed"
    monkeypatch.setattr(sys, "last_value", RuntimeError(said), raising=False)
    ranks.lanes[0]._at_the_end()
    sentence = f"tfdp: JobAborted: rank 0 was in {CALL} when the job ended: rank 1 ended with signal SIGKILL"
    assert capsys.readouterr().err == ("" if collective_was == "broken off" else f"{sentence}\n")


def test_a_rank_that_has_left_the_job_is_not_waited_for(ranks):
    ranks.lanes[1].close()
    with pytest.raises(RankFinishedError, match="rank 1, which has called dp"):
        ranks.lanes[0].enter(CALL)


def test_a_rank_whose_script_has_ended_is_not_waited_for(ranks):
    with ranks.lanes[1].ended(), pytest.raises(RankFinishedError, match="rank 1, which has come to the end"):
        ranks.lanes[0].enter(CALL)


def test_what_follows_the_end_of_all_scripts_is_waited_for(ranks):
    with ranks.lanes[1].ended():
        pass
    assert ranks.enter() == [[(10, 1), (20, 2)]] * 2


def test_nothing_is_broken_off_between_two_calls(ranks):
    ranks.enter()
    for lane in ranks.lanes:
        lane.leave()
    ranks.arena.abort(2, "over")
    with pytest.raises(JobAborted, match="cannot begin allreduce Sum"):
        ranks.lanes[0].enter(CALL)
    assert ranks.broken == ["", ""]


def test_a_rank_stays_until_the_others_are_through_with_the_last_call(ranks):
    ranks.enter()
    order = []

    def end():
        ranks.lanes[1]._at_the_end()
        order.append("rank 1 ended")

    ranks.lanes[1].leave()
    ending = threading.Thread(target=end, daemon=True)
    ending.start()
    ending.join(0.3)
    order.append("rank 0 is through")
    ranks.lanes[0].leave()
    ending.join(PATIENCE)
    assert order == ["rank 0 is through", "rank 1 ended"]


@pytest.mark.parametrize("over", ["the job has failed", "the other one has ended", "the other one is through"])
def test_a_rank_does_not_stay_for_one_that_takes_nothing_any_more(ranks, over):
    ranks.enter()
    ranks.lanes[1].leave()
    if over == "the job has failed":
        ranks.arena.abort(0, "rank 0 has failed")
    elif over == "the other one has ended":
        ranks.arena.set_state(0, FINISHED)
    else:
        ranks.lanes[0].leave()
    ending = threading.Thread(target=ranks.lanes[1]._at_the_end, daemon=True)
    ending.start()
    ending.join(PATIENCE)
    assert not ending.is_alive()
