"""Horovod and SMDDP: the runtime has their names, so that a script moves by its imports and trains as it did.

What the script says of its data, batches, rates, steps and files stays as it is: nothing of it need be understood.
Besides the imports only what a newer Keras does not take, and Horovod alone asks for, is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst
import libcst.matchers as m

from ...runtime.horovod import LEFT_OUT, MODULES
from ...runtime.smdistributed import NAMES
from ..catalogue import NAMED_SYSTEMS
from ..facts.program import Index, Names, Program, SourceFile
from ..imports import MODULE as RUNTIME
from .retired import retired
from .texts import Span, Taken, spliced

_RUNNER = "sparkdl"
SYSTEMS = (*NAMED_SYSTEMS, _RUNNER)
_MODULES = {**MODULES, "smdistributed.dataparallel.tensorflow": NAMES}
_PACKAGES = {"smdistributed", "smdistributed.dataparallel"}
_BRANCHES = (cst.If, cst.IfExp, cst.Try)
_OWN_ARGUMENT = "experimental_run_tf_function"  # Horovod's own, for TensorFlow 2.0; Keras 3 takes it no more
_BY_NAME = ("import_module", "__import__")
_OTHER = "{} is not in the runtime, which has Horovod for TensorFlow and Keras"
_MOVED = (
    "{}'s names are the runtime's: the script shards its data, seeds, scales its rate, broadcasts and writes as it did"
)
_STARTED = ". Start it by `tfdp run -np N`"
_RAN = "HorovodRunner is the runtime's Runner: new processes on this machine for each run, whatever the sign of np"
_KEPT = "the argument {} is left out: Horovod asked for it, and Keras 3 takes it no more"
_METHOD = "{} without its brackets: in Keras 3 it is a list; a method is called by the runtime"
_VARIABLES = m.Call(func=m.Attribute(attr=m.Name("variables")), args=[])
_OWN_RANK = (
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "HOROVOD_LOCAL_",
    "HOROVOD_CROSS_",
    "OMPI_COMM_WORLD_",
    "PMI_RANK",
    "PMI_SIZE",
)
_ENVIRONMENT = "{} means nothing to tfdp"


class Refused(NamedTuple):
    """Something that cannot be carried over: its place, both from 1, what is said, and what to do."""

    line: int
    column: int
    message: str
    next_step: str


class Moved(NamedTuple):
    """A script in the runtime's names; taken: what was changed or is to be known, refused: what cannot be moved."""

    module: cst.Module
    taken: tuple[Taken, ...]
    refused: tuple[Refused, ...]


def moved(module: cst.Module) -> Moved | None:
    """The script with the runtime's names in place of Horovod's or SMDDP's; None where it imports neither."""
    if not any(name in module.code for name in SYSTEMS):
        return None
    move = _Move(module)
    spans = move.imports()
    if not spans and not move.refused:
        return None
    move.names()
    spans += [*move.arguments(), *move.methods()]
    move.environment()
    move.retired()
    after = module if move.refused else cst.parse_module(spliced(module.code, spans))
    return Moved(after, tuple(dict.fromkeys(move.taken)), tuple(dict.fromkeys(move.refused)))


class _Move:
    """One script on its way."""

    def __init__(self, module: cst.Module) -> None:
        self.taken: list[Taken] = []
        self.refused: list[Refused] = []
        self._module = module
        self._file = SourceFile(module)
        self._index = Index(Program(self._file))
        self._names = Names(self._index)

    def imports(self) -> list[Span]:
        """What becomes of the imports."""
        spans: list[Span] = []
        trains = False
        for node in m.findall(self._module, m.Import() | m.ImportFrom()):
            before = len(spans)
            if isinstance(node, cst.Import):
                spans += self._imported(node)
            elif isinstance(node, cst.ImportFrom):
                spans += self._imported_from(node)
            if len(spans) > before and not self._file.code(node).startswith(f"from {_RUNNER}"):
                system = "Horovod" if "horovod" in self._file.code(node) else "SMDDP"
                self._say(node, _MOVED.format(system) + _STARTED * (_RUNNER not in self._module.code))
                trains = True
        if spans and not trains:
            message = "no function in this file trains by Horovod: HorovodRunner would run what trains by itself"
            self._refuse(self._module.body[0], message, "import horovod in the function that it runs")
        for call in self._index.calls:
            self._refuse_by_name(call)
        return spans

    def _imported(self, node: cst.Import) -> Iterator[Span]:
        for alias in node.names:
            dotted = self._file.code(alias.name)
            if not _is_theirs(dotted):
                continue
            if dotted not in _MODULES and dotted not in _PACKAGES:
                self._refuse_module(alias, dotted)
            elif alias.asname is not None:
                yield Span(*self._file.span(alias.name), f"{RUNTIME}.{dotted}")
            elif len(node.names) == 1:
                # It binds the first name of the dotted ones.
                yield Span(*self._file.span(node), f"from {RUNTIME} import {dotted.partition('.')[0]}")
            else:
                self._refuse(node, f"{dotted} is imported among others", "import it in a line of its own")

    def _imported_from(self, node: cst.ImportFrom) -> Iterator[Span]:
        dotted = self._file.code(node.module) if node.module is not None and not node.relative else ""
        if not _is_theirs(dotted):
            return
        if dotted == _RUNNER and not isinstance(node.names, cst.ImportStar):
            yield from self._runner(node, node.names)
            return
        if isinstance(node.names, cst.ImportStar):
            self._refuse(node, f"what a star import of {dotted} brings is not told", "import its names one by one")
            return
        for alias in node.names:
            name = self._file.code(alias.name)
            if f"{dotted}.{name}" not in _MODULES and f"{dotted}.{name}" not in _PACKAGES:
                self._check(alias, dotted, name)
        if node.module is not None:
            yield Span(*self._file.span(node.module), f"{RUNTIME}.{dotted}")

    def _runner(self, node: cst.ImportFrom, names: Sequence[cst.ImportAlias]) -> Iterator[Span]:
        """`from sparkdl import HorovodRunner`."""
        (alias, *others) = names
        if others or self._file.code(alias.name) != "HorovodRunner":
            self._refuse(
                node, f"of {_RUNNER} HorovodRunner is here alone", "take out what the script does by the others"
            )
            return
        known_as = alias.asname.name if alias.asname is not None else alias.name
        self._say(node, _RAN)
        yield Span(*self._file.span(node), f"from {RUNTIME} import Runner as {self._file.code(known_as)}")

    def _refuse_by_name(self, call: cst.Call) -> None:
        """`importlib.import_module("horovod.tensorflow")`."""
        name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
        given = call.args[0].value if call.args else None
        if isinstance(name, cst.Name) and name.value in _BY_NAME and isinstance(given, cst.SimpleString):
            value = given.evaluated_value
            if isinstance(value, str) and _is_theirs(value):
                self._refuse(call, f"{value} is imported by a text", "write an import statement")

    # --- uses ---------------------------------------------------------------------------------------------------------

    def names(self) -> None:
        """Look at the names of their modules that are used; what is not told here, the runtime says at its use."""
        for nodes in self._index.attributes.values():
            for node in nodes:
                api = self._names.api(node) or ""
                module, _, name = api.rpartition(".")
                if module in _MODULES and api not in _MODULES:
                    self._check(node, module, name)

    def _check(self, node: cst.CSTNode, module: str, name: str) -> None:
        """Whether a module of theirs, or what stands for it, has a name here."""
        names = _MODULES.get(module, ())
        if module not in _MODULES:
            self._refuse_module(node, module)
        elif module in SYSTEMS and name not in (*names, *LEFT_OUT):
            self._refuse_module(node, f"{module}.{name}")
        elif name not in names:
            why = LEFT_OUT.get(name, "the runtime has no such name")
            if any(isinstance(above, _BRANCHES) for above in self._index.ancestors(node)):
                self._say(node, f"{name} is left out of the runtime, an error where the script comes to it: {why}")
            else:
                self._refuse(node, f"{name} is not carried over", why)

    def arguments(self) -> Iterator[Span]:
        """`compile(…, experimental_run_tf_function=False)`."""
        for call in self._index.methods("compile"):
            for place, given in enumerate(call.args):
                if given.keyword is None or given.keyword.value != _OWN_ARGUMENT:
                    continue
                start, end = self._file.span(given)
                if place:
                    start = self._file.span(call.args[place - 1])[1]
                elif len(call.args) > 1:
                    end = self._file.span(call.args[1])[0]
                self._say(given, _KEPT.format(_OWN_ARGUMENT))
                yield Span(start, end, "")

    def methods(self) -> Iterator[Span]:
        """`broadcast_variables(optimizer.variables(), …)`."""
        for call in self._index.methods("broadcast_variables"):
            for given in call.args[:1]:
                node = given.value
                if isinstance(node, cst.Call) and m.matches(node, _VARIABLES):
                    self._say(node, _METHOD.format(f"`{self._file.code(node.func)}`"))
                    yield Span(*self._file.span(node), self._file.code(node.func))

    def environment(self) -> None:
        """Variables for Horovod that a script sets."""
        for node in m.findall(self._module, m.SimpleString()):
            value = node.evaluated_value if isinstance(node, cst.SimpleString) else ""
            if isinstance(value, str) and value.startswith(_OWN_RANK):
                self._refuse(
                    node, f"{value} is set by Horovod's launcher, and not by tfdp run", "ask hvd.rank() and the like"
                )
            elif isinstance(value, str) and value.isidentifier() and value.startswith("HOROVOD_"):
                self._say(node, _ENVIRONMENT.format(value))

    def retired(self) -> None:
        """What another Keras does not take."""
        for node, said in retired(self._index, self._names):
            self._say(node, said)

    # --- messages -----------------------------------------------------------------------------------------------------

    def _refuse_module(self, node: cst.CSTNode, dotted: str) -> None:
        self._refuse(node, _OTHER.format(dotted), "take out what the script does by it")

    def _refuse(self, node: cst.CSTNode, message: str, next_step: str) -> None:
        self.refused.append(Refused(*self._file.position(node), message, next_step))

    def _say(self, node: cst.CSTNode, message: str) -> None:
        self.taken.append(Taken(*self._file.position(node), message))


def _is_theirs(dotted: str) -> bool:
    return dotted.partition(".")[0] in SYSTEMS
