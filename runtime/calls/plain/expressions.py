"""What expressions of the script's own code come to."""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from . import vocabulary
from .attributes import attribute, elements, subscripted
from .calling import Calls, callables
from .reads import MISSING, is_scripts
from .values import (
    DATA_ALONE,
    SCALARS,
    Arguments,
    Fixed,
    Held,
    Inner,
    Known,
    Made,
    RefusedError,
    Scope,
    Value,
    is_scalar,
    joined,
)

_TEXTS = 64  # that an expression may come to
_LARGE = 10**6  # numbers and texts that are computed here
_ARITHMETIC: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_EQUAL = ast.Eq | ast.NotEq | ast.In | ast.NotIn
_SINGLE = (None, True, False, ...)


class Expressions(Calls):
    """Expressions; Evaluator knows statements."""

    _put: Callable[[Any, Value, Scope], None]

    def value(self, node: Any, scope: Scope) -> Value:
        """All that an expression may come to."""
        self.count()
        match node:
            case ast.Constant(value):
                return frozenset({Known(value)})
            case ast.Name(name):
                return self._named(name, scope)
            case ast.Attribute(holder, name):
                found = self.value(holder, scope)
                return joined(attribute(self.reads, each, _mangled(name, scope), self) for each in found)
            case ast.Subscript(holder, index):
                found, chosen = self.value(holder, scope), self.value(index, scope)
                return joined(subscripted(self.reads, each, chosen, self) for each in found)
            case ast.Call():
                return self._called(node, scope)
            case ast.IfExp(test, body, orelse):
                truth = self._truth(test, scope)
                taken = [each for each, may_be in ((body, truth is not False), (orelse, truth is not True)) if may_be]
                return joined(self.value(each, scope) for each in taken)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.Compare():
                return self._operator(node, scope)
            case _:
                return self._built(node, scope)

    def _operator(self, node: Any, scope: Scope) -> Value:
        match node:
            case ast.BinOp(left, _, right):
                return self._operated(node, [self.value(left, scope), self.value(right, scope)], scope)
            case ast.UnaryOp(ast.Not(), operand):
                truth = self._truth(operand, scope)
                return DATA_ALONE if truth is None else frozenset({Known(not truth)})
            case ast.UnaryOp(kind, operand):
                return self._signed(kind, self._computed_with(self.value(operand, scope)))
            case ast.BoolOp(_, values):
                alternatives = [self.value(each, scope) for each in values]
                for each in alternatives:
                    self._bool(each)
                return joined(alternatives)
            case ast.Compare(left, [op], [right]):
                return self._compared(op, self.value(left, scope), self.value(right, scope))
            case ast.Compare(left, ops, right):
                sides = [self.value(each, scope) for each in (left, *right)]
                for op, one, other in zip(ops, sides[:-1], sides[1:], strict=True):
                    self._compared(op, one, other)
                return DATA_ALONE
            case _:
                raise AssertionError(node)

    def _built(self, node: Any, scope: Scope) -> Value:
        match node:
            case ast.Tuple(parts) if not any(isinstance(each, ast.Starred) for each in parts):
                return frozenset({Fixed(tuple(self.value(each, scope) for each in parts))})
            case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
                inside = joined(self._each(each, scope) for each in parts)
                return scope.container(node, self._keys(inside) if isinstance(node, ast.Set) else inside)
            case ast.Dict(keys, values):
                held = [self._keys(self.value(each, scope)) for each in keys if each is not None]
                held += [self.value(each, scope) for each in values]
                spread = [each for k, v in zip(keys, values, strict=True) if k is None for each in self.value(v, scope)]
                held += [part for each in spread for part in (self.elements(frozenset({each})), self.values(each))]
                return scope.container(node, joined(held))
            case (
                ast.ListComp(element, generators)
                | ast.SetComp(element, generators)
                | ast.GeneratorExp(element, generators)
            ):
                self._generated(generators, scope)
                found = self.value(element, scope)
                return scope.container(node, self._keys(found) if isinstance(node, ast.SetComp) else found)
            case ast.DictComp(key, value, generators):
                self._generated(generators, scope)
                return scope.container(node, joined([self._keys(self.value(key, scope)), self.value(value, scope)]))
            case _:
                return self._rare(node, scope)

    def _rare(self, node: Any, scope: Scope) -> Value:
        match node:
            case ast.Lambda():
                self.defined(node, scope)
                return frozenset({Inner(node, scope)})
            case ast.NamedExpr(target, value):
                found = self.value(value, scope)
                self._put(target, found, scope)
                return found
            case ast.Slice(lower, upper, step):
                for each in (lower, upper, step):
                    self._computed_with(self.value(each, scope) if each else frozenset())
                return DATA_ALONE
            case ast.JoinedStr(parts):
                return self._text([self.value(each, scope) for each in parts])
            case ast.FormattedValue(value, _, text):
                if text is not None:
                    self.value(text, scope)
                return self._text([self.value(value, scope)])
            case _:
                raise RefusedError(f"has an expression ({type(node).__name__}) that may do more")

    def _keys(self, value: Value) -> Value:
        """It is put into a set, or is a key."""
        if not all(map(self.may_be_a_key, value)):
            raise RefusedError("makes keys of what the script says how to compare")
        return value

    def _each(self, node: Any, scope: Scope) -> Value:
        if isinstance(node, ast.Starred):
            return self.elements(self.value(node.value, scope))
        return self.value(node, scope)

    def _generated(self, generators: Sequence[ast.comprehension], scope: Scope) -> None:
        for each in generators:
            if each.is_async:
                raise RefusedError("waits")
            self._put(each.target, self.elements(self.value(each.iter, scope)), scope)
            for test in each.ifs:
                self._truth(test, scope)

    def _text(self, parts: Sequence[Value]) -> Value:
        for each in (alternative for part in parts for alternative in part):
            if isinstance(each, Known) and type(each.thing) in SCALARS:
                continue
            if not self._telling or not self.is_data(each):
                raise RefusedError("makes a text of what is no known number or text")
        many = math.prod(map(len, parts)) > _TEXTS
        if many or any(not isinstance(each, Known) for part in parts for each in part):
            return DATA_ALONE
        return frozenset(Known("".join(str(each.thing) for each in found)) for found in itertools.product(*parts))

    def _named(self, name: str, scope: Scope) -> Value:
        if name.startswith("__") and not name.endswith("__"):
            raise RefusedError(f"uses {name}, whose meaning depends on the class")
        found: list[Value] = []
        here: Scope | None = scope
        last = scope
        while here is not None:
            if name in here.names:
                found.append(frozenset(here.held.get(name, ())))
                if name not in here.loose:
                    return joined(found)
            last, here = here, here.parent
        outside = self._outside(name, last.function)
        if outside is MISSING:
            if found:
                return joined(found)
            raise RefusedError(f"uses {name}, which there is not")
        return joined([*found, outside])

    def _outside(self, name: str, function: Any) -> Any:
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        if name in cells:
            value = self.reads.read("cell", cells[name])
        else:
            value = self.reads.read("global", function.__globals__, name)
            if value is MISSING and name in vocabulary.BUILTINS:
                value = self.reads.read("global", vocabulary.builtins_of(function), name)
                if value is not vocabulary.BUILTINS[name]:
                    raise RefusedError(f"uses {name}, which is not Python's own")
        return value if value is MISSING else frozenset({Known(value)})

    # --- operators -------------------------------------------------------------------------------------------------

    def _operated(self, node: Any, operands: list[Value], scope: Scope) -> Value:
        operands = [self._computed_with(each) for each in operands]
        if isinstance(node.op, ast.Mod) and any(_is_text(each) for each in operands[0]):
            self._text(operands)
        alternatives = [each for operand in operands for each in operand]
        held = [
            e
            for e in alternatives
            if isinstance(e, Made | Held | Fixed) or (isinstance(e, Known) and _is_list(e.thing))
        ]
        if held:
            made = scope.container(node, joined([self.elements(frozenset(held)), *map(self.values, held)]))
            return made if len(held) == len(alternatives) else joined([made, DATA_ALONE])
        known = [next(iter(each)).thing for each in operands if len(each) == 1 and isinstance(next(iter(each)), Known)]
        compute = _ARITHMETIC.get(type(node.op))
        if len(known) == len(operands) and compute is not None and all(map(_is_small, known)):
            try:
                return frozenset({Known(compute(*known))})
            except (ArithmeticError, TypeError, ValueError):
                return DATA_ALONE
        return DATA_ALONE

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> Value:
        is_known = all(isinstance(each, Known) for each in (*left, *right))
        if isinstance(op, ast.Is | ast.IsNot) and not (is_known or any(map(_is_single, (left, right)))):
            raise RefusedError("asks whether one object is another one")
        if not isinstance(op, ast.Is | ast.IsNot):
            for each in (*left, *right):
                may_be = self.may_be_a_key if isinstance(op, _EQUAL) else self.is_data
                is_held = isinstance(op, ast.In | ast.NotIn) and isinstance(each, Known | Made | Held | Fixed)
                if is_held and self._is_container(each):
                    self._keys(self.elements(frozenset({each})))
                elif not may_be(each):
                    raise RefusedError(f"compares a {_kind(each)}")
        compute = _ARITHMETIC.get(type(op))
        sides = [next(iter(each)) for each in (left, right) if len(each) == 1]
        if len(sides) < 2 or compute is None or not all(isinstance(each, Known) for each in sides):
            return DATA_ALONE
        things = [each.thing for each in sides]
        if not isinstance(op, ast.Is | ast.IsNot) and not all(map(_is_small, things)):
            return DATA_ALONE
        try:
            return frozenset({Known(bool(compute(*things)))})
        except TypeError:
            return DATA_ALONE

    def _signed(self, kind: ast.unaryop, operand: Value) -> Value:
        numbers = [each.thing for each in operand if isinstance(each, Known) and type(each.thing) in (int, float)]
        if isinstance(kind, ast.USub) and len(numbers) == len(operand):
            return frozenset(Known(-each) for each in numbers)
        return DATA_ALONE

    def _is_container(self, value: Any) -> bool:
        return not isinstance(value, Known) or vocabulary.is_container(value.thing)

    def may_be_a_key(self, value: Any) -> bool:
        """Whether Python compares it without any code of the script's own."""
        if self.is_data(value):
            return True
        if not isinstance(value, Known) or isinstance(value.thing, tuple | dict | list | set):
            return False
        return not vocabulary.answers_python(value.thing)

    def _computed_with(self, value: Value) -> Value:
        for each in value:
            if not self.is_data(each):
                raise RefusedError(f"computes with a {_kind(each)}")
        return value

    def _truth(self, test: Any, scope: Scope) -> bool | None:
        """Of a test; None where it is not known."""
        return self._bool(self.value(test, scope))

    def _bool(self, value: Value) -> bool | None:
        found: set[bool | None] = set()
        for each in value:
            if isinstance(each, Known) and type(each.thing) in SCALARS:
                found.add(bool(each.thing))
                continue
            if isinstance(each, Known) and vocabulary.answers_python(each.thing):
                raise RefusedError(f"asks whether a {_kind(each)} is true")
            found.add(None)
        return next(iter(found)) if len(found) == 1 else None

    # --- calls -----------------------------------------------------------------------------------------------------

    def _called(self, node: ast.Call, scope: Scope) -> Value:
        functions = self.value(node.func, scope)
        # To call a number is an error, and nothing is done.
        functions = frozenset(each for each in functions if not is_scalar(each)) or functions
        is_telling = any(isinstance(each, Known) and each.thing in (print,) for each in functions if callables(each))
        self._telling += is_telling
        try:
            plain = [each for each in node.args if not isinstance(each, ast.Starred)]
            spread = [self.value(each.value, scope) for each in node.args if isinstance(each, ast.Starred)]
            named = {each.arg: self.value(each.value, scope) for each in node.keywords if each.arg}
            more = [self._named_by(self.value(each.value, scope), named) for each in node.keywords if not each.arg]
            positional = tuple(self.value(each, scope) for each in plain)
        finally:
            self._telling -= is_telling
        rest = joined(map(self.elements, spread)) if spread else None
        if spread and isinstance(node.args[0], ast.Starred) and plain:  # nobody knows which is which
            rest, positional = joined([rest or (), *positional]), ()
        unknown = [each for each in more if each is not None]
        found = Arguments(positional, named, rest, joined(unknown) if unknown else None)
        return joined(self.apply(each, found, node, scope) for each in functions)

    def _named_by(self, value: Value, named: dict[str, Value]) -> Value | None:
        """What `**value` gives: by names, which are put to the others, or of names that are not known."""
        (one,) = value if len(value) == 1 else (None,)
        if isinstance(one, Known) and isinstance(one.thing, dict) and vocabulary.is_container(one.thing):
            self.reads.read("elements", one.thing)
            named.update((name, frozenset({Known(each)})) for name, each in one.thing.items())
            return None
        return joined([self.values(each) for each in value])

    def elements(self, value: Value) -> Value:
        """What containers hold."""
        return joined(elements(self.reads, each) for each in value)


def _mangled(name: str, scope: Scope) -> str:
    """As Python names what begins with two underscores in a class."""
    if not name.startswith("__") or name.endswith("__"):
        return name
    places = getattr(scope.function, "__qualname__", "").split(".")
    return f"_{places[-2].lstrip('_')}{name}" if len(places) > 1 else name


def _is_single(value: Value) -> bool:
    return all(isinstance(each, Known) and any(each.thing is one for one in _SINGLE) for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, Known) and type(value.thing) is str


def _is_small(thing: Any) -> bool:
    if isinstance(thing, str):
        return len(thing) < _LARGE
    return type(thing) in (bool, int, float) and abs(thing) < _LARGE


def _is_list(thing: Any) -> bool:
    return isinstance(thing, list | tuple | dict) and not is_scripts(type(thing))


def _kind(value: Any) -> str:
    return type(value.thing).__name__ if isinstance(value, Known) else type(value).__name__.lower()
