"""Training that a script has in files beside it: which names, imported from there, train when they are called.

Only the file that is run is changed; what other files train by is looked for there, and nothing else is asked of them.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping

import libcst as cst

from . import files, inputs
from .catalogue import Kind
from .facts import Script
from .facts.apis import FITS
from .facts.keras import ON_BATCH
from .facts.program import FRAMEWORKS, Program, SourceFile, leading
from .facts.shared_run import OTHER_SYSTEMS
from .facts.training import Elsewhere

# Trains, or makes a model that others train.
_TRAINS = re.compile(rb"GradientTape|\.fit\(|train_on_batch|apply_gradients|\.minimize\(|Sequential\(|Model\(")
# Trains what it is handed.
_FITS = re.compile(rb"\.fit(_generator)?\(|train_on_batch")
# Of gradients of a script's own its facts know what they are for, unless the tape, or what it gives, is handed on.
_UPDATES = re.compile(rb"apply_gradients|\.assign(_sub|_add)?\(|set_weights|scatter_(nd_)?(sub|add|update)")
_MAY_TRAIN = re.compile(_FITS.pattern + rb"|GradientTape|apply_gradients|\.minimize\(|\.gradients\(")
_STRATEGIES = re.compile(rb"tf\.distribute")
_DISTRIBUTED = re.compile(_STRATEGIES.pattern + rb"|horovod|smdistributed|mpi4py")
_COMPUTES = re.compile(rb"import_module|__import__|runpy")
_UNBOUND = "builtins"  # of which names are that nothing in a file binds: those of a star import
_UP = 3  # folders above the script's own from which packages may be imported
_DEEP = 4  # files one behind another
_MOST = 60  # files read for one script
_MOST_BELOW = 500  # files in its folder and below

Told = dict[str, Elsewhere]


def trained_by(path: str, source: bytes) -> Mapping[str, Elsewhere]:
    """Dotted names that train, as the script at `path` imports them."""
    return _Beside().imported(path, source, 0)


def may_train(path: str, source: bytes, *, taken: bool = False) -> bool:
    """Whether the script at `path` does something when it is run, and it, or a file that it leads to, has what trains:
    who trains what by it is not known. Not where one of them says how to go about several workers.

    taken: whether the strategies of the script itself have become those of one.
    """
    if not any(map(_does, _parsed(source).body)):
        return False
    others = list(_texts(path, source).values())
    found = source + b"\n".join(others)
    distributed = _STRATEGIES.sub(b"", source) if taken else source
    if not files.mentions_framework(found) or any(map(_DISTRIBUTED.search, (distributed, *others))):
        return False
    by_tape = b"GradientTape" in source and _UPDATES.search(source)
    return bool(_FITS.search(source) or by_tape) or any(map(_MAY_TRAIN.search, others))


def _does(statement: ast.stmt) -> bool:
    """Whether a statement of a module is more than a definition, an import or a text."""
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        return any(isinstance(each, ast.Call) for each in ast.walk(statement))
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    defines = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return not isinstance(statement, defines)


def imports(path: str, source: bytes, packages: Iterable[str]) -> list[str]:
    """The files of the project that the script at `path` leads to and that import one of these packages, as seen from
    its folder."""
    wanted, here = frozenset(packages), os.path.dirname(os.path.abspath(path))
    found = []
    for file, text in _texts(path, source).items():
        modules = (module.partition(".")[0] for module, *_ in _imports(file, _parsed(text)))
        if not wanted.isdisjoint(modules):
            found.append(os.path.relpath(file, here))
    return found


def _texts(path: str, source: bytes) -> dict[str, bytes]:
    """The files of the project that a script leads to, with their texts: also those by a path that it computes, and all
    beside and below it where it imports by names that it computes."""
    texts: dict[str, bytes] = {os.path.abspath(path): source}
    waiting = [path]
    below = _below(os.path.dirname(os.path.abspath(path)))
    while waiting and len(texts) <= _MOST:
        here = waiting.pop()
        data = texts[os.path.abspath(here)]
        for file in below if _COMPUTES.search(data) else _imported(here, data, below):
            if file not in texts:
                with contextlib.suppress(OSError), open(file, "rb") as stream:
                    texts[file] = stream.read()
                    waiting.append(file)
    del texts[os.path.abspath(path)]
    return texts


def _below(folder: str) -> list[str]:
    """The Python files in a folder and below, up to a number."""
    walk = itertools.islice(inputs.expand([folder]), _MOST_BELOW)
    return [os.path.abspath(each.path) for each in walk if isinstance(each, inputs.Input)]


def _imported(path: str, source: bytes, below: Iterable[str]) -> Iterator[str]:
    """The files of the project that a file imports."""
    for module, _, folders in _imports(path, _parsed(source)):
        file = _located(module, folders)
        if file is not None:
            yield os.path.abspath(file)
        elif module and module.partition(".")[0] not in FRAMEWORKS | sys.stdlib_module_names:
            ends = os.path.join(os.sep, *module.split(".")) + ".py"
            yield from (each for each in below if each.endswith(ends))


def _imports(path: str, tree: ast.Module) -> Iterator[tuple[str, str, list[str]]]:
    """Each module that a file may import, what the names in it begin with in that file's facts, and where it may be."""
    folders = _folders(path, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, alias.name, folders) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            places = folders if not node.level else [_above(path, node.level)]
            for alias in node.names:
                yield node.module or "", _UNBOUND if alias.name == "*" else module, places
                below = f"{node.module}.{alias.name}" if node.module else alias.name
                yield below, f"{module}.{alias.name}", places


class _Beside:
    """The files that one script leads to, each read once."""

    def __init__(self) -> None:
        self._told: dict[str, Told] = {}

    def imported(self, path: str, source: bytes, depth: int) -> Told:
        """What trains of all that a file imports, by the names that its facts give them."""
        found: Told = {}
        for module, prefix, folders in _imports(path, _parsed(source)):
            found |= self._of_module(module, folders, path, prefix, depth)
        return found

    def _of_module(self, module: str, folders: Iterable[str], path: str, prefix: str, depth: int) -> Told:
        file = _located(module, folders)
        if file is None or os.path.abspath(file) == os.path.abspath(path):
            return {}
        return {f"{prefix}.{name}": told for name, told in self._of_file(file, depth).items()}

    def _of_file(self, file: str, depth: int) -> Told:
        """What of a file trains: functions, methods as `Class.method`, a class by itself where making it trains."""
        if file not in self._told:
            self._told[file] = {}  # files that import one another
            if depth < _DEEP and len(self._told) <= _MOST:
                self._told[file] = self._read(file, depth)
        return self._told[file]

    def _read(self, file: str, depth: int) -> Told:
        try:
            with open(file, "rb") as stream:
                data = stream.read()
            text = files.decode(file, data).source
            further = self.imported(file, data, depth + 1)
            if not further and not (files.mentions_framework(data) and _TRAINS.search(data)):
                return {}
            script = Script(Program(SourceFile(cst.parse_module(text))), lambda: further)
        except (OSError, files.UnreadableSource, cst.ParserSyntaxError):
            return {}  # a file that cannot be read or parsed is no file of whose training anything is known
        name = os.path.basename(file)
        return _handed_on(script, _own(script, name) | _models(script, name) | _inherited(script, further), further)


# --- where modules are ------------------------------------------------------------------------------------------------


def _parsed(source: bytes) -> ast.Module:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])  # the caller says what is wrong with it


def _folders(path: str, tree: ast.Module) -> list[str]:
    """Where modules may be: beside the file, above it, and where it adds to `sys.path`."""
    here = os.path.dirname(os.path.abspath(path))
    found = [here]
    for _ in range(_UP):
        found.append(os.path.dirname(found[-1]))
    added = [os.path.join(folder, each) for folder in found for each in _added(tree)]
    return list(dict.fromkeys(found + added))


def _added(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {"sys.path.append", "sys.path.insert"}:
            yield from (a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str))


def _above(path: str, level: int) -> str:
    folder = os.path.dirname(os.path.abspath(path))
    for _ in range(level - 1):
        folder = os.path.dirname(folder)
    return folder


def _located(module: str, folders: Iterable[str]) -> str | None:
    parts = module.split(".") if module else []
    if parts and parts[0] in FRAMEWORKS:  # also in its own repository: a script's layers are no training of its own
        return None
    bases = (os.path.join(folder, *parts) for folder in folders)
    tries = (file for base in bases for file in (f"{base}.py", os.path.join(base, "__init__.py")))
    return next((file for file in tries if os.path.isfile(file)), None)


# --- what trains in one file ------------------------------------------------------------------------------------------


def _own(script: Script, name: str) -> Told:
    """The functions and methods in which a file trains, and those that lead there."""
    ways = leading(script.origins, script.on_calls.training.steps)
    others = [p for p in script.on_calls.problems if p.code in OTHER_SYSTEMS]
    system = f"{name}:{script.position(others[0].node)[0]}: {others[0].reason}" if others else ""
    code = others[0].code if others else ""
    found: Told = {}
    for node in ways:
        if (named := _named(script, node)) is not None:
            found.setdefault(named, Elsewhere(f"{name}:{script.position(node)[0]}", system, code))
    return found


def _models(script: Script, name: str) -> Told:
    """Methods that train the models which a file makes under names of its own: `model.fit`."""
    found: Told = {}
    for local, definitions in script.index.definitions[script.program.entry.module].items():
        made = [d.value for d in definitions if d.kind == "assign" and not d.path and d.value is not None]
        if made and all(isinstance(m, cst.Call) and script.origins.kinds(m) == {Kind.MODEL} for m in made):
            told = Elsewhere(f"{name}:{script.position(made[0])[0]}")
            found |= {f"{local}.{method}": told for method in (*FITS, ON_BATCH)}
    return found


def _named(script: Script, node: cst.CSTNode) -> str | None:
    """How a file that imports this one calls the outermost function around a node."""
    around = [n for n in script.index.ancestors(node) if isinstance(n, cst.FunctionDef)]
    if not around:
        return None
    owner, name = script.index.enclosing_class(around[-1]), around[-1].name.value
    if owner is None:
        return name
    return owner.name.value if name == "__init__" else f"{owner.name.value}.{name}"


def _inherited(script: Script, further: Told) -> Told:
    """Methods that classes of a file have of classes that it imports."""
    found: Told = {}
    for owner in script.index.classes:
        for base in filter(None, script.origins.bases(owner)):
            of_base = ((name, told) for name, told in further.items() if name.startswith(f"{base}."))
            found |= {owner.name.value + name.removeprefix(base): told for name, told in of_base}
    return found


def _handed_on(script: Script, found: Told, further: Told) -> Told:
    """The same with methods that other classes of the file inherit, and with what it imports for others."""
    below: Told = {}
    for name, told in found.items():
        owner, _, method = name.partition(".")
        of_name = (c for c in script.index.classes if c.name.value == owner)
        heirs = (c for o in of_name for c in script.index.classes if c is not o and script.origins.descends(c, o))
        below |= {f"{c.name.value}.{method}" if method else c.name.value: told for c in heirs}
    found = below | found
    for local, definitions in script.index.definitions[script.program.entry.module].items():
        for api in (d.api for d in definitions if d.kind == "import" and d.api):
            same = ((name, told) for name, told in further.items() if name == api or name.startswith(f"{api}."))
            found |= {local + name.removeprefix(api): told for name, told in same}
    unbound = ((name, told) for name, told in further.items() if name.startswith(f"{_UNBOUND}."))
    return found | {name.removeprefix(f"{_UNBOUND}."): told for name, told in unbound}
