"""Why a proof failed, told from traces written by hand: updates, and runs that ended early."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from handmade_traces import SHARES, SITE, M, Traces, W, at_rate, plain, step, updated  # noqa: E402

from tfdp.migrate.verify.diagnosis import Cause  # noqa: E402
from tfdp.migrate.verify.diagnosis.causes import Diagnosis, place, ranks  # noqa: E402
from tfdp.migrate.verify.record import (  # noqa: E402
    Data,
    Note,
    Step,
)
from tfdp.migrate.verify.record import trace as facts  # noqa: E402


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    return Traces(tmp_path)


# --- the update -------------------------------------------------------------------------------------------------------


def test_examples_that_every_rank_reads_all_are_not_sharded(traces: Traces) -> None:
    """The gradients are right then, and an optimizer may make much of their last digits."""
    traces.all(lambda i, share: at_rate(i, share, 0.83))
    assert traces.cause(data=Data("broken", "", 0, (0, 1), (), whole=True)) is Cause.NOT_SHARDED
    assert traces.cause(data=Data("broken", "", 0, (0, 1), ())) is Cause.RATE


@pytest.mark.parametrize("factor", [0.5, 2.0, 0.83])
def test_another_rate_leaves_the_slots_right(traces: Traces, factor: float) -> None:
    traces.all(lambda i, share: at_rate(i, share, factor))
    assert traces.cause() is Cause.RATE


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
        ("TfdpError: w differs on rank(s) 1 from rank 0's before the first gradient at train.py:1: …", Cause.START),
        ("TfdpError: w differs on rank(s) 1 from rank 0's in the exchange of gradients at train.py:1", Cause.UPDATE),
        ("TfdpError: the exchange of gradients at train.py:1 is of different batches on the ranks (…)", Cause.DECISION),
        ("the records given to dp.shard at train.py:1 differ on rank(s) 1 from rank 0's: …", Cause.ORDERS),
        ("TypeError: … is a DistributedGradientTape already: wrap a tape once", Cause.AVERAGED_TWICE),
        (
            "tfdp.runtime.foundation.errors.RankFinishedError: rank 0 waits in allreduce for rank 1, which has ended",
            Cause.DECISION,
        ),
    ],
)
def test_what_the_runtime_says_itself(traces: Traces, output: str, cause: Cause) -> None:
    found = traces.diagnosis(reason=f"the migrated run failed with exit status 1:\n{output}")
    assert found is not None
    assert found.cause is cause
    assert ("hold different data, in order or values," in found.text) is (cause is Cause.ORDERS)


def test_a_second_sharding_finds_the_first_one_s_shares_different(traces: Traces) -> None:
    traces.note(Note(facts.SHARDED, SITE), Note(facts.SHARDED_AGAIN, SITE))
    found = traces.diagnosis(reason="TfdpError: the records given to dp.shard at train.py:1 differ on rank(s) 1")
    assert found is not None
    assert found.cause is Cause.SHARDED_TWICE


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
