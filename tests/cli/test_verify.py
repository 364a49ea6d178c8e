"""`tfdp verify` up to where processes start, and what it makes of their result."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

import tfdp.migrate.verify as verifying
from tfdp.migrate import verification
from tfdp.migrate.cli import main
from tfdp.migrate.verify import Failure, Proof, Row
from tfdp.migrate.verify.judge import Point
from tfdp.rules._base import Policy

SCRIPT = """\
import sys

import numpy as np
import tensorflow as tf

x = np.linspace(-1, 1, 96).astype(np.float32).reshape(48, 2)
y = np.sum(x, 1, keepdims=True) ** 2
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
loss_of = tf.keras.losses.MeanSquaredError()
optimizer = tf.keras.optimizers.SGD(0.1)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(48).repeat().batch(4).take(40)
# START
for xs, ys in data:
    with tf.GradientTape() as tape:
        loss = loss_of(ys, model(xs))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
NO_UPDATE = "import tensorflow as tf\nx = tf.constant(1.0)\nprint(x)\n"


def proof(**parts: Any) -> Proof:
    facts: dict[str, Any] = {
        "script": "train.py",
        "np": 2,
        "batch": "per-worker",
        "steps": 2,
        "seed": 1,
        "proved": True,
        "loss": 1e-8,
        "gradient": 2e-7,
        "update": 3e-7,
        "failure": None,
        "reason": "",
        "table": (Row("w (2x1)", 2e-7, 3e-7),),
        "points": (Point(0, ((2.0, 2.0),), 1e-8, 1e-7, 3e-7, 1e-9), Point(1, ((1.0, 1.0),), 0.0, 2e-7, 1e-7, 2e-9)),
    }
    return Proof(**{**facts, **parts})


FAILED = proof(
    proved=False,
    gradient=1.0,
    failure=Failure(1, 0, "w (2x1)", "gradient", 1.0, 1e-5, "differs by 1"),
    reason="step 1, rank 0: gradient of w (2x1) differs by 1",
    diagnosis="the gradients were added up",
)
LATE = proof(proved=False, reason="the migrated run was not done in 600 s", timed_out=True, points=(), table=())


@dataclasses.dataclass
class Recorded:
    """Stands in for the runs: what they were asked for, and the proof that comes of them."""

    outcome: Proof
    asked: dict[str, Any] = dataclasses.field(default_factory=dict)

    @contextmanager
    def record(self, path: str, np: int, steps: int, **options: Any) -> Iterator[Recorded]:
        self.asked = {"path": path, "np": np, "steps": steps, **options}
        yield self

    def prove(self, migrated: bytes, path: str) -> Proof:
        self.asked |= {"migrated": migrated, "migrated path": path}
        return self.outcome


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """A script that would be proved."""
    (tmp_path / "train.py").write_text(SCRIPT)
    stand_in = Recorded(proof())
    monkeypatch.setattr(verifying, "record", stand_in.record)
    return stand_in


def test_every_option_has_its_place_in_the_order() -> None:
    options = {option.name for option in main.commands["verify"].params}
    of_policy = {field.name for field in dataclasses.fields(Policy)}
    assert options == {field.name for field in dataclasses.fields(verification.VerifyOptions)} - {"policy"} | of_policy


def test_the_defaults_are_those_of_the_order(here, monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[verification.VerifyOptions] = []
    monkeypatch.setattr(verification, "verify", lambda order: orders.append(order) or 0)
    assert here("verify", "train.py").code == 0
    assert orders == [verification.VerifyOptions("train.py", Policy())]


def test_a_proof(recorded: Recorded, here) -> None:
    done = here("verify", "train.py", "--shard", "input", "--steps", "2", "--", "--epochs", "3")
    assert done.code == 0
    lines = done.out.decode().splitlines()
    assert lines[0] == "train.py: PROVED: trains the same model"
    assert lines[1] == "  processes 2, batch per-worker, shard input, steps 2, arguments --epochs 3"
    assert "  loss: reference 2 → 1, migrated 2 → 1" in lines
    assert "  w (2x1)    2.0e-07   3.0e-07" in lines
    asked = recorded.asked
    assert (asked["np"], asked["steps"], asked["args"], asked["batch"]) == (2, 2, ("--epochs", "3"), "per-worker")
    assert b"dp.shard(" in asked["migrated"]
    assert b".batch(4 * 2)" in asked["reference"]
    assert asked["original"] == SCRIPT.encode()


def test_what_is_not_proved(recorded: Recorded, here) -> None:
    recorded.outcome = FAILED
    done = here("verify", "train.py")
    assert done.code == 1
    lines = done.out.decode().splitlines()
    assert lines[0] == "train.py: NOT PROVED: does NOT train the same model"
    assert "  step 1, rank 0: gradient of w (2x1) differs by 1" in lines
    assert "  likely cause: the gradients were added up" in lines


def test_a_run_that_takes_too_long_decides_nothing(recorded: Recorded, here) -> None:
    recorded.outcome = LATE
    done = here("verify", "train.py")
    assert done.code == 2
    assert done.out.startswith(b"train.py: COULD NOT RUN: nothing is proved, and nothing is disproved")


@pytest.mark.parametrize(("outcome", "code", "verdict"), [(proof(), 0, "proved"), (FAILED, 1, "not proved")])
def test_json_is_all_of_stdout(recorded: Recorded, here, outcome: Proof, code: int, verdict: str) -> None:
    recorded.outcome = outcome
    done = here("verify", "train.py", "--json")
    found = json.loads(done.out)
    assert (done.code, found["exit"], found["verdict"]) == (code, code, verdict)
    assert verdict.upper() in done.err


@pytest.mark.usefixtures("recorded")
def test_files(here, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert here("verify", "train.py", "--html", "page.html", "--png", "curves.png").code == 0
    assert "<h1>train.py</h1>" in (tmp_path / "page.html").read_text("utf-8")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_says_too_that_nothing_could_be_run(here, tmp_path: Path, refused: bytes) -> None:
    (tmp_path / "train.py").write_bytes(refused)
    done = here("verify", "train.py", "--html", "page.html", "--json")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert (done.code, json.loads(done.out)["verdict"]) == (2, "could not run")
    assert "COULD NOT RUN" in page
    assert "TFDP" in page


def test_the_original_and_the_migrated_script(recorded: Recorded, here, tmp_path: Path) -> None:
    (tmp_path / "migrated.py").write_text(SCRIPT)
    assert here("migrate", "--batch", "global", "migrated.py").code == 0
    assert here("verify", "migrated.py", "--against", "train.py").code == 0
    assert recorded.asked["migrated"] == (tmp_path / "migrated.py").read_bytes()
    assert (recorded.asked["path"], recorded.asked["migrated path"]) == ("train.py", "migrated.py")
    assert recorded.asked["batch"] == "global", "the script says which mode it was migrated for"
    assert b".batch(4)" in recorded.asked["reference"]


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True)


def test_the_original_of_a_migrated_script_is_found(recorded: Recorded, here, tmp_path: Path) -> None:
    """In git, as long as there is no backup: in the last version, or the newest that is not migrated."""

    def found() -> str:
        done = here("verify", "train.py", "--json")
        assert done.code == 0, done.err
        assert recorded.asked["original"] == SCRIPT.encode()
        assert (recorded.asked["path"], recorded.asked["migrated path"]) == ("train.py", "train.py")
        assert recorded.asked["batch"] == "global", "the script says which mode it was migrated for"
        named = json.loads(done.out)["against"]
        assert f"  original: {named}\n" in done.err
        return str(named)

    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-qm", "before")
    assert here("migrate", "--batch", "global", "train.py").code == 0
    migrated = (tmp_path / "train.py").read_bytes()
    assert found() == "git show HEAD:./train.py"
    git(tmp_path, "commit", "-qam", "after")
    assert re.fullmatch("git show [0-9a-f]{7,}:train.py", found())
    (tmp_path / "train.py").write_text(SCRIPT)
    assert here("migrate", "--backup", "--batch", "global", "train.py").code == 0
    assert (tmp_path / "train.py").read_bytes() == migrated
    assert found() == "train.py.orig"
    (tmp_path / "train.py.orig").write_bytes(migrated)
    assert found().startswith("git show "), "a backup that is migrated is no original"
    (tmp_path / "train.py.orig").write_text("import tensorflow as tf\n")
    assert found().startswith("git show "), "a backup that trains nothing is none either"
    (tmp_path / "train.py.orig").write_text(SCRIPT.replace("0.1", "0.5"))
    assert found().startswith("git show "), "a backup of another version"
    git(tmp_path, "mv", "train.py", ":(top) [x].py")
    git(tmp_path, "commit", "-qm", "renamed")
    done = here("verify", ":(top) [x].py", "--json")
    assert re.fullmatch("git show [0-9a-f]{7,}:train.py", json.loads(done.out)["against"])


def test_an_original_of_another_text_is_not_held_against_the_migration(recorded: Recorded, here, tmp_path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "train.py")
    git(tmp_path, "commit", "-qm", "before")
    (tmp_path / "train.py").write_text(SCRIPT.replace("0.1", "0.5"))
    assert here("migrate", "train.py").code == 0
    recorded.outcome = FAILED
    said = here("verify", "train.py").out.decode().splitlines()
    original = "git show HEAD:./train.py"
    differs = "its migration differs from train.py: what is compared is train.py against"
    assert said[1] == f"  original: {original}; {differs} {original}"
    cause = next(line for line in said if "likely cause" in line)
    assert "another original than the one found (name its own with --against), or with other options than" in cause
    assert cause.endswith(": the gradients were added up")
    found = json.loads(here("verify", "train.py", "--json").out)
    assert (found["cause"], found["migration_differs"]) == ("another original", True)
    recorded.outcome = proof()
    assert here("verify", "train.py").out.decode().splitlines()[1] == said[1]
    (tmp_path / "train.py.orig").write_text(SCRIPT.replace("0.1", "0.5") + "\n\n")
    said = here("verify", "train.py").out.decode().splitlines()
    assert said[1] == "  original: train.py.orig", "the same but for blank lines at its end"


def test_a_refusal_of_an_original_that_was_found_names_it(here, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    assert here("migrate", "--shard", "input", "train.py").code == 0
    (tmp_path / "train.py.orig").write_text(SCRIPT.replace("import sys", "import json"))
    done = here("verify", "train.py")
    assert (done.code, done.out) == (2, b"")
    assert "train.py.orig:1: TFDP010 `import json` is not in the vocabulary of sharded input" in done.err


def test_the_reference_alone(here, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    done = here("verify", "train.py", "-np", "3", "--shard", "input", "--show-reference")
    assert (done.code, done.err) == (0, "")
    assert b".batch(4 * 3)" in done.out


CANNOT = {
    "no such file": (["missing.py"], "missing.py: No such file or directory"),
    "no such original": (["migrated.py", "--against", "gone.py"], "gone.py: No such file or directory"),
    "no such migrated script": (["gone.py", "--against", "train.py"], "gone.py: No such file or directory"),
    "no update": (["idle.py"], "no gradient of a tape reaches an update"),
    "refused": (["refused.py"], "next step: "),
    "no Python": (["broken.py"], "this is not valid Python"),
    "migrated already": (["migrated.py"], "name its original: --against ORIGINAL"),
    "not migrated": (["train.py", "--against", "train.py"], "does not import tfdp.runtime"),
    "no folder": (["train.py", "--html", "nowhere/page.html"], "there is no folder"),
    "a folder for a page": (["train.py", "--html", "."], "a directory"),
    "one process": (["train.py", "-np", "1"], "is not in the range"),
    "no steps": (["train.py", "--steps", "0"], "is not in the range"),
    "rates in the global mode": (["train.py", "--batch=global", "--warmup-steps=3"], "are for --batch per-worker"),
    "a report of nothing": (["train.py", "--show-reference", "--json"], "runs nothing"),
}


@pytest.mark.parametrize("name", CANNOT)
def test_what_cannot_be_compared(here, tmp_path: Path, refused: bytes, name: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "migrated.py").write_text(SCRIPT)
    (tmp_path / "idle.py").write_text(NO_UPDATE)
    (tmp_path / "broken.py").write_text("import tensorflow as tf\nx = (\n")
    (tmp_path / "refused.py").write_bytes(refused)
    assert here("migrate", "--shard", "input", "migrated.py").code == 0
    args, said = CANNOT[name]
    done = here("verify", *args)
    assert (done.code, done.out) == (2, b"")
    assert said in " ".join(done.err.split())


NOT_INSTALLED = {
    "tensorflow": ([], "TensorFlow is not installed here"),
    "matplotlib": (["--png", "x.png"], "pip install 'tfdp[report]'"),
}


@pytest.mark.parametrize("module", NOT_INSTALLED)
def test_what_is_not_installed(here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == module else find(name, *rest))
    args, said = NOT_INSTALLED[module]
    done = here("verify", "train.py", *args)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err
