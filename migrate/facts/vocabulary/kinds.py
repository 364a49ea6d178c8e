"""What a value of a training script is, as far as sharding its input asks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from typing import TypeAlias

import libcst as cst


class Kind(Enum):
    """The kinds of the vocabulary; each value says what is meant."""

    NUMBER = "a number"  # written in the text
    FLAG = "True or False"  # written in the text, and nothing that was chosen from a list by the number of the step
    COUNT = "what goes by the number of the step"  # and is alike on all workers
    WHOLE = "a value that is alike on all workers"  # also settings, texts, arrays of all examples
    OWN = "a worker's own value"  # which may be shown, and no more
    BATCH = "a batch"  # as data give it: one array or several, with an example in each row
    ROWS = "an array of a batch"
    OUTPUTS = "what a model makes of a batch"  # an example in each row, too, and no labels
    SYMBOLIC = "what a functional model is made of"  # of at least two axes, the first being the batch's
    ELEMENT = "an element of a dataset"
    ELEMENTS = "a batch of them, in a dataset of batches"
    LOSS = "a loss"  # a mean over the rows of a batch, with its penalties
    PENALTIES = "the penalties of a model"
    MODEL = "a model"
    LAYER = "a layer"  # of a model, and not called with a batch: of labels it may take the only axis for its own
    LOSS_OBJECT = "a loss of Keras"
    LOSS_FUNCTION = "a loss function of Keras"
    ACTIVATION = "an activation function"
    METRIC = "a metric"
    OPTIMIZER = "an optimizer"
    CALLBACK = "a callback"
    CHECKPOINT = "a checkpoint"
    DATASET = "a dataset"
    BATCHES = "a dataset of batches"
    SHUFFLED = "a dataset in an order that is drawn"  # by each worker in its own: a part of it is another part
    SHUFFLED_BATCHES = "batches of it"
    PART = "a part of such a dataset"
    PART_BATCHES = "batches of a part"
    TAPE = "a tape"
    VARIABLES = "the variables of a model"
    GRADIENTS = "gradients"
    UPDATES = "gradients with their variables"
    PARSER = "a parser of arguments"
    SETTINGS = "the arguments of the command"
    NOTHING = "nothing"
    MIXED = "values of several kinds"


DATA = frozenset({Kind.NUMBER, Kind.FLAG, Kind.COUNT, Kind.WHOLE, Kind.NOTHING})
"""What is alike on all workers."""

STILL = DATA - {Kind.COUNT}
"""What is alike at all steps, too: of the others there are fewer where a step has the batches of all workers."""

ONE_BY_ONE = (Kind.DATASET, Kind.SHUFFLED, Kind.PART)

BATCHED = (Kind.BATCHES, Kind.SHUFFLED_BATCHES, Kind.PART_BATCHES)
"""In the order of what may stand for one of two."""

DATASETS = frozenset({*ONE_BY_ONE, *BATCHED})

PARTS = frozenset({Kind.PART, Kind.PART_BATCHES})
"""Other examples on each worker."""

LABELS = frozenset({Kind.BATCH, Kind.ROWS})
"""Arrays that data give, with an example in each row."""

OF_BATCH = LABELS | {Kind.OUTPUTS}

NETS = frozenset({Kind.MODEL, Kind.LAYER})

_WRITTEN = frozenset({Kind.NUMBER, Kind.FLAG})

SHOWN = DATA | {Kind.OWN, Kind.LOSS}
"""What may be shown, and computed with for that."""


@dataclass(frozen=True)
class Named:
    """A module, function or class of a library."""

    api: str


Source: TypeAlias = tuple[cst.CSTNode, ...]
"""A call that makes a dataset, behind the calls of functions by which the script comes to it."""


@dataclass(frozen=True)
class Data:
    """A dataset: of what kind, and out of which others it is made."""

    of: Kind
    sources: frozenset[Source]


@dataclass(eq=False)
class Box:
    """A list or table: what its elements are, whatever their places. One object under all its names.

    kept: something has been given it, and may keep it.
    """

    _contents: list[Value] = field(default_factory=list)
    _same: Box | None = None
    kept: bool = False

    def root(self) -> Box:
        """The one object of all that are united."""
        box = self
        while box._same is not None:
            box = box._same
        return box

    @property
    def contents(self) -> tuple[Value, ...]:
        """All that its elements are."""
        return tuple(self.root()._contents)

    @property
    def content(self) -> Value | None:
        """What any one of its elements is; None where it is empty."""
        found = reduce(join, self.contents) if self.contents else None
        return Kind.WHOLE if found is Kind.FLAG else found

    def put(self, value: Value) -> None:
        """One more element."""
        root = self.root()
        if value not in root._contents:
            root._contents.append(value)

    def unite(self, other: Box) -> Box:
        """This one, where a name may stand for either: what is put into one of them may then be in the other."""
        one, two = self.root(), other.root()
        one.kept |= two.kept
        if one is not two:
            given, two._contents, two._same = two._contents, [], one
            for value in given:
                one.put(value)
        return self


@dataclass(eq=False)
class Bindings:
    """The names of a module, function or class, in those around it."""

    around: Bindings | None = None
    values: dict[str, Value] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)  # since somebody has begun to look
    ever: dict[str, Kind] = field(default_factory=dict)  # what names have been: a worker's own, or by the step

    def __post_init__(self) -> None:
        for name, value in self.values.items():
            self._note(name, value)

    def get(self, name: str) -> Value | None:
        """What a name stands for; None where it has no value here. What has been a worker's own, or gone by the number
        of the step, is for good, so that this does not hang on which statement runs after which."""
        if name not in self.values:
            return None if self.around is None else self.around.get(name)
        was = self.ever.get(name)
        return self.values[name] if was is None else marked(self.values[name], was)

    def give(self, name: str, value: Value) -> None:
        """Binds a name."""
        self.values[name] = value
        self.bound.add(name)
        self._note(name, value)

    def count(self, before: Collection[str]) -> None:
        """What had a value before a step, and has been given another, may count the steps."""
        for name in self.bound.intersection(before):
            self.values[name] = counted(self.values[name])
            self._note(name, self.values[name])

    def _note(self, name: str, value: Value) -> None:
        found = set(leaves(value))
        if found & {Kind.OWN, Kind.LOSS}:
            self.ever[name] = Kind.OWN
        elif Kind.COUNT in found:
            self.ever.setdefault(name, Kind.COUNT)

    def copy(self) -> dict[str, Value]:
        """The values at this moment."""
        return dict(self.values)

    def frozen(self, known: Numbers | None = None) -> tuple[object, ...]:
        """The values at this moment, of this scope and those around it, to be compared."""
        known = {} if known is None else known
        if self in known:
            return (known[self],)
        known[self] = len(known)
        own = tuple((name, frozen(value, known)) for name, value in self.values.items())
        return own if self.around is None else (*own, *self.around.frozen(known))

    def merge(self, other: Mapping[str, Value]) -> None:
        """What the names may be where one of two ways was taken; a name bound on one of them is what it is there."""
        for name, value in other.items():
            own = self.values.get(name)
            self.values[name] = value if own is None else join(own, value)


@dataclass(eq=False)
class Function:
    """A function of the file, and the names around it. `compiled`: it runs in a graph."""

    node: cst.FunctionDef | cst.Lambda
    names: Bindings
    defaults: Mapping[str, Value]  # as they are where it is made
    compiled: bool = False


Value: TypeAlias = "Kind | Named | Data | Box | Function | tuple[Value, ...]"
Numbers: TypeAlias = "dict[Box | Bindings, int]"


def leaves(value: Value, around: tuple[Box, ...] = ()) -> Iterator[Value]:
    """The values of which a tuple or list is made; the value itself where it is neither. A list may be in itself."""
    if isinstance(value, tuple):
        for each in value:
            yield from leaves(each, around)
    elif isinstance(value, Box):
        root = value.root()
        for each in root.contents if root not in around else ():
            yield from leaves(each, (*around, root))
    else:
        yield value


def kind(value: Value) -> Kind:
    """The one kind of a value with all that it holds."""
    found = {
        leaf if isinstance(leaf, Kind) else leaf.of if isinstance(leaf, Data) else Kind.MIXED for leaf in leaves(value)
    }
    one = _together(found) if found else Kind.WHOLE
    return Kind.WHOLE if one in _WRITTEN and not isinstance(value, Kind) else one  # a list of numbers is none


def counted(value: Value, around: tuple[Box, ...] = ()) -> Value:
    """What a value may be that a step has given to a name which had one before: each of its parts may count steps."""
    if isinstance(value, tuple):
        return tuple(counted(each, around) for each in value)
    if not isinstance(value, Box):
        return Kind.COUNT if value in DATA else value
    root = value.root()
    if root not in around:
        found = [counted(each, (*around, root)) for each in root.contents]
        root._contents[:] = []
        for each in found:
            root.put(each)
    return value


def marked(value: Value, was: Kind) -> Value:
    """What may be what it is, or of another kind: a worker's own, or by the number of the step."""
    if isinstance(value, tuple):
        return tuple(marked(each, was) for each in value)
    return _together({value, was}) if isinstance(value, Kind) and value in DATA else value


def holds_list(value: Value) -> bool:
    """Whether it is a list, or a tuple with one, which may be filled under another name."""
    return isinstance(value, Box) or (isinstance(value, tuple) and any(map(holds_list, value)))


def is_nested(value: Value) -> bool:
    """Whether there are lists inside of it, which a copy of it has, too."""
    parts = value.contents if isinstance(value, Box) else value if isinstance(value, tuple) else ()
    return any(map(holds_list, parts))


def keep(value: Value) -> None:
    """A library is given it, and may look into its lists later: nothing is put into them any more."""
    if isinstance(value, Box) and not value.root().kept:
        value.root().kept = True
        keep(value.contents)
    elif isinstance(value, tuple):
        for each in value:
            keep(each)


def is_kept(value: Value) -> bool:
    """Whether it is a list that a library may look into."""
    return isinstance(value, Box) and value.root().kept


def sources(value: Value) -> frozenset[Source]:
    """Out of which datasets it is made, with all that it holds."""
    return frozenset(source for leaf in leaves(value) if isinstance(leaf, Data) for source in leaf.sources)


def is_of_batch(value: Value) -> bool:
    """Whether it has rows of a batch, or is made of what has."""
    return not OF_BATCH.isdisjoint(leaf for leaf in leaves(value) if isinstance(leaf, Kind))


def frozen(value: Value, known: Numbers) -> object:
    """What a value is at this moment, to be compared; `known`: the lists and scopes come to so far, numbered."""
    if isinstance(value, tuple):
        return tuple(frozen(each, known) for each in value)
    if isinstance(value, Function):
        defaults = tuple(frozen(each, known) for each in value.defaults.values())
        return value.node, value.compiled, defaults, value.names.frozen(known)
    if not isinstance(value, Box):
        return value
    root = value.root()
    if root in known:
        return known[root]
    known[root] = len(known)
    return known[root], tuple(frozen(each, known) for each in root.contents)


def computed(kinds: Collection[Kind]) -> Kind:
    """What is computed from what is alike on all workers."""
    return Kind.COUNT if Kind.COUNT in kinds else Kind.WHOLE


def _together(kinds: Iterable[Kind]) -> Kind:
    found = set(kinds)
    if len(found) == 1:
        return found.pop()
    if found <= DATA:
        return computed(found)
    if found <= NETS:
        return Kind.LAYER
    for of in (ONE_BY_ONE, BATCHED):
        if found <= {*of}:
            return max(found, key=of.index)
    return Kind.OWN if found <= SHOWN else Kind.MIXED


def join(one: Value, other: Value) -> Value:
    """What is one of two values. Of a list or something else: neither, as it would be filled unseen."""
    if one is other or one == other:
        return one
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(join(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, Box) and isinstance(other, Box):
        return one.unite(other)
    if holds_list(one) or holds_list(other):
        return Kind.MIXED
    if isinstance(one, Data) and isinstance(other, Data):
        return Data(_together({one.of, other.of}), one.sources | other.sources)
    if isinstance(one, Box | tuple | Kind) and isinstance(other, Box | tuple | Kind):
        return _together({kind(one), kind(other)})
    return Kind.MIXED
