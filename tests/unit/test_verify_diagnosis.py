"""Why a proof failed, told from traces written by hand: each pattern of differences."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify import compare  # noqa: E402
from tfdp.migrate.verify import trace as facts  # noqa: E402
from tfdp.migrate.verify.causes import Cause, Diagnosis, place, ranks  # noqa: E402
from tfdp.migrate.verify.diagnosis import diagnose  # noqa: E402
from tfdp.migrate.verify.trace import Call, Header, Note, Step, Trace  # noqa: E402

W, B, M, LR = "w|3|float32|0", "b|2|float32|0", "w/momentum|3|float32|0", "learning_rate||float32|0"
STEPS, RATE, DECAY = 4, 0.1, 0.9
SITE = "/home/me/train.py:12 (in step)"
# What each rank has of each gradient and loss: they are different, and their mean is the reference's.
SHARES = (1.4, 0.6)


def array(*values: float) -> Any:
    return np.array(values, np.float32)


def gradients(index: int, share: float = 1.0) -> dict[str, Any]:
    """Of a step. The share moves it, and is not a factor of it."""
    shift = array(0.3, 0.7, -0.2) * (share - 1)
    return {W: array(0.5, -1, 2) * (1 + 0.1 * index) + shift, B: array(0.25, -0.5) + shift[:2]}


def step(index: int, share: float = 1.0, own: bool = False, **changes: Any) -> Step:
    """Of SGD, with the mean of the gradients in a slot. `own`: the rank goes on with its own gradient."""
    taken = gradients(index, share if own else 1.0)
    call = Call((2.0 + index) * share, None, False, (W, B), taken, "mean", SITE)
    return updated(index, replace(call, **changes))


def updated(index: int, call: Call, rate: float = RATE, used: Callable[[Any], Any] = lambda gradient: gradient) -> Step:
    """The step that makes its update of `used` of the call's gradients."""
    before = {W: array(1, 2, 3) * (index + 1), B: array(1, 1), M: array(1, 1, 1) * index, LR: np.float32(RATE)}
    use = {key: used(call.gradients[key]) for key in (W, B) if key in call.gradients}
    after = {**before, **{key: before[key] - rate * each for key, each in use.items()}}
    if W in use:
        after[M] = DECAY * before[M] + (1 - DECAY) * use[W]
    return Step(before, (call,), after, closed=True)


class Traces:
    """A reference and two ranks that share out its examples."""

    def __init__(self, folder: Path) -> None:
        self.reference = Trace(folder / "reference")
        self.ranks = [Trace(folder / "rank0"), Trace(folder / "rank1")]
        for trace in (self.reference, *self.ranks):
            trace.folder.mkdir()
        for index in range(STEPS):
            self.reference.write_step(index, step(index, combined=""))
            self.change(index, [step(index, share) for share in SHARES])
        self.reference.write_header(Header("complete"))
        self.reference.write_lock(compare.lock(self.reference, STEPS))
        self.note()

    def note(self, *notes: Note, outcomes: Sequence[str] = ("complete", "complete")) -> None:
        for rank, outcome in zip(self.ranks, outcomes, strict=True):
            rank.write_header(Header(outcome, notes=notes))

    def change(self, index: int, steps: Sequence[Step]) -> None:
        for rank, changed in zip(self.ranks, steps, strict=True):
            rank.write_step(index, changed)

    def all(self, make: Callable[[int, float], Step], start: int = 0) -> None:
        for index in range(start, STEPS):
            self.change(index, [make(index, share) for share in SHARES])

    def compared(self) -> tuple[compare.Comparison, Trace, list[Trace], int]:
        return compare.compare(self.reference, self.ranks, STEPS), self.reference, self.ranks, STEPS

    def diagnosis(self, batch: str = "per-worker", reason: str = "") -> Diagnosis | None:
        found, *rest = self.compared()
        assert found.failure or reason, "the proof does not fail"
        return diagnose(found, *rest, batch=batch, reason=reason)

    def cause(self, batch: str = "per-worker") -> Cause | None:
        found = self.diagnosis(batch)
        return found.cause if found else None


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


def scaled(factor: float) -> dict[str, Any]:
    return {key: value * np.float32(factor) for key, value in gradients(0).items()}


def multiplied(index: int, share: float, factor: float, **changes: Any) -> Step:
    wrong = {key: value * np.float32(factor) for key, value in gradients(index).items()}
    return step(index, share, gradients=wrong, **changes)


def test_the_ranks_share_out_the_reference(traces: Traces) -> None:
    assert compare.compare(traces.reference, traces.ranks, STEPS).failure is None


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
    assert compare.compare(traces.reference, traces.ranks, STEPS).failure is None


def test_gradients_averaged_by_hand_after_they_were_clipped(traces: Traces) -> None:
    traces.all(lambda i, share: by_hand(i, share, lambda gradient: np.clip(gradient, -0.5, 0.5)))
    assert traces.cause() is Cause.LATE


def test_parts_of_a_loss_that_are_added_up_by_hand_are_no_failure(traces: Traces) -> None:
    def part(index: int, share: float, used: Callable[[Any], Any]) -> Step:
        made = by_hand(index, share, used)
        halves = {key: value / 2 for key, value in made.calls[0].gradients.items()}
        return replace(made, calls=(replace(made.calls[0], loss=made.calls[0].loss / 2, gradients=halves),))

    traces.all(lambda i, share: part(i, share, lambda gradient: gradient))
    assert compare.compare(traces.reference, traces.ranks, STEPS).failure is None
    traces.all(lambda i, share: part(i, share, lambda gradient: gradient / 2))
    traces.note(Note(facts.RATE_SCALED, SITE))
    assert traces.cause() is Cause.DIVIDED


def test_what_is_used_of_gradients_averaged_by_hand_is_judged_without_slots_too(traces: Traces) -> None:
    plain(traces, 1.0)
    traces.all(lambda i, share: without_slots(by_hand(i, share, lambda gradient: gradient)))
    assert compare.compare(traces.reference, traces.ranks, STEPS).failure is None
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
    assert traces.cause() is Cause.NOT_DEALT


@pytest.mark.parametrize(
    ("notes", "cause"),
    [
        ((facts.DEALT,), Cause.EXAMPLES),
        ((facts.DEALT, facts.DEALT_AGAIN), Cause.DEALT_TWICE),
        ((facts.DEALT, facts.ORDERS_DIFFER), Cause.ORDERS),
        ((), Cause.NOT_DEALT),
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
    traces.note(Note(facts.DEALT, SITE), Note(facts.BY_FILE, "train.py:7"))
    found = traces.diagnosis()
    assert found is not None
    assert (found.cause, "read= of dp.shard at train.py:7" in found.text) == (Cause.EXAMPLES, True)


def test_batches_as_large_as_the_reference_s(traces: Traces) -> None:
    traces.all(other_examples)
    traces.note(Note(facts.DEALT, SITE), Note(facts.SAME_BATCH, "96"))
    header = Header("complete", notes=(Note(facts.SAME_BATCH, "96"), Note(facts.SAME_BATCH, "500")))
    traces.reference.write_header(header)
    assert traces.cause("global") is Cause.BATCH
    traces.reference.write_header(replace(header, notes=(*header.notes, Note(facts.SAME_BATCH, "192"))))
    assert traces.cause() is Cause.EXAMPLES


def test_a_tail_is_wrong_alone_and_a_lag_to_the_end(traces: Traces) -> None:
    traces.note(Note(facts.DEALT, SITE))
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


# --- the update -------------------------------------------------------------------------------------------------------


def at_rate(index: int, share: float, factor: float) -> Step:
    made = updated(index, step(index, share).calls[0], RATE * factor)
    return replace(made, before={**made.before, LR: np.float32(RATE * factor)})


@pytest.mark.parametrize("factor", [0.5, 2.0, 0.83])
def test_another_rate_leaves_the_slots_right(traces: Traces, factor: float) -> None:
    traces.all(lambda i, share: at_rate(i, share, factor))
    assert traces.cause() is Cause.RATE


def without_slots(made: Step) -> Step:
    parts = [{key: value for key, value in part.items() if key in (W, B)} for part in (made.before, made.after)]
    return replace(made, before=parts[0], after=parts[1])


def plain(traces: Traces, factor: float) -> None:
    """SGD without slots, where the rate and the size of the gradient do the same."""
    for index in range(STEPS):
        traces.reference.write_step(index, without_slots(step(index, combined="")))
    traces.reference.write_lock(compare.lock(traces.reference, STEPS))
    traces.all(lambda i, share: without_slots(at_rate(i, share, factor)))


@pytest.mark.parametrize(
    ("factor", "batch", "notes", "cause"),
    [
        (0.5, "per-worker", (), Cause.RATE),
        (0.5, "per-worker", (facts.RATE_SCALED,), Cause.DIVIDED),
        (2.0, "per-worker", (facts.RATE_SCALED,), Cause.SUMMED),
        (2.0, "per-worker", (facts.RATE_SCALED, facts.RATE_SCALED_AGAIN), Cause.RATE),
        (2.0, "global", (facts.RATE_SCALED,), Cause.RATE),
        (0.5, "global", (), Cause.DIVIDED),
    ],
)
def test_without_slots_what_was_done_to_the_rate_decides(
    traces: Traces, factor: float, batch: str, notes: tuple[str, ...], cause: Cause
) -> None:
    plain(traces, factor)
    traces.note(*(Note(what, SITE) for what in notes))
    assert traces.cause(batch) is cause


@pytest.mark.parametrize(("factor", "cause"), [(0.5, Cause.DIVIDED), (2.0, Cause.SUMMED)])
def test_slots_show_what_the_optimizer_got(traces: Traces, factor: float, cause: Cause) -> None:
    """Also where it divides the size of the gradient out."""
    for adaptive in (False, True):

        def wrong(index: int, share: float, adaptive: bool = adaptive) -> Step:
            made = step(index, share)
            other = updated(index, made.calls[0], used=lambda gradient: factor * gradient)
            return replace(made, after={**made.after, M: other.after[M]}) if adaptive else other

        traces.all(wrong)
        assert traces.cause() is cause


def test_an_update_that_is_wrong_in_no_known_way(traces: Traces) -> None:
    traces.all(lambda i, share: updated(i, step(i, share).calls[0], used=lambda gradient: np.clip(gradient, -0.6, 0.6)))
    assert traces.cause() is Cause.UPDATE


def test_ranks_that_update_otherwise_than_each_other(traces: Traces) -> None:
    made = [step(1, share) for share in SHARES]
    traces.change(1, [made[0], replace(made[1], after={**made[1].after, W: made[1].before[W] + 1})])
    assert traces.cause() is Cause.DECISION


# --- a run that failed ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("TfdpError: w differ on rank(s) 1 from rank 0's before the first gradient at train.py:1: …", Cause.START),
        ("the records that dp.shard deals at train.py:1 differ on rank(s) 1 from rank 0's: …", Cause.ORDERS),
        ("TypeError: … is a DistributedGradientTape already: wrap a tape once", Cause.AVERAGED_TWICE),
        (
            "tfdp.runtime.errors.RankFinishedError: rank 0 waits in allreduce for rank 1, which has ended",
            Cause.DECISION,
        ),
    ],
)
def test_what_the_runtime_says_itself(traces: Traces, output: str, cause: Cause) -> None:
    found = traces.diagnosis(reason=f"the migrated run failed with exit status 1:\n{output}")
    assert found is not None
    assert found.cause is cause


def test_a_second_deal_finds_the_first_one_s_shares_different(traces: Traces) -> None:
    traces.note(Note(facts.DEALT, SITE), Note(facts.DEALT_AGAIN, SITE))
    found = traces.diagnosis(reason="TfdpError: the records that dp.shard deals at train.py:1 differ on rank(s) 1")
    assert found is not None
    assert found.cause is Cause.DEALT_TWICE


def test_the_script_s_own_error_speaks_for_itself(traces: Traces) -> None:
    assert traces.diagnosis(reason="the migrated run failed with exit status 1:\nOSError: the disk is gone") is None


# --- words ------------------------------------------------------------------------------------------------------------


def test_words() -> None:
    assert str(Diagnosis(Cause.TAIL, "so")) == "uneven tail: so"
    assert (ranks([1]), ranks([0, 1, 3])) == ("rank 1", "ranks 0, 1 and 3")
    assert place("/a/b c/train.py:3 (in f)") == "train.py:3 (in f)"
    assert place("an unknown place") == "an unknown place"


def test_every_cause_is_explained_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "diagnosis.md").read_text()
    listed = re.findall(r"^\| ([a-z ]+) \|", text, re.MULTILINE)
    assert sorted(listed[1:]) == sorted(cause.value for cause in Cause)
