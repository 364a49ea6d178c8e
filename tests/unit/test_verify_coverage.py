"""What a proof says it covers, and when the reference has recorded enough: told of passes by hand."""

import math
from pathlib import Path

import pytest

from tfdp.migrate.verify.record import FEWEST, MOST, Coverage, Pass, Passes, read_coverage, write_coverage


def loop(passes: Passes, batches: float | None, begun: int = 0) -> Pass:
    one = passes.begin(begun, batches)
    one.ends = True
    return one


def trained(one: Pass, batches: int, each: int = 1) -> int:
    """Train on the next batches of a loop's pass. Returns the updates made by then."""
    for _ in range(batches):
        one.given += 1
        one.trains = True
        one.done(one.given, one.updates + each)
    return one.updates


def ended(one: Pass) -> None:
    one.end(one.updates)


def test_a_short_epoch_is_gone_past() -> None:
    passes = Passes()
    one = loop(passes, 50)
    assert not passes.enough(trained(one, 20))
    trained(one, 30)
    ended(one)
    assert not passes.enough(50), "an update has to come after the epoch's end"
    assert passes.coverage(50, whole=False).ends == 0
    assert passes.enough(trained(loop(passes, 50, begun=50), 1))
    found = passes.coverage(51, whole=False)
    assert (found.ends, found.length, found.total) == (1, 50, None)
    assert found.text == "51 of an unknown number of updates (50 in an epoch), one epoch end reached"


def test_a_few_updates_are_always_compared() -> None:
    passes = Passes()
    for begun in range(0, FEWEST, 4):
        one = loop(passes, 4, begun)
        assert not passes.enough(trained(one, 4) - 1)
        ended(one)
    assert passes.enough(FEWEST)
    assert passes.coverage(FEWEST, whole=False).ends == 4, "nothing has come after the fifth"


@pytest.mark.parametrize("batches", [500, math.inf])
def test_a_long_pass_is_not_gone_through(batches: float) -> None:
    passes = Passes()
    assert passes.enough(trained(loop(passes, batches), 20))
    found = passes.coverage(20, whole=False)
    assert (found.ends, found.short) == (0, None)
    each = " (500 in an epoch)" if batches == 500 else ""
    assert found.text == f"20 of an unknown number of updates{each}, no epoch end reached"


def test_a_pass_of_unknown_length_is_gone_through_as_far_as_may_be() -> None:
    passes = Passes(shortens=True)
    one = loop(passes, None)
    assert not passes.enough(trained(one, 20))
    assert not passes.enough(trained(one, MOST - 21))
    assert passes.enough(trained(one, 1))
    assert passes.short is None


def test_a_long_loop_is_ended_early_and_said_to_be() -> None:
    passes = Passes(shortens=True)
    one = loop(passes, 500)
    assert not passes.enough(trained(one, 20))
    assert passes.cut(one)
    ended(one)
    following = loop(passes, 500, begun=20)
    assert not passes.cut(following)
    assert passes.enough(trained(following, 1))
    found = passes.coverage(21, whole=False)
    assert (found.ends, found.length, found.short) == (1, 500, 20)
    assert found.text == (
        "21 of an unknown number of updates (500 in an epoch), one epoch end reached; "
        "in both runs, each epoch was ended after 20 batches"
    )
    # Another run, that is told so from the start, ends it there, too.
    told = Passes(short=20)
    one = loop(told, None)
    trained(one, 19)
    assert not told.cut(one)
    trained(one, 1)
    assert told.cut(one)
    for without in ("trains", "ends"):  # a pass for validation; one whose batches next() asks for
        setattr(one, without, False)
        assert not told.cut(one)
        setattr(one, without, True)


@pytest.mark.parametrize("batches", [math.inf, 500])
def test_what_would_be_lost_without_a_batch_is_not_ended_early(batches: float) -> None:
    passes = Passes(shortens=True)
    one = loop(passes, batches)
    one.ends = math.isinf(batches)  # the other is asked by next(), outside of a loop
    assert passes.enough(trained(one, 20))
    assert passes.short is None
    assert not passes.cut(one)


def test_epochs_of_fit_are_shortened_where_they_are_long() -> None:
    passes = Passes(shortens=True)
    assert passes.epoch(None) is None
    assert passes.epoch(MOST) is None
    assert passes.epoch(469) == FEWEST
    assert passes.epoch(MOST) == FEWEST, "then all that are longer are"
    assert passes.epoch(FEWEST) is None
    assert Passes().epoch(469) is None


def test_how_many_updates_fit_makes_is_known() -> None:
    passes = Passes(fit=(0, 10), short=20)
    one = passes.begin(0, 469, trains=True)
    one.done(20, 20)
    one.end(20)
    passes.begin(20, 469, trains=True)
    found = passes.coverage(21, whole=False)
    assert found.text == (
        "21 of 4,690 updates up to the end of fit (469 in an epoch), one epoch end reached; "
        "in both runs, each epoch was ended after 20 batches"
    )


def test_updates_are_counted_by_batches() -> None:
    passes = Passes()
    one = loop(passes, 30)
    trained(one, 10, each=2)
    assert passes.coverage(20, whole=False).length == 60


def test_a_script_that_comes_to_its_end_is_covered() -> None:
    passes = Passes()
    one = loop(passes, 6)
    trained(one, 6)
    ended(one)
    validation = loop(passes, 3, begun=6)
    validation.given = 3
    ended(validation)
    found = passes.coverage(6, whole=True)
    assert found.text == "all 6 updates of the reference, to the script's end, one epoch end reached"
    assert Passes().coverage(5, whole=True).text.endswith("; where an epoch ends is not seen")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    found = Coverage(20, 4690, 0, 469, True, False)
    assert read_coverage(tmp_path) is None
    write_coverage(tmp_path, found)
    assert read_coverage(tmp_path) == found
    assert found.text == "20 of 4,690 updates up to the end of fit (469 in an epoch), no epoch end reached"
