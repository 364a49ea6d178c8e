"""`tfdp doctor`: what it sees, what it tries, and its verdict."""

import os
import subprocess
import sys

import pytest

from tfdp.runtime.doctor.seen import seen

LIMIT_SECONDS = 120


def doctor(*options: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
    line = [sys.executable, "-m", "tfdp.migrate", "doctor", *options]
    return subprocess.run(
        line, env={**base, **environ}, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False
    )


def test_it_tries_what_a_job_does() -> None:
    done = doctor("-np", "2")
    said = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stdout + done.stderr
    assert said["self-test"].startswith("2 process(es) over shared_memory: all-reduce right; 4 B in ")
    assert said["verdict"] == "ready"
    assert f"Python {sys.version_info.major}.{sys.version_info.minor}" in said["versions"]


@pytest.mark.long
def test_what_cannot_be_is_in_the_verdict() -> None:
    done = doctor("-np", "2", TFDP_TRANSPORT="nccl")
    assert done.returncode == 1
    assert "TFDP_TRANSPORT=nccl needs a GPU for each rank" in done.stdout
    assert done.stdout.splitlines()[-1].split(maxsplit=1) == ["verdict", "not ready: see self-test"]


@pytest.mark.parametrize(
    ("environ", "wrong", "said"),
    [
        ({}, False, "none has started this process as a rank"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, True, "Open MPI has set OMPI_COMM_WORLD_SIZE but not OMPI_COMM_WORLD_RANK"),
        ({"TFDP_RANK": "1", "TFDP_SIZE": "4"}, False, "tfdp run: rank 1 of 4"),
        ({"SM_HOSTS": '["a", "b"]', "SM_CURRENT_HOST": "b"}, False, "SageMaker: rank 1 of 2, local rank 0 of 1"),
    ],
)
def test_the_engine_and_why(environ: dict[str, str], wrong: bool, said: str) -> None:
    line = next(line for line in seen(environ) if line.name == "engine")
    assert line.wrong == wrong
    assert said in line.said
