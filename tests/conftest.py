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
def forking(request: pytest.FixtureRequest) -> Iterator[None]:
    """Python processes that the tests of this file start are forks of one that has imported TensorFlow."""
    with in_use(request.config):
        yield


@pytest.fixture
def own_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in this test, which is about how a process starts or ends."""
    monkeypatch.setattr("subprocess.Popen", EXEC)
