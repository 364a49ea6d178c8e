"""The shared-memory transport with its ranks as threads of this process: they share what processes share.

Waiting lets go of the GIL, or nothing here would end.
"""

import os
import threading

import pytest

np = pytest.importorskip("numpy")

from tfdp.runtime.agent import alone  # noqa: E402
from tfdp.runtime.foundation import (  # noqa: E402
    CollectiveMismatchError,
    JobAborted,
    LaunchEnvironmentError,
    RankFinishedError,
    ReduceOp,
    StallError,
    TransportError,
)
from tfdp.runtime.transports import Label  # noqa: E402
from tfdp.runtime.transports._arena import DEFAULT_BYTES, FINISHED, Arena  # noqa: E402
from tfdp.runtime.transports.shared_memory import SharedMemory  # noqa: E402

PATIENCE = 60.0
TINY = 2048  # bytes of arena a rank: the least there can be
HERE = Label(None, "train.py:1")


def numbers(name):
    if name == "bfloat16":
        return np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return np.dtype(name)


class Job:
    """`size` ranks over one arena. `each` runs a function on all of them at once, or on those given."""

    def __init__(self, size, data_bytes=DEFAULT_BYTES, stall_seconds=PATIENCE, begin=0):
        fd = Arena.create(size, data_bytes)
        self.size = size
        self.arena = Arena(fd, size)
        for rank in range(size):
            self.arena.set_sequence(rank, begin)
        self.ranks = [SharedMemory(Arena(fd, size), alone(size).topology(rank), stall_seconds) for rank in range(size)]
        os.close(fd)

    def each(self, function, *only):
        results, threads = {}, []

        def run(rank):
            try:
                results[rank] = function(self.ranks[rank], rank)
            except Exception as error:
                results[rank] = error

        for rank in only or range(self.size):
            threads.append(threading.Thread(target=run, args=(rank,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join(PATIENCE)
        assert len(results) == len(threads), f"only ranks {sorted(results)} have come back"
        return [results[rank] for rank in sorted(results)]


def values(rank, shape, dtype):
    random = np.random.default_rng(rank)
    if dtype.kind == "i":
        return random.integers(-50, 50, shape).astype(dtype)
    return random.normal(size=shape).astype(dtype)


def expected(op, parts, dtype):
    wide = [part.astype(np.float32 if dtype.itemsize == 2 else dtype) for part in parts]
    total = wide[0].copy()
    for part in wide[1:]:
        total = {"Min": np.minimum, "Max": np.maximum, "Product": np.multiply}.get(str(op), np.add)(total, part)
    if op is ReduceOp.AVERAGE:
        total = np.trunc(total / len(parts)) if dtype.kind == "i" else total / wide[0].dtype.type(len(parts))
    return total.astype(dtype)


def same_bits(found, wanted):
    assert found.dtype == wanted.dtype
    assert found.shape == wanted.shape
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("op", ReduceOp, ids=str)
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64", "int32", "int64"])
def test_every_operation_on_every_dtype(name, op):
    dtype = numbers(name)
    job = Job(3, 3 * 4 * 4096)
    shapes = [(5000,), (), (3, 4), (0, 2), (1,)]
    given = [[values(rank, shape, dtype) for shape in shapes] for rank in range(3)]
    for rank, outs in enumerate(job.each(lambda wire, rank: wire.allreduce(given[rank], op, HERE))):
        for index, out in enumerate(outs):
            same_bits(out, expected(op, [given[each][index] for each in range(3)], dtype))
        assert rank in range(3)


@pytest.mark.parametrize("size", [2, 3, 6])
@pytest.mark.parametrize("data", [TINY, 2**14, 2**22], ids=["tiny", "small", "large"])
@pytest.mark.parametrize("count", [1, 2, 63, 4095, 100_003])
def test_any_length_in_any_arena(size, data, count):
    if data == TINY and count > 4095:
        count = 10_007  # a chunk holds a few cache lines there
    job = Job(size, data * size)
    given = [values(rank, (count,), np.dtype("float32")) for rank in range(size)]
    wanted = expected(ReduceOp.SUM, given, np.dtype("float32"))
    for (out,) in job.each(lambda wire, rank: wire.allreduce([given[rank]], ReduceOp.SUM, HERE)):
        same_bits(out, wanted)


@pytest.mark.parametrize("data", [TINY, 2**22], ids=["tiny", "large"])
def test_a_list_of_mixed_dtypes_goes_in_one_call(data):
    names = ["float32", "int64", "bfloat16", "float32", "int32", "float64", "float16", "float32"]
    shapes = [(17, 3), (), (600,), (0,), (5,), (2, 2), (301,), (999,)]
    given = [[values(rank, s, numbers(n)) for s, n in zip(shapes, names, strict=True)] for rank in range(2)]
    job = Job(2, 2 * data)
    for outs in job.each(lambda wire, rank: wire.allreduce(given[rank], ReduceOp.AVERAGE, HERE)):
        for index, out in enumerate(outs):
            parts = [given[rank][index] for rank in range(2)]
            same_bits(out, expected(ReduceOp.AVERAGE, parts, parts[0].dtype))


def test_many_small_arrays_beyond_one_chunk():
    given = [
        [values(rank * 1000 + index, (1 + index % 37,), np.dtype("float32")) for index in range(900)] for rank in (0, 1)
    ]
    job = Job(2, 2 * 16384)
    for outs in job.each(lambda wire, rank: wire.allreduce(given[rank], ReduceOp.SUM, HERE)):
        for out, one, two in zip(outs, *given, strict=True):
            same_bits(out, one + two)


@pytest.mark.parametrize("data", [TINY, 2**22], ids=["tiny", "large"])
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.MIN, ReduceOp.MAX, ReduceOp.PRODUCT], ids=str)
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("share", [0, 1, 37, 5000])
def test_shares_of_a_sum_are_those_of_the_whole(size, op, data, share):
    parts = [values(rank, (size * share,), np.dtype("float32")) for rank in range(size)]
    job = Job(size, size * data)
    whole = job.each(lambda wire, rank: wire.allreduce([parts[rank]], op, HERE))[0][0]
    found = job.each(lambda wire, rank: wire.reduce_scatter(parts[rank], op, HERE))
    same_bits(np.concatenate(found), whole)
    for out in job.each(lambda wire, rank: wire.allgather(found[rank], HERE)):
        same_bits(out[0], whole)


def test_the_ranks_of_a_host_meet_by_themselves_and_end_with_the_job():
    fd = Arena.create(4, 2**16, 2)
    whole = Arena(fd, 4)
    ranks = [SharedMemory(Arena(fd, 4).beside(2 + rank), alone(2).topology(rank), PATIENCE) for rank in range(2)]
    assert Arena(Arena.create(4, 2**16), 4).beside(0) is None
    os.close(fd)
    job = Job(2)
    job.ranks = ranks
    for out in job.each(lambda wire, rank: wire.allreduce([np.full(5000, 1.0 + rank)], ReduceOp.SUM, HERE)[0]):
        assert set(out.tolist()) == {3.0}
    assert [whole.sequence(rank) for rank in range(4)] == [0, 0, 0, 0]
    whole.abort(0, "rank 0 ended with signal SIGKILL")
    (error,) = job.each(lambda wire, _: wire.barrier(HERE), 1)
    assert isinstance(error, JobAborted)
    assert "rank 0 ended with signal SIGKILL" in str(error)


def test_a_rank_of_a_host_that_fails_in_the_middle_ends_the_job():
    fd = Arena.create(4, 2**16, 2)
    whole = Arena(fd, 4)
    wire = SharedMemory(Arena(fd, 4).beside(3), alone(2).topology(1), 0.2)
    os.close(fd)
    with pytest.raises(StallError):
        wire.barrier(HERE)
    assert whole.aborted_by() == 3


def test_the_inputs_are_left_as_they_are():
    given = [np.full(5000, rank, np.float32) for rank in range(2)]
    Job(2).each(lambda wire, rank: wire.allreduce([given[rank]], ReduceOp.SUM, HERE))
    assert [set(array.tolist()) for array in given] == [{0.0}, {1.0}]


@pytest.mark.parametrize("data", [TINY, 2**22], ids=["tiny", "large"])
@pytest.mark.parametrize("rows", [(2, 3, 1), (0, 5, 0), (0, 0, 0), (700, 1, 0)], ids=str)
@pytest.mark.parametrize("name", ["float32", "bool", "bfloat16", "int64", "complex64"])
def test_rows_are_gathered_whatever_their_numbers(data, rows, name):
    dtype = numbers(name)
    given = [(values(rank, (count, 3), np.dtype("float32")) > 0).astype(dtype) for rank, count in enumerate(rows)]
    for found, counts in Job(3, 3 * data).each(lambda wire, rank: wire.allgather(given[rank], HERE)):
        same_bits(found, np.concatenate(given))
        assert counts.tolist() == list(rows)


def test_rows_without_bytes_are_counted_too():
    for found, counts in Job(2).each(lambda wire, rank: wire.allgather(np.zeros((rank + 1, 0), np.float32), HERE)):
        assert found.shape == (3, 0)
        assert counts.tolist() == [1, 2]


@pytest.mark.parametrize("data", [TINY, 2**22], ids=["tiny", "large"])
@pytest.mark.parametrize("root", [0, 2])
def test_the_roots_arrays_reach_everyone(data, root):
    def given(rank):
        return [
            values(rank, (900, 2), np.dtype("float32")),
            np.array(rank == 2),
            np.zeros(0),
            np.int64(rank).reshape(()),
        ]

    wanted = given(root)
    for outs in Job(3, 3 * data).each(lambda wire, rank: wire.broadcast(given(rank), root, HERE)):
        for out, want in zip(outs, wanted, strict=True):
            same_bits(out, want)


@pytest.mark.parametrize("count", [0, 1, 1024, 1025, 50_000])
def test_bytes_of_any_number(count):
    data = os.urandom(count)
    job = Job(3, 3 * TINY)
    assert job.each(lambda wire, rank: wire.broadcast_bytes(data if rank == 1 else None, 1, HERE)) == [data] * 3


def test_a_long_series_of_different_calls_past_the_end_of_the_counter():
    job = Job(3, 3 * TINY, begin=2**32 - 40)

    def series(wire, rank):
        found = []
        for step in range(60):
            found.append(int(wire.allreduce([np.int64([rank + step] * (step * 7))], ReduceOp.SUM, HERE)[0].sum()))
            wire.barrier(HERE)
            found.append(wire.allgather(np.int32([rank] * (rank + step)), HERE)[1].tolist())
            found.append(wire.broadcast([np.float64([rank])], step % 3, HERE)[0].tolist())
        return found

    one, *others = job.each(series)
    assert all(other == one for other in others)
    assert one[3:6] == [(1 + 2 + 3) * 7, [1, 2, 3], [1.0]]
    assert job.arena.sequence(0) < 2**31, "the counter has wrapped around"


def mismatch(one, two, size=2):
    """The calls of rank 0 and of all others; the message each of them gets."""
    job = Job(size)
    found = job.each(lambda wire, rank: one(wire) if rank == 0 else two(wire))
    assert {type(error) for error in found} == {CollectiveMismatchError}
    assert len({str(error) for error in found}) == 1, "all ranks say the same"
    after = job.each(lambda wire, rank: wire.allreduce([np.float32([rank])], ReduceOp.SUM, HERE)[0][0])
    assert after == [sum(range(size))] * size, "the ranks have met and can go on"
    return str(found[0])


def reduce_of(*arrays, op=ReduceOp.SUM, name=None, site="train.py:7"):
    return lambda wire: wire.allreduce(arrays, op, Label(name, site))


def test_different_shapes_are_an_error_that_names_both_calls():
    message = mismatch(
        reduce_of(np.zeros(2), np.zeros((3, 4), np.float32)), reduce_of(np.zeros(2), np.zeros(3), site="other.py:9"), 3
    )
    assert "rank 0 called allreduce Sum of float64[2], float32[3,4] at train.py:7" in message
    assert "ranks 1, 2 called allreduce Sum of float64[2], float64[3] at other.py:9" in message
    assert "The first difference is in tensor 1: float32[3,4] on rank 0, float64[3] on rank 1." in message


def test_different_operations_dtypes_names_and_calls_are_errors():
    small = np.zeros(2, np.float32)
    assert "called allreduce Max" in mismatch(reduce_of(small), reduce_of(small, op=ReduceOp.MAX))
    assert "float64[2] on rank 1" in mismatch(reduce_of(small), reduce_of(small.astype(float)))
    assert "named 'loss' of float32[2]" in mismatch(reduce_of(small), reduce_of(small, name="loss"))
    assert "called barrier at" in mismatch(reduce_of(small), lambda wire: wire.barrier(HERE))
    assert "allgather of float32[?,2]" in mismatch(
        lambda wire: wire.allgather(np.zeros((4, 2), np.float32), HERE),
        lambda wire: wire.allgather(np.zeros((4, 3), np.float32), HERE),
    )
    assert "broadcast from rank 1" in mismatch(
        lambda wire: wire.broadcast([small], 0, HERE), lambda wire: wire.broadcast([small], 1, HERE)
    )


def test_large_calls_that_differ_stop_before_any_data_is_used():
    mismatch(reduce_of(np.zeros(300_000)), reduce_of(np.zeros(300_001)))
    mismatch(reduce_of(*[np.zeros(10)] * 2000), reduce_of(*[np.zeros(10)] * 2001))


def test_the_place_of_the_call_may_differ():
    job = Job(2)
    found = job.each(lambda wire, rank: reduce_of(np.ones(2), site=f"train.py:{rank}")(wire)[0].tolist())
    assert found == [[2.0, 2.0]] * 2


def test_an_abort_ends_the_wait_and_every_later_call():
    job = Job(2)
    job.arena.abort(2, "rank 1 ended with signal SIGKILL")
    (error,) = job.each(lambda wire, _: wire.barrier(HERE), 0)
    assert isinstance(error, JobAborted)
    assert "rank 0 cannot begin barrier at train.py:1: rank 1 ended with signal SIGKILL" in str(error)


def test_an_abort_while_waiting():
    job = Job(2)
    threading.Timer(0.05, job.arena.abort, (2, "rank 1 ended with exit status 1")).start()
    (error,) = job.each(lambda wire, _: wire.barrier(HERE), 0)
    assert isinstance(error, JobAborted)
    assert "rank 0 was in barrier at train.py:1 when the job ended: rank 1 ended with exit status 1" in str(error)


def test_the_first_reason_counts():
    job = Job(2)
    job.arena.abort(1, "first")
    job.arena.abort(2, "second")
    assert job.arena.aborted() == "first"
    assert job.arena.aborted_by() == 1


def test_a_rank_that_has_finished_is_not_waited_for():
    job = Job(3)
    job.arena.set_state(1, FINISHED)
    found = job.each(lambda wire, _: wire.allreduce([np.zeros(3)], ReduceOp.SUM, HERE), 0, 2)
    assert "rank 0 waits in allreduce Sum of float64[3] at train.py:1 for rank 1, which has ended" in str(found[0])
    assert all(isinstance(error, RankFinishedError | JobAborted) for error in found)


def test_what_a_rank_published_before_it_finished_still_counts():
    job = Job(2)

    def last_call(wire, rank):
        total = wire.allreduce([np.ones(30_000) * rank], ReduceOp.SUM, HERE)[0].sum()
        job.arena.set_state(rank, FINISHED)
        return total

    assert job.each(last_call) == [30_000.0] * 2


def test_a_publication_just_before_the_end_is_seen_after_it():
    job = Job(2)
    job.arena.set_sequence(1, 1)
    job.arena.set_state(1, FINISHED)
    meeting = job.ranks[0]._meeting
    meeting._sequence = 1
    meeting._check(1, 0.0)


def test_the_stall_limit_names_who_is_missing_and_what_it_did_last():
    job = Job(3, stall_seconds=0.2)
    job.each(lambda wire, _: wire.barrier(Label(None, "train.py:4")))
    (error,) = job.each(lambda wire, _: wire.barrier(Label("sync", "train.py:5")), 0)
    assert isinstance(error, StallError)
    assert "in barrier named 'sync' at train.py:5 for rank 1, whose last call was barrier at train.py:4" in str(error)
    assert "rank 2, whose" in str(error)
    assert "raise TFDP_STALL_SECONDS (now 0.2)" in str(error)
    (error,) = job.each(lambda wire, _: wire.barrier(HERE), 1)
    assert "rank 0 left barrier named 'sync' at train.py:5 because of StallError" in str(error)


def test_a_rank_that_has_called_nothing_is_said_to_have():
    (error,) = Job(2, stall_seconds=0.05).each(lambda wire, _: wire.barrier(HERE), 0)
    assert "for rank 1, which has called nothing" in str(error)


def test_an_error_in_the_middle_of_a_call_ends_the_job_for_all():
    job = Job(2)
    found = job.each(lambda wire, _: wire.allreduce([np.ones(3)], "no such operation", HERE))
    assert any(isinstance(error, KeyError) for error in found)
    later = job.each(lambda wire, _: wire.barrier(HERE))
    assert {type(error) for error in later} == {JobAborted}


def test_calls_from_several_threads_of_a_rank_take_turns():
    job = Job(2)

    def both(wire, rank):
        threads = [threading.Thread(target=wire.barrier, args=(HERE,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        return wire.allreduce([np.int64([rank])], ReduceOp.SUM, HERE)[0][0]

    assert job.each(both) == [1, 1]


def test_large_results_are_aligned_for_tensorflow():
    for (out,) in Job(2).each(lambda wire, _: wire.allreduce([np.zeros(100_000)], ReduceOp.SUM, HERE)):
        assert out.ctypes.data % 64 == 0


def test_an_arena_too_small_for_the_ranks():
    with pytest.raises(TransportError, match="TFDP_SHM_BYTES is 4095: 2 ranks need at least 4096 bytes"):
        Arena.create(2, 4095)


def test_a_file_descriptor_that_is_no_arena(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"\0" * 10_000)
    with path.open("r+b") as file, pytest.raises(LaunchEnvironmentError, match="is not the shared memory of a job of"):
        Arena(file.fileno(), 2)
    path.write_bytes(b"")
    with path.open("r+b") as file, pytest.raises(LaunchEnvironmentError, match="it is something else"):
        Arena(file.fileno(), 2)
    fd = Arena.create(2, DEFAULT_BYTES)
    with pytest.raises(LaunchEnvironmentError, match="is not the shared memory of a job of 3 ranks"):
        Arena(fd, 3)
    os.close(fd)
