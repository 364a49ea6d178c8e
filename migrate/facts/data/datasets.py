"""Dataset chains: from a record stream through its stages to the loop that trains on it."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Definition, Frames, Origins, Unknown, argument, last_name, meant, reaching
from .chains import Chain, Link, draws, never_ends

_PASSES = frozenset({"builtins.enumerate", "builtins.iter", "tensorflow_datasets.as_numpy"})
_ITERATES = frozenset({"as_numpy_iterator", "make_one_shot_iterator", "__iter__"})
_DEALT = frozenset({"tfdp.runtime.shard", "tfdp.runtime.shard_batches"})
_ZIPS = frozenset({"tensorflow.data.Dataset.zip"})
_MIXES = _ZIPS | {
    f"tensorflow.data.{place}.{name}_from_datasets"
    for place in ("Dataset", "experimental")
    for name in ("sample", "choose")
}
_KNOWN = (
    "builtins.",
    "tensorflow.",
    "keras.",
    "numpy.",
    "tfdp.",
    "tqdm.",
    "os.",
    "pathlib.",
    "glob.",
    "json.",
    "pickle.",
)
_Path = tuple[int | str, ...]
_Found = list[Chain] | Unknown
_NOTHING = "returns no value"
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
        seen: set[cst.CSTNode] = set()
        while node not in seen:
            seen.add(node)
            definitions = reaching(self._origins.index, node) if isinstance(node, cst.Name) else []
            named = len(definitions) == 1 and definitions[0].kind == "assign" and not definitions[0].path
            value = definitions[0].value if named else node
            inside = self.iterated(value) if isinstance(value, cst.BaseExpression) else None
            node = inside if inside is not None else node
        return node

    def iterated(self, node: cst.BaseExpression) -> cst.BaseExpression | None:
        """What a call iterates over without changing anything in it."""
        if not isinstance(node, cst.Call):
            return None
        wraps = self._origins.names.api(node.func) in _PASSES or self._origins.kind(node.func) is Kind.PROGRESS
        if wraps and node.args:
            return node.args[0].value
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _ITERATES and not node.args:
            return node.func.value
        return None

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
            return _all([self._chains(node.body, path, calls), self._chains(node.orelse, path, calls)], node)
        if path and (part := self._part(node, path[0])) is not None:
            return self._chains(part, path[1:], calls)
        if isinstance(node, cst.Call):
            return self._returned(node, path, calls)
        if isinstance(node, cst.Attribute):
            found = self._stored(node, path, calls)
        elif isinstance(node, cst.Subscript):
            key = self._key(node)
            found = key if isinstance(key, Unknown) else self._chains(node.value, (key, *path), calls)
        elif isinstance(node, cst.Name):
            found = self._named(node, path, calls)
        else:
            found = Unknown(node, "is not known to be a tf.data dataset")
        if isinstance(found, Unknown):
            return found
        return [c if path else c.named(node) for c in found if isinstance(node, cst.BaseExpression)]

    def _named(self, node: cst.Name, path: _Path, calls: Frames) -> _Found:
        found = self._values(node, calls)
        if isinstance(found, Unknown):
            return found
        return _all([self._chains(v, (*vpath, *path), within) for v, vpath, within in found], node)

    def _key(self, node: cst.Subscript) -> int | str | Unknown:
        """The number or the text that says which part of a structure is meant."""
        element = node.slice[0].slice if len(node.slice) == 1 else None
        if not isinstance(element, cst.Index):
            return Unknown(node, "takes more than one part of a value")
        if self._is_filled(node.value):
            return Unknown(node, "is a part of what is filled, or has parts replaced, elsewhere")
        if isinstance(element.value, cst.Integer):
            return int(element.value.value)
        origin = self._origins.one(element.value)
        if origin is not None and not origin.path and isinstance(origin.node, cst.SimpleString):
            return str(origin.node.evaluated_value)
        api = self._origins.names.api(element.value)  # tfds.Split.TRAIN
        return api if api is not None else Unknown(node, "is a part of a value, chosen by what is not followed")

    def _is_filled(self, structure: cst.BaseExpression) -> bool:
        """Whether parts of a structure are set after it is made: `parts["train"] = parts["train"].repeat()`."""
        name = last_name(structure)
        return name is not None and name in self._filled

    @cached_property
    def _filled(self) -> frozenset[str | None]:
        """Names of structures of which parts are set somewhere."""
        index = self._origins.index
        holders = [store.value for store in index.subscript_stores]
        holders += [c.func.value for c in index.calls if isinstance(c.func, cst.Attribute) and _fills(c.func)]
        return frozenset(map(last_name, holders))

    def _part(self, node: cst.CSTNode, key: int | str) -> cst.BaseExpression | None:
        if isinstance(node, cst.Tuple | cst.List) and isinstance(key, int) and 0 <= key < len(node.elements):
            return node.elements[key].value
        if not isinstance(node, cst.Dict) or not all(isinstance(e, cst.DictElement) for e in node.elements):
            return None
        named = [e for e in node.elements if isinstance(e, cst.DictElement) and isinstance(e.key, cst.SimpleString)]
        return next((e.value for e in named if e.key.evaluated_value == key), None)  # type: ignore[attr-defined]

    def _values(self, node: cst.Name, calls: Frames) -> list[tuple[cst.CSTNode, _Path, Frames]] | Unknown:
        """What a name stands for: value, path into it, and the calls inside which that value is."""
        values: list[tuple[cst.CSTNode, _Path, Frames]] = []
        unknown = Unknown(node, "is not defined in this file")
        for definition in meant(self._origins, reaching(self._origins.index, node), calls):
            if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
                bound = self._arguments(definition, definition.scope, calls)
                values += bound
                unknown = Unknown(node, "is a parameter that no call in this file gives a value")
            elif definition.kind in {"assign", "with"} and definition.value is not None:
                values.append((definition.value, definition.path, calls))
            else:
                unknown = Unknown(node, _BOUND.get(definition.kind, "gets its value in a way that is not followed"))
        return values or unknown

    def _arguments(
        self, parameter: Definition, function: cst.FunctionDef, calls: Frames
    ) -> list[tuple[cst.CSTNode, _Path, Frames]]:
        """What the calls give to a parameter: that by which its function was entered, or else all."""
        origins = self._origins
        entered = next((i for i in range(len(calls) - 1, -1, -1) if calls[i][0] is function), None)
        callers = origins.callers(function) if entered is None else [calls[entered][1]]
        bound = [origins.bind(c, function).get(parameter.name) for c in callers]
        return [(b, (), calls[: entered or 0]) for b in bound if b is not None]

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
        origins = self._origins
        method = origins.index.enclosing_function(value)
        if method is None:
            return [], True
        made = origins.calls_of(method)
        if len(made) < 2:
            return made, True
        own = [c for c in made if c in self._objects(node.value, calls)] if method.name.value == "__init__" else []
        return own, bool(own)

    def _objects(self, node: cst.BaseExpression, calls: Frames) -> set[cst.CSTNode]:
        """What constructs the object that an expression means; of `self`, the object whose method was called."""
        found = {o.node for o in self._origins.of(node)}
        if not any(isinstance(o, cst.ClassDef) for o in found):
            return found
        method = self._origins.index.enclosing_function(node)
        entered = next((i for i in range(len(calls) - 1, -1, -1) if calls[i][0] is method), None)
        func = calls[entered][1].func if entered is not None else None
        return self._objects(func.value, calls[:entered]) if isinstance(func, cst.Attribute) else set()

    def _call(self, node: cst.Call, path: _Path, calls: Frames) -> _Found:
        origins = self._origins
        kind = self._kind(node)
        if kind in {Kind.DATASET, Kind.BATCHED_DATASET}:
            batched = self._batches_itself(node, kind) or self._batched_parts(node)
            if (parts := self._zipped_batches(node)) is not None:
                return parts
            link = Link(None, node, () if path else (node,))
            return [self._source(Chain((link,), batched_source=batched), node)]
        if (inside := self.iterated(node)) is not None:
            return self._chains(inside, path, calls)
        if origins.names.api(node.func) in _DEALT and node.args:
            if argument(node, "read") is not None:  # by="file": what is given are paths, what comes out are records
                return [Chain((Link(None, node, () if path else (node,)),), dealt=1)]
            given = self._chains(node.args[0].value, (), calls)
            return given if isinstance(given, Unknown) else [replace(c.named(node), dealt=len(c.links)) for c in given]
        if isinstance(node.func, cst.Attribute) and origins.function(node.func) is None:
            before = self._chains(node.func.value, (), calls)
            if isinstance(before, Unknown):
                return self._foreign(node, path, before)
            return [c.staged(node.func.attr.value, node) for c in before]
        return self._returned(node, path, calls)

    def _kind(self, node: cst.Call) -> Kind | None:
        """What a call makes: also `tfds.builder(…).as_dataset()`, and `dp.root_first(tfds.load, …)`."""
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_dataset":
            made = self._origins.one(node.func.value)
            api = self._origins.names.api(made.node.func) if made and isinstance(made.node, cst.Call) else None
            return Kind.DATASET if (api or "").startswith("tensorflow_datasets.") else None
        first = self._origins.names.api(node.func) == "tfdp.runtime.root_first" and node.args
        return self._origins.kind(node.args[0].value if first else node.func)

    def _returned(self, node: cst.Call, path: _Path, calls: Frames) -> _Found:
        function = self._origins.function(node.func)
        if function is None:
            return self._foreign(node, path)
        values = [r.value for r in self._origins.index.returns[function] if r.value is not None]
        if not values and function in self._origins.index.generators:
            return Unknown(node, "is a generator of this file, and no tf.data dataset")
        found = _all([self._chains(v, path, (*calls, (function, node))) for v in values], node, _NOTHING)
        if isinstance(found, Unknown):
            return found.after([node])
        found = [c.made_by([node]) for c in found]
        return [c if path else c.named(node) for c in found]

    def _foreign(self, node: cst.Call, path: _Path, before: Unknown | None = None) -> _Found:
        """What a function of another file returns: a dataset, should it be batched here. Its order is not known."""
        api = self._origins.names.api(node.func)
        if self._origins.constructed(node) is not None:
            return Unknown(node, "is an object of a class of this file, and no tf.data dataset")
        if api is None:
            return Unknown(node, "is not known to be a tf.data dataset") if before is None else before
        if api.startswith(_KNOWN):
            return Unknown(node, "does not make a tf.data dataset")
        return [Chain((Link(None, node, () if path else (node,)),), generated=True, foreign=True)]

    def _batches_itself(self, node: cst.Call, kind: Kind | None) -> bool:
        """Whether a maker is told to make batches, or does so by itself."""
        size = argument(node, "batch_size")
        if size is not None:
            return self._origins.names.api(size.value) != "builtins.None"
        return kind is Kind.BATCHED_DATASET

    def _source(self, chain: Chain, node: cst.Call) -> Chain:
        """What is particular to the maker of a record stream."""
        api = self._origins.names.api(node.func) or ""
        if api.endswith(".list_files"):
            given = argument(node, "shuffle", 1)
            ordered = given is not None and self._origins.names.api(given.value) == "builtins.False"
            return chain if ordered else replace(chain, drawn=(node,))
        if api == "tensorflow_datasets.load" and (files := argument(node, "shuffle_files", 4)) is not None:
            ordered = self._origins.names.api(files.value) == "builtins.False"
            return chain if ordered else replace(chain, drawn=(node,))
        if self._origins.kind(node.func) is Kind.BATCHED_DATASET:  # these shuffle unless told not to
            given = argument(node, "shuffle")
            ordered = given is not None and self._origins.names.api(given.value) == "builtins.False"
            return chain if ordered else replace(chain, drawn=(node,), generated=True)
        if api in _MIXES:
            own, parts = () if api.endswith(".zip") else (node,), self._parts(node)
            drawn = tuple(dict.fromkeys([*own, *(d for c in parts for d in draws(c))]))
            endless, generated = bool(parts) and all(map(never_ends, parts)), any(c.generated for c in parts)
            return replace(chain, drawn=drawn, endless=endless, generated=generated)
        return replace(chain, generated=api.endswith(".from_generator"))

    def _parts(self, node: cst.Call) -> list[Chain]:
        """The datasets that a call puts together."""
        found: list[Chain] = []
        for arg in node.args:
            several = isinstance(arg.value, cst.Tuple | cst.List)
            for part in (e.value for e in arg.value.elements) if several else (arg.value,):  # type: ignore[attr-defined]
                chains = self._chains(part)
                found += [] if isinstance(chains, Unknown) else chains
        return found

    def _zipped_batches(self, node: cst.Call) -> list[Chain] | None:
        """The parts of a `zip` of datasets of batches: each is dealt by itself, and batch goes with batch."""
        parts = self._parts(node) if self._origins.names.api(node.func) in _ZIPS else []
        return parts if parts and all(c.batches for c in parts) else None

    def _batched_parts(self, node: cst.Call) -> bool:
        """Whether a call puts batches together."""
        mixes = self._origins.names.api(node.func) in _MIXES
        return mixes and any(c.batches or c.batched_source for c in self._parts(node))


def _all(found: list[_Found], node: cst.CSTNode, nothing: str = "is not known to be a tf.data dataset") -> _Found:
    """The chains of every value that an expression can have, of which those that are no datasets are left out."""
    chains = [c for each in found if not isinstance(each, Unknown) for c in each]
    if chains:
        return chains
    first = next((each for each in found if isinstance(each, Unknown)), None)
    return first if first is not None else Unknown(node, nothing)


def _elsewhere(chain: Chain) -> Unknown:
    """Why what another file makes is not known to be a dataset."""
    made = chain.links[0].call
    assert made is not None
    return Unknown(made, "is made outside this file, and nothing here makes batches of it")


def _fills(method: cst.Attribute) -> bool:
    return method.attr.value in {"update", "setdefault", "pop", "insert", "append"}
