"""The table of the proofs of all fixture scripts: `make prove` runs all, `--sample` (../conftest.py) a part of them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tfdp.migrate.verify import Proof
from tfdp.migrate.verify.diagnosis import Cause

_ROW = "row of the table"
_HEAD = (
    "| script | mode | N | case | gradient | loss | update | result | cause |",
    "|---|---|---|---|---|---|---|---|---|",
)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The rows come with the reports: the tests may have run in processes of their own (pytest-xdist)."""
    reports = [r for outcome in ("passed", "failed") for r in terminalreporter.stats.get(outcome, ())]
    rows = sorted(str(row) for r in reports if r.when == "call" for key, row in r.user_properties if key == _ROW)
    if rows and not config.getoption("--sample"):
        for line in ("", *_HEAD, *rows):
            terminalreporter.write_line(line)


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Put a proof into the table, with the cause that it names and, where that is another one, the true one."""

    def add(case: str, proof: Proof, cause: Cause | None = None) -> None:
        result = "proved" if proof.proved else (proof.failure.kind if proof.failure else proof.reason.splitlines()[0])
        figures = [f"{value:.1e}" for value in (proof.gradient, proof.loss, proof.update)]
        script = proof.script.split("/")[-2]
        named = proof.cause or "-"
        named += f" (WRONG: {cause.value})" if cause and proof.cause != cause.value else ""
        row = (script, proof.batch, str(proof.np), case, *figures, result, named)
        request.node.user_properties.append((_ROW, f"| {' | '.join(row)} |"))

    return add


@pytest.fixture(scope="session")
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened
