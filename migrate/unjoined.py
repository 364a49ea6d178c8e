"""A look at what `tfdp run` is to start, before it starts: a script that certainly trains and has no way to join a job.

Nothing is run, and TensorFlow is not imported. Where anything is not certain the script is started: the launcher looks
again when it begins to train.
"""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .one_file import attempt

if TYPE_CHECKING:
    from .facts import Script

# What else may be imported without a way to the runtime: code that is not read here could join the job.
_LIBRARIES = frozenset(
    {"keras", "tensorflow", "tensorflow_datasets", "tensorflow_probability", "tensorboard", "tf_keras"}
)
_LIBRARIES |= {"absl", "cv2", "h5py", "matplotlib", "numpy", "pandas", "PIL", "requests", "scipy", "seaborn", "six"}
_LIBRARIES |= {"skimage", "sklearn", "tqdm", "yaml"}
_DYNAMIC = (b"tfdp", b"importlib", b"__import__", b"runpy", b"exec(", b"eval(", b"sys.path")
_ENDING = ("exit", "quit", "abort", "exec", "parse_args", "parse_known_args")
_HELP = frozenset({"-h", "--help", "--helpfull", "--helpshort", "--version"})


def certainly_trains(command: Sequence[str]) -> tuple[str, int] | None:
    """The script of a command of `tfdp run`, and the line at which it trains: whenever it is run, and never joined."""
    script = _script(command)
    if script is None or _HELP & set(command):
        return None
    path, folder = script
    line = attempt(path, lambda: None if _may_join_or_end(path, folder) else _training(path))
    return (path, line) if isinstance(line, int) else None  # a failure is for Python to tell, when the script runs


def _script(command: Sequence[str]) -> tuple[str, str] | None:
    """The file that Python runs, and the folder that it imports from first."""
    first = command[0] if command else ""
    if first == "-m" and len(command) > 1:
        path = os.path.join(*command[1].split("."))
        found = [p for p in (f"{path}.py", os.path.join(path, "__main__.py")) if os.path.isfile(p)]
        return (found[0], os.getcwd()) if found else None
    if first.endswith(".py") and os.path.isfile(first):
        return first, os.path.dirname(os.path.realpath(first))
    return None


def _may_join_or_end(path: str, folder: str) -> bool:
    """Whether what a script imports, by itself or by files of the project, may call `dp.init()` or end the script."""
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        file = os.path.realpath(waiting.pop())
        if file in seen:
            continue
        seen.add(file)
        with open(file, "rb") as opened:
            data = opened.read()
        if any(mark in data for mark in _DYNAMIC):
            return True
        tree = ast.parse(data)
        if len(seen) > 1 and any(map(_may_end, ast.walk(tree))):
            return True
        for names, around in _imports(tree, os.path.dirname(file), folder):
            local = [*_local(names, around)]
            if not local and names[0] not in sys.stdlib_module_names | _LIBRARIES:
                return True
            waiting += local
    return False


def _may_end(node: ast.AST) -> bool:
    names = (getattr(node, name, None) for name in ("id", "attr", "name"))
    ends = any(isinstance(n, str) and n.lstrip("_").startswith(_ENDING) for n in names)
    return ends or isinstance(node, ast.Raise | ast.Assert)


def _imports(tree: ast.Module, own: str, first: str) -> Iterator[tuple[list[str], str]]:
    """Each imported name as its parts, and the folder in which it is looked for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split("."), first) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            around = os.path.join(own, *[os.pardir] * (node.level - 1)) if node.level else first
            module = node.module.split(".") if node.module else []
            for alias in node.names:
                yield [*module, alias.name], around


def _local(names: Sequence[str], folder: str) -> Iterator[str]:
    """The project's files that an import runs: of each package, and of a module, which the last name may be in."""
    for name in names:
        inside = os.path.join(folder, name)
        found = [f for f in (f"{inside}.py", os.path.join(inside, "__init__.py")) if os.path.isfile(f)]
        yield from found
        if not os.path.isdir(inside):
            return
        folder = inside


def _training(path: str) -> int | None:
    from . import engine, files, nesting

    with open(path, "rb") as file:
        data = file.read()
    if not files.mentions_framework(data):
        return None
    script = engine.parse(path, files.decode(path, data).source)
    with nesting.room(path, script):
        return min(_certain_lines(script), default=None)


def _certain_lines(script: Script) -> Iterator[int]:
    from .facts import fits_once, is_reached

    fits = (fit.call for fit in script.fitted.calls if fits_once(script, fit.call))
    for call in (*(g.call for g in script.trained), *fits):
        if is_reached(script, call):
            yield script.program.entry.position(call)[0]
