"""What the statements of a script do to its names, where all of them are in the vocabulary."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import libcst as cst

from ..program import Problem, SourceFile, dotted, fold, hanging_on, statements
from .calls import Calls
from .expressions import OutsideError
from .kinds import (
    DATA,
    NETS,
    STILL,
    Bindings,
    Box,
    Function,
    Kind,
    Named,
    Value,
    holds_list,
    is_kept,
    is_of_batch,
    join,
    kind,
)
from .words import MODULES, RUNTIME, SETS

_TURNS = 40  # of a loop, until its names are what they will be: a chain of names takes one for each
_DEPTH = 12  # functions that call one another; real scripts stay below five
_CALLS = 400  # of functions of the file, by which a script may be read
_UNPACKED = frozenset({Kind.WHOLE, Kind.OWN, Kind.ELEMENT})
_TRAINS = ("fit", "compile", "apply_gradients", "add", "build")
_LINES = (cst.SimpleStatementLine, cst.SimpleStatementSuite)


class Reader(Calls):
    """Reads a script from its first statement to its last, with the functions that it calls."""

    def __init__(self, file: SourceFile) -> None:
        super().__init__(file)
        self._open: list[cst.CSTNode] = []
        self._calls = 0
        self._ever: defaultdict[cst.CSTNode, dict[str, Kind]] = defaultdict(dict)  # by module or function
        self._returned: list[list[Value]] = []  # what the functions being read give back
        self._was_of_data = False  # where the function being read was called

    def script(self) -> None:
        """Raises OutsideError at the first thing that is not in the vocabulary."""
        module, before = self._file.module, None
        while before != (before := ({node: dict(ever) for node, ever in self._ever.items()}, self.single)):
            self._calls = 0
            del self.writes[:], self.measures[:]
            self._body(module.body, Bindings(ever=self._ever[module]))

    # --- functions ----------------------------------------------------------------------------------------------------

    def run(self, function: Function, args: Sequence[Value], named: Mapping[str, Value], at: cst.CSTNode) -> Value:
        """What a function of the file gives back, whose parameters are these."""
        self._calls += 1
        node = function.node
        if node in self._open or len(self._open) > _DEPTH or self._calls > _CALLS:
            self.outside(at)
        names = Bindings(function.names, self._bound(function, args, named, at), ever=self._ever[node])
        self._open.append(node)
        self.sites.append(at)
        self._returned.append([])
        before, self.in_graph = self.in_graph, self.in_graph or function.compiled
        was, self._was_of_data, done = self._was_of_data, self.of_data, self.done
        try:
            if isinstance(node, cst.Lambda):
                return self.value(node.body, names)
            self._body(node.body.body, names)
            given = self._returned[-1]
        finally:
            self._open.pop()
            self.sites.pop()
            self._returned.pop()
            self.in_graph, self._was_of_data, self.done = before, was, done
        found = given[0] if given else Kind.NOTHING
        for other in given[1:]:
            found = join(found, other)
        return found

    def _bound(
        self, function: Function, args: Sequence[Value], named: Mapping[str, Value], at: cst.CSTNode
    ) -> dict[str, Value]:
        given, params = function.node.params, function.node.params.params
        if given.star_arg is not cst.MaybeSentinel.DEFAULT and not isinstance(given.star_arg, cst.ParamStar):
            self.outside(at)
        if given.star_kwarg is not None or given.posonly_params or len(args) > len(params):
            self.outside(at)
        bound = {p.name.value: a for p, a in zip(params, args, strict=False)}
        if bound.keys() & named.keys():
            self.outside(at)
        bound.update(named)
        every = [*params, *given.kwonly_params]
        if bound.keys() - {p.name.value for p in every}:
            self.outside(at)
        bound = {**function.defaults, **bound}
        return bound if len(bound) == len(every) else self.outside(at)

    def made(self, node: cst.FunctionDef | cst.Lambda, names: Bindings, compiled: bool = False) -> Function:
        """A function, with what its defaults are now."""
        params = (*node.params.params, *node.params.kwonly_params)
        given = {p.name.value: p.default for p in params if p.default is not None}
        return Function(node, names, {name: self._default(each, names) for name, each in given.items()}, compiled)

    def _default(self, given: cst.BaseExpression, names: Bindings) -> Value:
        found = self.value(given, names)
        return found if kind(found) in DATA and not isinstance(found, Box) else self.outside(given)

    # --- statements ---------------------------------------------------------------------------------------------------

    def _body(self, statements: Iterable[cst.CSTNode], names: Bindings) -> None:
        for statement in statements:
            if isinstance(statement, _LINES):
                self._body(statement.body, names)
                continue
            read = _STATEMENTS.get(type(statement))
            if read is None:
                self.outside(statement, f"`{_first_word(statement)}`")
            read(self, statement, names)

    def _nothing(self, _: cst.CSTNode, __: Bindings) -> None:
        """`pass`."""

    def _import(self, node: cst.Import, names: Bindings) -> None:
        for alias in node.names:
            full = dotted(alias.name)
            if not MODULES.match(fold(full)):
                self.outside(node, f"`import {full}`")
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                names.values[alias.asname.name.value] = Named(fold(full))
            else:
                first = full.partition(".")[0]
                names.values[first] = Named(fold(first))

    def _import_from(self, node: cst.ImportFrom, names: Bindings) -> None:
        module = dotted(node.module) if node.module is not None and not node.relative else ""
        if not module or isinstance(node.names, cst.ImportStar) or not MODULES.match(fold(module)):
            self.outside(node)
        for alias in node.names:
            full = f"{module}.{dotted(alias.name)}"
            given = alias.asname.name if alias.asname is not None else alias.name
            if isinstance(given, cst.Name):
                names.values[given.value] = Named(fold(full))

    def _expression(self, node: cst.Expr, names: Bindings) -> None:
        self.done = node.value
        self.value(node.value, names)

    def _assign(self, node: cst.Assign, names: Bindings) -> None:
        api = self.named(node.value, names) if isinstance(node.value, cst.Attribute | cst.Name) else None
        value = self.value(node.value, names) if api is None or api.startswith("builtins.") else Named(api)
        for target in node.targets:
            if isinstance(target.target, cst.Attribute):
                self._set(target.target, value, names)
            else:
                self.bind(target.target, value, names)

    def _annotated(self, node: cst.AnnAssign, names: Bindings) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value, names), names)

    def _changed(self, node: cst.AugAssign, names: Bindings) -> None:
        old, given = self.value(node.target, names), self.value(node.value, names)
        found = self.combined(node, old, node.operator, given)
        whole = kind(old) is Kind.WHOLE and not isinstance(old, Box)
        is_other = isinstance(old, Box) != isinstance(given, Box) or (whole and kind(found) is not Kind.WHOLE)
        if is_other or is_kept(old):
            self.outside(node)  # `x += loss` changes an array in place, under all its names
        if self.of_data and (kind(found) is Kind.WHOLE or isinstance(old, Box)):
            self.outside(node)  # an array or a list counts steps then, under all its names
        self.bind(node.target, found, names)

    def bind(self, target: cst.BaseExpression, value: Value, names: Bindings) -> None:
        """Gives the names of a target a value."""
        if isinstance(target, cst.Name):
            names.give(target.value, value)
        elif isinstance(target, cst.Tuple | cst.List):
            self._unpack(target, value, names)
        elif isinstance(target, cst.Subscript):
            held = self.value(target.value, names)
            self.value(target, names)
            fits = kind(held) is Kind.WHOLE and kind(value) in STILL and not holds_list(value)
            if self.of_data or is_kept(held) or not fits:
                self.outside(target)
        else:
            self.outside(target)

    def _unpack(self, target: cst.Tuple | cst.List, value: Value, names: Bindings) -> None:
        if any(isinstance(e, cst.StarredElement) for e in target.elements):
            self.outside(target)
        if isinstance(value, tuple):
            if len(value) != len(target.elements):
                self.outside(target)
            parts = list(value)
        elif value is Kind.BATCH and not self.single:  # else it may be cut into its rows
            parts = [Kind.ROWS] * len(target.elements)
        elif isinstance(value, Box) or kind(value) in _UNPACKED:
            parts = [self.element(target, value) if isinstance(value, Box) else value] * len(target.elements)
        else:
            self.outside(target)
        for element, part in zip(target.elements, parts, strict=True):
            self.bind(element.value, part, names)

    def _set(self, target: cst.Attribute, value: Value, names: Bindings) -> None:
        """What is computed, and set between two steps, may go by their number."""
        if target.attr.value not in SETS or kind(self.value(target.value, names)) not in NETS or value is not Kind.FLAG:
            self.outside(target)

    def _return(self, node: cst.Return, names: Bindings) -> None:
        found = self.value(node.value, names) if node.value is not None else Kind.NOTHING
        if self.of_data and not self._was_of_data and is_of_batch(found):
            self.outside(node)  # the batch of one loop would be trained on in another
        if self._returned:
            self._returned[-1].append(found)

    def _define(self, node: cst.FunctionDef, names: Bindings) -> None:
        if node.asynchronous is not None:
            self.outside(node)
        compiled = self._compiled(node, names)
        names.values[node.name.value] = self.made(node, names, compiled)

    def _compiled(self, node: cst.FunctionDef, names: Bindings) -> bool:
        """Whether a function is a `tf.function`; other decorators are not known."""
        for decorator in node.decorators:
            inner = decorator.decorator
            given = inner.args if isinstance(inner, cst.Call) else ()
            func = inner.func if isinstance(inner, cst.Call) else inner
            if self.named(func, names) != "tensorflow.function" or given:
                self.outside(decorator)
        return bool(node.decorators)

    # --- ways ---------------------------------------------------------------------------------------------------------

    def _decided(self, test: cst.BaseExpression, names: Bindings, *, shows: bool) -> None:
        """shows: whether all that hangs on it is what is shown; of the number of the step, nothing else may."""
        of = kind(self.value(test, names))
        if of not in DATA:
            self.outside(test, f"a decision on `{self._file.code(test)}`")
        if of is Kind.COUNT and not shows:
            self.outside(test, f"a decision on `{self._file.code(test)}`, which goes by the number of the step,")

    def _if(self, node: cst.If, names: Bindings) -> None:
        if self.is_of_root(node.test, names) and node.orelse is None and all(map(_is_called, statements(node.body))):
            before, self.guarded = self.guarded, True
            self._body(node.body.body, names)
            self.guarded = before
            return
        self._decided(node.test, names, shows=self._shows(node, names))
        other = names.copy()
        self._body(node.body.body, names)
        if node.orelse is not None:
            other, names.values = names.values, other
            self._body([node.orelse] if isinstance(node.orelse, cst.If) else node.orelse.body.body, names)
        names.merge(other)

    def _shows(self, node: cst.If, names: Bindings) -> bool:
        """Whether an `if` does no more than to show."""
        return all(self._is_shown(part, names) for part in hanging_on(node))

    def _is_shown(self, part: cst.CSTNode, names: Bindings) -> bool:
        if isinstance(part, cst.If):
            return self._shows(part, names)
        call = part.value if isinstance(part, cst.Expr) else None
        if not isinstance(call, cst.Call):
            return isinstance(part, cst.Pass)
        api = self.named(call.func, names) or ""
        return api in {"builtins.print", f"{RUNTIME}report", f"{RUNTIME}on_root"}

    def _for(self, node: cst.For, names: Bindings) -> None:
        """Turns of a loop, each by the values before it, until another gives no name another value."""
        if node.asynchronous is not None or node.orelse is not None:
            self.outside(node, "`for`")
        state = names.frozen()
        for _ in range(_TURNS):
            before = names.copy()
            self._turn(node, names, before)
            names.merge(before)
            last, state = state, names.frozen()
            if state == last:
                return
        self.outside(node, "`for`")

    def _turn(self, node: cst.For, names: Bindings, before: Mapping[str, Value]) -> None:
        of_data, bound, names.bound, looped = self.of_data, names.bound, set[str](), self.looped
        many = self.many(node.iter, names)
        element = self.element(node.iter, many)
        if is_of_batch(element):
            if of_data:  # rows of two datasets would stand side by side
                self.outside(node.iter)
            self.of_data = True
        self.bind(node.target, element, names)
        self._body(node.body.body, names)
        if self.of_data:
            names.count(before)
        if self.of_data and not of_data:
            self._forget_rows(names)
        self.of_data, names.bound, self.looped = of_data, names.bound | bound, looped

    def _forget_rows(self, names: Bindings) -> None:
        """After a loop over a dataset its last batch is nothing to train on."""
        for name, value in names.copy().items():
            if is_of_batch(value):
                names.values[name] = Kind.MIXED

    def _with(self, node: cst.With, names: Bindings) -> None:
        if node.asynchronous is not None or len(node.items) != 1 or node.items[0].asname is None:
            self.outside(node.items[0])
        value = self.value(node.items[0].item, names)
        if kind(value) is not Kind.TAPE:
            self.outside(node.items[0])
        self.bind(node.items[0].asname.name, value, names)
        self._body(node.body.body, names)


def _is_called(part: cst.CSTNode) -> bool:
    """Whether a statement is no more than a call, and of nothing that trains."""
    call = part.value if isinstance(part, cst.Expr) else None
    name = call.func.attr.value if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) else ""
    return isinstance(call, cst.Call) and name not in _TRAINS


def _first_word(node: cst.CSTNode) -> str:
    """What a statement begins with that is not in the vocabulary."""
    if isinstance(node, cst.ClassDef):  # a layer, too: it may do anything with a batch, and in its gradient
        return f"class {node.name.value}"
    return {cst.Try: "try", cst.Del: "del", cst.Assert: "assert"}.get(type(node), type(node).__name__.lower())


_STATEMENTS: dict[type[cst.CSTNode], Callable[..., None]] = {
    cst.Pass: Reader._nothing,
    cst.Import: Reader._import,
    cst.ImportFrom: Reader._import_from,
    cst.Expr: Reader._expression,
    cst.Assign: Reader._assign,
    cst.AnnAssign: Reader._annotated,
    cst.AugAssign: Reader._changed,
    cst.Return: Reader._return,
    cst.FunctionDef: Reader._define,
    cst.If: Reader._if,
    cst.For: Reader._for,
    cst.With: Reader._with,
}


class Known(Protocol):
    """What other facts know of a script."""

    def is_written(self, call: cst.Call) -> bool:
        """Whether a migration says of a call that rank 0 alone makes it, or which file is whose."""

    def is_of_all(self, call: cst.Call) -> bool:
        """Whether a call updates a known metric, or gives its result over all examples."""


def first_outside(file: SourceFile, known: Known) -> Problem | None:
    """The first thing of a script that is not in the vocabulary; None where all of it is."""
    reader = Reader(file)
    try:
        reader.script()
        for call in (each for each in reader.writes if not known.is_written(each)):
            reader.outside(call, f"`{file.code(call)}`, which every worker would write,")
        for source in reader.trained & reader.measured.keys():
            measured = reader.measured[source]
            reader.outside(measured, f"`{file.code(measured)}`, on data that are trained on, too,")
        for call in (each for each in reader.measures if not known.is_of_all(each)):
            reader.outside(call, f"`{file.code(call)}`, of a metric that several loops over data or none may update,")
    except OutsideError as found:
        reason = f"{found.what} is not in the vocabulary of sharded input"
        return Problem("TFDP010", found.node, reason, "")
    return None
