"""A loss or gradient that is off by little decides nothing until rounding is measured, and then the measure does."""

from dataclasses import replace
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from handmade_traces import STEPS, Traces, W, array, gradients, step  # noqa: E402

from tfdp.migrate.verify.judge import (  # noqa: E402
    UNDECIDED,
    UNDECIDED_CALLS,
    Comparison,
    Failure,
    Point,
    compared,
    first,
    in_float64,
    in_permuted_rows,
)
from tfdp.migrate.verify.record import Header  # noqa: E402

NARROW = "line 3: frombuffer reads numbers of a dtype out of bytes"


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


def off(traces: Traces, by: float) -> Comparison:
    """Rank 1 is off by a part of the gradient's norm in step 2."""
    moved = array(0, 0, np.linalg.norm(gradients(2)[W])) * np.float32(by)
    wrong = step(2, 0.6)
    call = wrong.calls[0]
    changed = replace(call, gradients={**call.gradients, W: call.gradients[W] + moved})
    traces.ranks[1].write_step(2, replace(wrong, calls=(changed,)))
    return compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED)


@pytest.mark.parametrize(("by", "outcome"), [(5e-6, "passes"), (3e-5, "undecided"), (2e-4, "fails")])
def test_only_what_may_be_rounding_is_undecided(traces: Traces, by: float, outcome: str) -> None:
    found = off(traces, by)
    assert (found.failure is not None, set(found.undecided)) == (
        outcome == "fails",
        {W} if outcome == "undecided" else set(),
    )
    if outcome == "undecided":
        one = first(found.undecided)
        assert (one.step, one.rank, one.kind, one.limit) == (2, 1, "gradient", 1e-5)
        assert one.value == pytest.approx(by, rel=1e-2)
        strict = compared(traces.reference, traces.ranks, STEPS)
        assert strict.failure == one
        assert not strict.undecided


def test_a_loss_may_be_rounding_too(traces: Traces) -> None:
    for by, undecided in ((5e-6, True), (2e-5, False)):
        wrong = step(1, 1.4)
        call = replace(wrong.calls[0], loss=wrong.calls[0].loss + 2 * by * (2.0 + 1))
        traces.ranks[0].write_step(1, replace(wrong, calls=(call,)))
        found = compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED)
        assert (set(found.undecided), found.failure is None) == (({""}, True) if undecided else (set(), False))


def test_half_precisions_have_their_own_limits_and_nothing_undecided(traces: Traces) -> None:
    traces.reference.write_header(Header("complete", compute="float16"))
    assert not off(traces, 3e-5).undecided
    assert off(traces, 0.06).failure is not None


GRADIENT = Failure(2, 1, "bias (32)", "gradient", 1.6e-5, 1e-5, "differs by 1.6e-05, the limit is 1e-05")
LOSS = Failure(1, None, "", "loss", 4e-6, 1e-6, "differs by 4e-06, the limit is 1e-06")


def undecided(**failures: Failure) -> Comparison:
    return Comparison(undecided=failures, times=UNDECIDED)


def test_float64_may_decide_about_more_where_it_is_exact(traces: Traces) -> None:
    off(traces, 2e-4)
    found = compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED_CALLS)
    assert (found.failure, set(found.undecided), found.times) == (None, {W}, UNDECIDED_CALLS)
    off(traces, 0.5)  # what no rounding is
    assert compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED_CALLS).failure is not None


def test_an_update_follows_from_its_gradient_and_may_be_decided_with_it_where_float64_is_exact(traces: Traces) -> None:
    for by, kept in ((5e-3, True), (0.5, False)):
        off(traces, 0.0)
        wrong = traces.ranks[0].step(1)
        moved = wrong.before[W] + (1 + by) * (wrong.after[W] - wrong.before[W])
        traces.ranks[0].write_step(1, replace(wrong, after={**wrong.after, W: moved}))
        found = compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED_CALLS)
        assert (found.failure is None, set(found.undecided)) == (kept, {W} if kept else set())
        assert compared(traces.reference, traces.ranks, STEPS, times=UNDECIDED).failure is not None


def test_float64_decides_at_its_limit() -> None:
    exact = {"loss": 1e-15, "gradient": 4.5e-14, "variables": 2.6e-14}
    found = in_float64(undecided(b=GRADIENT), exact)
    assert (found.passed, found.by, dict(found.limits)) == (True, "float64", {"gradient": pytest.approx(1e-4)})
    assert found.text == (
        "the gradient of bias (32) differs by 1.6e-05 in step 2, which may be rounding of float32: both runs were "
        "repeated in float64, and differ by loss 1.0e-15, gradient 4.5e-14, variables 2.6e-14 (limit 1e-09): it is "
        "rounding"
    )
    for name in exact:
        assert not in_float64(undecided(b=GRADIENT), {**exact, name: 2e-9}).passed
    assert not in_float64(undecided(b=GRADIENT), exact, "step 3, rank 1: it reads other examples").passed
    both = in_float64(undecided(b=GRADIENT, loss=LOSS), exact)
    assert {kind: pytest.approx(value) for kind, value in both.limits.items()} == {"gradient": 1e-4, "loss": 1e-5}


def comparison(loss: float = 0.0, steps: int = 4, **largest: float) -> Comparison:
    points = [Point(index) for index in range(steps)]
    return Comparison(loss=loss, gradients=largest, points=points)


@pytest.mark.parametrize(
    ("migrated", "permuted", "passes", "limit"),
    [
        (1.6e-5, 3e-6, False, 1.2e-5),  # four times what the order of the rows makes
        (1.6e-5, 5e-6, True, 2e-5),
        (1.6e-5, 1e-9, False, 1e-5),  # never below the limit
        (9e-5, 8e-5, True, 1e-4),  # never above ten times the limit
    ],
)
def test_permuted_rows_decide_by_four_times_what_they_make(
    migrated: float, permuted: float, passes: bool, limit: float
) -> None:
    found = comparison(b=migrated)
    found.undecided = {"b": replace(GRADIENT, value=migrated)}
    decided = in_permuted_rows(found, comparison(b=permuted, w=0.3), 4, NARROW)
    assert (decided.passed, decided.by) == (passes, "permuted rows")
    assert decided.limits["gradient"] == pytest.approx(limit)
    assert NARROW in decided.text
    assert f"the reference differs by {permuted:.1e}" in decided.text


def test_each_variable_is_held_to_its_own_rounding() -> None:
    found = comparison(4e-6, b=2e-5, c=2e-5)
    found.undecided = {"b": GRADIENT, "c": GRADIENT, "": LOSS}
    measured = {"b": 1e-5, "c": 6e-6}
    assert in_permuted_rows(found, comparison(2e-6, **measured), 4, "").passed
    assert not in_permuted_rows(found, comparison(2e-6, **{**measured, "c": 3e-6}), 4, "").passed
    assert not in_permuted_rows(found, comparison(1e-7, **measured), 4, "").passed


@pytest.mark.parametrize(
    ("permuted", "said"),
    [
        (comparison(b=0.0), "they do not come from a dataset"),
        (comparison(b=2e-4), "its rows are not alike"),
        (comparison(b=2e-5, steps=3), "does not take the same steps"),
    ],
)
def test_where_nothing_was_measured_nothing_is_rounding(permuted: Comparison, said: str) -> None:
    found = comparison(b=1.6e-5)
    found.undecided = {"b": GRADIENT}
    decided = in_permuted_rows(found, permuted, 4, NARROW)
    assert decided.passed is None
    assert said in decided.text
    assert decided.text.endswith("it is not known to be rounding")
