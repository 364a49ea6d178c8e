"""What the engine can do to the command: internal errors, races, and files that change underneath."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tfdp.migrate import engine, files
from tfdp.migrate.applying import EngineError
from tfdp.migrate.cli import main
from tfdp.migrate.engine import Finding, Migration
from tfdp.rules._base import Policy


def migrate(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["migrate", *map(str, args)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_bytes(b"old\n")
    return path


def becomes(monkeypatch: pytest.MonkeyPatch, after: bytes, *findings: Finding) -> None:
    monkeypatch.setattr(engine, "migrate", lambda path, source, *_: Migration(path, source, after, findings, True))


def raises(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def migrate(*_: object) -> None:
        raise error

    monkeypatch.setattr(engine, "migrate", migrate)


@pytest.mark.parametrize("error", [EngineError("two rules change one place"), AssertionError(), KeyError("x")])
def test_an_internal_error_is_reported_and_the_file_left_alone(monkeypatch, path: Path, error: Exception) -> None:
    raises(monkeypatch, error)
    result = migrate(path)
    assert result.exit_code == 2
    assert f"{path}: error: internal error: {type(error).__name__}: " in result.stderr
    assert "Traceback" not in result.stderr
    assert "Traceback" in migrate("-v", path).stderr
    assert path.read_bytes() == b"old\n"


def test_a_question_without_an_end_is_reported_as_such(monkeypatch, path: Path) -> None:
    raises(monkeypatch, RecursionError())
    result = migrate(path)
    assert result.exit_code == 2
    assert "tfdp comes to no end in following the values of this file" in result.stderr


def test_the_engine_gets_the_policy_and_the_name_to_show(monkeypatch, path: Path) -> None:
    seen: list[tuple[str, bytes, Policy]] = []

    def record(name: str, source: bytes, policy: Policy, _partial: bool, _is_run: bool) -> Migration:
        seen.append((name, source, policy))
        return Migration(name, source, source, ())

    monkeypatch.setattr(engine, "migrate", record)
    migrate(path, "--batch", "global", "--shard", "calls")
    CliRunner().invoke(main, ["migrate", "-"], input=b"x\n")
    assert seen == [(str(path), b"old\n", Policy("calls", "global")), ("<stdin>", b"x\n", Policy())]


def test_a_file_that_changed_in_the_meantime_is_left_alone(monkeypatch, path: Path) -> None:
    def slow(name: str, source: bytes, *_: object) -> Migration:
        path.write_bytes(b"someone's edit\n")
        return Migration(name, source, b"new\n", ())

    monkeypatch.setattr(engine, "migrate", slow)
    result = migrate(path)
    assert result.exit_code == 2
    assert "changed by someone else in the meantime" in result.stderr
    assert path.read_bytes() == b"someone's edit\n"


def test_a_write_that_fails_is_an_error_and_the_next_file_is_written(monkeypatch, tmp_path: Path, path: Path) -> None:
    becomes(monkeypatch, b"new\n")
    other = tmp_path / "z.py"
    other.write_bytes(b"old\n")
    write = files.write_atomic

    def full(target: str, data: bytes, mode: int | None = None) -> None:
        if target == str(path):
            raise OSError(28, "No space left on device")
        write(target, data, mode)

    monkeypatch.setattr(files, "write_atomic", full)
    result = migrate(path, other)
    assert result.exit_code == 2
    assert f"{path}: error: No space left on device" in result.stderr
    assert result.stderr.endswith("1 file migrated, 1 failed\n")
    assert (path.read_bytes(), other.read_bytes()) == (b"old\n", b"new\n")


def test_a_hint_that_refuses_nothing_does_not_change_the_exit_code(monkeypatch, path: Path) -> None:
    becomes(monkeypatch, b"old\n", Finding("TFDP091", 1, 1, "batch statistics are per worker", False))
    result = migrate("--check", path)
    assert result.exit_code == 0
    assert result.stderr == f"{path}:1:1: TFDP091 batch statistics are per worker\n1 file unchanged\n"
    assert result.stdout == ""


def test_a_refusal_wins_over_a_change(monkeypatch, path: Path) -> None:
    becomes(monkeypatch, b"new\n", Finding("TFDP010", 1, 1, "no", True, "do this"))
    assert migrate(path).exit_code == 1
    assert path.read_bytes() == b"old\n"
