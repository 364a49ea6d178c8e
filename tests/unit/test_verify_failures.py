"""Runs that fail, end early, take too long or need too much room: real processes, which need no TensorFlow."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify import CouldNotRun, record, runs  # noqa: E402
from tfdp.migrate.verify.failed_run import failed_run  # noqa: E402
from tfdp.migrate.verify.moved import Moved  # noqa: E402
from tfdp.migrate.verify.record import Call, Crash, Step, Trace, write_crash  # noqa: E402
from tfdp.migrate.verify.runs import Ended  # noqa: E402

# Stands in for the instruments: runs the text, which records its steps itself.
CHILD = """
import json, os, sys
from pathlib import Path
import numpy as np
from tfdp.migrate.verify.record import Call, Header, Spec, Step, Trace, write_crash
from tfdp.migrate.verify.traced.crashes import crash
from tfdp.migrate.verify.traced.frames import Lines
from tfdp.runtime import JobAborted, TfdpError
spec = Spec(**json.loads(Path(sys.argv[1]).read_text()))
rank = int(os.environ.get("TFDP_RANK", "0"))
trace = Trace(Path(spec.out) / f"rank{rank}")
trace.folder.mkdir(parents=True)
key = "w|2|float32|0"
scale = 1
def step(index):
    w = np.full(2, index, np.float32)
    trace.write_step(index, Step({key: w}, (Call(1.0, None, False, (key,), {key: w}),), {key: w + scale}, True))
def end(outcome):
    trace.write_start({key: np.zeros(2, np.float32)})
    trace.write_header(Header(outcome))
def run(path):
    exec(compile(Path(path).read_text(), spec.path, "exec"), globals())
try:
    run(spec.source)
except BaseException as error:
    write_crash(trace.folder, crash(error, spec.path, spec.root, Lines(spec.path)))
    end("crashed")
    raise
end("ended")
"""
WAITS = "import threading\nthreading.Event().wait()\n"
TRACEBACK = "Traceback (most recent call last):"
FAILS = "step(0)\nopen('missing.npz')\n"


@pytest.fixture(autouse=True)
def child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "CHILD", CHILD)


def failure(folder: Path, reference: str, original: str | None = None, timeout: float = 60.0) -> str:
    text = None if original is None else original.encode()
    if text is not None:
        (folder / "train.py").write_bytes(text)
    with (
        pytest.raises(CouldNotRun) as caught,
        record(folder / "train.py", 2, 3, reference=reference.encode(), original=text, timeout=timeout),
    ):
        pass
    return str(caught.value)


def test_a_script_that_fails_by_itself_says_so_with_its_own_lines(tmp_path: Path) -> None:
    said = failure(tmp_path, "# one more line\n" + FAILS, FAILS)
    first, hint, *traceback = said.splitlines()
    name = "train.py: the script itself, as it is and in one process, failed in step 1 at"
    error = "FileNotFoundError: [Errno 2] No such file or directory: 'missing.npz'"
    assert first.endswith(f"{name} {tmp_path}/train.py:2: {error}")
    assert hint.startswith("the script needs missing.npz, which is not there in ")
    assert traceback[:2] == [TRACEBACK, f'  File "{tmp_path}/train.py", line 2, in <module>']
    assert traceback[-1] == error


def test_a_reference_that_fails_where_the_script_does_not(tmp_path: Path) -> None:
    said = failure(tmp_path, "raise ValueError('a batch of 96')\n", "step(0)\n")
    assert "train.py: the reference failed in step 0 at " in said.splitlines()[0]
    assert said.splitlines()[0].endswith("ValueError: a batch of 96")


def test_a_script_that_leaves_without_an_error_says_how(tmp_path: Path) -> None:
    left = failure(tmp_path, "import sys\nstep(0)\nsys.exit(3)\n").splitlines()[0]
    assert left.endswith("failed in step 1 at line 3 of the reference (`sys.exit(3)`): it ended with exit status 3")
    killed = failure(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert "train.py: the reference was ended by SIGKILL in step 0\nthe system kills a process so when" in killed


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


TRAINED = "for k in range(3):\n    step(k)\n"
# The failures of the migrated script, and: whether it could not be compared, the cause, and what its reason says.
NET = 'raise TfdpError("w differs on rank(s) 1 from rank 0\'s in the exchange of gradients at train.py:1")\n'
FAILED = {
    "an exception of one rank": (
        "import os\nif rank == 1:\n    raise ValueError('no such folder')\n"
        "while not (trace.folder.parent / 'rank1' / 'crash.json').exists():\n    pass\n"
        "raise JobAborted('rank 1 ended with exit status 1')\n",
        (True, None, "rank 1 failed in step 0 at line 3 of the migrated script"),
    ),
    "the same exception of all ranks": (
        f"\n{TRAINED}open('gone.npz')\n",
        (True, None, "every rank failed in step 3 at"),
    ),
    "a signal": (
        "import os\nstep(0)\nos.kill(os.getpid(), 9)\n",
        (True, None, "a rank was ended by SIGKILL in step 1"),
    ),
    "another update, found by the runtime": (f"step(0)\n{NET}", (False, "update", "every rank failed in step 1")),
    "... before there was one": (NET, (True, "update", "every rank failed in step 0")),
    "an exception after a wrong update": (
        "scale = 2\nstep(0)\nraise ValueError('too late to matter')\n",
        (False, "gradient summed", "step 0, rank 0: update of w"),
    ),
}


def test_a_migrated_run_that_fails_is_no_disproof(tmp_path: Path) -> None:
    """Unless its steps, or the runtime after the first of them, show that the ranks train other models."""
    path = tmp_path / "train.py"
    path.write_text(f"{TRAINED}open('gone.npz')\n")
    reference = f"from tfdp.migrate.verify.record import Passes, write_coverage\n{TRAINED}"
    reference += "write_coverage(trace.folder, Passes().coverage(3, whole=True))\n"
    with record(path, 2, 3, reference=reference.encode(), original=path.read_bytes(), timeout=60.0) as recording:
        proofs = {name: recording.prove(text.encode()) for name, (text, _) in FAILED.items()}
    for name, (_, (could_not_compare, cause, reason)) in FAILED.items():
        proof = proofs[name]
        assert (bool(proof), proof.proved, proof.could_not_compare) == (False, False, could_not_compare), name
        assert (proof.cause, reason in proof.reason.splitlines()[0]) == (cause, True), (name, proof.reason)
        assert ("could not be compared: the migrated script failed" in str(proof)) is could_not_compare, name
        assert (proof.coverage is not None) is (len(proof.points) == 3), "of what was compared"
    assert [len(proofs[name].points) for name in ("a signal", "the same exception of all ranks")] == [1, 3]
    failed = proofs["the same exception of all ranks"].failed_run
    assert failed is not None
    assert failed.place.endswith("train.py:3"), "its line in the file of that name, which has one line less"
    assert (failed.short.splitlines()[0], "line 4, in <module>" in failed.short) == (TRACEBACK, True)
    assert failed.hint.startswith("the script needs gone.npz, which is not there")
    assert proofs["an exception after a wrong update"].failed_run is None


LAUNCHER = "tfdp: rank 1 failed first, with signal SIGKILL after 3.1 s\ntfdp: out of memory?"
KILLED = {
    "one": (
        137,
        "[0] another\n[1] its own\n",
        [3, 2],
        [0],
        "rank 1 was ended by SIGKILL in step 3",
        "[1] its own",
    ),
    "in its first step": (137, "", [0, 0], [0], "rank 1 was ended by SIGKILL in step 0", ""),
    "by itself": (7, "[1] so\n", [3, 3], [0], "rank 1 ended with exit status 7 in step 3", "[1] so"),
    "both": (137, "", [0, 0], [], "a rank was ended by SIGKILL in step 0", ""),
    "late": (None, "", [3, 2], [], "the migrated run was not done in 60 s, in which it came to step 2", ""),
}


@pytest.mark.parametrize("name", KILLED)
def test_a_rank_that_only_follows_a_killed_one_is_not_the_cause(tmp_path: Path, name: str) -> None:
    code, output, steps, followers, cause, short = KILLED[name]
    traces = [Trace(tmp_path / f"rank{rank}") for rank in range(2)]
    for rank, trace in enumerate(traces):
        trace.folder.mkdir()
        for index in range(steps[rank]):
            w = {"w|2|float32|0": np.zeros(2, np.float32)}
            trace.write_step(index, Step(w, (Call(1.0, None, False, tuple(w), w),), w, True))
        if rank in followers:
            write_crash(trace.folder, Crash("JobAborted", "rank 1 ended", 3, "", True, 1.0, "in line 3", "in line 3"))
    found = failed_run(Ended(code, output + LAUNCHER), traces, Moved("train.py", b"", "the migrated script"), 60.0)
    assert found is not None
    assert (found.cause, found.short, found.place) == (cause, short, "")
    assert ("memory is short" in found.hint) is (code == 137)


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
