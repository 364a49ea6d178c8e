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
            item.add_marker(pytest.mark.xdist_group(str(item.path)))


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
