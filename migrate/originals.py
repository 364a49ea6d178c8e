"""The original of a migrated script: kept beside it by `tfdp migrate --backup`, and found there, or in git."""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path

from . import files

_SUFFIX = ".orig"
_RUNTIME = "tfdp.runtime"
_MOST_COMMITS = 100  # of those that changed the script
_GIT_SECONDS = 20.0


@dataclass(frozen=True)
class Original:
    """source: its bytes. name: where it comes from, as a person would name it."""

    source: bytes
    name: str


def backup_of(path: str) -> str:
    """Where the original of the script at `path` is kept."""
    return path + _SUFFIX


def keep(path: str, source: bytes, mode: int) -> str:
    """Put `source` beside the script at `path` and return where.

    Raises OSError: FileExistsError where another text is there, which is left alone.
    """
    kept = backup_of(path)
    if os.path.lexists(kept):
        if Path(kept).read_bytes() != source:
            reason = "holds another text, and a backup is never overwritten: move it away, or leave --backup out"
            raise FileExistsError(errno.EEXIST, f"not written: {kept} {reason}")
        return kept
    files.write_new(kept, source, mode)
    return kept


def find(path: str) -> Original | None:
    """The original of the migrated script at `path`: its backup, or the newest version in git that is not migrated."""
    kept = backup_of(path)
    with contextlib.suppress(OSError):
        source = Path(kept).read_bytes()
        if not imports_runtime(source):
            return Original(source, kept)
    return _in_git(path)


def imports_runtime(source: bytes) -> bool:
    """Whether a script imports the runtime, so that it is migrated already, at least in part."""
    if b"tfdp" not in source:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # who reads it next says what is wrong with it
    return any(_of_runtime(node) for node in ast.walk(tree))


def _of_runtime(node: ast.AST) -> bool:
    if isinstance(node, ast.Import):
        return any(f"{alias.name}.".startswith(f"{_RUNTIME}.") for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return f"{node.module}.".startswith(f"{_RUNTIME}.") or any(
            f"{node.module}.{alias.name}" == _RUNTIME for alias in node.names
        )
    return False


def _in_git(path: str) -> Original | None:
    folder, name = os.path.split(os.path.realpath(path))
    commits = _git(folder, "log", "--format=%h", f"--max-count={_MOST_COMMITS}", "HEAD", "--", name)
    for commit in ["HEAD", *(commits or b"").decode().split()] if commits else []:
        source = _git(folder, "cat-file", "blob", f"{commit}:./{name}")
        if source is not None and not imports_runtime(source):
            return Original(source, f"git show {commit}:./{name}")
    return None


def _git(folder: str, *arguments: str) -> bytes | None:
    """What git says; None where there is no git, no repository, or no such version."""
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
