"""A sample of tests, which tests one process of pytest-xdist runs, and those whose Python processes are forks."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from forking.client import EXEC, in_use


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", action="store_true", help="few of the proofs, mutants and kinds of training")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--sample` those marked so; with `--dist loadgroup` those of a file, unless they say otherwise."""
    if config.getoption("--sample"):
        config.hook.pytest_deselected(items=[item for item in items if not item.get_closest_marker("sample")])
        items[:] = [item for item in items if item.get_closest_marker("sample")]
    if not config.pluginmanager.hasplugin("xdist"):  # as where the wheel's own tests run: nothing to group for
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.hookimpl(optionalhook=True)  # pytest-xdist's
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """Where pytest-xdist sees no groups, each test starts anew what it should share, and nothing else tells.

    It reads a group from the end of a test's name, behind the last bracket. To the names of pytest 9.2, pytest-xdist
    3.8 can add nothing (pytest-dev/pytest-xdist#1386).
    """
    if node.config.getoption("dist") != "loadgroup":
        return
    for name in ids:
        if name.rfind("@") <= name.rfind("]"):
            pytest.exit(f"{name}: pytest-xdist finds no group in this name; is pytest older than 9.2?", returncode=4)


@pytest.fixture(scope="module")
def forking(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Python processes that the tests of this file start are forks of one that has imported TensorFlow.

    They start in an empty folder: a proof makes links to all that lies in and around the one that it is started in.
    """
    empty = tmp_path_factory.mktemp("around") / "empty"
    empty.mkdir()
    with in_use(request.config), pytest.MonkeyPatch.context() as patch:
        patch.chdir(empty)
        yield


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in this test, which is about how a process starts or ends."""
    monkeypatch.setattr("subprocess.Popen", EXEC)
