"""Whole-number arithmetic with loop counters: what bounds of slices are, as polynomials."""

from __future__ import annotations

from collections import Counter as Multiset
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import MINIMA, RANGES
from .flow import reaching
from .index import ITER, Definition
from .origins import Origins
from .unknown import Unknown

Environment = Mapping[cst.FunctionDef, cst.Call]
Atom = Definition | str  # a binding, or the text of an attribute or call


@dataclass(frozen=True)
class Polynomial:
    """A sum of products of atoms, each with a factor. A counter is an atom whose binding is a loop's."""

    terms: tuple[tuple[tuple[Atom, ...], int], ...]

    @staticmethod
    def of(terms: Iterable[tuple[tuple[Atom, ...], int]]) -> Polynomial:
        """With like terms put together."""
        total: Multiset[tuple[Atom, ...]] = Multiset()
        for atoms, factor in terms:
            total[tuple(sorted(atoms, key=_key))] += factor
        terms = ((atoms, factor) for atoms, factor in total.items() if factor)
        return Polynomial(tuple(sorted(terms, key=lambda term: [_key(atom) for atom in term[0]])))

    def plus(self, other: Polynomial, sign: int = 1) -> Polynomial:
        """The sum, or with sign -1 the difference."""
        return Polynomial.of([*self.terms, *((a, sign * f) for a, f in other.terms)])

    def times(self, other: Polynomial) -> Polynomial:
        """The product."""
        return Polynomial.of([((*a, *b), f * g) for a, f in self.terms for b, g in other.terms])

    @property
    def counters(self) -> set[Definition]:
        """The loop counters in it."""
        return {a for atoms, _ in self.terms for a in atoms if isinstance(a, Definition) and a.kind in {"for", "comp"}}

    @property
    def size(self) -> Atom | int | None:
        """The one atom, or the number above 1, that it is; None for anything else."""
        if len(self.terms) != 1 or self.counters:
            return None
        (atoms, factor) = self.terms[0]
        if not atoms:
            return factor if factor > 1 else None
        return atoms[0] if len(atoms) == 1 and factor == 1 else None


def _key(atom: Atom) -> str:
    """The place of an atom in the one order that makes equal polynomials the same."""
    return atom if isinstance(atom, str) else f"\0{id(atom)}"


class Arithmetic:
    """Reads expressions as polynomials, through names that hold what a counter is part of."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._busy: set[cst.CSTNode] = set()

    @staticmethod
    def atom(atom: Atom) -> Polynomial:
        """An atom alone."""
        return Polynomial.of([((atom,), 1)])

    @staticmethod
    def number(value: int) -> Polynomial:
        """A number alone."""
        return Polynomial.of([((), value)])

    def polynomial(self, node: cst.CSTNode, env: Environment) -> Polynomial | Unknown:
        """What an expression is, or why it is no such arithmetic."""
        if node in self._busy:
            return Unknown(node, "depends on its own earlier value")
        self._busy.add(node)
        try:
            return self._read(node, env)
        finally:
            self._busy.discard(node)

    def _read(self, node: cst.CSTNode, env: Environment) -> Polynomial | Unknown:
        match node:
            case cst.Integer():
                return Polynomial.of([((), int(node.evaluated_value))])
            case cst.UnaryOperation(operator=cst.Minus()):
                inner = self.polynomial(node.expression, env)
                return inner if isinstance(inner, Unknown) else Polynomial(()).plus(inner, -1)
            case cst.BinaryOperation(operator=cst.Add() | cst.Subtract() | cst.Multiply()):
                left, right = self.polynomial(node.left, env), self.polynomial(node.right, env)
                if isinstance(left, Unknown):
                    return left
                if isinstance(right, Unknown):
                    return right
                if isinstance(node.operator, cst.Multiply):
                    return left.times(right)
                return left.plus(right, -1 if isinstance(node.operator, cst.Subtract) else 1)
            case cst.Name():
                return self._name(node, env)
            case cst.Call():
                return self._call(node, env)
        return self._opaque(node, env)

    def _call(self, node: cst.Call, env: Environment) -> Polynomial | Unknown:
        api = self._origins.names.api(node.func)
        if api == "builtins.int" and len(node.args) == 1:
            return self.polynomial(node.args[0].value, env)
        if api in MINIMA and len(node.args) == 2:
            found = [self.polynomial(a.value, env) for a in node.args]
            unread = next((f for f in found if isinstance(f, Unknown)), None)
            counted = [f for f in found if isinstance(f, Polynomial) and f.counters]
            if unread is None and len(counted) == 1:
                return counted[0]
            return unread or Unknown(node, "is a minimum of which not exactly one part has a loop's counter in it")
        return self._opaque(node, env)

    def _name(self, node: cst.Name, env: Environment) -> Polynomial | Unknown:
        found = reaching(self._origins.index, node)
        if len(found) != 1:
            return self._ambiguous(node, found)
        value = self.expanded(found[0], env)
        if value is not None:
            inner = self.polynomial(value, env)
            if isinstance(inner, Polynomial) and inner.counters:
                return inner
        if found[0].kind not in {"for", "comp"} or self.range_of(found[0]) is not None:
            return Polynomial.of([((found[0],), 1)])
        return Unknown(node, "comes from a loop that does not run over a range()")

    def _ambiguous(self, node: cst.Name, found: list[Definition]) -> Unknown:
        if not found:
            return Unknown(node, "is not defined in this file")
        again = next((d for d in found if isinstance(d.value, cst.AugAssign)), found[-1])
        changed = Unknown(again.statement, "changes it")
        return Unknown(node, "is not a loop's counter: the script gives it a new value itself", changed)

    def expanded(self, definition: Definition, env: Environment) -> cst.CSTNode | None:
        """What a name is bound to: the value assigned, or the argument of the call on the way."""
        if definition.kind == "assign" and not definition.path:
            return definition.value
        function = definition.scope
        if definition.kind == "param" and isinstance(function, cst.FunctionDef) and function in env:
            return self._origins.bind(env[function], function).get(definition.name)
        return None

    def range_of(self, counter: Definition) -> cst.Call | None:
        """`range(…)` of a loop's counter, also inside `enumerate` (as its element) and progress bars."""
        node, path = counter.value, counter.path
        while isinstance(node, cst.Call) and path and path[0] == ITER:
            api = self._origins.names.api(node.func)
            if api in RANGES:
                return node if path == (ITER,) else None
            if api == "builtins.enumerate":
                if path[1:] != (1,) or not node.args:
                    return None
                node, path = node.args[0].value, (ITER,)
            elif self._origins.kind(node.func) is Kind.PROGRESS and node.args:
                node = node.args[0].value
            else:
                return None
        return None

    def _opaque(self, node: cst.CSTNode, env: Environment) -> Polynomial | Unknown:
        """An attribute, a length, a division: an atom by its text, where no counter is part of it."""
        if not isinstance(node, cst.Attribute | cst.Subscript | cst.Call | cst.BinaryOperation):
            return Unknown(node, "is not a sum or product that can be followed")
        for name in _names(node):
            inner = self.polynomial(name, env) if reaching(self._origins.index, name) else None
            if isinstance(inner, Polynomial) and inner.counters:
                return Unknown(node, "is computed from a loop's counter by more than +, - and *")
        return Polynomial.of([((self._origins.index.code(node).strip(),), 1)])

    def leaves(self, node: cst.CSTNode, size: Atom | int, env: Environment) -> list[cst.BaseExpression]:
        """The places in an expression, and in what its names are bound to, that are the size."""
        if isinstance(node, cst.Integer):
            return [node] if size == int(node.evaluated_value) else []
        if isinstance(node, cst.Name):
            found = reaching(self._origins.index, node)
            if found == [size]:
                return [node]
            value = self.expanded(found[0], env) if len(found) == 1 else None
            inner = self.polynomial(node, env)
            counted = isinstance(inner, Polynomial) and bool(inner.counters)
            return self.leaves(value, size, env) if value is not None and counted else []
        if not isinstance(node, cst.BaseExpression):
            return [leaf for child in node.children for leaf in self.leaves(child, size, env)]
        named = isinstance(node, cst.Attribute | cst.Subscript | cst.Call)
        if named and self._origins.index.code(node).strip() == size:
            return [node]
        if isinstance(node, cst.Attribute):
            return []
        children = [a.value for a in node.args] if isinstance(node, cst.Call) else node.children
        return [leaf for child in children for leaf in self.leaves(child, size, env)]


def _names(node: cst.CSTNode) -> Iterator[cst.Name]:
    if isinstance(node, cst.Name):
        yield node
    for child in [node.value] if isinstance(node, cst.Attribute) else node.children:
        yield from _names(child)
