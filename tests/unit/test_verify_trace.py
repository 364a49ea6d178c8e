"""Traces on disk, and the recorder that decides where steps begin and end."""

from pathlib import Path
from typing import Any, NoReturn

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify.record import Call, Header, Lock, Step, Trace  # noqa: E402
from tfdp.migrate.verify.traced.recorder import Recorder  # noqa: E402

W, M, RATE = "a/w|2|float32|0", "m|2|float32|0", "rate||float32|0"


class Stopped(Exception):  # noqa: N818
    """Stands for the end of the process."""


class Memory:
    """Variables of a script that is not there."""

    def __init__(self, **values: float) -> None:
        self.values = {W: np.full(2, values.get("w", 0), np.float32)}
        self.made: dict[str, Any] = dict(self.values)

    def read(self) -> dict[str, Any]:
        return {key: value.copy() for key, value in self.values.items()}

    def initial(self) -> dict[str, Any]:
        return self.made

    def add(self, amount: float) -> None:
        self.values[W] = self.values[W] + np.float32(amount)


def stop(outcome: str) -> NoReturn:
    raise Stopped(outcome)


def call(loss: float = 1.0) -> Call:
    return Call(loss, None, False, (W,), {W: np.ones(2, np.float32)})


def trace(folder: Path) -> Trace:
    folder.mkdir()
    return Trace(folder)


def test_a_step_comes_back_as_written(tmp_path: Path) -> None:
    there = trace(tmp_path / "t")
    arrays = {W: np.arange(2, dtype=np.float32), RATE: np.array(0.5)}
    given = Call(0.25, 7.0, True, (W, M), {W: np.ones(2)})
    there.write_step(3, Step(arrays, (call(), given), {W: np.zeros(2)}, closed=True))
    step = there.step(3)
    assert step is not None
    assert step.closed
    assert set(step.before) == {W, RATE}
    assert step.before[RATE] == 0.5
    assert (step.calls[1].loss, step.calls[1].weight, step.calls[1].inner) == (0.25, 7.0, True)
    assert step.calls[1].sources == (W, M)
    assert list(step.calls[1].gradients) == [W]
    assert there.step(4) is None
    assert not list(there.folder.glob("*.part"))


def test_header_and_lock_come_back_as_written(tmp_path: Path) -> None:
    there = trace(tmp_path / "t")
    assert there.header() is None
    header = Header("ended", {W: "layer/w"}, "float16", (42,), (1, 2), (7,))
    there.write_header(header)
    there.write_lock(Lock((W,), (M,), (1, 2)))
    assert (there.header(), there.lock()) == (header, Lock((W,), (M,), (1, 2)))


def test_a_step_ends_at_the_first_tape_after_a_change(tmp_path: Path) -> None:
    memory, there = Memory(), trace(tmp_path / "t")
    recorder = Recorder(memory, there, 2, stop)
    recorder.enter()
    recorder.call(call())
    recorder.enter()  # gradients are gathered: no update yet
    recorder.call(call(2.0))
    memory.add(1)
    recorder.enter()  # looked at only: nothing taken
    memory.add(5)
    recorder.enter()
    recorder.call(call())
    memory.add(1)
    with pytest.raises(Stopped, match="complete"):
        recorder.enter()
    first, second = there.step(0), there.step(1)
    assert first is not None
    assert second is not None
    assert [one.loss for one in first.calls] == [1.0, 2.0]
    assert (first.before[W][0], first.after[W][0]) == (0, 1)
    assert (second.before[W][0], second.after[W][0]) == (6, 7)
    assert there.closed_steps() == 2


def test_the_end_of_the_script_closes_the_last_step(tmp_path: Path) -> None:
    memory, there = Memory(), trace(tmp_path / "t")
    recorder = Recorder(memory, there, 5, stop)
    recorder.enter()
    recorder.call(call())
    memory.add(1)
    recorder.finish()
    assert there.closed_steps() == recorder.index == 1
    recorder.enter()
    recorder.call(call())
    recorder.finish()
    assert there.closed_steps() == 1
    assert there.step(1) is not None


def test_variables_made_after_the_tape_was_entered_have_a_state_before(tmp_path: Path) -> None:
    memory, there = Memory(), trace(tmp_path / "t")
    recorder = Recorder(memory, there, 1, stop)
    memory.values.clear()
    recorder.enter()
    memory.values[W] = np.full(2, 3, np.float32)
    recorder.call(call())
    memory.values[M] = np.full(2, 8, np.float32)
    memory.made[M] = np.zeros(2, np.float32)
    memory.add(1)
    recorder.finish()
    step = there.step(0)
    assert step is not None
    assert (step.before[W][0], step.before[M][0], step.after[M][0]) == (3, 0, 8)


def reference(folder: Path) -> Trace:
    there = trace(folder)
    for index in range(3):
        state = {W: np.full(2, 10 * index, np.float32), RATE: np.array(0.5, np.float32)}
        there.write_step(index, Step(state, (call(),), state, closed=True))
    there.write_lock(Lock((W,), (M,), (1, 1, 1)))
    return there


def test_every_step_but_the_first_starts_from_the_reference(tmp_path: Path) -> None:
    memory = Memory(w=1)
    memory.values[RATE] = np.array(0.125, np.float32)
    there = trace(tmp_path / "t")
    recorder = Recorder(memory, there, 2, stop, reference(tmp_path / "r"))
    for _ in range(2):
        memory.values.update(recorder.enter())
        recorder.call(call())
        memory.add(1)
    recorder.finish()
    starts = [step.before for step in map(there.step, range(2)) if step]
    assert [start[W][0] for start in starts] == [1, 10]
    assert [start[RATE] for start in starts] == [0.125, 0.125]


def test_more_gradients_than_the_reference_end_the_run(tmp_path: Path) -> None:
    memory, there = Memory(), trace(tmp_path / "t")
    recorder = Recorder(memory, there, 2, stop, reference(tmp_path / "r"))
    recorder.enter()
    recorder.call(call())
    recorder.enter()
    with pytest.raises(Stopped, match="diverged"):
        recorder.call(call())
    step = there.step(0)
    assert step is not None
    assert (step.closed, len(step.calls)) == (False, 2)


def test_an_optimizers_average_takes_the_place_of_the_gradient_that_it_was_given(tmp_path: Path) -> None:
    memory = Memory()
    recorder = Recorder(memory, trace(tmp_path / "t"), 2, stop)
    recorder.enter()
    recorder.call(call(3.0))
    recorder.averaged({W: np.full(2, 9.0)}, {W: np.full(2, 7.0)}, 1)  # a gradient that was changed on its way
    recorder.averaged({M: np.ones(2)}, {M: np.full(2, 7.0)}, 1)  # another variable's
    recorder.call(call(5.0))
    recorder.averaged({W: np.ones(2, np.float32)}, {W: np.full(2, 0.5)}, 2)
    recorder.averaged({W: np.ones(2, np.float32)}, {W: np.full(2, 0.1)}, 2)  # the call is averaged already
    memory.add(1)
    recorder.finish()
    step = Trace(tmp_path / "t").step(0)
    assert step is not None
    assert [(each.loss, each.combined, each.gradients[W].tolist()) for each in step.calls] == [
        (6.0, "sum", [0.5, 0.5]),
        (10.0, "sum", [0.5, 0.5]),
    ]
