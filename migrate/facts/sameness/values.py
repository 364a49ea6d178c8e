"""Whether a value is the same on all workers, which run one script on the same data, and if not, why."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable

import libcst as cst

from ...catalogue import SAVES, Kind
from ..apis import (
    ASSIGNS,
    CHANCE,
    COUNTS,
    HASHES,
    LEAVES_OBJECT,
    MODEL_ONLY_READS,
    OF_KIND,
    PROCESS,
    TAKES_FUNCTION,
)
from ..data import Datasets
from ..program import (
    Addition,
    Evaluator,
    Frames,
    Origins,
    literal_key,
    method,
    parses_arguments,
    receiver,
)
from .lengths import Lengths
from .lookups import of_classes, runs
from .marks import BY_CHANCE, BY_PROCESS, SAME, Mark, Marks

_FILES = re.compile(r"glob\.|pathlib(?!\.PurePath)|tensorflow\.(train|io)\.|tempfile\.|os\.|builtins\.open$")
_SEEDED = re.compile(r"(tensorflow|keras|numpy)\.random\.|random\.(?!SystemRandom)")
"""Made of the job's one seed, also where the script gives none."""

_LEAVE_IT = LEAVES_OBJECT.union(MODEL_ONLY_READS, *SAVES.values())
_DESCRIBES = frozenset({"ndim", "dtype", "name"})
_KEPT = {Kind.MODEL, Kind.CHECKPOINT, Kind.OPTIMIZER}


class Sameness(Evaluator[Marks]):
    """Follows values to what each process makes for itself. All else is the same: data, draws, the order of sets, and
    what is not understood."""

    nothing = SAME
    unknown = SAME

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        super().__init__(origins)
        self._datasets = datasets
        self._lengths = Lengths(origins, self._is_data, self.of, self.reached)
        self.equal: set[cst.CSTNode] = set()  # expressions that the migration makes equal

    def join(self, values: Iterable[Marks]) -> Marks:
        """Every reason that one of them has."""
        return SAME.union(*values)

    def after(self, made_equal: Collection[cst.CSTNode]) -> Sameness:
        """The same questions once more has been made equal."""
        later = copy.copy(self)
        later.equal = self.equal.union(made_equal)
        later.fresh()
        later._lengths = Lengths(self._origins, self._is_data, later.of, later.reached)
        return later

    def length(self, node: cst.CSTNode, frames: Frames = ()) -> Marks:
        """Why the number of elements may differ; batches have as many rows on each worker."""
        return self._lengths.of(node, frames)

    def _is_data(self, node: cst.CSTNode) -> bool:
        return bool(self._datasets.chains(node))

    # --- what is known ------------------------------------------------------------------------------------------------

    def exempt(self, value: cst.CSTNode) -> bool:
        """What the migration makes equal is equal wherever it is bound."""
        return value in self.equal

    def known(self, node: cst.CSTNode, frames: Frames) -> Marks | None:
        """What is made equal, and what describes a tensor or array."""
        if node in self.equal or (isinstance(node, cst.Attribute) and node.attr.value in _DESCRIBES):
            return SAME
        if isinstance(node, cst.Attribute) and node.attr.value in {"shape", "size"}:
            return SAME if self._origins.names.api(node) is not None else self.length(node.value, frames)
        return None

    # --- what operations do -------------------------------------------------------------------------------------------

    def compound(self, node: cst.CSTNode, frames: Frames) -> Marks:
        """What is made of values differs as they do; whether one is None, or has a key, as what decides that it is.

        Of a dictionary that is written out, an entry is asked by itself: a run's name beside its learning rate."""
        if isinstance(node, cst.Comparison) and _asks_what_there_is(node):
            sides = (node.left, *(c.comparator for c in node.comparisons))
            return SAME.union(*(self.length(side, frames) for side in sides))
        entries = self._entries(node) if isinstance(node, cst.Subscript) else None
        return self.all(node.children if entries is None else entries, frames)

    def _entries(self, node: cst.Subscript) -> list[cst.BaseExpression] | None:
        """All that may stand under the key of a subscript; None where that is not known."""
        key, made = literal_key(node), [o.node for o in self._origins.of(node.value) if not o.path]
        dicts = [m for m in made if isinstance(m, cst.Dict)]
        if key is None or not dicts or len(dicts) < len(self._origins.of(node.value)):
            return None
        parts = [e for d in dicts for e in d.elements]
        stores = [(t, v) for t, v in self._index.subscript_stores.items() if self._is_one_of(t.value, dicts)]
        keys = [_text(e.key) if isinstance(e, cst.DictElement) else None for e in parts]
        changed = any(self._is_one_of(receiver(c), dicts) for c in self._index.methods("update", "setdefault"))
        if changed or None in keys or any(literal_key(t) is None for t, _ in stores):
            return None
        found = [e.value for e, named in zip(parts, keys, strict=True) if named == key]
        return found + [v for t, v in stores if literal_key(t) == key and isinstance(v, cst.BaseExpression)]

    def _is_one_of(self, node: cst.BaseExpression, dicts: list[cst.Dict]) -> bool:
        return any(o.node in dicts for o in self._origins.of(node))

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> Marks:  # noqa: ARG002
        """What iterating gives: of a dataset the same batches."""
        chains = self._datasets.chains(self._datasets.unwrap(iterable))
        return SAME if chains else self.of(iterable, frames)

    def reached(self, place: cst.CSTNode, frames: Frames) -> Marks:
        """What decides whether a statement runs, but for what is settled by asking rank 0 there: how often a loop
        turns."""
        child, found = place, SAME
        for parent in self._index.ancestors(place):
            if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                break
            if isinstance(parent, cst.For) and child is parent.body:
                found |= self.length(parent.iter, frames)
            child = parent
        return found

    def added(self, addition: Addition, frames: Frames) -> Marks:
        """What is put into a container, or the order that `values.sort(key=…)` gives it; what is given to a method that
        saves or reads an object is not put into it: the path of a model's file."""
        place = addition.place
        if isinstance(place, cst.Call) and method(place) in _LEAVE_IT:
            return SAME
        by = self._by_functions(place, frames) if isinstance(place, cst.Call) else SAME
        return super().added(addition, frames) | by

    # --- attributes and calls -----------------------------------------------------------------------------------------

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Marks:
        """Of a model or optimizer the same; else as its object, and all that is stored."""
        if self._origins.kinds(node.value) & _KEPT:
            return SAME
        others = self._index.attribute_stores.get(node.attr.value, ())
        found = self.of(node.value, frames) | self.stores(node, [(v, p) for _, v, p in others], frames)
        in_class = self.join(map(self.definition, of_classes(self._origins, node)))
        return found | (in_class & BY_PROCESS)

    def object_call(self, call: cst.Call, frames: Frames) -> Marks:
        """A method as its object and its arguments, an object that is called as its arguments."""
        if parses_arguments(call, self._origins):
            return SAME
        arguments = [a.value for a in call.args]
        made_of = self._origins.constructed(call)
        if made_of is not None:  # what `__init__` keeps is asked attribute by attribute
            kept = self._origins.method(made_of, "__init__") is not None
            return self.state(made_of) if kept else self.state(made_of) | self.all(arguments, frames)
        found = self._callee(call.func, frames) | self.all(arguments, frames)
        return found | (self._run(call.func, frames) & BY_PROCESS)

    def _run(self, func: cst.BaseExpression, frames: Frames) -> Marks:
        """What is given by functions of the file that a call names in another way than by their names."""
        return self.join(self.all(self._index.given_back(f), frames) for f in runs(self._origins, func))

    def _callee(self, func: cst.BaseExpression, frames: Frames) -> Marks:
        """What an object adds whose method is called, or that is called itself: a model, a loss."""
        made = self._origins.of(func)
        if isinstance(func, cst.Attribute) and all(o.node is func for o in made):
            return SAME if self._origins.kinds(func.value) & _KEPT else self.of(func.value, frames)
        opaque = not made or any(not isinstance(o.node, cst.Call) for o in made)
        return SAME if opaque else self.of(func, frames)

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Marks:
        """What a function of a library gives, by the tables above."""
        arguments = [a.value for a in call.args]
        if api.startswith("tfdp.runtime.") or api in OF_KIND:
            return SAME
        if api in COUNTS and arguments:
            return self.length(arguments[0], frames)
        if api == "tensorflow.Variable":
            return self._variable(call, arguments, frames)
        found = self.all(arguments, frames)
        if api == HASHES or _SEEDED.match(api):
            return found
        found |= self._by_functions(call, frames) if TAKES_FUNCTION.match(api) else SAME
        if PROCESS.match(api):
            return found | {Mark.PROCESS}
        return found | {Mark.CHANCE} if CHANCE.match(api) and _FILES.match(api) else found

    def _by_functions(self, call: cst.Call, frames: Frames) -> Marks:
        """What the functions that a call is given make for each process: `sorted(x, key=lambda each: uuid4().int)`."""
        found = SAME
        for value in (a.value for a in call.args):
            named = self._origins.names.api(value) or ""
            if named == HASHES or PROCESS.match(named):
                return frozenset({Mark.PROCESS})
            function = value if isinstance(value, cst.Lambda) else self._origins.function(value)
            found |= self.all(self._index.given_back(function), frames) if function is not None else SAME
        return found & BY_PROCESS

    def _variable(self, made: cst.Call, arguments: list[cst.BaseExpression], frames: Frames) -> Marks:
        """A variable of integers is trained by nothing, and is what is assigned to it; else what changes it may be out
        of sight, but it starts as rank 0's."""
        if not arguments or not isinstance(arguments[0], cst.Integer):
            return self.all(arguments, frames) - BY_CHANCE
        changes = self._index.methods(*ASSIGNS)
        own = [c for c in changes if any(o.node is made for o in self._origins.of(receiver(c)))]
        return self.join(self.all((a.value for a in c.args), frames) | self.reached(c, frames) for c in own)


def _asks_what_there_is(test: cst.Comparison) -> bool:
    """`mask is not None`, `"labels" in batch`."""
    kinds = {type(c.operator) for c in test.comparisons}
    named = kinds <= {cst.In, cst.NotIn} and isinstance(test.left, cst.SimpleString)
    return named or kinds <= {cst.Is, cst.IsNot}


def _text(key: cst.BaseExpression) -> str | None:
    said = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return said if isinstance(said, str) else None
