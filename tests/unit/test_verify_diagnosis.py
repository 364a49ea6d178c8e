"""Why a proof failed, told from traces written by hand: gradients, data, the start and the steps."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from handmade_traces import SHARES, SITE, STEPS, B, Traces, W, array, gradients, plain, step, updated, without_slots  # noqa: E402

from tfdp.migrate.verify.diagnosis import (  # noqa: E402
    Cause,
    diagnose,
)
from tfdp.migrate.verify.judge import compare  # noqa: E402
from tfdp.migrate.verify.record import Call, Header, Note, Step  # noqa: E402
from tfdp.migrate.verify.record import trace as facts  # noqa: E402


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


def scaled(factor: float) -> dict[str, Any]:
    return {key: value * np.float32(factor) for key, value in gradients(0).items()}


def multiplied(index: int, share: float, factor: float, **changes: Any) -> Step:
    wrong = {key: value * np.float32(factor) for key, value in gradients(index).items()}
    return step(index, share, gradients=wrong, **changes)


def test_the_ranks_share_out_the_reference(traces: Traces) -> None:
    assert compare.compared(traces.reference, traces.ranks, STEPS).failure is None


# --- the gradient -----------------------------------------------------------------------------------------------------


def test_a_sum_over_ranks_is_n_times_the_gradient(traces: Traces) -> None:
    traces.all(lambda i, share: multiplied(i, share, 2, combined="sum", loss=2 * (2.0 + i) * share))
    found = traces.diagnosis()
    assert found is not None
    assert found.cause is Cause.SUMMED
    assert found.text == (
        "the gradient at train.py:12 (in step) is 2 times the reference's: op=dp.Sum adds up gradients of a loss that "
        "is a mean"
    )


def test_a_mean_of_sums_is_one_nth_of_loss_and_gradient(traces: Traces) -> None:
    traces.all(lambda i, share: multiplied(i, share, 0.5, loss=0.5 * (2.0 + i) * share))
    assert traces.cause() is Cause.LOSS_SUM


def test_a_sum_beside_a_regularizer_shows_in_the_variables_without_one(traces: Traces) -> None:
    def regular(index: int, share: float) -> Step:
        right = gradients(index)
        return step(index, share, loss=0.7 * (2.0 + index) * share, gradients={W: right[W] * 0.5 + 1, B: right[B] / 2})

    traces.all(regular)
    assert traces.cause() is Cause.LOSS_SUM


def test_a_gradient_divided_once_more_has_the_right_loss(traces: Traces) -> None:
    traces.all(lambda i, share: multiplied(i, share, 0.5))
    assert traces.cause() is Cause.DIVIDED


def test_gradients_of_the_ranks_own_are_not_averaged(traces: Traces) -> None:
    traces.all(lambda i, share: step(i, share, own=True, combined=""))
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "train.py:12" in found.text) == (Cause.NOT_AVERAGED, True)
    found = diagnose(*traces.compared(), batch="global", script="/home/me/train.py")
    assert found is not None
    assert found.text.startswith("the gradients at line 12 (in step) of the migrated script are each rank's own")


def test_only_one_of_two_gradients_is_not_averaged(tmp_path: Path) -> None:
    traces = Traces(tmp_path)

    def both(index: int, share: float, own: bool) -> Step:
        first = step(index, share, gradients={W: gradients(index)[W]}, sources=(W,), site="train.py:7")
        forgotten = {B: gradients(index, share if own else 1.0)[B]}
        second = step(index, share, gradients=forgotten, sources=(B,), combined="" if own else "mean")
        calls = (*first.calls, *second.calls)
        return replace(updated(index, replace(calls[0], gradients={**calls[0].gradients, **forgotten})), calls=calls)

    for index in range(STEPS):
        traces.reference.write_step(index, both(index, 1.0, own=False))
    traces.reference.write_lock(compare.lock(traces.reference, STEPS))
    traces.all(lambda i, share: both(i, share, own=True))
    found = traces.diagnosis()
    assert found is not None
    assert found.cause is Cause.NOT_AVERAGED
    assert found.text.endswith("at train.py:12 (in step) are each rank's own: they are not averaged over the ranks, "
                               "while those at train.py:7 are")  # fmt: skip


def by_hand(index: int, share: float, used: Callable[[Any], Any]) -> Step:
    """A local gradient that the script averages itself, out of sight, and then uses."""
    call = step(index, share, own=True, combined="").calls[0]
    right = updated(index, step(index).calls[0], used=used)
    return replace(right, calls=(call,))


def test_gradients_averaged_by_hand_are_no_failure(traces: Traces) -> None:
    traces.all(lambda i, share: by_hand(i, share, lambda gradient: gradient))
    assert compare.compared(traces.reference, traces.ranks, STEPS).failure is None


def test_gradients_averaged_by_hand_after_they_were_clipped(traces: Traces) -> None:
    traces.all(lambda i, share: by_hand(i, share, lambda gradient: np.clip(gradient, -0.5, 0.5)))
    assert traces.cause() is Cause.LATE


def test_parts_of_a_loss_that_are_added_up_by_hand_are_no_failure(traces: Traces) -> None:
    def part(index: int, share: float, used: Callable[[Any], Any]) -> Step:
        made = by_hand(index, share, used)
        halves = {key: value / 2 for key, value in made.calls[0].gradients.items()}
        return replace(made, calls=(replace(made.calls[0], loss=made.calls[0].loss / 2, gradients=halves),))

    traces.all(lambda i, share: part(i, share, lambda gradient: gradient))
    assert compare.compared(traces.reference, traces.ranks, STEPS).failure is None
    traces.all(lambda i, share: part(i, share, lambda gradient: gradient / 2))
    traces.note(Note(facts.RATE_SCALED, SITE))
    assert traces.cause() is Cause.DIVIDED


def test_what_is_used_of_gradients_averaged_by_hand_is_judged_without_slots_too(traces: Traces) -> None:
    plain(traces, 1.0)
    traces.all(lambda i, share: without_slots(by_hand(i, share, lambda gradient: gradient)))
    assert compare.compared(traces.reference, traces.ranks, STEPS).failure is None
    traces.all(lambda i, share: without_slots(by_hand(i, share, lambda gradient: np.clip(gradient, -0.5, 0.5))))
    assert traces.cause() is Cause.LATE


def test_gradients_added_up_by_hand(traces: Traces) -> None:
    traces.all(lambda i, share: by_hand(i, share, lambda gradient: 2 * gradient))
    traces.note(Note(facts.RATE_SCALED, SITE))
    assert traces.cause() is Cause.SUMMED


@pytest.mark.parametrize("inner", [True, False])
def test_a_penalty_that_is_averaged(traces: Traces, inner: bool) -> None:
    """Seen as an inner gradient for variables, or as one for an input."""
    penalty = Call(1.0, None, True, (W,), {W: array(1, 1, 1)}, "mean", "train.py:30")

    def wrong(index: int, share: float) -> Step:
        made = step(index, share, loss=(2.3 + index) * share, gradients=gradients(index, 1.7))
        return replace(made, calls=(penalty, *made.calls)) if inner else made

    if inner:
        for index in range(STEPS):
            right = step(index, combined="")
            traces.reference.write_step(index, replace(right, calls=(replace(penalty, combined=""), *right.calls)))
        traces.reference.write_lock(compare.lock(traces.reference, STEPS))
    else:
        traces.note(Note(facts.INPUT_AVERAGED, "train.py:30"))
    traces.all(wrong)
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "train.py:30" in found.text) == (Cause.PENALTY, True)


# --- the data ---------------------------------------------------------------------------------------------------------


def other_examples(index: int, share: float) -> Step:
    return step(index, share, loss=(2.7 + index) * share, gradients=gradients(index, 1.9))


def test_equal_losses_are_of_the_same_examples(traces: Traces) -> None:
    traces.all(lambda i, _: step(i, loss=2.7 + i, gradients=gradients(i, 1.9)))
    assert traces.cause() is Cause.NOT_SHARDED


def test_equal_losses_may_be_of_sums_over_all_ranks(traces: Traces) -> None:
    """Then other things that are known of the data say more."""
    traces.all(lambda i, _: step(i, loss=2.7 + i, gradients=gradients(i, 1.9)))
    traces.note(Note(facts.SHARDED, SITE), Note(facts.SAME_BATCH, "96"))
    traces.reference.write_header(Header("complete", notes=(Note(facts.SAME_BATCH, "96"),)))
    assert traces.cause("global") is Cause.BATCH


@pytest.mark.parametrize(
    ("notes", "cause"),
    [
        ((facts.SHARDED,), Cause.EXAMPLES),
        ((facts.SHARDED, facts.SHARDED_AGAIN), Cause.SHARDED_TWICE),
        ((facts.SHARDED, facts.ORDERS_DIFFER), Cause.ORDERS),
        ((), Cause.NOT_SHARDED),
    ],
)
def test_other_examples_are_explained_by_what_was_done_to_the_data(
    traces: Traces, notes: tuple[str, ...], cause: Cause
) -> None:
    traces.all(other_examples)
    traces.note(*(Note(what, SITE) for what in notes))
    assert traces.cause() is cause


def test_whole_files_that_are_read_in_another_order(traces: Traces) -> None:
    traces.all(other_examples)
    traces.note(Note(facts.SHARDED, SITE), Note(facts.BY_FILE, "train.py:7"))
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "read= of dp.shard at train.py:7" in found.text) == (Cause.EXAMPLES, True)


def test_batches_as_large_as_the_reference_s(traces: Traces) -> None:
    traces.all(other_examples)
    traces.note(Note(facts.SHARDED, SITE), Note(facts.SAME_BATCH, "96"))
    header = Header("complete", notes=(Note(facts.SAME_BATCH, "96"), Note(facts.SAME_BATCH, "500")))
    traces.reference.write_header(header)
    assert traces.cause("global") is Cause.BATCH
    traces.reference.write_header(replace(header, notes=(*header.notes, Note(facts.SAME_BATCH, "192"))))
    assert traces.cause() is Cause.EXAMPLES


def test_a_tail_is_wrong_alone_and_a_lag_to_the_end(traces: Traces) -> None:
    traces.note(Note(facts.SHARDED, SITE))
    traces.change(2, [other_examples(2, share) for share in SHARES])
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "until step 2" in found.text) == (Cause.TAIL, True)
    traces.all(other_examples, start=2)
    assert traces.cause() is Cause.DECISION


# --- the start, the steps ---------------------------------------------------------------------------------------------


def moved(index: int, share: float) -> Step:
    made = step(index, share)
    return replace(made, before={**made.before, W: made.before[W] + array(0, 1, 0)})


def test_a_rank_that_starts_elsewhere(traces: Traces) -> None:
    traces.change(0, [step(0, SHARES[0]), moved(0, SHARES[1])])
    found = traces.diagnosis()
    assert found is not None
    assert found.cause is Cause.START
    assert found.text.startswith("rank 1 starts from other values than rank 0")


def test_ranks_that_all_start_elsewhere(traces: Traces) -> None:
    traces.change(0, [moved(0, share) for share in SHARES])
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "rank 0 too" in found.text) == (Cause.START, True)


@pytest.mark.parametrize(("gone", "cause"), [((1,), Cause.DECISION), ((0, 1), Cause.STEPS)])
def test_steps_that_are_not_taken(traces: Traces, gone: tuple[int, ...], cause: Cause) -> None:
    for rank in gone:
        (traces.ranks[rank].folder / f"step-{STEPS - 1:05d}.npz").unlink()
    assert traces.cause() is cause


@pytest.mark.parametrize(("longer", "cause"), [((1,), Cause.DECISION), ((0, 1), Cause.STEPS)])
def test_gradients_that_are_taken_too_often(traces: Traces, longer: tuple[int, ...], cause: Cause) -> None:
    traces.note(outcomes=["diverged" if rank in longer else "ended" for rank in range(2)])
    made = [step(1, share) for share in SHARES]
    twice = [replace(each, calls=each.calls * 2) if rank in longer else each for rank, each in enumerate(made)]
    traces.change(1, twice)
    assert traces.cause() is cause


def test_a_rank_that_does_not_update(traces: Traces) -> None:
    last = step(STEPS - 1, SHARES[1])
    traces.change(STEPS - 1, [step(STEPS - 1, SHARES[0]), replace(last, after=last.before, closed=False)])
    assert traces.cause() is Cause.DECISION


def test_no_rank_updates(traces: Traces) -> None:
    made = [step(0, share) for share in SHARES]
    traces.change(0, [replace(each, after=each.before, closed=False) for each in made])
    assert traces.cause() is Cause.UPDATE
