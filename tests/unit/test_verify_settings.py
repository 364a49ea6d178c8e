"""What optimizers are set to beyond the steps of a proof: what no step has shown must fail it nevertheless."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from tfdp.migrate.verify import checks
from tfdp.migrate.verify.proof import Proof
from tfdp.migrate.verify.record import SLACK, STEPS, Optimizer, Trace, settings

NUMBERS = {"weight_decay": 1e-4, "epsilon": 1e-7}


def optimizer(rate: Callable[[int], float] | None = None, kind: str = "AdamW", **numbers: float) -> Optimizer:
    rates = []
    for step in STEPS if rate else ():
        near = [rate(max(step + shift, 0)) for shift in (-SLACK, 0, SLACK)]
        rates.append((min(near), near[1], max(near)))
    return Optimizer(kind, {**NUMBERS, **numbers}, tuple(rates))


def decay(steps: float, staircase: bool = True) -> Callable[[int], float]:
    return lambda step: 0.1 * 0.9 ** (step // steps if staircase else step / steps)


def said(wanted: Optimizer, *ranks: Optimizer) -> tuple[str, int | None]:
    found = settings.judge_settings([wanted], [[rank] for rank in ranks])
    assert found is not None
    return found.text, found.rank


@pytest.mark.parametrize("steps", [3, 100, 5000, 10**6])
@pytest.mark.parametrize("staircase", [True, False])
def test_a_schedule_whose_steps_are_not_divided(steps: int, staircase: bool) -> None:
    good, bad = optimizer(decay(steps, staircase)), optimizer(decay(2 * steps, staircase))
    text, rank = said(good, good, bad)
    assert rank == 1
    assert text.startswith("rank 1: AdamW: its schedule gives the rate ")


@pytest.mark.parametrize("staircase", [True, False])
@pytest.mark.parametrize("steps", [333, 5000])
def test_a_number_of_steps_that_is_rounded_otherwise(steps: int, staircase: bool) -> None:
    assert said(optimizer(decay(steps, staircase)), optimizer(decay(steps + 1, staircase)))[1] is None


def test_boundaries_that_are_rounded_otherwise() -> None:
    for boundary in (7, 16, 96, 1024):
        good = optimizer(lambda step, at=boundary: 0.1 if step < at else 0.01)
        late = optimizer(lambda step, at=boundary: 0.1 if step < at + 1 else 0.01)
        assert said(good, late) == ("one optimizer, set as in the reference, and its rate in the steps to come", None)


def test_numbers_that_no_step_has_shown() -> None:
    text = "rank 0: AdamW: weight_decay is 0.0002, the reference's is 0.0001"
    assert said(optimizer(), optimizer(weight_decay=2e-4)) == (text, 0)
    assert said(optimizer(), optimizer(weight_decay=1e-4 * (1 + 1e-9)))[1] is None
    # Clipped by hand in the one: what this does is in the steps.
    assert said(optimizer(), optimizer(clipnorm=1.0))[1] is None
    # A rate that is a number is in the steps, too.
    assert said(optimizer(decay(10)), optimizer())[1] is None


def test_other_optimizers_are_not_compared() -> None:
    assert said(optimizer(), optimizer(kind="Own"))[0].startswith("not compared")
    unknown = settings.judge_settings([optimizer()], [[optimizer()], None])
    assert unknown is not None
    assert unknown.text.startswith("not compared")
    assert settings.judge_settings([], [[], []]) is None
    assert settings.judge_settings(None, [None, None]) is None


@pytest.mark.parametrize(("batch", "told"), [("per-worker", "(dp.local_steps divides)"), ("global", "as before")])
def test_the_proof_fails(tmp_path: Path, batch: str, told: str) -> None:
    traces = [Trace(tmp_path / name) for name in ("reference", "rank0", "rank1")]
    for trace, one in zip(traces, [decay(500), decay(500), decay(1000)], strict=True):
        trace.folder.mkdir()
        settings.write_settings(trace.folder, [optimizer(one)])
    proof = Proof("train.py", 2, batch, 20, 0, True, 0.0, 0.0, 0.0, None, "", ())
    found = checks.with_settings(proof, traces[0], traces[1:])
    assert not found.proved
    assert found.failure is not None
    assert (found.failure.kind, found.failure.rank, found.cause) == ("settings", 1, "learning rate")
    assert found.diagnosis is not None
    assert told in found.diagnosis
    assert checks.with_settings(proof, traces[0], traces[:1] * 2).proved
