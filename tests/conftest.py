"""A sample of tests, which tests one process of pytest-xdist runs, and those whose Python processes are forks."""

import pathlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from forking.client import EXEC, in_use

TESTS = pathlib.Path(__file__).parent


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", action="store_true", help="what CI runs: a part of what takes long")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--sample` a part; with `--dist loadgroup` the tests of a file together, unless they say otherwise."""
    if config.getoption("--sample"):
        turns: Counter[tuple[pathlib.Path, str]] = Counter()
        stay = [is_in_sample(item, turns) for item in items]
        config.hook.pytest_deselected(items=[item for item, stays in zip(items, stay, strict=True) if not stays])
        items[:] = [item for item, stays in zip(items, stay, strict=True) if stays]
    if not config.pluginmanager.hasplugin("xdist"):  # as where the wheel's own tests run: nothing to group for
        return
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.name))


def is_in_sample(item: pytest.Item, turns: Counter[tuple[pathlib.Path, str]]) -> bool:
    """Whether CI runs this: of kinds and proofs what is marked `sample`, of others all but what is `long`.

    `turns` counts the sets of parameters that a test has had before: `long(keeps=2)` leaves the first two.
    """
    if item.path.is_relative_to(TESTS / "calls") or item.path.is_relative_to(TESTS / "proofs"):
        return item.get_closest_marker("sample") is not None
    mark = item.get_closest_marker("long")
    test = item.path, getattr(item, "originalname", item.name)
    turns[test] += 1
    return mark is None or turns[test] <= mark.kwargs.get("keeps", 0)


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
