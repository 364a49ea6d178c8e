"""The judgement over traces written by hand: what it must pass, and each thing it must not."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify.judge import compare  # noqa: E402
from tfdp.migrate.verify.record import Call, Header, Step, Trace  # noqa: E402

W, M, RATE = "w|3|float32|0", "w_momentum|3|float32|0", "rate||float32|0"
STEPS = 3


def array(*values: float) -> Any:
    return np.array(values, np.float32)


def honest(index: int) -> Step:
    """A step of plain momentum: one trained variable, one slot, a scalar that is neither."""
    w, m, gradient = array(1, 2, 3) * (index + 1), array(1, 1, 1) * index, array(0.5, -1, 2)
    return Step(
        before={W: w, M: m, RATE: np.float32(0.1)},
        calls=(Call(2.0 - index, None, False, (W,), {W: gradient}, combined="mean"),),
        after={W: w - 0.1 * gradient, M: m + gradient, RATE: np.float32(0.1)},
        closed=True,
    )


class Traces:
    """A reference and two ranks that did the same."""

    def __init__(self, folder: Path) -> None:
        self.reference = Trace(folder / "reference")
        self.ranks = [Trace(folder / "rank0"), Trace(folder / "rank1")]
        for trace in (self.reference, *self.ranks):
            trace.folder.mkdir()
            for index in range(STEPS):
                trace.write_step(index, honest(index))
        self.reference.write_header(Header("complete", {W: "layer/w"}))
        self.lock()

    def lock(self) -> None:
        self.reference.write_lock(compare.lock(self.reference, STEPS))

    def change(self, index: int, rank: int = 1, **parts: Any) -> None:
        self.ranks[rank].write_step(index, replace(honest(index), **parts))

    def compared(self) -> compare.Comparison:
        return compare.compared(self.reference, self.ranks, STEPS)


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


def with_gradient(index: int, gradient: Any) -> tuple[Call, ...]:
    return (replace(honest(index).calls[0], gradients={W: gradient}),)


def test_slots_are_found_by_shape_and_change_and_scalars_are_not(traces: Traces) -> None:
    lock = traces.reference.lock()
    assert (lock.trained, lock.slots, lock.calls) == ((W,), (M,), (1, 1, 1))


def test_equal_runs_have_no_difference(traces: Traces) -> None:
    found = traces.compared()
    assert found.failure is None
    assert (found.loss, found.gradients, found.updates) == (0.0, {W: 0.0}, {W: 0.0, M: 0.0})
    assert found.rows({W: "layer/w"})[0].variable == "layer/w (3)"


def test_a_gradient_off_on_any_rank_fails_with_its_place(traces: Traces) -> None:
    traces.change(1, rank=1, calls=with_gradient(1, array(0.5, -1, 2.0001)))
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.step, failure.rank, failure.variable, failure.kind) == (1, 1, "layer/w (3)", "gradient")
    assert failure.value == pytest.approx(1e-4 / np.linalg.norm([0.5, 1, 2]), rel=1e-2)
    assert failure.limit == 1e-5


def test_a_gradient_within_rounding_passes(traces: Traces) -> None:
    traces.change(1, calls=with_gradient(1, array(0.5, -1, 2) * np.float32(1 + 3e-7)))
    found = traces.compared()
    assert found.failure is None
    assert found.gradients[W] > 0


def test_a_gradient_of_cancelled_rounding_is_measured_against_the_whole(tmp_path: Path) -> None:
    bias = "bias|1|float32|0"
    traces = Traces(tmp_path)
    for trace, noise in ((traces.reference, 1e-9), (traces.ranks[0], -1e-9), (traces.ranks[1], -1e-9)):
        step = honest(0)
        gradients = {W: step.calls[0].gradients[W], bias: array(noise)}
        call = replace(step.calls[0], sources=(W, bias), gradients=gradients)
        state = {**step.before, bias: array(1)}, {**step.after, bias: array(1)}
        trace.write_step(0, Step(state[0], (call,), state[1], closed=True))
    traces.lock()
    assert traces.compared().failure is None


@pytest.mark.parametrize(("size", "passes"), [(1e-9, True), (1e-4, False)])
def test_a_slot_that_holds_rounding_is_measured_against_the_whole_gradient(
    tmp_path: Path, size: float, passes: bool
) -> None:
    slot = "bias_momentum|1|float32|0"
    traces = Traces(tmp_path)
    for trace, value in ((traces.reference, size), (traces.ranks[0], size), (traces.ranks[1], -size)):
        for index in range(STEPS):
            step = honest(index)
            before, after = {**step.before, slot: array(0)}, {**step.after, slot: array(value)}
            trace.write_step(index, replace(step, before=before, after=after))
    lock = traces.reference.lock()
    traces.reference.write_lock(replace(lock, slots=(*lock.slots, slot)))
    assert (traces.compared().failure is None) == passes


def test_the_loss_is_the_mean_over_ranks(traces: Traces) -> None:
    for rank, loss in enumerate((1.5, 2.5)):
        traces.change(0, rank, calls=(replace(honest(0).calls[0], loss=loss),))
    assert traces.compared().failure is None
    traces.change(0, 1, calls=(replace(honest(0).calls[0], loss=2.6),))
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.rank, failure.value) == ("loss", None, pytest.approx(0.025))


def test_the_loss_is_weighted_where_the_script_counts_examples(traces: Traces) -> None:
    for rank, (loss, weight) in enumerate(((1.0, 3), (5.0, 1))):
        traces.change(0, rank, calls=(replace(honest(0).calls[0], loss=loss, weight=weight),))
    assert traces.compared().failure is None


def test_the_loss_of_a_rank_without_examples_counts_nothing(traces: Traces) -> None:
    for rank, (loss, weight) in enumerate(((2.0, 3), (float("nan"), 0))):
        traces.change(0, rank, calls=(replace(honest(0).calls[0], loss=loss, weight=weight),))
    assert traces.compared().failure is None


def test_a_loss_that_passes_through_zero_is_measured_against_its_usual_size(traces: Traces) -> None:
    assert honest(2).calls[0].loss == 0
    traces.change(2, calls=(replace(honest(2).calls[0], loss=1e-8),))
    assert traces.compared().failure is None


def test_a_wrong_start_fails_even_where_everything_after_agrees(traces: Traces) -> None:
    step = honest(0)
    traces.change(0, before={**step.before, W: step.before[W] + 1e-3}, after={**step.after, W: step.after[W] + 1e-3})
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.rank) == ("start", 1)


@pytest.mark.parametrize("key", [W, M])
def test_an_update_off_in_a_variable_or_a_slot_fails(traces: Traces, key: str) -> None:
    step = honest(2)
    halfway = (step.before[key] + step.after[key]) / 2
    traces.change(2, rank=0, after={**step.after, key: halfway})
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.rank, failure.value) == ("update", 0, pytest.approx(0.5, rel=1e-3))


def test_the_update_of_an_element_whose_gradient_is_rounding_decides_nothing(traces: Traces) -> None:
    step = honest(1)
    for trace, noise in ((traces.reference, 1.0e-9), (traces.ranks[0], 1.0e-9), (traces.ranks[1], 1.1e-9)):
        trace.write_step(1, replace(step, calls=with_gradient(1, array(noise, -1, 2))))
    moved = step.after[W] + array(0.1, 0, 0)
    traces.change(1, calls=with_gradient(1, array(1.1e-9, -1, 2)), after={**step.after, W: moved})
    found = traces.compared()
    assert found.failure is None
    assert found.gradients[W] > 0
    traces.change(1, calls=with_gradient(1, array(1.0e-9, -1, 2)), after={**step.after, W: moved})
    assert traces.compared().failure is not None


def test_an_update_smaller_than_the_rounding_of_its_variable_is_measured_against_that(tmp_path: Path) -> None:
    traces = Traces(tmp_path)
    big = array(1e4, 1e4, 1e4)
    for trace, shift in ((traces.reference, 0), (traces.ranks[0], 0), (traces.ranks[1], 1e-3)):
        after = big.copy()
        after[0] += shift + 2e-3
        trace.write_step(1, replace(honest(1), before={W: big, M: big}, after={W: after, M: big}))
    assert traces.compared().failure is None


def test_a_rank_that_skips_its_update_fails(traces: Traces) -> None:
    call = honest(1).calls[0]
    traces.change(1, calls=(call, call))
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.step, failure.rank) == ("calls", 1, 1)
    traces.change(1, closed=False)
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.step, failure.rank) == ("calls", 1, 1)


def test_a_rank_with_fewer_steps_fails(traces: Traces) -> None:
    (traces.ranks[1].folder / f"step-{STEPS - 1:05d}.npz").unlink()
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.rank, failure.value) == ("steps", 1, STEPS - 1)


def test_a_variable_trained_in_one_run_only_fails(traces: Traces) -> None:
    traces.change(1, calls=(replace(honest(1).calls[0], gradients={}),))
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.variable) == ("missing", "layer/w (3)")


def test_a_slot_that_is_missing_fails(traces: Traces) -> None:
    traces.change(1, after={W: honest(1).after[W]})
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.variable) == ("missing", "w_momentum (3)")


def test_nan_on_one_side_fails(traces: Traces) -> None:
    traces.change(1, calls=with_gradient(1, array(0.5, float("nan"), 2)))
    found = traces.compared()
    assert found.failure is not None
    assert found.failure.kind == "gradient"
    assert found.gradients[W] == float("inf")


def test_infinities_that_agree_pass(traces: Traces) -> None:
    infinite = with_gradient(1, array(0.5, float("inf"), 2))
    for trace in (traces.reference, *traces.ranks):
        trace.write_step(1, replace(honest(1), calls=infinite))
    assert traces.compared().failure is None


def test_a_gradient_taken_inside_another_tape_may_differ(traces: Traces) -> None:
    for trace, factor in ((traces.reference, 1), (traces.ranks[0], 2), (traces.ranks[1], 3)):
        penalty = Call(9.0 * factor, None, True, (W,), {W: array(1, 1, 1) * factor})
        trace.write_step(1, replace(honest(1), calls=(penalty, *honest(1).calls)))
    traces.lock()
    assert traces.compared().failure is None


def test_limits_grow_with_the_dtype_but_half_a_gradient_always_fails(traces: Traces) -> None:
    traces.reference.write_header(Header("complete", {}, "bfloat16"))
    traces.change(1, calls=with_gradient(1, array(0.5, -1, 2) * 1.01))
    assert traces.compared().failure is None
    traces.change(1, calls=with_gradient(1, array(0.5, -1, 2) / 2))
    assert traces.compared().failure is not None


def test_a_wrong_gradient_shows_in_the_update_that_it_makes(traces: Traces) -> None:
    """Only elements whose gradient is lost in rounding are left out of an update: here every element is wrong."""
    for rank, factor in enumerate((1.6, 0.4)):
        wrong = honest(1).calls[0].gradients[W] * np.float32(factor)
        after = {**honest(1).after, W: honest(1).before[W] - np.float32(0.1) * wrong}
        traces.change(1, rank, calls=(replace(with_gradient(1, wrong)[0], combined=""),), after=after)
    found = traces.compared()
    assert found.failure is not None
    assert (found.failure.kind, found.gradients[W]) == ("gradient", pytest.approx(0.6))
    assert found.updates[W] == pytest.approx(0.6, rel=1e-3)
    assert [point.update > 0.5 for point in found.points] == [False, True, False]


def test_initial_values_taken_over_are_the_drawn_ones() -> None:
    start = {W: array(0, 0, 0), M: array(0, 0, 0), RATE: np.float32(0.1), "frozen|2|float32|0": array(1, 2)}
    assert set(compare.drawn(start, [W])) == {W, "frozen|2|float32|0"}


def test_each_step_is_a_point_with_the_losses_of_both_runs(traces: Traces) -> None:
    louder = replace(honest(1).calls[0], loss=1.5)
    traces.change(1, rank=0, calls=(louder,), after={W: array(1, 2, 3), M: array(2, 0, 3)})
    points = traces.compared().points
    assert [point.step for point in points] == [0, 1, 2]
    assert [point.losses for point in points] == [((2.0, 2.0),), ((1.0, 1.25),), ((0.0, 0.0),)]
    assert [point.loss for point in points] == [0, 0.25, 0]
    assert points[0] == compare.Point(0, ((2.0, 2.0),))
    moved = honest(1).after[W]
    assert points[1].weights == pytest.approx(float(np.linalg.norm(array(1, 2, 3) - moved) / np.linalg.norm(moved)))
    assert points[1].update > 1
