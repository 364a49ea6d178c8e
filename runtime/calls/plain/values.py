"""What an expression of the script's own may come to: each is a set of these."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SCALARS = (bool, bytes, complex, float, int, str, type(None), type(Ellipsis))
_MOST = 60  # alternatives of a name
Value = frozenset[Any]


class RefusedError(Exception):
    """Code that may do more than to compute, or of which that is not known."""

    place = ""

    def at(self, place: str) -> RefusedError:
        """The same, of the innermost place that is known."""
        self.place = self.place or place
        return self

    def __str__(self) -> str:
        place = f", at {self.place}" if self.place else ""
        return f"{super().__str__()}{place}: it may do more than to compute"


class _Data:
    """Tensors, numbers, texts, shapes: what nobody can change, or nobody else has."""


class _Array(_Data):
    """An array of NumPy's, which may have its numbers in common with one that there is: `+=` would change that."""


DATA, ARRAY = _Data(), _Array()
DATA_ALONE: Value = frozenset({DATA})
ARRAY_ALONE: Value = frozenset({ARRAY})


class Known:
    """An object that there is."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        self._key = (type(thing), repr(thing)) if type(thing) in SCALARS else id(thing)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Known) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Held(NamedTuple):
    """A list or dictionary that the caller has, by all that may be in it."""

    elements: Value


class Fixed(NamedTuple):
    """A tuple; or an object of nothing but these fields."""

    items: tuple[Value, ...]
    fields: tuple[str, ...] = ()


class Method(NamedTuple):
    """A function with the object that it is called of."""

    function: Any
    bound: Known


class Named(NamedTuple):
    """A method of data, of a container or of a framework's object, by its name."""

    name: str
    of: Any


class Super(NamedTuple):
    """`super()` in a method of this class."""

    owner: type
    bound: Known


@dataclass(eq=False)
class Made:
    """A container that the code makes itself, by all that may be in it."""

    elements: set[Any] = field(default_factory=set)


@dataclass(eq=False)
class Scope:
    """A call of a function: its names, with all that each may hold there, in whatever order.

    names: those that are its own; loose: of these the ones of comprehensions alone, which elsewhere mean others.
    """

    function: Any
    parent: Scope | None
    names: frozenset[str]
    loose: frozenset[str]
    held: dict[str, set[Any]] = field(default_factory=dict)
    given: set[Any] = field(default_factory=set)
    made: dict[ast.AST, Made] = field(default_factory=dict)

    def put(self, name: str, value: Iterable[Any]) -> None:
        """It may hold this, too."""
        found = self.held.setdefault(name, set())
        found |= set(value)
        self.held[name] = widened(found)

    def container(self, node: ast.AST, elements: Iterable[Any]) -> Value:
        """What is made here."""
        made = self.made.setdefault(node, Made())
        made.elements = widened(made.elements | set(elements))
        return frozenset({made})

    def measure(self) -> Any:
        """Another one as long as there is more to be known."""
        made = [len(each.elements) for each in self.made.values()]
        made += [len(each.elements) for held in self.held.values() for each in held if isinstance(each, Made)]
        return {name: frozenset(each) for name, each in self.held.items()}, made, frozenset(self.given)


@dataclass(frozen=True)
class Inner:
    """A function that the code defines."""

    node: Any
    scope: Scope


def widened(alternatives: set[Any]) -> set[Any]:
    """Numbers and texts are data where there is other data, or many of them."""
    if DATA not in alternatives and len(alternatives) <= _MOST:
        return alternatives
    return {DATA, *(each for each in alternatives if not is_scalar(each))}


def is_scalar(value: Any) -> bool:
    """Whether it is a number or the like that is known."""
    return isinstance(value, Known) and type(value.thing) in SCALARS


def joined(values: Iterable[Iterable[Any]]) -> Value:
    """One of these."""
    return frozenset(widened({each for value in values for each in value}))


class Arguments(NamedTuple):
    """What a function is called with. rest, more: of what nobody knows for which parameters it is; None without."""

    positional: tuple[Value, ...] = ()
    named: Mapping[str, Value] = {}
    rest: Value | None = None
    more: Value | None = None

    @property
    def key(self) -> Any:
        """What tells it apart."""
        return self.positional, frozenset(self.named.items()), self.rest, self.more

    def all(self) -> Value:
        """Everything."""
        return joined([*self.positional, *self.named.values(), self.rest or (), self.more or ()])


ANY = Arguments((), {}, DATA_ALONE, DATA_ALONE)
"""Data for whatever there is."""
