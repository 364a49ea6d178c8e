"""Training that a script has in files beside it: which names, imported from there, train when they are called.

Only the file that is run is changed; what other files train by is looked for there, and nothing else is asked of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from . import files
from .facts import Script
from .facts.program import Program, SourceFile, entered, leading
from .facts.training import Elsewhere
from .outputs import EffectKind

_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import[ \t]|import[ \t]+(\w[\w.]*))", re.MULTILINE)
_TRAINS = re.compile(rb"GradientTape|\.fit\(|train_on_batch|apply_gradients|\.minimize\(")
_WRITES = frozenset(EffectKind) - {
    *(EffectKind.PRINT, EffectKind.SHOW, EffectKind.PROGRESS, EffectKind.FETCH, EffectKind.LATEST),
    *(EffectKind.FOLDER, EffectKind.FOLDER_OF_PATH),
}
_UP = 3  # folders above the script's own from which packages may be imported
_DEEP = 3  # files one behind another


def trained_by(path: str, source: bytes, depth: int = 0) -> Mapping[str, Elsewhere]:
    """Dotted names that train, as the script at `path` imports them."""
    found: dict[str, Elsewhere] = {}
    for module in dict.fromkeys(m[1] or m[2] for m in _IMPORT.finditer(source)):
        for name, file in _located(path, module.decode("ascii", "replace"), source):
            found |= {f"{name}.{each}": told for each, told in _of_file(file, depth).items()}
    return found


def _located(path: str, module: str, source: bytes) -> Iterator[tuple[str, str]]:
    """The files that a module's name may lead to: itself, and those that are imported from it as a package."""
    bare = module.lstrip(".")
    level = len(module) - len(bare)
    folders = _folders(path) if not level else [_above(path, level)]
    parts = bare.split(".") if bare else []
    for folder in folders:
        base = os.path.join(folder, *parts)
        if os.path.isfile(f"{base}.py") and os.path.abspath(f"{base}.py") != os.path.abspath(path):
            yield module, f"{base}.py"
            return
        if os.path.isdir(base) and parts:
            pattern = rb"from[ \t]+" + re.escape(module.encode()) + rb"[ \t]+import[ \t]+\(?([\w, \t]+)"
            for names in re.findall(pattern, source):
                for name in re.findall(r"\w+", names.decode("ascii", "replace")):
                    if os.path.isfile(file := os.path.join(base, f"{name}.py")):
                        yield f"{module}.{name}", file
            return


def _folders(path: str) -> list[str]:
    here = os.path.dirname(os.path.abspath(path))
    found = [here]
    for _ in range(_UP):
        found.append(os.path.dirname(found[-1]))
    return list(dict.fromkeys(found))


def _above(path: str, level: int) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    return folder


def _of_file(file: str, depth: int) -> dict[str, Elsewhere]:
    """What of a file trains: its functions, and methods as `Class.method`; the class itself where making it trains."""
    try:
        with open(file, "rb") as stream:
            data = stream.read()
        text = files.decode(file, data).source
        further = trained_by(file, data, depth + 1) if depth < _DEEP else {}
        if not further and not (files.mentions_framework(data) and _TRAINS.search(data)):
            return {}
        script = Script(Program(SourceFile(cst.parse_module(text))), lambda: further)
    except (OSError, files.UnreadableSource, cst.ParserSyntaxError, RecursionError):
        return {}  # a file that cannot be read or parsed is no file of whose training anything is known
    ways = leading(script.origins, script.on_calls.training.steps)
    name, writes = os.path.basename(file), _writes(script, ways)
    wrote = f"{name}:{script.position(writes)[0]}" if writes is not None else ""
    found: dict[str, Elsewhere] = {}
    for node in ways:
        if (named := _named(script, node)) is not None:
            found.setdefault(named, Elsewhere(f"{name}:{script.position(node)[0]}", wrote))
    return found


def _named(script: Script, node: cst.CSTNode) -> str | None:
    """How a file that imports this one calls the function around a node."""
    function = script.index.enclosing_function(node)
    if function is None:
        return None
    owner = script.index.enclosing_class(function)
    name = function.name.value
    if owner is None:
        return name if script.index.enclosing_function(function) is None else None
    return owner.name.value if name == "__init__" else f"{owner.name.value}.{name}"


def _writes(script: Script, ways: Iterable[cst.CSTNode]) -> cst.CSTNode | None:
    """The first place that writes a file in the functions that train, and in those that they call."""
    around = {script.index.enclosing_function(node) for node in ways} - {None}
    run = set(entered(script.origins, [f for f in around if f is not None]))
    effects = (e for e in script.on_calls.written.effects if e.kind in _WRITES)
    return next((e.call for e in effects if script.index.enclosing_function(e.call) in run), None)
