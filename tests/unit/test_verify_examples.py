"""Examples by their content, and what is said of who read them: synthetic deliveries, no TensorFlow."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify.record import (  # noqa: E402
    Delivery,
    examples,
    rows,
)

STEPS, BATCH = 4, 6
LABELS = 3


def element(step: int, numbers: Iterable[int], **about: object) -> Delivery:
    """An element of images, each its own, and labels, of which there are few."""
    images = np.array([1000 + number for number in numbers], np.uint64)
    facts: dict[str, object] = {"kind": "stream", "site": "train.py:7", "turn": 0, "last": True, "drawn": False}
    return Delivery(step=step, parts=(images, images % np.uint64(LABELS)), **{**facts, **about})  # type: ignore[arg-type]


def reference(**about: object) -> list[Delivery]:
    return [element(step, range(step * BATCH, (step + 1) * BATCH), **about) for step in range(STEPS)]


def sharded(size: int = 2, **about: object) -> list[list[Delivery]]:
    return [
        [element(step, range(step * BATCH + rank, (step + 1) * BATCH, size), **about) for step in range(STEPS)]
        for rank in range(size)
    ]


def numbers(first: int, count: int) -> range:
    return range(first, first + count)


def test_a_partition_is_shared_and_counted() -> None:
    found = examples.judge_examples(reference(), sharded(3), STEPS)
    assert (found.outcome, found.examples) == ("shared", ((8, 8, 8),))
    of = "each of the reference's 24 examples"
    assert found.text == f"{of} was read by one rank, in the same step (rank 0 8, rank 1 8, rank 2 8)"


def test_examples_are_counted_by_pass() -> None:
    ranks = [[element(e.step, [e.step * 6 + r], turn=e.step // 2) for e in reference()] for r in range(2)]
    found = examples.judge_examples([element(s, [s * 6, s * 6 + 1]) for s in range(STEPS)], ranks, STEPS)
    assert (found.outcome, found.examples) == ("shared", ((2, 2), (2, 2)))
    assert "in 2 passes over them" in found.text


def test_which_rank_has_which_and_in_what_order_does_not_matter() -> None:
    ranks = [[element(step, numbers(step * 6 + 3 * rank, 3)) for step in range(STEPS)] for rank in (1, 0)]
    assert examples.judge_examples(reference(), ranks, STEPS).outcome == "shared"


def unsharded() -> list[list[Delivery]]:
    return [[element(step, numbers(step * 3, 3)) for step in range(STEPS)] for _ in range(2)]


def test_the_same_share_for_all_is_broken_at_the_first_step() -> None:
    found = examples.judge_examples(reference(), unsharded(), STEPS)
    assert (found.outcome, found.step, found.ranks) == ("broken", 0, (0, 1))
    assert found.text == (
        "step 0, ranks 0 and 1: 3 of the reference's 6 examples were read by no rank; "
        "3 examples were read by more than one rank"
    )


def test_a_rank_that_goes_astray_later_is_named_with_its_step() -> None:
    ranks = sharded()
    ranks[1][2] = element(2, [0, 1, 2])
    found = examples.judge_examples(reference(), ranks, STEPS)
    assert (found.outcome, found.step, found.ranks) == ("broken", 2, (1,))
    assert "3 examples are not of this step" in found.text


def test_a_smaller_share_is_said() -> None:
    ranks = sharded()
    ranks[1][3] = element(3, [19, 21])
    found = examples.judge_examples(reference(), ranks, STEPS)
    assert (found.step, found.ranks) == (3, (0, 1))
    assert found.text.endswith("1 of the reference's 6 examples were read by no rank; the ranks read 3, 2 examples")


def test_all_examples_for_every_rank_are_not_shared_out() -> None:
    found = examples.judge_examples(reference(), [reference(), reference()], STEPS)
    assert (found.outcome, found.whole) == ("broken", True)
    assert found.text.endswith("every rank read all 6 examples: they are not sharded")


def test_a_rank_whose_gradient_counts_for_nothing_may_read_anything() -> None:
    ranks = sharded()
    ranks[0][3] = element(3, numbers(18, 6))
    ranks[1][3] = element(3, [0, 1])
    assert examples.judge_examples(reference(), ranks, STEPS).outcome == "broken"
    assert examples.judge_examples(reference(), ranks, STEPS, idle={(3, 1)}).outcome == "shared"


def test_a_part_that_differs_by_rank_beside_one_that_is_shared_is_no_alarm() -> None:
    def numbered(deliveries: Sequence[Delivery]) -> list[Delivery]:
        count = itertools.count()
        made = (np.array([next(count) for _ in one.parts[0]], np.uint64) for one in deliveries)
        return [Delivery(**{**vars(one), "parts": (next(made), *one.parts)}) for one in deliveries]

    found = examples.judge_examples(numbered(reference()), [numbered(one) for one in sharded()], STEPS)
    assert found.outcome == "shared"


def test_evaluation_in_between_is_not_training() -> None:
    def evaluated(deliveries: list[Delivery]) -> list[Delivery]:
        tests = element(2, numbers(500, 30), site="train.py:9", last=False)
        return [*deliveries[:2], tests, *deliveries[2:]]

    found = examples.judge_examples(evaluated(reference()), [evaluated(one) for one in sharded()], STEPS)
    assert (found.outcome, found.examples) == ("shared", ((12, 12),))


def test_a_second_place_that_all_ranks_read_alike_is_no_alarm() -> None:
    def with_style(deliveries: list[Delivery]) -> list[Delivery]:
        pairs = ((Delivery(**{**vars(e), "last": False}), element(e.step, [7], site="train.py:8")) for e in deliveries)
        return [one for pair in pairs for one in pair]

    found = examples.judge_examples(with_style(reference()), [with_style(one) for one in sharded()], STEPS)
    assert (found.outcome, found.examples) == ("shared", ((12, 12),))
    found = examples.judge_examples(with_style(reference()), [with_style(one) for one in unsharded()], STEPS)
    assert (found.outcome, found.step) == ("broken", 0)


UNFOLLOWED = {
    "examples of their own": [[element(s, numbers(9000 * (1 + r) + 3 * s, 3)) for s in range(STEPS)] for r in range(2)],
    "drawn in the pipeline": sharded(drawn=True),
    "nothing seen": [[], []],
    "another number of places": [[*sharded()[0], element(3, [1], site="train.py:8")], sharded()[1]],
}


@pytest.mark.parametrize("name", UNFOLLOWED)
def test_what_cannot_be_told_apart_is_not_followed(name: str) -> None:
    found = examples.judge_examples(reference(), UNFOLLOWED[name], STEPS)
    assert found.outcome == "unfollowed"
    assert found.text.startswith("not followed: ")


def test_one_batch_read_before_the_training_is_not_followed() -> None:
    assert examples.judge_examples(reference()[:1], [one[:1] for one in sharded()], STEPS).outcome == "unfollowed"
    assert examples.judge_examples(reference()[:1], [one[:1] for one in sharded()], 1).outcome == "shared"


def test_arguments_are_compared_where_there_is_no_stream() -> None:
    alone = reference(kind="argument")
    assert examples.judge_examples(alone, sharded(kind="argument"), STEPS).outcome == "shared"
    assert examples.judge_examples(alone, [alone, alone], STEPS).outcome == "unfollowed"
    assert examples.judge_examples(alone, unsharded(), STEPS).outcome == "unfollowed"


def test_what_keras_reads_is_followed_too() -> None:
    site = "train.py:7>fit>one_step_on_iterator"
    assert examples.judge_examples(reference(site=site), sharded(site=site), STEPS).outcome == "shared"
    undivided = [reference(site=site), reference(site=site)]
    assert examples.judge_examples(reference(site=site), undivided, STEPS).outcome == "broken"


def test_no_step_is_nothing_to_judge() -> None:
    assert examples.judge_examples(reference(), sharded(), 0).outcome == "unfollowed"


def test_what_is_written_is_read_without_a_broken_last_line(tmp_path: Path) -> None:
    assert examples.read_examples(tmp_path) == []
    given = sharded()[1]
    examples.write_examples(tmp_path, given[:1])
    examples.write_examples(tmp_path, given[1:])
    with (tmp_path / examples.EXAMPLES_FILE).open("a") as file:
        file.write('{"step": 4')
    found = examples.read_examples(tmp_path)
    assert [vars(one) | {"parts": ()} for one in found] == [vars(one) | {"parts": ()} for one in given]
    assert [[part.tolist() for part in one.parts] for one in found] == [
        [part.tolist() for part in one.parts] for one in given
    ]


# --- hashes -----------------------------------------------------------------------------------------------------------

GENERATOR = np.random.default_rng(0)
ARRAYS = {
    "float32": GENERATOR.random((5000, 3), np.float32),
    "small integers as float64": GENERATOR.integers(0, 16, (5000, 64)).astype(np.float64),
    "pixels": GENERATOR.integers(0, 256, (500, 28, 28), np.uint8),
    "odd bytes": np.unique(GENERATOR.integers(0, 256, (3000, 3), np.uint8), axis=0),
    "numbers": np.arange(100000),
    "powers": 2.0 ** np.arange(-500, 500),
    "flags": np.eye(70, dtype=bool),
    "strings": np.array([f"file{i}" for i in range(1000)]),
    "bytes": np.array([b"%d" % i for i in range(1000)], object),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_rows_are_told_apart_wherever_they_stand(name: str) -> None:
    array = ARRAYS[name]
    found = rows.hashes(array)
    assert found.dtype == np.uint64
    assert len(set(found.tolist())) == len(array)
    assert np.array_equal(rows.hashes(array[::-2]), found[::-2])


@pytest.mark.parametrize(
    "array", [np.zeros((0, 3)), np.zeros((4, 0)), np.zeros((3, 5))], ids=["none", "empty", "zeros"]
)
def test_equal_rows_are_equal(array: "np.ndarray") -> None:
    found = rows.hashes(array)
    assert len(found) == len(array)
    assert len(set(found.tolist())) <= 1


def test_the_first_step_that_is_wrong_is_named_whichever_loop_it_is_of() -> None:
    last = [element(STEPS, range(900, 906), site="train.py:30")]
    ranks = [[*own, *last] for own in unsharded()]
    found = examples.judge_examples([*reference(), *last], ranks, STEPS + 1)
    assert (found.outcome, found.step) == ("broken", 0)
