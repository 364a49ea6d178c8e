"""Dataset chains: from a record stream through its stages to the loop that trains on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from tfdp.migrate.catalogue import BATCHING, STAGES, Kind
from tfdp.migrate.facts.flow import reaching
from tfdp.migrate.facts.origins import Origins, argument
from tfdp.migrate.facts.problem import Problem

_PASSES = frozenset({"builtins.enumerate", "builtins.iter"})
_DEALT = "tfdp.runtime.shard"


@dataclass(frozen=True)
class Link:
    """One dataset on the way.

    The stage that made it (None for the source) and the expressions that stand for it, in order of flow.
    """

    stage: str | None
    call: cst.Call | None
    nodes: tuple[cst.BaseExpression, ...]


@dataclass(frozen=True)
class Chain:
    """A record stream and its stages.

    `dealt` is the number of links before `dp.shard(…)`, where the script has that already.
    """

    links: tuple[Link, ...]
    dealt: int | None = None
    batched_source: bool = False
    files_drawn: cst.Call | None = None  # a `list_files(…)` that shuffles
    generated: bool = False  # records come from the user's own Python code

    def named(self, node: cst.BaseExpression) -> Chain:
        last = self.links[-1]
        return replace(self, links=(*self.links[:-1], replace(last, nodes=(*last.nodes, node))))

    def staged(self, stage: str, call: cst.Call) -> Chain:
        return replace(self, links=(*self.links, Link(stage, call, (call,))))

    @property
    def batches(self) -> list[cst.Call]:
        """The calls that make batches."""
        return [link.call for link in self.links if link.stage in BATCHING and link.call is not None]


@dataclass(frozen=True)
class Deal:
    """Where the records of one chain are dealt to the ranks, and the shuffles that all ranks must then draw alike."""

    node: cst.BaseExpression
    position: int
    shuffles: tuple[cst.Call, ...]
    order_check: bool


class Datasets:
    """Recognises and follows dataset expressions."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._busy: set[cst.CSTNode] = set()

    def unwrap(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """The dataset inside `enumerate(…)`, `iter(…)`, a progress bar or `.as_numpy_iterator()`."""
        if isinstance(node, cst.Call):
            wraps = self._origins.names.api(node.func) in _PASSES or self._origins.kind(node.func) is Kind.PROGRESS
            if wraps and node.args:
                return self.unwrap(node.args[0].value)
            if isinstance(node.func, cst.Attribute) and node.func.attr.value == "as_numpy_iterator":
                return self.unwrap(node.func.value)
        if isinstance(node, cst.Name):
            definitions = reaching(self._origins.index, node)
            if len(definitions) == 1 and definitions[0].kind == "assign" and not definitions[0].path:
                value = definitions[0].value
                if isinstance(value, cst.Call) and self.unwrap(value) is not value:
                    return self.unwrap(value)
        return node

    def chains(self, node: cst.CSTNode, path: tuple[int, ...] = ()) -> tuple[Chain, ...]:
        """Every chain that an expression can stand for; empty where it is no dataset or not certainly one."""
        if node in self._busy:
            return ()
        self._busy.add(node)
        try:
            return tuple(self._trace(node, path))
        finally:
            self._busy.discard(node)

    def _trace(self, node: cst.CSTNode, path: tuple[int, ...]) -> list[Chain]:
        if isinstance(node, cst.Call) and (not path or self._origins.kind(node.func) is Kind.DATASET):
            return self._call(node, path)
        if isinstance(node, cst.IfExp):
            return [*self.chains(node.body, path), *self.chains(node.orelse, path)]
        if isinstance(node, cst.Tuple | cst.List) and path and 0 <= path[0] < len(node.elements):
            return list(self.chains(node.elements[path[0]].value, path[1:]))
        if isinstance(node, cst.Call):
            return self._returned(node, path)
        if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            return []
        found: list[Chain] = []
        for value, value_path in self._values(node):
            found += [c if path else c.named(node) for c in self.chains(value, (*value_path, *path))]
        return found

    def _values(self, node: cst.Name | cst.Attribute | cst.Subscript) -> list[tuple[cst.CSTNode, tuple[int, ...]]]:
        origins = self._origins
        if isinstance(node, cst.Attribute):
            return origins.stored(node)
        if isinstance(node, cst.Subscript):
            return [(node.value, (i,))] if (i := _literal_index(node)) is not None else []
        values: list[tuple[cst.CSTNode, tuple[int, ...]]] = []
        for definition in reaching(origins.index, node):
            function = definition.scope
            if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                bound = [origins.bind(c, function).get(definition.name) for c in origins.calls_of(function)]
                values += [(b, ()) for b in bound if b is not None]
            elif definition.kind in {"assign", "with"} and definition.value is not None:
                values.append((definition.value, definition.path))
        return values

    def _call(self, node: cst.Call, path: tuple[int, ...]) -> list[Chain]:
        origins = self._origins
        kind = origins.kind(node.func)
        if kind in {Kind.DATASET, Kind.BATCHED_DATASET}:
            batched = (
                kind is Kind.BATCHED_DATASET or argument(node, "batch_size") is not None or self._batched_parts(node)
            )
            link = Link(None, node, () if path else (node,))
            files, generated = self._source(node)
            return [Chain((link,), batched_source=batched, files_drawn=files, generated=generated)]
        if origins.names.api(node.func) == _DEALT and node.args:
            return [replace(c.named(node), dealt=len(c.links)) for c in self.chains(node.args[0].value)]
        if isinstance(node.func, cst.Attribute) and origins.function(node.func) is None:
            name = node.func.attr.value
            return [c.staged(name, node) for c in self.chains(node.func.value)]
        return self._returned(node, path)

    def _returned(self, node: cst.Call, path: tuple[int, ...]) -> list[Chain]:
        function = self._origins.function(node.func)
        if function is None:
            return []
        values = [r.value for r in self._origins.index.returns[function] if r.value is not None]
        return [c if path else c.named(node) for v in values for c in self.chains(v, path)]

    def _source(self, node: cst.Call) -> tuple[cst.Call | None, bool]:
        api = self._origins.names.api(node.func)
        if api == "tensorflow.data.Dataset.list_files":
            given = argument(node, "shuffle", 1)
            ordered = given is not None and self._origins.names.api(given.value) == "builtins.False"
            return None if ordered else node, False
        return None, api == "tensorflow.data.Dataset.from_generator"

    def _batched_parts(self, node: cst.Call) -> bool:
        """Whether a `zip` of datasets zips batches."""
        if self._origins.names.api(node.func) != "tensorflow.data.Dataset.zip":
            return False
        parts = [e.value for a in node.args for e in (a.value.elements if isinstance(a.value, cst.Tuple) else ())]
        parts += [a.value for a in node.args if not isinstance(a.value, cst.Tuple)]
        return any(c.batches or c.batched_source for part in parts for c in self.chains(part))


def find_deal(chain: Chain, shared: frozenset[cst.BaseExpression]) -> Deal | Problem:
    """Where the records are dealt: as early as possible, but after a leading repeat and after every stage whose output
    count depends on content (shared semantics, rule 2).

    `shared` holds the expressions of the chain that other code reads too: the deal must not change what that code sees.
    """
    source = chain.links[0].call
    assert source is not None
    if chain.batched_source:
        return Problem(
            "TFDP010",
            source,
            "the records reach this point in batches, and records, not batches, are dealt to the workers",
            "build the dataset from single records and batch it afterwards",
        )
    position, batched = 0, False
    while position + 1 < len(chain.links) and chain.links[position + 1].stage == "repeat":
        position += 1
    for i, link in enumerate(chain.links[1:], 1):
        assert link.call is not None
        facts = STAGES.get(link.stage or "")
        if facts is None or link.stage == "shard" or (link.stage == "cache" and link.call.args):
            return Problem(
                "TFDP010",
                link.call,
                f".{link.stage}() is not understood in a training dataset, so the records cannot be dealt safely",
                "deal the records by hand with dp.shard(…), or write the stage with map, shuffle, batch and the like",
            )
        if link.stage in BATCHING:
            if batched:
                return Problem("TFDP010", link.call, "the dataset is batched twice", "batch the training dataset once")
            batched = True
        elif link.stage == "take" and batched:
            continue  # counts steps: TFDP011
        elif facts.counts:
            if batched and link.stage != "unbatch":
                return Problem(
                    "TFDP010",
                    link.call,
                    f".{link.stage}() counts batches, which hold other examples on each worker",
                    f"put .{link.stage}() before .batch()",
                )
            batched, position = False, i
    if not batched:
        return Problem("TFDP010", source, "the training dataset is never batched", "add .batch(…) to the dataset")
    dealt_after = chain.links[: position + 1]
    shuffles = tuple(
        link.call
        for link in dealt_after
        if link.call is not None and (link.stage == "shuffle" or chain.files_drawn is link.call)
    )
    return _place(chain, position, shuffles, shared)


def _place(
    chain: Chain, position: int, shuffles: tuple[cst.Call, ...], shared: frozenset[cst.BaseExpression]
) -> Deal | Problem:
    source = chain.links[0].call
    assert source is not None
    for link in chain.links[position + 1 :]:
        if (read := next((n for n in link.nodes if n in shared), None)) is not None:
            return Problem(
                "TFDP010",
                read,
                "this dataset is used outside the training loop too, where it would hold only one worker's share",
                "make a second dataset for the other use, from the records before the batch",
            )
    nodes = [n for n in chain.links[position].nodes if n not in shared]
    if not nodes and chain.links[position].nodes:
        return Problem(
            "TFDP010",
            chain.links[position].nodes[-1],
            "the training dataset is made together with others, which have to stay whole",
            "make the training dataset, or at least its .batch(…), outside the function that makes the others",
        )
    if not nodes:
        return Problem(
            "TFDP010",
            source,
            "the dataset comes out of a structure in one piece with others",
            "give the training dataset a name of its own",
        )
    return Deal(nodes[0], position, shuffles, bool(shuffles) or chain.generated)


def _literal_index(node: cst.Subscript) -> int | None:
    element = node.slice[0].slice if len(node.slice) == 1 else None
    if isinstance(element, cst.Index) and isinstance(element.value, cst.Integer):
        return int(element.value.value)
    return None
