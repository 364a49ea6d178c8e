"""Dataset chains: from a record stream through its stages to the loop that trains on it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..apis import MIXES_DATASETS, NO_DATASETS, SAME_BATCHES, SHARDS_DATASET
from ..program import (
    Definition,
    Frames,
    Origins,
    Unknown,
    argument,
    assigned,
    closure,
    frame_of,
    is_none,
    last_name,
    meant,
    method,
    reaching,
    receiver,
)
from .chains import Chain, Link, draws, never_ends
from .shuffles import shuffles_itself

_Path = tuple[int | str, ...]
_Found = list[Chain] | Unknown
_NO_DATASET = "is not known to be a tf.data dataset"
_BOUND = {  # why the value of a name is not followed, by how it gets that
    "for": "is one element of what a loop goes over",
    "comp": "is one element of what a comprehension goes over",
    "import": "is imported from another file",
}
_DEPTH = 12  # calls of own functions inside one another; real scripts stay below five


class Datasets:
    """Recognises and follows dataset expressions."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._busy: set[tuple[cst.CSTNode, _Path, Frames]] = set()

    def unwrap(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The dataset inside `enumerate(…)`, `iter(…)`, a progress bar or `.as_numpy_iterator()`."""
        return list(closure([node], self._wrapped))[-1]

    def _wrapped(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        inside = self.iterated(assigned(self._origins.index, node) or node)
        return [inside] if inside is not None else []

    def iterated(self, node: cst.CSTNode) -> cst.BaseExpression | None:
        """What a call iterates over without changing anything in it."""
        if not isinstance(node, cst.Call):
            return None
        if method(node) in {"as_numpy_iterator", "make_one_shot_iterator", "__iter__"} and not node.args:
            return receiver(node)
        wraps = self._origins.called(node) in SAME_BATCHES or self._origins.kind(node.func) is Kind.PROGRESS
        return node.args[0].value if wraps and node.args else None

    def chains(self, node: cst.CSTNode) -> tuple[Chain, ...]:
        """Every chain that an expression can stand for; empty where it is no dataset or not certainly one."""
        found = self.ask(node)
        return () if isinstance(found, Unknown) else found

    def ask(self, node: cst.CSTNode) -> tuple[Chain, ...] | Unknown:
        """Every chain that an expression can stand for, or why it is not known to be a dataset."""
        found = self._chains(node)
        if isinstance(found, Unknown):
            return found
        known = tuple(c for c in found if c.batches or not c.foreign)
        return known or _elsewhere(found[0])

    def read(self, node: cst.CSTNode) -> tuple[Chain, ...]:
        """The chains of an expression that is iterated over: of a dataset, or of what another file makes."""
        return self.chains(node) or self.foreign(node)

    def foreign(self, node: cst.CSTNode) -> tuple[Chain, ...]:
        """The chains of an expression that stands for what another file makes, should that give batches."""
        found = self._chains(self.unwrap(node) if isinstance(node, cst.BaseExpression) else node)
        if isinstance(found, Unknown) or not all(c.foreign for c in found):
            return ()
        return tuple(replace(c, batched_source=True) for c in found)

    def _chains(self, node: cst.CSTNode, path: _Path = (), calls: Frames = ()) -> _Found:
        key = (node, path, calls)
        if key in self._busy:
            return Unknown(node, "is made from itself")
        if max(len(calls), len(path)) > _DEPTH:
            return Unknown(node, "is made by too many functions inside one another")
        self._busy.add(key)
        try:
            return self._trace(node, path, calls)
        finally:
            self._busy.discard(key)

    def _trace(self, node: cst.CSTNode, path: _Path, calls: Frames) -> _Found:
        if isinstance(node, cst.Call) and (not path or self._kind(node) is Kind.DATASET):
            return self._call(node, path, calls)
        if isinstance(node, cst.IfExp):
            return _all([self._chains(each, path, calls) for each in (node.body, node.orelse)], node)
        if path and (part := _part(node, path[0])) is not None:
            return self._chains(part, path[1:], calls)
        match node:
            case cst.Call():
                return self._returned(node, path, calls)
            case cst.Attribute():
                found = self._stored(node, path, calls)
            case cst.Subscript():
                key = self._key(node)
                found = key if isinstance(key, Unknown) else self._chains(node.value, (key, *path), calls)
            case cst.Name():
                found = self._named(node, path, calls)
            case _:
                return Unknown(node, _NO_DATASET)
        assert isinstance(node, cst.BaseExpression)
        return found if path or isinstance(found, Unknown) else [c.named(node) for c in found]

    def _named(self, node: cst.Name, path: _Path, calls: Frames) -> _Found:
        """The chains of all that a name can mean inside the calls."""
        found: list[_Found] = []
        nothing = "is not defined in this file"
        for definition in meant(self._origins, reaching(self._origins.index, node), calls):
            if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
                found += self._passed(definition, definition.scope, path, calls)
                nothing = "is a parameter, and no call that gives it a value is followed"
            elif definition.kind in {"assign", "with"} and definition.value is not None:
                found.append(self._chains(definition.value, (*definition.path, *path), calls))
            else:
                nothing = _BOUND.get(definition.kind, "gets its value in a way that is not followed")
        return _all(found, node, nothing)

    def _passed(self, param: Definition, function: cst.FunctionDef, path: _Path, calls: Frames) -> list[_Found]:
        """What the calls give to a parameter: that by which its function was entered, or else all."""
        at = frame_of(calls, function)
        callers = self._origins.callers(function) if at is None else [calls[at][1]]
        bound = [self._origins.bind(c, function).get(param.name) for c in callers]
        return [self._chains(b, path, calls[: at or 0]) for b in bound if b is not None]

    def _key(self, node: cst.Subscript) -> int | str | Unknown:
        """The number or the text that says which part of a structure is meant."""
        element = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(element, cst.Index):
            return Unknown(node, "takes more than one part of a value")
        if last_name(node.value) in self._filled:
            return Unknown(node, "is a part of what is filled, or has parts replaced, elsewhere")
        origin = self._origins.one(element.value)
        if origin is not None and not origin.path and isinstance(origin.node, cst.SimpleString):
            return str(origin.node.evaluated_value)
        if isinstance(element.value, cst.Integer):
            return int(element.value.value)
        api = self._origins.names.api(element.value)  # tfds.Split.TRAIN
        return api if api is not None else Unknown(node, "is a part of a value, chosen by what is not followed")

    @cached_property
    def _filled(self) -> frozenset[str | None]:
        """Names of structures of which parts are set somewhere: `parts["train"] = parts["train"].repeat()`."""
        index = self._origins.index
        sets = index.methods("update", "setdefault", "pop", "insert", "append")
        holders = (*(s.value for s in index.subscript_stores), *map(receiver, sets))
        return frozenset(map(last_name, holders)) - {None}

    def _stored(self, node: cst.Attribute, path: _Path, calls: Frames) -> _Found:
        """Chains kept in an attribute of the file's own class."""
        found: list[_Found] = []
        for value, value_path in self._origins.stored(node):
            made_by, certain = self._makers(node, value, calls)
            chains = self._chains(value, (*value_path, *path))
            if not isinstance(chains, Unknown):
                chains = [c.made_by(made_by) for c in chains]
                chains = chains if certain else [replace(c, one_of_several=node) for c in chains]
            found.append(chains)
        imported = self._origins.names.api(node) is not None
        return _all(
            found, node, "is made by another file" if imported else "is an attribute that this file does not set"
        )

    def _makers(self, node: cst.Attribute, value: cst.CSTNode, calls: Frames) -> tuple[list[cst.Call], bool]:
        """The calls of the method that stores what the attribute holds; whether they are all and only its object's."""
        storing = self._origins.index.enclosing_function(value)
        made = self._origins.calls_of(storing) if storing is not None else []
        if storing is None or len(made) < 2:
            return made, True
        own = [c for c in made if c in self._objects(node.value, calls)] if storing.name.value == "__init__" else []
        return own, bool(own)

    def _objects(self, node: cst.BaseExpression, calls: Frames) -> set[cst.CSTNode]:
        """What constructs the object that an expression means; of `self`, the object whose method was called."""
        found = {o.node for o in self._origins.of(node)}
        if not any(isinstance(o, cst.ClassDef) for o in found):
            return found
        at = frame_of(calls, self._origins.index.enclosing_function(node))
        return self._objects(receiver(calls[at][1]), calls[:at]) if at is not None and method(calls[at][1]) else set()

    def _call(self, node: cst.Call, path: _Path, calls: Frames) -> _Found:
        origins = self._origins
        if self._kind(node) in {Kind.DATASET, Kind.BATCHED_DATASET}:
            return self._made(node, path)
        if (inside := self.iterated(node)) is not None:
            return self._chains(inside, path, calls)
        if origins.called(node) in SHARDS_DATASET and node.args:
            if argument(node, "read") is not None:  # by="file": what is given are paths, what comes out are records
                return [Chain((_source(node, path),), sharded=1)]
            given = self._chains(node.args[0].value, (), calls)
            if isinstance(given, Unknown):
                return given
            return [replace(c.named(node), sharded=len(c.links)) for c in given]
        if method(node) and origins.function(node.func) is None:
            before = self._chains(receiver(node), (), calls)
            if isinstance(before, Unknown):
                return self._foreign(node, path, before)
            return [c.staged(method(node), node) for c in before]
        return self._returned(node, path, calls)

    def _kind(self, node: cst.Call) -> Kind | None:
        """What a call makes: also `tfds.builder(…).as_dataset()`, and `dp.root_first(tfds.load, …)`."""
        if method(node) == "as_dataset":
            made = self._origins.one(receiver(node))
            known = made is not None and self._origins.called(made.node).startswith("tensorflow_datasets.")
            return Kind.DATASET if known else None
        first = self._origins.called(node) == "tfdp.runtime.root_first" and node.args
        return self._origins.kind(node.args[0].value if first else node.func)

    def _returned(self, node: cst.Call, path: _Path, calls: Frames) -> _Found:
        function = self._origins.function(node.func)
        if function is None:
            return self._foreign(node, path)
        if function in self._origins.index.generators:
            return Unknown(node, "is a generator of this file, and no tf.data dataset")
        inside = (*calls, (function, node))
        values = self._origins.index.given_back(function)
        found = _all([self._chains(v, path, inside) for v in values], node, "returns no value")
        if isinstance(found, Unknown):
            return found.after([node])
        found = [c.made_by([node]) for c in found]
        return [c if path else c.named(node) for c in found]

    def _foreign(self, node: cst.Call, path: _Path, before: Unknown | None = None) -> _Found:
        """What a function of another file returns: a dataset, should it be batched here. Its order is not known."""
        api = self._origins.names.api(node.func)
        if self._origins.constructed(node) is not None:
            return Unknown(node, "makes an object of a class of this file, which is not followed when it is iterated")
        if api is None:
            return before or Unknown(node, _NO_DATASET)
        if NO_DATASETS.match(api):
            return Unknown(node, "does not make a tf.data dataset")
        return [Chain((_source(node, path),), generated=True, foreign=True)]

    # --- what makes datasets ------------------------------------------------------------------------------------------

    def _made(self, node: cst.Call, path: _Path) -> list[Chain]:
        """The record stream that a call of TensorFlow makes, of files, arrays or other datasets."""
        api = self._origins.called(node)
        zips, mixes = api.endswith(".zip"), MIXES_DATASETS.match(api) is not None
        parts = self._parts(node) if mixes else []
        if zips and parts and all(c.batches for c in parts):
            return parts  # each is sharded by itself, and batch goes with batch
        size, batched = argument(node, "batch_size"), self._kind(node) is Kind.BATCHED_DATASET
        if size is not None:
            batched = not is_none(self._origins, size.value)
        shuffled = shuffles_itself(self._origins, node)
        own = [node] if shuffled or (mixes and not zips) else []
        from_files = shuffled and self._origins.kind(node.func) is Kind.BATCHED_DATASET
        made = Chain(
            (_source(node, path),),
            batched_source=batched or any(c.batches or c.batched_source for c in parts),
            drawn=tuple(dict.fromkeys([*own, *(d for c in parts for d in draws(c))])),
            endless=bool(parts) and all(map(never_ends, parts)),
            generated=from_files or api.endswith(".from_generator") or any(c.generated for c in parts),
        )
        return [made]

    def _parts(self, node: cst.Call) -> list[Chain]:
        """The datasets that a call puts together."""
        given = [a.value for a in node.args]
        several = [[e.value for e in g.elements] if isinstance(g, cst.Tuple | cst.List) else [g] for g in given]
        found = [self._chains(part) for parts in several for part in parts]
        return [c for each in found if not isinstance(each, Unknown) for c in each]


def _source(node: cst.Call, path: _Path) -> Link:
    """The first link of a chain; a part of what the call gives has no expression of its own here."""
    return Link(None, node, () if path else (node,))


def _part(node: cst.CSTNode, key: int | str) -> cst.BaseExpression | None:
    """An element of a tuple, list or dictionary that is written out."""
    if isinstance(node, cst.Tuple | cst.List) and isinstance(key, int) and 0 <= key < len(node.elements):
        return node.elements[key].value
    entries = [e for e in node.elements if isinstance(e, cst.DictElement)] if isinstance(node, cst.Dict) else []
    if not isinstance(node, cst.Dict) or len(entries) < len(node.elements):
        return None
    named = [e for e in entries if isinstance(e.key, cst.SimpleString) and e.key.evaluated_value == key]
    return named[0].value if named else None


def _all(found: list[_Found], node: cst.CSTNode, nothing: str = _NO_DATASET) -> _Found:
    """The chains of every value that an expression can have, of which those that are no datasets are left out."""
    chains = [c for each in found if not isinstance(each, Unknown) for c in each]
    return chains or next((each for each in found if isinstance(each, Unknown)), Unknown(node, nothing))


def _elsewhere(chain: Chain) -> Unknown:
    """Why what another file makes is not known to be a dataset."""
    return Unknown(chain.source, "is not known to make a dataset, and nothing here makes batches of it")
