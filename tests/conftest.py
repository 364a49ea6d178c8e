"""Which tests one process of pytest-xdist runs, and those whose Python processes are forks."""

from collections.abc import Iterator

import pytest
from forking.client import EXEC, in_use


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--dist loadgroup` those of a file, unless they say otherwise."""
    if not config.pluginmanager.hasplugin("xdist"):  # as where the wheel's own tests run: nothing to group for
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Groups that pytest-xdist does not see cost each test a start of what it should share, and nothing else tells.

    It takes the group from the end of a test's name, behind the last bracket: pytest 9.2 gives a name that
    pytest-xdist 3.8 cannot add to (pytest-dev/pytest-xdist#1386).
    """
    if not getattr(session.config.option, "loadgroup", False):
        return
    for item in session.items:
        if item.nodeid.rfind("@") <= item.nodeid.rfind("]"):
            raise pytest.UsageError(f"{item.nodeid}: pytest-xdist finds no group in this name; is pytest older than 9.2?")


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
