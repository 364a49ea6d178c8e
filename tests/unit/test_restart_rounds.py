"""Loops of scripts that a process could be in the middle of that has not begun them; no TensorFlow is imported."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from tfdp.runtime.restarts import rounds

BETWEEN = """
def run(at, saved, stepped, names=()):
    total, step, offset, box = 6, 2, 1, [1, 2, 3]
    {loop}:
        saved()
        stepped()
        {after}
"""


def found(tmp_path: Path, loop: str, after: str = "pass") -> list[Any]:
    """What is known, at the second round, of a loop that was saved in at the first."""
    path = tmp_path / "script.py"
    path.write_text(BETWEEN.format(loop=loop, after=after))
    space: dict[str, Any] = {"tqdm": _tqdm}
    exec(compile(path.read_text(), path, "exec"), space)
    ends, lines = [], []

    def saved() -> None:
        lines.append(sys._getframe(1).f_lineno)

    def stepped() -> None:
        ends.append(rounds.end(sys._getframe(1), lines[0]))

    space["run"](0, saved, stepped)
    assert all(each == ends[0] for each in ends)
    return [tuple(each)[1:] for each in ends[0]]


def _tqdm(things: Any, **_: Any) -> Any:
    return things


_tqdm.__module__, _tqdm.__name__ = "tqdm.std", "tqdm"


@pytest.mark.parametrize(
    ("loop", "wanted"),
    [
        ("for each in range(3)", (3, 1)),
        ("for each in range(offset, total)", (6, 1)),
        ("for each in range(offset, total + 1, step)", (7, 2)),
        ("for each in range(total, 0, -step)", (0, -2)),
        ("for each in range(len(box))", (3, 1)),
        ("for each in range(int(total / 2), max(total, box[0]))", (6, 1)),
        ("for each in tqdm(range(offset, total), desc='rounds')", (6, 1)),
    ],
)
def test_a_range_is_known_by_its_end_and_its_step(loop: str, wanted: tuple[int, int], tmp_path: Path) -> None:
    assert found(tmp_path, loop) == [wanted]


def test_while_goes_by_what_is_remembered(tmp_path: Path) -> None:
    assert found(tmp_path, "while total > 0", "total -= 1") == []


@pytest.mark.parametrize(
    ("loop", "after", "reason"),
    [
        ("for each in box", "pass", "goes over `box`"),
        ("for each in enumerate(range(3))", "pass", "goes over `enumerate(range(3))`"),
        ("for each in [*range(3)]", "pass", "goes over `[*range(3)]`"),
        ("for each, other in zip(range(3), box)", "pass", "goes over `zip("),
        ("for box[0] in range(3)", "pass", "goes over `range(3)`"),
        ("for each in range(*[3])", "pass", "goes over `range(*[3])`"),
        ("for each in range(box.pop())", "pass", "goes over `range(box.pop())`"),
        ("for each in range(total)", "total = 3", "changes total itself"),
        ("for each in range(total)", "each = 3", "changes each itself"),
        ("for each in range(0, total)", "del total; total = 2", "changes total itself"),
        ("for each in (range if box else list)(3)", "pass", "goes over `(range if box else list)(3)`"),
    ],
)
def test_of_others_there_is_no_knowing(loop: str, after: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(rounds.UnknownRound, match="loop") as error:
        found(tmp_path, loop, after)
    assert reason in str(error.value)


def test_a_comprehension_around_a_step_is_none_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("def run(step):\n    return [step() for _ in range(2)]\n")
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), space)

    def step() -> None:
        frame = sys._getframe(1)
        rounds.end(frame, frame.f_lineno)

    with pytest.raises(rounds.UnknownRound, match="no knowing where it is"):
        space["run"](step)


IN_FLIGHT = """
def run(step, total, losses, box, one):
    {statement}
"""


@pytest.mark.parametrize(
    ("statement", "names", "attributes"),
    [
        ("total = step()", {"step"}, set()),
        ("total += step()", {"total", "step"}, set()),
        ("total = max(total, step())", {"total", "step", "max"}, set()),
        ("losses.append(step())", {"step"}, {"append"}),
        ("one.losses.append(step())", {"step", "one"}, {"append"}),
        ("one.total += step()", {"step", "one"}, {"total"}),
        ("box['best'] = min(box['best'], step())", {"step", "box", "min"}, set()),
        ("if step() < total: losses.append(one)", {"step", "total"}, set()),
    ],
)
def test_what_a_statement_reads_may_have_been_taken(
    statement: str, names: set[str], attributes: set[str], tmp_path: Path
) -> None:
    path = tmp_path / "script.py"
    path.write_text(IN_FLIGHT.format(statement=statement))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), space)
    found = []

    def step() -> int:
        own, outer, common, attributes = rounds.loaded_in(sys._getframe(1))
        assert not outer
        found.append((own | common, attributes))
        return 1

    space["run"](step, 0, [], {"best": 0}, SimpleNamespace(losses=[], total=0))
    assert found == [(names, attributes)]


@pytest.mark.parametrize(
    ("statement", "is_refused"),
    [
        ("step()", False),
        ("losses.append(step())", False),
        ("losses.append(float(step()))", False),
        ("one.step()", False),
        ("losses.extend(step() for _ in range(2))", True),
        ("losses = list(map(call, [step]))", True),
        ("losses = list(giving(step))", True),
        ("losses = [*giving(step)]", True),
        ("for each in giving(step):\n        losses.append(each)", False),
        ("functools.reduce(lambda a, b: step(), [1, 2])", True),
    ],
)
def test_what_c_calls_is_in_no_loop_that_is_known(statement: str, is_refused: bool, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    begin = "import functools\ndef call(one): return one()\ndef giving(step): yield step()\n"
    path.write_text(begin + IN_FLIGHT.format(statement=statement))
    space: dict[str, Any] = {}
    exec(compile(path.read_text(), path, "exec"), space)
    refused = []

    def step() -> int:
        frame = next(each for each in rounds.frames(sys._getframe(1)) if each.f_code.co_name == "run")
        try:
            rounds.refuse_others_loops(frame)
        except rounds.UnknownRound as error:
            refused.append(str(error))
        return 1

    space["run"](step, 0, [], {}, SimpleNamespace(step=step))
    if sys.version_info >= (3, 11) or is_refused:  # before, Python does not say which of several calls it is
        assert bool(refused) == is_refused


def test_without_a_source_nothing_is_known() -> None:
    space: dict[str, Any] = {"end": lambda: rounds.end(sys._getframe(1), 1), "rounds": rounds}
    with pytest.raises(rounds.UnknownRound, match="is not there to be looked at"):
        exec("for each in range(2): end()", space)


def test_what_a_loop_gives_are_the_names_of_those_around(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("for a, (b, *c) in []:\n    for d in []:\n        x = 1\n    y = 2\nfor e in []:\n    z = 3\n")
    code = compile(path.read_text(), str(path), "exec")
    assert rounds.targets(code, 3) == {"a", "b", "c", "d"}
    assert rounds.targets(code, 4) == {"a", "b", "c"}
    assert rounds.targets(code, 6) == {"e"}


@pytest.fixture
def deep() -> Callable[[int, Callable[[], Any]], Any]:
    def call(depth: int, last: Callable[[], Any]) -> Any:
        return call(depth - 1, last) if depth else last()

    return call


def test_a_frame_that_has_begun_since_is_another(deep: Callable[[int, Callable[[], Any]], Any]) -> None:
    def mark() -> rounds.Marks:
        return rounds.Marks(sys._getframe(1))

    here = sys._getframe()
    marks = deep(3, mark)
    assert marks.line(here) is not None

    def marked() -> list[FrameType]:
        return [each for each in rounds.frames(sys._getframe(1)) if marks.line(each) is not None]

    for _ in range(5):  # whatever memory their frames are given
        assert deep(3, marked)[0] is here
    again = rounds.Marks(here)  # two in one place: the later one counts
    assert marks.line(here) is None
    assert again.line(here) is not None
    again.clear(here)
    assert here.f_trace is None


def test_where_a_debugger_follows_nothing_is_known() -> None:
    here = sys._getframe()
    here.f_trace = lambda *_: None
    try:
        with pytest.raises(rounds.UnknownRound, match="debugger"):
            rounds.Marks(here)
    finally:
        here.f_trace = None
        rounds.Marks(here.f_back).clear(here.f_back)


def test_no_frame_of_this_process_is_left_marked() -> None:
    assert all(each.f_trace is None for each in rounds.frames(sys._getframe()))
