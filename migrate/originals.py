"""What a migrated script may have been made of: a backup beside it, by `tfdp migrate --backup`, or a version in git."""

from __future__ import annotations

import ast
import contextlib
import errno
import os
import shlex
import subprocess
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from . import files
from .catalogue import NAMED_SYSTEMS
from .imports import MODULE as RUNTIME

_SUFFIX = ".orig"
_MOST_COMMITS = 100  # of those that changed the script
_MOST_ORIGINALS = 12
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


def candidates(path: str) -> Iterator[Original]:
    """What the migrated script at `path` may have been made of: its backup, then its versions in git, newest first.

    Each text once, none that is migrated itself, and not without end.
    """
    seen: set[bytes] = set()
    for one in _kept(path):
        if one.source not in seen and not imports_runtime(one.source):
            seen.add(one.source)
            yield one
        if len(seen) == _MOST_ORIGINALS:
            return


def same_program(one: bytes, other: bytes) -> bool:
    """Whether two texts differ in their layout and comments at most."""
    if one == other:
        return True
    first, second = _tree(one), _tree(other)
    try:
        return first is not None and second is not None and ast.dump(first) == ast.dump(second)
    except RecursionError:
        return False


def imports_runtime(source: bytes) -> bool:
    """Whether a script imports the runtime, so that it is migrated already, at least in part."""
    if b"tfdp" not in source:
        return False
    tree = _tree(source)
    return tree is not None and any(_of_runtime(node) for node in ast.walk(tree))


def shards_calls(source: bytes) -> bool:
    """Whether a script is migrated to sharded calls, by `dp.init(shard_calls=True)`."""
    if b"shard_calls" not in source or not imports_runtime(source):
        return False
    tree = _tree(source)
    given = (word for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords) if tree else ()
    return any(w.arg == "shard_calls" and not (isinstance(w.value, ast.Constant) and not w.value.value) for w in given)


def keeps_names(source: bytes) -> bool:
    """Whether a script has the runtime's functions by the names of another system, and trains as it did under that."""
    if RUNTIME.encode() not in source:
        return False
    tree = _tree(source)
    return tree is not None and any(
        f"{name}.".startswith(tuple(f"{RUNTIME}.{system}." for system in (*NAMED_SYSTEMS, "Runner")))
        for node in ast.walk(tree)
        for name in _imported(node)
    )


def _tree(source: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # who reads it next says what is wrong with it


def _of_runtime(node: ast.AST) -> bool:
    return any(f"{name}.".startswith(f"{RUNTIME}.") for name in _imported(node))


def _imported(node: ast.AST) -> list[str]:
    """The dotted names that a statement imports, if it does."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _kept(path: str) -> Iterator[Original]:
    kept = backup_of(path)
    with contextlib.suppress(OSError):
        yield Original(Path(kept).read_bytes(), kept)
    folder, name = os.path.split(os.path.realpath(path))
    for version in _versions(folder, name):
        source = _git(folder, "cat-file", "blob", version)
        if source is not None:
            yield Original(source, f"git show {shlex.quote(version)}")


def _versions(folder: str, name: str) -> Iterator[str]:
    """Of a file in git, under the names that it had, as git calls them."""
    yield f"HEAD:./{name}"
    ways = ["--follow", "--name-only", "-z", "--format=%h", f"--max-count={_MOST_COMMITS}"]
    commit = ""
    for part in os.fsdecode(_git(folder, "log", *ways, "HEAD", "--", name) or b"").split("\0"):
        if part.startswith("\n"):
            yield f"{commit}:{part[1:]}"
        else:
            commit = part


def _git(folder: str, *arguments: str) -> bytes | None:
    """What git says; None where there is no git, no repository, or no such version."""
    try:
        done = subprocess.run(
            ["git", "--literal-pathspecs", "-C", folder, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=_GIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
