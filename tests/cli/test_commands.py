"""rules, explain, facts, --version and run."""

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest

from tfdp.migrate.command_line import Processes
from tfdp.rules import RULES
from tfdp.runtime.launch import Nodes, Screen, of_options


def test_version(tfdp) -> None:
    assert tfdp("--version").out.decode() == f"tfdp {version('tfdp')}\n"


def test_rules_lists_all_of_them(tfdp) -> None:
    done = tfdp("rules")
    assert (done.code, done.err) == (0, "")
    rows = done.out.decode().splitlines()
    assert [row.split()[:2] for row in rows] == [[rule.code, rule.name] for rule in RULES]


@pytest.mark.parametrize("asked", ["TFDP010", "tfdp010", "shard-dataset"])
def test_explain(here, asked: str) -> None:
    done = here("explain", asked)
    assert (done.code, done.err) == (0, "")
    shown = done.out.decode()
    assert shown.startswith("TFDP010 shard-dataset\n")
    for heading in ("What it does", "Why", "Example", "When it refuses"):
        assert f"\n{heading}\n" in shown


def test_explain_names_the_neighbours_of_an_unknown_rule(here) -> None:
    done = here("explain", "TFDP01")
    assert (done.code, done.out) == (2, b"")
    assert "did you mean TFDP010 (shard-dataset)" in " ".join(done.err.split())


def test_facts(here, tmp_path: Path, original: bytes) -> None:
    (tmp_path / "train.py").write_bytes(original)
    done = here("facts", "train.py")
    assert (done.code, done.err) == (0, "")
    assert b"tape.gradient(" in done.out
    assert here("facts", "-", stdin=original).out == done.out


def test_facts_of_one_line(here, tmp_path: Path, original: bytes) -> None:
    (tmp_path / "train.py").write_bytes(original)
    line = next(n for n, text in enumerate(original.splitlines(), 1) if b".gradient(" in text)
    done = here("facts", "train.py", "--at", str(line))
    assert (done.code, done.err) == (0, "")
    assert b"gradient tape" in done.out
    assert here("facts", f"train.py:{line}").out == done.out
    assert here("facts", f"train.py:{line}:5").out == done.out  # as messages name places


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("broken.py", "broken.py:1:5: error: this is not valid Python"),
        (".", "tfdp: error: . is a directory: name the script in it"),
        ("missing.py", "missing.py: error: No such file or directory"),
    ],
)
def test_facts_of_what_is_no_script(here, tmp_path: Path, path: str, said: str) -> None:
    (tmp_path / "broken.py").write_bytes(b"x = (\n")
    done = here("facts", path)
    assert (done.code, done.out) == (2, b"")
    assert said in done.err


def test_run_passes_everything_after_the_script_on(tfdp, tmp_path: Path) -> None:
    (tmp_path / "show.py").write_text("import json, sys\nprint(json.dumps(sys.argv))\n")
    arguments = ["-np", "7", "--help", "--", "-x", "a b"]
    done = tfdp("run", "-np", "2", "show.py", *arguments)
    assert done.code == 0, done.err
    lines = sorted(done.out.decode().splitlines())
    assert [line[:4] for line in lines] == ["[0] ", "[1] "]
    assert [json.loads(line[4:]) for line in lines] == [["show.py", *arguments]] * 2


class Launched:
    """Stands in for the launcher where only the command line is looked at."""

    Screen = Screen
    of_options = staticmethod(of_options)

    def __init__(self) -> None:
        self.calls: list[tuple[int, list[str], Screen]] = []
        self.nodes: list[Nodes | None] = []
        self.restarts: list[int] = []

    def main(
        self,
        np: int,
        argv: list[str],
        screen: Screen,
        *,
        independent: bool,
        nodes: Callable[[], Nodes | None],
        max_restarts: int,
    ) -> int:
        assert not independent
        self.restarts.append(max_restarts)
        self.calls.append((np, argv, screen))
        self.nodes.append(nodes())
        return 37


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["-np", "2", "a.py"], (2, ["a.py"], Screen())),
        (["-np=3", "--", "a.py", "-np", "4"], (3, ["a.py", "-np", "4"], Screen())),
        (["-np", "1", "a.py", "--", "b"], (1, ["a.py", "--", "b"], Screen())),
        (["-np", "1", "--", "-m", "pkg"], (1, ["-m", "pkg"], Screen())),
        (["-n", "2", "-m", "pkg.module", "-np", "4"], (2, ["-m", "pkg.module", "-np", "4"], Screen())),
        (["-n2", "-c", "print(1)"], (2, ["-c", "print(1)"], Screen())),
        (["--np", "2", "a.py", "--np"], (2, ["a.py", "--np"], Screen())),
        (["--np=2", "sh", "train.sh"], (2, ["sh", "train.sh"], Screen())),
        (["-np", "auto", "a.py"], (2, ["a.py"], Screen())),
        (["-np", "1", "a.py", "-h", "--version"], (1, ["a.py", "-h", "--version"], Screen())),
        (
            ["-np", "1", "--tf-log", "all", "--traceback=full", "--log-dir", "logs", "a.py", "--log-dir", "mine"],
            (1, ["a.py", "--log-dir", "mine"], Screen("all", "full", "logs")),
        ),
    ],
)
def test_run_gives_the_launcher_its_arguments_and_takes_its_status(
    monkeypatch: pytest.MonkeyPatch, args: list[str], expected: tuple[int, list[str], Screen]
) -> None:
    from click.testing import CliRunner

    from tfdp.migrate.cli import main

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    launched = Launched()
    monkeypatch.setitem(sys.modules, "tfdp.runtime.launch", launched)  # type: ignore[arg-type]
    monkeypatch.setattr("tfdp.runtime.launch", launched, raising=False)
    result = CliRunner().invoke(main, ["run", *args])
    assert (result.exit_code, launched.calls, launched.nodes) == (37, [expected], [None])
    assert launched.restarts == [0]
    again = CliRunner().invoke(main, ["run", "--max-restarts", "3", *args])
    assert (again.exit_code, launched.calls, launched.restarts) == (37, [expected] * 2, [0, 3])


def test_restarts_are_for_one_host() -> None:
    from click.testing import CliRunner

    from tfdp.migrate.cli import main

    result = CliRunner().invoke(main, ["run", "-H", "a:1,b:1", "--max-restarts", "3", "a.py"])
    assert result.exit_code == 2
    assert "--max-restarts is for the jobs of one host" in result.output


def test_run_gives_the_launcher_its_place_among_several_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from tfdp.migrate.cli import main

    launched = Launched()
    monkeypatch.setitem(sys.modules, "tfdp.runtime.launch", launched)  # type: ignore[arg-type]
    monkeypatch.setattr("tfdp.runtime.launch", launched, raising=False)
    monkeypatch.setenv("TFDP_PORT_RANGE", "")
    place = ["--nnodes", "3", "--node-rank", "1", "--root", "a:80", "--link-timeout", "9", "--port-range", "2000-3000"]
    result = CliRunner().invoke(main, ["run", "-np", "2", *place, "a.py"])
    assert os.environ["TFDP_PORT_RANGE"] == "2000-3000"
    assert (result.exit_code, launched.nodes) == (37, [Nodes(3, 1, "a:80", link_seconds=9.0)])


def test_what_is_no_script_gets_the_same_sentence_everywhere(here, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("train.ipynb", "notes.txt"):
        (tmp_path / name).write_text("{}")
    convert = "`jupyter nbconvert --to script train.ipynb`"
    said = {
        "train.ipynb": f"train.ipynb is a notebook: make a script of it first, {convert}",
        "notes.txt": "notes.txt is not a Python script, as its ending .txt says: name a .py file",
        "data": "data is a directory: name the script in it",
    }
    commands = [["run", "-np", "2"], ["verify"], ["verify", "train.py", "--against"], ["migrate"]]
    for name, sentence in said.items():
        for command in commands[:-1] if name == "data" else commands:  # a directory is migrated as a tree
            done = here(*command, name)
            assert (done.code, done.out) == (2, b"")
            assert done.err.startswith(f"tfdp: error: {sentence}\n")


def test_run_does_not_start_what_was_forgotten_to_migrate(here, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    done = here("run", "-np", "2", "train.py", "--epochs", "3")
    line = next(number for number, text in enumerate(script.splitlines(), 1) if b"tape.gradient(" in text)
    assert (done.code, done.out) == (1, b"")
    assert done.err.startswith(f"tfdp: 2 independent copies would have been trained: train.py:{line} trains, and ")
    assert "Type `tfdp migrate train.py` first, or `tfdp run --independent`" in done.err
    assert done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("listed", "asked", "number", "said"),
    [
        (3, None, 3, "3 GPUs are visible: 3 processes"),
        (1, None, 1, "1 GPU is visible: 1 process"),
        (4, "0,2", 2, "2 GPUs are visible: 2 processes"),
        (2, "1,5,0", 1, "1 GPU is visible: 1 process"),
        (2, "GPU-1b3c,GPU-77aa", 2, "2 GPUs are visible: 2 processes"),
        (2, "", 2, "no GPU is visible: 2 processes"),
        (0, "0", 2, "no GPU is visible: 2 processes"),
    ],
)
def test_np_auto_is_the_number_of_gpus(  # noqa: PLR0917
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    listed: int,
    asked: str | None,
    number: int,
    said: str,
) -> None:
    lines = "".join(f"GPU {n}: NVIDIA H100 (UUID: GPU-{n})\n  MIG 1g.10gb Device 0\n" for n in range(listed))
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<END\n{lines}END\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if asked is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", asked)
    assert Processes(1).convert("auto", None, None) == number
    assert capsys.readouterr().err == f"tfdp: -np auto: {said}\n"
