"""The arithmetic of the reductions, and how arrays are cut into chunks and shares."""

import itertools

import pytest

np = pytest.importorskip("numpy")

from tfdp.runtime.foundation import ReduceOp  # noqa: E402
from tfdp.runtime.transports._reduce import Run, aligned, combine, divide  # noqa: E402


def combined(op, *parts):
    arrays = [np.asarray(part) for part in parts]
    out = np.empty_like(arrays[0])
    combine(op, arrays, out)
    return out


def test_integers_are_averaged_toward_zero():
    found = combined(ReduceOp.AVERAGE, np.int64([7, -7, 8, -8, 0]), np.int64([0, 0, 0, 0, -1]))
    assert found.tolist() == [3, -3, 4, -4, 0]
    found = combined(ReduceOp.AVERAGE, *np.int32([[5, -5, 1, -1], [0] * 4, [0] * 4]))
    assert found.tolist() == [1, -1, 0, 0]


def test_the_sum_for_an_int32_average_does_not_overflow():
    top, bottom = 2**31 - 1, -(2**31)
    assert combined(ReduceOp.AVERAGE, *np.int32([[top, bottom]] * 3)).tolist() == [top, bottom]


def test_an_int32_sum_wraps_as_in_numpy():
    assert combined(ReduceOp.SUM, *np.int32([[2**31 - 1], [1]])).tolist() == [-(2**31)]


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_two_byte_floats_are_rounded_once(name):
    dtype = np.dtype(getattr(pytest.importorskip("ml_dtypes"), name, name))
    ranks = 64
    step = np.asarray([1.0 / 3], dtype)
    one_by_one = sum(np.repeat(step, ranks), np.zeros((), dtype))
    found = combined(ReduceOp.SUM, *[step] * ranks)
    assert found[0] == dtype.type(np.float32(step[0]) * ranks)
    assert found[0] != one_by_one, "rounding after each addition would be visible here"


def test_the_average_of_two_byte_floats_does_not_overflow_on_the_way():
    assert combined(ReduceOp.AVERAGE, *[np.float16([60000.0])] * 4).tolist() == [np.float16(60000.0)]


def test_not_a_number_wins_in_min_and_max():
    for op in (ReduceOp.MIN, ReduceOp.MAX):
        assert np.isnan(combined(op, np.float32([np.nan]), np.float32([1.0]))).all()


def test_a_run_finds_the_pieces_of_a_range_across_arrays_also_empty_ones():
    run = Run([np.arange(3), np.arange(0), np.arange(10, 12).reshape(2, 1), np.arange(20, 21)])
    found = [(piece.tolist(), start, stop) for piece, start, stop in run.pieces(1, 6)]
    assert found == [([1, 2], 0, 2), ([10, 11], 2, 4), ([20], 4, 5)]
    assert run.pieces(3, 3) == []
    assert [piece.tolist() for piece, _, _ in run.pieces(4, 5)] == [[11]]


@pytest.mark.parametrize("size", [2, 3, 6, 7])
@pytest.mark.parametrize("room", [1024, 4096, 2**20])
def test_chunks_cover_every_item_once_and_their_parts_do_not_overlap(size, room):
    runs = [(2, 1), (4, 1000), (8, 77), (4, 0), (2, 4099), (8, 1)]
    seen = [0] * len(runs)
    for chunk in divide(runs, size, room):
        assert chunk
        taken = []
        for segment in chunk:
            item, _ = runs[segment.run]
            assert segment.low == seen[segment.run]
            seen[segment.run] = segment.high
            largest = max(high - low for low, high in (segment.share(rank, size) for rank in range(size)))
            taken.append((segment.data_at, segment.data_at + (segment.high - segment.low) * item))
            taken.append((segment.result_at, segment.result_at + largest * item))
            assert segment.data_at % 64 == segment.result_at % 64 == 0
        taken.sort()
        assert all(one[1] <= two[0] for one, two in itertools.pairwise(taken))
        assert taken[-1][1] <= room
    assert seen == [items for _, items in runs]


def test_the_results_of_every_chunk_lie_behind_the_data_of_every_other():
    chunks = divide([(4, 10_000), (8, 10_000)], 3, 4096)
    data_end = max(aligned(s.data_at + (s.high - s.low) * (4, 8)[s.run]) for chunk in chunks for s in chunk)
    assert data_end <= min(segment.result_at for chunk in chunks for segment in chunk)


def test_shares_are_everything_in_rank_order():
    (chunk,) = divide([(4, 10)], 4, 2**16)
    assert [chunk[0].share(rank, 4) for rank in range(4)] == [(0, 2), (2, 5), (5, 7), (7, 10)]


def test_nothing_to_reduce_makes_no_chunk():
    assert divide([(4, 0)], 2, 1024) == []
