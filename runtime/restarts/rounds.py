"""The loops that a script is in: those that a process could only be in the middle of that has begun them.

`while` goes by what the script remembers. `for` goes by an iterator that nobody can reach, nor make anew in its middle;
but for a range it is known by what is given now and where it ends: another one that gives the same next ends as it.
"""

from __future__ import annotations

import ast
import functools
import itertools
import linecache
import types
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, NamedTuple

_PURE = (
    *(ast.Attribute, ast.BinOp, ast.Call, ast.Constant, ast.IfExp, ast.Name, ast.Subscript, ast.UnaryOp),
    *(ast.operator, ast.unaryop, ast.expr_context),
)
_CALLED = frozenset(("abs", "ceil", "float", "floor", "int", "len", "max", "min", "numpy", "round"))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class UnknownRound(Exception):  # noqa: N818 - it is no error of anybody's, and never leaves this package
    """Something that no other process could be in the middle of; with why."""


class Marks:
    """Frames that are running now, to be known again later: a frame that has ended may have had their identity."""

    def __init__(self, frame: FrameType | None) -> None:
        """Of a frame and all that have called it. Raises UnknownRound."""
        self._lines: dict[int, int] = {}
        for each in frames(frame):
            if each.f_trace is not None and not isinstance(getattr(each.f_trace, "__self__", None), Marks):
                raise UnknownRound("a debugger, or the like, follows it")
            each.f_trace = self._never_called  # nobody calls it but who follows the script
            self._lines[id(each)] = each.f_lineno

    def _never_called(self, *_: Any) -> Any:
        return self._never_called

    def line(self, frame: FrameType) -> int | None:
        """The line at which a frame was; None for one that has begun since."""
        trace = frame.f_trace
        return self._lines.get(id(frame)) if getattr(trace, "__self__", None) is self else None

    def clear(self, frame: FrameType | None) -> None:
        """Leave the frames as they were."""
        for each in frames(frame):
            if self.line(each) is not None:
                each.f_trace = None


def targets(code: CodeType, line: int) -> set[str]:
    """The names that the loops around a line give values to."""
    found: set[str] = set()
    for loop in _around(code, line, line):
        if isinstance(loop, (ast.For, ast.AsyncFor)):
            found |= _stored(loop.target)
    return found


def end(frame: FrameType, line_before: int) -> list[Any]:
    """Of each loop that a frame was in at that line and is in now: what its range ends before, and its steps.

    Raises:
        UnknownRound: it is none of which that is known.
    """
    return [_end(loop, frame) for loop in _around(frame.f_code, line_before, frame.f_lineno)]


_CALL_NOTHING = (
    *(abs, bool, enumerate, filter, float, getattr, int, isinstance, iter),
    *(len, map, print, range, repr, round, str, zip),
)
_RECEIVE_ONE = frozenset(("add", "append", "appendleft", "insert", "put", "setdefault", "write"))
_RECEIVE = _RECEIVE_ONE | {"extend", "update"}


class Loaded(NamedTuple):
    """What the statement reads that a function is at: what it stood for may have been taken already. Something that is
    told to receive is only looked at when it does."""

    own: set[str]  # names of the function
    outer: set[str]  # those of functions around it
    common: set[str]  # those of its module
    attributes: set[str]


def loaded_in(frame: FrameType) -> Loaded:
    """By the statement at which it is now."""
    names, attributes = set(), set()
    for part in _in_flight(frame):
        nodes: list[Any] = list(ast.walk(part))
        told = {
            id(getattr(each.func, "value", None)) for each in nodes if isinstance(each, ast.Call) and _receives(each)
        }
        for each in nodes:
            is_read = isinstance(getattr(each, "ctx", None), ast.Load) or isinstance(part, ast.AugAssign)
            if is_read and id(each) not in told:
                names |= {each.id} if isinstance(each, ast.Name) else set()
                attributes |= {each.attr} if isinstance(each, ast.Attribute) else set()
    code = frame.f_code
    own, outer = local_names(code), {*code.co_cellvars, *code.co_freevars}
    return Loaded(names & own, names & outer, names - own, attributes)


def local_names(code: CodeType) -> set[str]:
    """Those of a function, and of functions around it."""
    return {*code.co_varnames, *code.co_cellvars, *code.co_freevars}


def _in_flight(frame: FrameType) -> list[ast.AST]:
    """The parts of the innermost statement at which a frame is that are computed before what is inside of it."""
    line = frame.f_lineno
    around = [
        each
        for each in _nodes(frame.f_code)
        if isinstance(each, ast.stmt) and each.lineno <= line <= (each.end_lineno or each.lineno)
    ]
    if not around:
        return []
    statement = max(around, key=lambda each: (each.lineno, -(each.end_lineno or 0)))
    if not hasattr(statement, "body"):
        return [statement]
    return [
        *(each for _, each in ast.iter_fields(statement) if isinstance(each, ast.AST)),
        *getattr(statement, "items", ()),
    ]


def refuse_others_loops(frame: FrameType) -> None:
    """Raise UnknownRound where what a function has called is not surely Python that calls what is called now: it may be
    a loop of C's, as in `list(map(train, range(3)))`, and there is no knowing where it is."""
    calls = [each for part in _in_flight(frame) for each in ast.walk(part) if isinstance(each, ast.Call)]
    exact = _position(frame)
    if exact is not None:
        calls = [
            each for each in calls if (each.lineno, each.end_lineno, each.col_offset, each.end_col_offset) == exact
        ]
        if not calls and not _is_header(frame):
            raise UnknownRound(f"what {frame.f_code.co_filename}:{frame.f_lineno} calls is no plain call")
    elif any(
        isinstance(each, (ast.Starred, *_COMPREHENSIONS)) for part in _in_flight(frame) for each in ast.walk(part)
    ):
        raise UnknownRound(f"what {frame.f_code.co_filename}:{frame.f_lineno} calls may be no plain call")
    for call in calls:
        try:
            called = _value(call.func, frame) if _is_pure(call.func) else None
        except UnknownRound:
            called = None
        if _is_of_c(called) and (exact is not None or getattr(call.func, "attr", "") not in _RECEIVE_ONE):
            raise UnknownRound(
                f"{frame.f_code.co_filename}:{frame.f_lineno} calls `{ast.unparse(call.func)}`, which may be in a loop "
                "of its own, and there is no knowing where it is"
            )


def _position(frame: FrameType) -> tuple[int, int, int, int] | None:
    """Of the call that a frame is making, by lines and columns; Python 3.10 does not say."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return None
    found = next(itertools.islice(positions(), frame.f_lasti // 2, None), None)
    return found if found is not None and None not in found else None


def _is_header(frame: FrameType) -> bool:
    """Whether a frame asks for the next one of a loop of its own, which is around nothing of it then."""
    return any(
        isinstance(each, (ast.For, ast.AsyncFor)) and each.lineno <= frame.f_lineno < each.body[0].lineno
        for each in _nodes(frame.f_code)
    )


def _receives(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in _RECEIVE


def _is_of_c(called: Any) -> bool:
    """Whether something may call what it is given, again and again, and is not Python."""
    if called in _CALL_NOTHING:
        return False
    if isinstance(called, type):
        return called.__module__ in ("builtins", "itertools", "collections", "functools", "array")
    kinds = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType, functools.partial)
    return isinstance(called, kinds) or type(called).__module__.split(".")[0] == "numpy"


def is_in_loop(frame: FrameType, line_before: int) -> bool:
    """Whether a frame is in one loop at that line and now, of whatever kind."""
    kinds = (ast.For, ast.AsyncFor, ast.While, *_COMPREHENSIONS)
    return bool(_around(frame.f_code, line_before, frame.f_lineno, kinds=kinds))


def _around(
    code: CodeType, *lines: int, kinds: tuple[Any, ...] = (ast.For, ast.AsyncFor, *_COMPREHENSIONS)
) -> list[Any]:
    """The loops of a function that are around all of the lines, those outside first."""
    first = 0 if code.co_name == "<module>" else code.co_firstlineno
    return [
        node
        for node in _nodes(code)
        if isinstance(node, kinds)
        and first <= node.lineno
        and all(_begin(node) <= line <= _last(node) for line in lines)
    ]


def _begin(node: Any) -> int:
    first: int = node.lineno if isinstance(node, _COMPREHENSIONS) else node.body[0].lineno
    return first


def _last(node: Any) -> int:
    last: Any = node if isinstance(node, _COMPREHENSIONS) else node.body[-1]
    return int(last.end_lineno)


def _nodes(code: CodeType) -> tuple[Any, ...]:
    """Of the file that a function stands in. Raises UnknownRound."""
    if found := _nodes_in(code.co_filename):
        return found
    raise UnknownRound(f"the source of {code.co_filename} is not there to be looked at")


@functools.cache
def _nodes_in(path: str) -> tuple[Any, ...]:
    """All, those outside first; none where there is nothing to be read."""
    try:
        return tuple(ast.walk(ast.parse("".join(linecache.getlines(path)) or "(")))
    except SyntaxError:
        return ()


class _End(NamedTuple):
    line: int
    stop: float
    step: float


def _end(loop: Any, frame: FrameType) -> _End:
    site = f"{frame.f_code.co_filename}:{loop.lineno}"
    if not isinstance(loop, ast.For):
        raise UnknownRound(f"the loop at {site} is one of which there is no knowing where it is")
    asked = _range(loop.iter, frame)
    if asked is None or not isinstance(loop.target, ast.Name):
        raise UnknownRound(
            f"the loop at {site} goes over `{ast.unparse(loop.iter)}`, and there is no knowing where it is: save "
            "outside of it, or let it go over a range"
        )
    named = {node.id for each in asked for node in ast.walk(each) if isinstance(node, ast.Name)} | {loop.target.id}
    if changed := sorted(named & set().union(*map(_stored, loop.body))):
        raise UnknownRound(f"the loop at {site} changes {changed[0]} itself, by which it goes")
    return _End(loop.lineno, *(_number(_value(each, frame), site) for each in asked))


def _range(called: ast.expr, frame: FrameType) -> tuple[ast.expr, ast.expr] | None:
    """The expressions for where a range ends and for its step, which are pure; None where it is no range."""
    if not isinstance(called, ast.Call) or any(isinstance(each, ast.Starred) for each in called.args):
        return None
    is_named = isinstance(called.func, (ast.Name, ast.Attribute)) and _is_pure(called.func)
    function = _value(called.func, frame) if is_named else None
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if module.split(".")[0] == "tqdm" and name in ("tqdm", "tqdm_notebook"):  # it gives what it is given
        return _range(called.args[0], frame) if called.args else None
    is_range = function is range or (module.split(".")[0], name) in (("tensorflow", "range"), ("tqdm", "trange"))
    named = [] if name == "trange" else called.keywords
    if not is_range or named or not called.args or not all(map(_is_pure, called.args[1:] or called.args)):
        return None
    step = called.args[2] if len(called.args) > 2 else ast.Constant(1)
    return called.args[min(1, len(called.args) - 1)], step


def _is_pure(node: ast.expr) -> bool:
    """Whether an expression only reads."""
    parts = list(ast.walk(node))
    called = [each.func for each in parts if isinstance(each, ast.Call)]
    names = (each.attr if isinstance(each, ast.Attribute) else getattr(each, "id", "") for each in called)
    return all(isinstance(each, _PURE) for each in parts) and _CALLED.issuperset(names)


def _value(node: ast.expr, frame: FrameType) -> Any:
    """What an expression of a frame's is now. Raises UnknownRound where it cannot be computed."""
    expression = compile(ast.Expression(ast.fix_missing_locations(node)), "<a range>", "eval")
    try:
        return eval(expression, frame.f_globals, frame.f_locals)
    except Exception as error:
        raise UnknownRound(f"`{ast.unparse(node)}` cannot be looked at: {error}") from None


def _number(value: Any, site: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise UnknownRound(f"the loop at {site} goes by {value!r}, which is no number") from None
    return int(number) if number.is_integer() else number


def _stored(node: ast.AST) -> set[str]:
    """The names that are given values in a piece of code."""
    return {
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, (ast.Store, ast.Del))
    }


@functools.cache
def stored_attributes(path: str) -> frozenset[str]:
    """The names of all attributes to which the code of a file gives values, of whatever objects."""
    nodes = _nodes_in(path)
    stored = {each.attr for each in nodes if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load)}
    called = (each.args[1] for each in nodes if isinstance(each, ast.Call) and len(each.args) > 2)
    return frozenset(stored | {str(each.value) for each in called if isinstance(each, ast.Constant)})


def frames(innermost: FrameType | None) -> Iterator[FrameType]:
    """From the innermost on."""
    while innermost is not None:
        yield innermost
        innermost = innermost.f_back
