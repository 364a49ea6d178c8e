"""The `tfdp` command as a user runs it (a process of its own), and the same in this process where that is enough."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from tfdp.migrate.cli import main

FIXTURES = Path(__file__).parents[2] / "fixtures" / "scripts"
SCRIPTS = [FIXTURES / name / "before.py" for name in ("smddp_mnist", "dtensor_mlp")]
COMMAND = [sys.executable, "-m", "tfdp.migrate"]

# Distributed by another system, which is recognised and turned down on every road.
REFUSED = b"""import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("adam", "mse")
tf.distribute.experimental_set_strategy(tf.distribute.MirroredStrategy())
model.fit(batches)
"""


@dataclass(frozen=True)
class Done:
    """A finished command: its exit status and what it wrote."""

    code: int
    out: bytes
    err: str


Tfdp = Callable[..., Done]


def environment(**variables: str) -> dict[str, str]:
    """This process's environment without what would change colours, and with `variables`."""
    dropped = {"NO_COLOR", "FORCE_COLOR"}
    return {**{name: value for name, value in os.environ.items() if name not in dropped}, **variables}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tfdp:
    """Run `tfdp` with these arguments in `tmp_path`, within this process: many times faster."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(*args: str | Path, stdin: bytes = b"") -> Done:
        result = CliRunner().invoke(main, [*map(str, args)], input=stdin)
        return Done(result.exit_code, result.stdout_bytes, result.stderr)

    return run


@pytest.fixture
def tfdp(tmp_path: Path) -> Tfdp:
    """Run `tfdp` with these arguments in `tmp_path`, as a process."""

    def run(*args: str | Path, stdin: bytes = b"", env: dict[str, str] | None = None, **popen: object) -> Done:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **popen}
        done = subprocess.run(  # type: ignore[call-overload]
            [*COMMAND, *map(str, args)],
            input=stdin,
            cwd=tmp_path,
            env=environment(**(env or {})),
            check=False,
            **streams,
        )
        return Done(done.returncode, done.stdout or b"", (done.stderr or b"").decode("utf-8", "replace"))

    return run


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.parent.name)
def original(request: pytest.FixtureRequest) -> bytes:
    """The bytes of each script that this version migrates."""
    data: bytes = request.param.read_bytes()
    return data


@pytest.fixture
def script() -> bytes:
    """One of them."""
    return SCRIPTS[0].read_bytes()


@pytest.fixture
def refused() -> bytes:
    """A training script that cannot be migrated."""
    return REFUSED
