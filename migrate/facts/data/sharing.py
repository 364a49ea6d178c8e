"""Training data that other code reads too, and functions that make other data as well."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ..apis import SHARDS_DATASET, TAKES_NO_RECORDS
from ..program import Definition, Origins, closure, reaching, uses, within_itself
from .chains import Chain


@dataclass(frozen=True)
class Switches:
    """Functions that make training data and others: a parameter of theirs says which, given by the calls.

    `calls` holds what each call that makes training data passes: True, or the parameter of the function around it.
    """

    name: str
    functions: tuple[cst.FunctionDef, ...]
    calls: dict[cst.Call, str]
    inside: frozenset[cst.CSTNode]

    def keywords(self, node: cst.CSTNode) -> dict[str, str]:
        """What a call at a changed node is told: nothing where it makes training data only."""
        return {"only_if": self.name} if node in self.inside else {}


class Sharing:
    """Asks what else uses the datasets of the training chains."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index

    # --- datasets that are read elsewhere -----------------------------------------------------------------------------

    def read_by_others(self, chains: Iterable[Chain]) -> frozenset[cst.BaseExpression]:
        """Expressions of training chains whose dataset other code reads too."""
        chains = tuple(chains)
        flow = {n for c in chains for n in c.nodes}
        shared: set[cst.BaseExpression] = set()
        for link in (link for c in chains for link in c.links):
            for i, node in enumerate(link.nodes):
                if any(use not in flow and not self._harmless(use) for use in self._uses_of(node)):
                    shared.update(link.nodes[: i + 1])
        return frozenset(shared)

    def is_number(self, node: cst.BaseExpression) -> bool:
        """Whether an expression certainly is a whole number that is written out."""
        found = self._origins.of(node)
        return bool(found) and all(isinstance(o.node, cst.Integer) and not o.path for o in found)

    def _uses_of(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """Names and attributes that read the dataset that an expression is assigned to."""
        parent, statement = self._index.parents.get(node), self._index.statement_of(node)
        if isinstance(parent, cst.Arg):
            return self._parameter_uses(parent)
        if isinstance(parent, cst.Element | cst.IfExp):
            parent = statement
        if not isinstance(parent, cst.Assign | cst.AnnAssign | cst.NamedExpr):
            return []
        bound = [d for d in self._index.bound[statement] if d.kind == "assign" and self._binds(d.value, d.path, node)]
        return [*self._reads(bound), *self._attribute_uses(node)]

    def _reads(self, definitions: Iterable[Definition]) -> list[cst.BaseExpression]:
        return [name for d in definitions for name in uses(self._index, d)]

    def _attribute_uses(self, node: cst.BaseExpression) -> list[cst.BaseExpression]:
        """Reads of the attribute in which a dataset is kept."""
        found: list[cst.BaseExpression] = []
        for name, stores in self._index.attribute_stores.items():
            owners = {self._origins.class_of(t.value) for t, value, path in stores if self._binds(value, path, node)}
            targets = {t for t, _, _ in stores}
            reads = [r for r in self._index.attributes.get(name, ()) if r not in targets] if owners else []
            found += [r for r in reads if self._origins.class_of(r.value) in {*owners, None}]
        return found

    def _parameter_uses(self, arg: cst.Arg) -> list[cst.BaseExpression]:
        """Names that read the parameter to which an argument is bound, in a function of the file."""
        call = self._index.parents[arg]
        function = self._origins.function(call.func) if isinstance(call, cst.Call) else None
        if function is None or not isinstance(call, cst.Call):
            return []
        bound = [name for name, value in self._origins.bind(call, function).items() if value is arg.value]
        own = self._index.definitions[function]
        return self._reads(d for name in bound for d in own.get(name, ()) if d.kind == "param")

    def _binds(self, value: cst.CSTNode | None, path: tuple[int, ...], node: cst.CSTNode) -> bool:
        for step in path:
            if not isinstance(value, cst.Tuple | cst.List) or not 0 <= step < len(value.elements):
                return False
            value = value.elements[step].value
        if isinstance(value, cst.IfExp):
            return any(self._binds(v, (), node) for v in (value.body, value.orelse))
        return value is node

    # --- looks that change nothing ------------------------------------------------------------------------------------

    def _harmless(self, use: cst.BaseExpression) -> bool:
        """A look at a dataset that trains nothing.

        Its spec, its length, one element, an argument of a function followed by itself.
        """
        parent = self._index.parents[use]
        if isinstance(parent, cst.Attribute) and parent.value is use and parent.attr.value == "take":
            return self._only_looked_at(self._index.parents[parent])
        if isinstance(parent, cst.Attribute):
            return parent.attr.value in {"element_spec", "cardinality", "__len__"} and parent.value is use
        if isinstance(parent, cst.Arg):
            return self._origins.called(self._index.parents[parent]) in TAKES_NO_RECORDS | SHARDS_DATASET
        return isinstance(parent, cst.Expr)

    def _only_looked_at(self, node: cst.CSTNode) -> bool:
        """`for batch in dataset.take(1):` and `next(iter(dataset.take(1)))`: they fit nothing to the data."""
        user = self._index.parents[node]
        while isinstance(user, cst.Arg):
            call = self._index.parents[user]
            api = self._origins.called(call)
            if api not in {"builtins.enumerate", "builtins.zip"}:
                return api == "builtins.iter"
            node, user = call, self._index.parents[call]
        return isinstance(user, cst.For) and node is user.iter

    # --- functions that make other data too ---------------------------------------------------------------------------

    def switches(self, chains: Iterable[Chain], changed: Iterable[cst.CSTNode], name: str) -> Switches:
        """The parameters that the functions need in which something changes for the training data alone."""
        training = frozenset(c for chain in chains for c in chain.through)

        def used(function: cst.FunctionDef) -> list[cst.Call]:
            return [c for c in self._origins.calls_of(function) if c in training]

        def around(places: Iterable[cst.CSTNode]) -> list[cst.FunctionDef]:
            holders = [self._index.enclosing_function(p) for p in places]
            return [f for f in holders if f is not None and self._makes_others(f, training)]

        changed = tuple(changed)
        functions = closure(around(changed), lambda function: around(used(function)))
        calls = [c for function in functions for c in used(function)]
        told = {c: name if self._index.enclosing_function(c) in functions else "True" for c in calls}
        inside = frozenset(node for node in changed if self._index.enclosing_function(node) in functions)
        return Switches(name, tuple(functions), told, inside)

    @within_itself(False)
    def _makes_others(self, function: cst.FunctionDef, training: frozenset[cst.Call]) -> bool:
        """Whether some of the function's calls, or of the functions around those, make no training data."""
        calls = self._origins.calls_of(function)
        used = [c for c in calls if c in training]
        if not used:
            return False
        around = [f for c in used if (f := self._index.enclosing_function(c)) is not None]
        if len(used) < len(calls) or self._passed_on(function):
            return True
        return any(self._makes_others(f, training) for f in around)

    def _passed_on(self, function: cst.FunctionDef) -> bool:
        """Whether the function is given to code that may call it for other data."""
        for name in self._index.names[function.name.value]:
            call = self._index.parents[name]
            called = isinstance(call, cst.Call) and call.func is name
            if not called and any(d.statement is function for d in reaching(self._index, name)):
                return True
        return False
