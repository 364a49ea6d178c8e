"""The processes of a proof: the reference in one, the migrated script under the real launcher."""

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from .record import Spec, last_words, real_path, show, steps_in

# Without the working directory in front of the path, where a file may have the name of any module.
CHILD = "import sys; sys.path.remove(''); from tfdp.migrate.verify.traced.child import main; main()"
# A rank that waits this long for the others inside a proof will not be joined any more. TensorFlow itself may hold a
# rank for a minute and more where it lets go of datasets' iterators (its autotuner sleeps through its own end).
STALL_SECONDS = "300"
GRACE_SECONDS = 15.0
TAIL_BYTES = 2**16
LOOK_SECONDS = 0.2

# Called with a run's name and the steps it has done.
Watch: TypeAlias = Callable[[str, int], None]


@dataclasses.dataclass(frozen=True)
class Ended:
    """code: exit status, None when the time was up. output: the last lines of stdout and stderr together."""

    code: int | None
    output: str


def run(folder: Path, spec: Spec, ranks: int, timeout: float, watch: Watch | None = None) -> Ended:
    """Run the child of `spec` under `folder`: alone for `ranks` 0, else on that many processes, of the reference, too.

    timeout: seconds for the whole run. The processes are gone when this returns.
    """
    root, script = Path(spec.root), real_path(spec.path)
    show(root, script, [script.parent, Path.cwd()])
    file = folder / "spec.json"
    file.write_text(json.dumps(dataclasses.asdict(spec)), "utf-8")
    child = [sys.executable, "-u", "-c", CHILD, str(file)]
    # What is trained without having joined is for the proof to say.
    launcher = [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(ranks), "--independent"]
    command = [*launcher, *child] if ranks else child
    with (folder / "output").open("w+b") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=_environment(os.environ, folder / "tmp", spec),
            start_new_session=True,
        )
        try:
            code = _wait(process, timeout, spec, ranks, watch)
        finally:
            _end(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - TAIL_BYTES))
        return Ended(code, last_words(output.read().decode("utf-8", "replace").replace(spec.root, "")))


def _wait(process: subprocess.Popen[bytes], timeout: float, spec: Spec, ranks: int, watch: Watch | None) -> int | None:
    """The exit status, None when the time is up."""
    end = time.monotonic() + timeout
    what = "the migrated script" if spec.migrated else "the reference"
    name = f"{what} on {ranks} processes" if ranks else "the reference in one process"
    name += ", in float64" if spec.float64 else ", with the rows of its batches permuted" if spec.permuted else ""
    folders = [Path(spec.out) / f"rank{rank}" for rank in range(max(1, ranks))]
    while (left := end - time.monotonic()) > 0:
        if watch is not None:
            watch(name, min(map(steps_in, folders)))
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, LOOK_SECONDS) if watch is not None else left)
    return None


def _environment(inherited: Mapping[str, str], temporary: Path, spec: Spec) -> dict[str, str]:
    # Processes that end in the middle of a step leave what they would remove at their end.
    temporary.mkdir()
    # A proof started by a rank of another job must not take part in it.
    clean = {name: value for name, value in inherited.items() if not name.startswith("TFDP_")}
    kept = {name: inherited[name] for name in ("TFDP_TRANSPORT", "TFDP_SHM_BYTES") if name in inherited}
    kept["TFDP_ENGINE"] = "none"  # nor in that of an engine which has started us
    # NCCL, which is chosen by itself on GPUs, would need TensorFlow untouched when the script joins its job.
    defaults = {"TF_CPP_MIN_LOG_LEVEL": "2", "MPLBACKEND": "Agg", "TFDP_TRANSPORT": "shared_memory"}
    if spec.as_in_life:  # as the launcher gives it to all workers of a job
        defaults["PYTHONHASHSEED"] = str(spec.seed % 2**32)
    if spec.calls:
        kept["TFDP_STANDS_FOR"] = str(spec.stands_for)
    stall = inherited.get("TFDP_STALL_SECONDS", STALL_SECONDS)
    return {**defaults, **clean, **kept, "TFDP_STALL_SECONDS": stall, "TMPDIR": str(temporary)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """The launcher passes a polite signal on to its ranks; what is left of the script's own processes is killed."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
