"""References that fail, end early, take too long or need too much room: real processes, which need no TensorFlow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify import CouldNotRun, record, runs  # noqa: E402

# Stands in for the instruments: runs the text, which records its steps itself.
CHILD = """
import json, sys
from pathlib import Path
import numpy as np
from tfdp.migrate.verify.record import Call, Header, Spec, Step, Trace
spec = Spec(**json.loads(Path(sys.argv[1]).read_text()))
trace = Trace(Path(spec.out) / "rank0")
trace.folder.mkdir(parents=True)
key = "w|2|float32|0"
def step(index):
    w = np.full(2, index, np.float32)
    trace.write_step(index, Step({key: w}, (Call(1.0, None, False, (key,), {key: w}),), {key: w + 1}, True))
exec(compile(Path(spec.source).read_text(), spec.path, "exec"))
"""
WAITS = "import threading\nthreading.Event().wait()\n"
FAILS = "step(0)\nopen('missing.npz')\n"


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHILD", CHILD)


def failure(folder: Path, reference: str, original: str | None = None, timeout: float = 60.0) -> str:
    text = None if original is None else original.encode()
    with (
        pytest.raises(CouldNotRun) as caught,
        record(folder / "train.py", 2, 3, reference=reference.encode(), original=text, timeout=timeout),
    ):
        pass
    return str(caught.value)


def test_a_script_that_fails_by_itself_says_so_with_its_own_lines(tmp_path: Path) -> None:
    said = failure(tmp_path, "# one more line\n" + FAILS, FAILS)
    assert "train.py: the script itself, as it is and in one process, fails in step 1:\n" in said
    assert f'"{tmp_path}/train.py", line 2, in <module>' in said
    assert said.endswith("put it in place, or start tfdp verify elsewhere")
    assert "the script needs missing.npz, which is not there in " in said


def test_a_reference_that_fails_where_the_script_does_not(tmp_path: Path) -> None:
    said = failure(tmp_path, "raise ValueError('a batch of 96')\n", "step(0)\n")
    assert "train.py: the reference failed in step 0:\n" in said
    assert said.endswith("ValueError: a batch of 96")


def test_a_script_that_leaves_without_an_error_says_how(tmp_path: Path) -> None:
    assert failure(tmp_path, "import sys\nstep(0)\nsys.exit(3)\n").endswith("failed in step 1 with exit status 3:\n")
    killed = failure(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert killed.endswith("failed in step 0, killed by SIGKILL:\n")


def test_too_few_steps(tmp_path: Path) -> None:
    said = failure(tmp_path, "step(0)\nstep(1)\n")
    assert "the reference ends after 2 updates, 3 were asked for: ask for at most 2" in said


def test_a_run_that_takes_too_long_says_how_far_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        """Stands still until the first step is there; the first look is taken when the run begins."""

        began = False

        @classmethod
        def monotonic(cls) -> float:
            first, cls.began = not cls.began, True
            return 1e9 if not first and any(tmp_path.glob("*/trace/rank0/step-00000.npz")) else 0.0

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(runs, "time", Clock)
    said = failure(tmp_path, f"print('Downloading data from http://h/x.gz', flush=True)\nstep(0)\n{WAITS}", timeout=4.0)
    assert "the reference was not done in 4 s, in which it came to step 1 of 3" in said
    assert "the script downloads http://h/x.gz, which does not come through here" in said


def test_traces_without_room_end_the_first_run_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage:
        free = 100

    monkeypatch.setattr("shutil.disk_usage", lambda _: Usage())
    said = failure(tmp_path, "step(0)\n" + WAITS)
    assert "the traces of 3 steps on 2 processes take" in said


def test_who_watches_is_told_the_run_and_its_step(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    seen = tmp_path / "seen"

    def watch(run: str, step: int) -> None:
        told.append((run, step))
        if step == 3:
            seen.touch()

    waits = f"while not Path({str(seen)!r}).exists():\n    pass\n"
    text = f"for k in range(3):\n    step(k)\n{waits}trace.write_header(Header('complete'))\ntrace.write_start({{}})\n"
    with record(tmp_path / "train.py", 2, 3, reference=text.encode(), timeout=60.0, watch=watch):
        pass
    assert {run for run, _ in told} == {"the reference in one process"}
    assert [step for _, step in told] == sorted(step for _, step in told)
