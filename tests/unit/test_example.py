"""The scripts of `tfdp example`: each is migrated as it stands. That they are proved, tests/cli shows of one."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tfdp.migrate import example
from tfdp.migrate.cli import main
from tfdp.migrate.engine import migrate
from tfdp.migrate.originals import imports_runtime
from tfdp.rules._base import Policy


@pytest.mark.parametrize("name", example.names())
@pytest.mark.parametrize("batch", ["per-worker", "global"])
def test_an_example_is_migrated_and_once_is_enough(name: str, batch: str) -> None:
    once = migrate(f"{name}.py", example.text(name), Policy(batch=batch))  # type: ignore[arg-type]
    assert once.changed
    assert not once.refused, once.findings
    assert imports_runtime(once.after)
    assert not migrate(f"{name}.py", once.after, Policy(batch=batch)).changed  # type: ignore[arg-type]


def test_the_command_prints_one_and_lists_all() -> None:
    def said(*args: str) -> tuple[int, bytes, str]:
        done = CliRunner().invoke(main, ["example", *args])
        return done.exit_code, done.stdout_bytes, done.stderr

    assert said() == said("spirals") == (0, example.text("spirals"), "")
    assert said("digits") == (0, example.text("digits"), "")
    code, listed, _ = said("--list")
    assert (code, [line.split()[0] for line in listed.decode().splitlines()]) == (0, ["spirals", "digits"])
    code, out, error = said("mnist")
    assert (code, out, "there is no example mnist; there are: spirals, digits" in error) == (2, b"", True)
