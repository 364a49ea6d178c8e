"""Which files the PATH arguments mean."""

import os
from pathlib import Path

import pytest

from tfdp.migrate.inputs import Input, Unusable, expand


def touch(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def found(folder: Path, *paths: str) -> list[str]:
    inputs = [item for item in expand(paths or [str(folder)]) if isinstance(item, Input)]
    return [os.path.relpath(item.path, folder) for item in inputs]


def test_a_directory_means_all_python_files_below_it_in_order(tmp_path: Path) -> None:
    touch(tmp_path, "b.py", "a.py", "sub/deep/c.py", "env/cartpole.py", "notes.txt", "data.pyc")
    assert found(tmp_path) == ["a.py", "b.py", "env/cartpole.py", "sub/deep/c.py"]


def test_folders_that_hold_other_peoples_code_are_passed_over(tmp_path: Path) -> None:
    touch(tmp_path, "a.py", ".hidden/b.py", ".c.py", "venv/d.py", "node_modules/e.py", "__pycache__/f.py")
    touch(tmp_path, "myenv/pyvenv.cfg", "myenv/lib/g.py", "sub/venv/h.py")
    assert found(tmp_path) == ["a.py"]


def test_such_a_folder_is_looked_at_when_it_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "venv/pyvenv.cfg", "venv/lib/a.py")
    assert found(tmp_path, str(tmp_path / "venv")) == ["venv/lib/a.py"]


def test_links_and_pipes_in_a_directory_are_passed_over(tmp_path: Path) -> None:
    touch(tmp_path, "tree/a.py", "elsewhere/b.py")
    (tmp_path / "tree" / "out.py").symlink_to(tmp_path / "elsewhere" / "b.py")
    (tmp_path / "tree" / "broken.py").symlink_to("nowhere.py")
    (tmp_path / "tree" / "loop").symlink_to(tmp_path / "tree")
    os.mkfifo(tmp_path / "tree" / "pipe.py")
    (tmp_path / "tree" / "folder.py").mkdir()
    assert found(tmp_path, str(tmp_path / "tree")) == ["tree/a.py"]


def test_a_file_reached_twice_comes_once(tmp_path: Path) -> None:
    touch(tmp_path, "a.py")
    (tmp_path / "link.py").symlink_to("a.py")
    path = str(tmp_path / "a.py")
    paths = [path, f"{tmp_path}/./a.py", str(tmp_path), str(tmp_path / "link.py"), "-", "-"]
    assert [item.path for item in expand(paths)] == [path, "-"]


def test_what_the_user_named_is_known_from_what_was_found(tmp_path: Path) -> None:
    touch(tmp_path, "sub/a.py", "b.txt")
    items = [item for item in expand([str(tmp_path / "sub"), str(tmp_path / "b.txt")]) if isinstance(item, Input)]
    expected = {str(tmp_path / "sub/a.py"): False, str(tmp_path / "b.txt"): True}
    assert {item.path: item.named for item in items} == expected


def test_a_directory_without_python_files_is_a_problem(tmp_path: Path) -> None:
    touch(tmp_path, "notes.txt")
    (item,) = expand([str(tmp_path)])
    assert isinstance(item, Unusable)
    assert "no Python file" in item.failure.reason


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_a_directory_that_cannot_be_listed_is_a_problem_and_the_rest_goes_on(tmp_path: Path) -> None:
    touch(tmp_path, "a.py", "closed/b.py")
    (tmp_path / "closed").chmod(0)
    try:
        first, second = expand([str(tmp_path)])
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert isinstance(first, Input)
    assert isinstance(second, Unusable)
    assert second.path.endswith("closed")
