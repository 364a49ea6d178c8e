"""Where a value comes from: through assignments, parameters, returns, attributes of the file's own classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import libcst as cst

from ...catalogue import KINDS, SCALED_OPTIMIZER, Kind
from ..apis import CALLED
from .asking import within_itself
from .flow import reaching
from .index import Definition, Index, Origin
from .names import Names
from .spelling import argument, body_functions, is_abstract, last_name, mentions, params_of, receiver

_COMPILED = {"optimizer": 0, "loss": 1}  # arguments of Keras' compile, and their positions
_AVERAGED = "tfdp.runtime.DistributedOptimizer"
_DEPTH = 40  # definitions followed one after another; real scripts stay below ten
_STEPS = 1000  # definitions followed for one question; real scripts stay below a hundred


class Origins:
    """Follows values backwards. Every answer is a tuple: more than one element means that several are possible."""

    def __init__(self, index: Index, names: Names, only: frozenset[cst.Call] = frozenset()) -> None:
        """only: calls of the file's functions that are asked about; parameters take their values from no others, where
        one of these passes any."""
        self.index, self.names, self._only = index, names, only
        self.called_by_others: frozenset[cst.FunctionDef] = frozenset()  # what calls them is not in the file
        self.changes: object = None  # those of objects, where they were asked for
        self._busy: set[tuple[cst.CSTNode, tuple[int, ...]]] = set()
        self._known: dict[tuple[cst.CSTNode, tuple[int, ...]], tuple[Origin, ...]] = {}
        self._callers: dict[cst.FunctionDef, list[cst.Call]] = {}
        self._cuts = self._steps = 0
        self._methods = {c: {f.name.value: f for f in body_functions(c)} for c in index.classes}

    def narrow(self, only: frozenset[cst.Call], called_by_others: frozenset[cst.FunctionDef]) -> None:
        """From now on `only` these calls are asked about, and the parameters of some functions stay unknown."""
        self._only, self.called_by_others = only, called_by_others
        self._known.clear()
        self.changes = None

    # --- following ----------------------------------------------------------------------------------------------------

    def of(self, node: cst.CSTNode, path: tuple[int, ...] = ()) -> tuple[Origin, ...]:
        """All expressions that can give the value of `node` followed by `path`."""
        key = (node, path)
        if key in self._known:
            return self._known[key]
        if not self._busy:
            self._steps = 0
        self._steps += 1
        if key in self._busy:
            self._cuts += 1
            return ()  # a name defined by itself adds no value of its own
        if len(self._busy) > _DEPTH or self._steps > _STEPS:
            self._cuts += 1
            return (Origin(node, path),)  # given up: not understood, never "the other values only"
        cuts = self._cuts
        self._busy.add(key)
        try:
            found = tuple(dict.fromkeys(self._step(node, path)))
        finally:
            self._busy.discard(key)
        if not self._busy or cuts == self._cuts:  # an answer that a cycle cut short holds only inside that cycle
            self._known[key] = found
        return found

    def bound(self, definition: Definition) -> tuple[Origin, ...]:
        """All expressions that can give a name the value of one binding."""
        return tuple(dict.fromkeys(self._definition(definition, ())))

    def one(self, node: cst.CSTNode, path: tuple[int, ...] = ()) -> Origin | None:
        """The origin, where there is exactly one."""
        found = self.of(node, path)
        return found[0] if len(found) == 1 else None

    def made(self, node: cst.CSTNode) -> cst.CSTNode:
        """The one expression that gives the value, as a whole; the node itself where that is not known."""
        found = self.one(node)
        return found.node if found is not None and not found.path else node

    def _step(self, node: cst.CSTNode, path: tuple[int, ...]) -> Iterable[Origin]:
        if isinstance(node, cst.Name):
            definitions = reaching(self.index, node)
            return [o for d in definitions for o in self._definition(d, path)] if definitions else [Origin(node, path)]
        if isinstance(node, cst.Tuple | cst.List) and path and path[0] >= 0 and path[0] < len(node.elements):
            element = node.elements[path[0]]
            return [] if isinstance(element, cst.StarredElement) else self.of(element.value, path[1:])
        if isinstance(node, cst.IfExp):
            return [*self.of(node.body, path), *self.of(node.orelse, path)]
        if isinstance(node, cst.NamedExpr):
            return self.of(node.value, path)
        if isinstance(node, cst.Attribute) and (stored := self.stored(node)):
            return [o for value, stored_path in stored for o in self.of(value, (*stored_path, *path))]
        if isinstance(node, cst.Attribute) and (methods := self._named_methods(node)):
            return [Origin(method, path) for method in methods]
        if isinstance(node, cst.Attribute) and (compiled := self._compiled(node)):
            return [o for value in compiled for o in self.of(value, path)]
        if isinstance(node, cst.Call):
            return self._call(node, path)
        return [Origin(node, path)]

    def _definition(self, definition: Definition, path: tuple[int, ...]) -> Iterable[Origin]:
        if definition.kind == "param":
            return self._parameter(definition, path)
        if definition.value is None or definition.kind in {"other", "import", "def", "class"}:
            return [Origin(definition.value or definition.statement, path)]
        return self.of(definition.value, (*definition.path, *path))

    def _parameter(self, definition: Definition, path: tuple[int, ...]) -> Iterable[Origin]:
        """A parameter takes its values from the calls of its function in this file; without any it stays unknown."""
        function = definition.scope
        unknown = [Origin(definition.value or definition.statement, path)]
        if not isinstance(function, cst.FunctionDef) or function in self.called_by_others:
            return unknown
        if self.is_self(definition):
            owner = self.index.enclosing_class(function)
            return [Origin(owner, path)] if owner is not None else unknown
        if function.name.value in CALLED:
            return unknown  # which objects a call may mean is itself a question of origins: it would not end
        found: list[Origin] = []
        for call in self.callers(function):
            bound = self.bind(call, function).get(definition.name)
            if bound is None:
                return unknown
            found += self.of(bound, path)
        return found or unknown

    def is_self(self, definition: Definition) -> bool:
        """Whether it is the parameter that stands for the object, or its class, of which its function is a method."""
        function = definition.scope if isinstance(definition.scope, cst.FunctionDef) else None
        return function is not None and self.takes_self(function) and params_of(function)[:1] == [definition.value]

    def _decorators(self, function: cst.FunctionDef | cst.Lambda) -> set[str | None]:
        return {self.names.api(d.decorator) for d in getattr(function, "decorators", ())}

    def takes_self(self, function: cst.FunctionDef | cst.Lambda) -> bool:
        """Whether the first parameter is given by no argument."""
        inside = self.index.enclosing_class(function) is not None
        return inside and "builtins.staticmethod" not in self._decorators(function)

    def _call(self, node: cst.Call, path: tuple[int, ...]) -> Iterable[Origin]:
        """A call of the file's own function is what that returns; of tf.function(f), f; anything else is itself."""
        kind = self.kind(node.func)
        if kind is Kind.COMPILER and node.args:
            return self.of(node.args[0].value, path)
        if kind is Kind.LOSS_SCALE and (inner := argument(node, "inner_optimizer", 0) or argument(node, "optimizer")):
            return self.of(inner.value, path)  # its rate, its updates
        if node.args and self.names.api(node.func) == _AVERAGED:
            return self.of(node.args[0].value, path)  # it is put on that very optimizer
        function = self.function(node.func)
        if function is None or function in self.index.generators:
            return [Origin(node, path)]
        return [o for value in self.index.returned(function) for o in self.of(value, path)] or [Origin(node, path)]

    # --- classes ------------------------------------------------------------------------------------------------------

    def class_of(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The file's own class of which the expression is an instance."""
        return None if self._names_class(node) else self._holder(node)

    def _holder(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The class of which the expression is an instance, or which it names: both have the class' attributes."""
        origin = self.one(node)
        if origin is None or origin.path:
            return None
        return origin.node if isinstance(origin.node, cst.ClassDef) else self.constructed(origin.node)

    def constructed(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The file's own class that a call constructs."""
        func: cst.CSTNode | None = node.func if isinstance(node, cst.Call) else None
        for _ in range(_DEPTH):
            found = reaching(self.index, func) if isinstance(func, cst.Name) else []
            if len(found) != 1 or found[0].path:
                return None
            if isinstance(found[0].value, cst.ClassDef):
                return found[0].value
            func = found[0].value if found[0].kind == "assign" else None
        return None

    def _names_class(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name) and any(d.kind == "class" for d in reaching(self.index, node))

    def _compiled(self, node: cst.Attribute) -> list[cst.CSTNode]:
        """What `model.compile(optimizer=…, loss=…)` gave to the model whose attribute this is."""
        name = node.attr.value
        calls = self._compiles(node.value) if name in _COMPILED else []
        return [given.value for c in calls if (given := argument(c, name, _COMPILED[name])) is not None]

    def _compiles(self, model: cst.CSTNode) -> list[cst.Call]:
        """The calls that compile a model."""
        owners = self.makers(model)
        return [c for c in self.index.methods("compile") if owners and owners == self.makers(receiver(c))]

    def makers(self, node: cst.CSTNode) -> set[cst.CSTNode]:
        """The calls that made a value; for an instance of a class of the file, the class."""
        return {self.constructed(o.node) or o.node for o in self.of(node) if not o.path}

    def stored(self, node: cst.Attribute) -> list[tuple[cst.CSTNode, tuple[int, ...]]]:
        """What the file's own class stores in the attribute: (value, path) of each `self.name = value`."""
        stores = [*self.index.attribute_stores.get(node.attr.value, ()), *self.index.loose_stores]
        owner = self._holder(node.value) if stores else None
        if not stores or owner is None:
            return []
        by = [(self._holder(target.value), value, path) for target, value, path in stores]
        found = [(value, path) for setter, value, path in by if setter is not None and self._share(setter, owner)]
        of_class = self.index.definitions[owner].get(node.attr.value, ()) if self._names_class(node.value) else ()
        return [*found, *((d.value, d.path) for d in of_class if found and d.value is not None)]

    def _share(self, one: cst.ClassDef, other: cst.ClassDef) -> bool:
        """Whether an object may be of both classes."""
        return self.descends(one, other) or self.descends(other, one)

    def _named_methods(self, node: cst.Attribute) -> list[cst.FunctionDef]:
        """The methods that `object.name` may be: of `self` also those by which classes of this file replace it."""
        if self.is_super(node.value):
            return self._methods_above(node)
        instance, made, name = self.class_of(node.value), self.made(node.value), node.attr.value
        if not isinstance(owner := instance or made, cst.ClassDef):
            return []
        found = [self.method(owner, name)]
        if instance is made:
            found += [
                self._methods[c].get(name) for c in self.index.classes if c is not owner and self.descends(c, owner)
            ]
        methods = [m for m in found if m is not None]
        written = [m for m in methods if not is_abstract(m)]
        return list(dict.fromkeys(written or methods))

    @within_itself(False)
    def descends(self, owner: cst.ClassDef, ancestor: cst.ClassDef) -> bool:
        """Whether a class of this file is another one, or has it among its bases."""
        if owner is ancestor:
            return True
        return any(self.descends(base, ancestor) for base in self.own_bases(owner))

    def own_bases(self, owner: cst.ClassDef) -> list[cst.ClassDef]:
        """The classes of this file that a class names as its bases."""
        found = [o.node for base in owner.bases for o in self.of(base.value)]
        return [n for n in found if isinstance(n, cst.ClassDef) and n is not owner]

    @within_itself(())
    def _other_bases(self, owner: cst.ClassDef) -> Sequence[cst.BaseExpression]:
        """The classes from elsewhere that a class, or one of this file that it descends from, names as its bases."""
        own = [b.value for b in owner.bases if not any(isinstance(o.node, cst.ClassDef) for o in self.of(b.value))]
        return [*own, *(b for above in self.own_bases(owner) for b in self._other_bases(above))]

    def base_kinds(self, owner: cst.ClassDef) -> set[Kind]:
        """What a class of this file descends from, as far as the catalogue knows it."""
        return {kind for base in self._other_bases(owner) if (kind := self.kind(base)) is not None}

    def below(self, owner: cst.ClassDef | None, starts: str | tuple[str, ...], ends: tuple[str, ...] = ("",)) -> bool:
        """Whether a class of this file descends from one of another file whose name starts, and ends, like this."""
        above = [base or "" for base in self.bases(owner)] if owner is not None else []
        return any(base.startswith(starts) and base.endswith(ends) for base in above)

    def bases(self, owner: cst.ClassDef) -> list[str | None]:
        """The canonical names of all classes from elsewhere that a class of this file descends from."""
        return [self.names.api(base) for base in self._other_bases(owner)]

    def is_super(self, node: cst.CSTNode) -> bool:
        """Whether a node is `super()`."""
        return isinstance(node, cst.Call) and self.names.api(node.func) == "builtins.super"

    def method(self, owner: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method of a class of this file, or of its bases in this file, in Python's order of them."""
        return next((self._methods[c][name] for c in self._order_of(owner) if name in self._methods[c]), None)

    @within_itself(())
    def _order_of(self, owner: cst.ClassDef) -> Sequence[cst.ClassDef]:
        """The classes of this file in the order in which Python looks for a method: a class before its bases, and
        these in the order written (C3)."""
        bases = self.own_bases(owner)
        rest = [list(order) for order in (*(self._order_of(b) for b in bases), bases)]
        found = [owner]
        while rest := [order for order in rest if order]:
            first = next((o[0] for o in rest if not any(o[0] in other[1:] for other in rest)), rest[0][0])
            found.append(first)
            rest = [[c for c in order if c is not first] for order in rest]
        return found

    def _methods_above(self, node: cst.Attribute) -> list[cst.FunctionDef]:
        """What `super().name` may be: of each class that descends from the one around, the next in its order."""
        around = self.index.class_around(node)
        orders = [self._order_of(c) for c in self.index.classes if around is not None and self.descends(c, around)]
        above = [o[o.index(around) + 1 :] for o in orders if around in o]
        name = node.attr.value
        found = (next((self._methods[c][name] for c in order if name in self._methods[c]), None) for order in above)
        return list(dict.fromkeys(m for m in found if m is not None))

    # --- calls --------------------------------------------------------------------------------------------------------

    def called(self, node: cst.CSTNode) -> str:
        """The canonical name of the function that a node calls; nothing where it calls none that is imported."""
        return (self.names.api(node.func) or "") if isinstance(node, cst.Call) else ""

    def calls_to(self, *apis: str) -> list[cst.Call]:
        """The calls of these functions."""
        return [c for c in self.index.calls if self.names.api(c.func) in apis]

    def kind(self, func: cst.CSTNode) -> Kind | None:
        """What the catalogue says of a called expression, also of one that is looked up in a table of such."""
        api = self.names.api(func)
        if api is not None:
            return Kind.OPTIMIZER if api == SCALED_OPTIMIZER else KINDS.get(api)
        kept = isinstance(func, cst.Attribute) and func.attr.value in self.index.attribute_stores
        if not kept and not isinstance(func, cst.Name | cst.Subscript | cst.Call):
            return None
        found = {self._chosen(o.node) if not o.path else None for o in self.of(func)}
        return found.pop() if len(found) == 1 else None

    def _chosen(self, node: cst.CSTNode) -> Kind | None:
        """What an expression may be called as: a name of the catalogue, or any entry of a table of names of one
        kind."""
        if isinstance(node, cst.Name | cst.Attribute):
            api = self.names.api(node)
            return KINDS.get(api) if api is not None else None
        if isinstance(node, cst.Call) and self.names.api(node.func) == "builtins.getattr" and node.args:
            module = self.names.api(node.args[0].value)
            return Kind.OPTIMIZER if module == "keras.optimizers" else None
        lookup = node.func if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else None
        if isinstance(node, cst.Subscript):
            held = self.one(node.value)
        else:
            held = self.one(lookup.value) if lookup is not None and lookup.attr.value == "get" else None
        if held is None or held.path or not isinstance(held.node, cst.Dict):
            return None
        kinds = {self.kind(e.value) for e in held.node.elements}
        return kinds.pop() if len(kinds) == 1 else None

    def kinds(self, node: cst.CSTNode) -> set[Kind | None]:
        """What the calls are that can have made a value, where it is not None.

        None stands for anything unknown, an empty set for nothing found.
        """
        found: set[Kind | None] = set()
        if isinstance(node, cst.Attribute) and (set_by_keras := self._set_by_keras(node)) is not None:
            return {set_by_keras}
        for origin in self.of(node):
            made = origin.node
            owner = made if isinstance(made, cst.ClassDef) else self.constructed(made)
            if owner is not None:
                found |= self.base_kinds(owner) or {None}
            elif self.names.api(made) != "builtins.None":
                found.add(self.kind(made.func) if isinstance(made, cst.Call) and not origin.path else None)
        return found

    def _set_by_keras(self, node: cst.Attribute) -> Kind | None:
        """`self.model` in a callback, and the optimizer of a model that was compiled by a name."""
        name = node.attr.value
        if name not in {"model", "optimizer"} or self.stored(node):
            return None
        if name == "model":
            return Kind.MODEL if self.below(self.class_of(node.value), "keras.callbacks.") else None
        made = [o for o in self.of(node) if isinstance(o.node, cst.Call)]
        if made or self.kinds(node.value) != {Kind.MODEL}:
            return None
        known = self._compiles(node.value) or (isinstance(node.value, cst.Attribute) and self._set_by_keras(node.value))
        return Kind.OPTIMIZER if known else None

    def function(self, func: cst.CSTNode) -> cst.FunctionDef | None:
        """The file's own function that a called expression names."""
        if not isinstance(func, cst.Name | cst.Attribute):
            return None
        origin = self.one(func)
        return origin.node if origin is not None and isinstance(origin.node, cst.FunctionDef) else None

    def calls_of(self, function: cst.FunctionDef) -> list[cst.Call]:
        """Calls of the function in this file, under its own name or a name that `tf.function(f)` or `g = f` gave it."""
        if function in self._callers:
            return self._callers[function]
        cuts = self._cuts
        found = self._find_calls(function)
        if not self._busy or cuts == self._cuts:
            self._callers[function] = found
        return found

    def lambda_of(self, func: cst.CSTNode) -> cst.Lambda | None:
        """The `lambda` that a called name certainly holds."""
        origin = self.one(func) if isinstance(func, cst.Name | cst.Attribute) else None
        return origin.node if origin is not None and isinstance(origin.node, cst.Lambda) and not origin.path else None

    def calls_of_lambda(self, function: cst.Lambda) -> list[cst.Call]:
        """The calls of a `lambda` by a name that it has in this file."""
        return [c for c in self.index.calls if self._is_held(c.func) and self.lambda_of(c.func) is function]

    def calls_into(self, node: cst.CSTNode) -> list[cst.Call]:
        """The calls of the function that holds a node; none where that is in no function."""
        function = self.index.enclosing_function(node)
        return self.calls_of(function) if function is not None else []

    def callers(self, function: cst.FunctionDef) -> list[cst.Call]:
        """The calls from which the function's parameters take their values."""
        calls = self.calls_of(function)
        return [c for c in calls if c in self._only] or calls

    def _find_calls(self, function: cst.FunctionDef) -> list[cst.Call]:
        names = {function.name.value}
        owner = self.index.enclosing_class(function)
        if function.name.value == "__init__" and owner is not None:
            made = ((c, self.constructed(c)) for c in self.index.calls)
            return [c for c, made_class in made if made_class and self.method(made_class, "__init__") is function]
        if function.name.value in CALLED and owner is not None:
            return [c for c in self.index.calls if self.names.api(c.func) is None and self.class_of(c.func) is owner]
        assigned = (d for found in self.index.bound.values() for d in found if d.kind == "assign")
        names |= {d.name for d in assigned if d.value is not None and mentions(d.value, function.name.value)}
        handed = self._is_handed_on(function)
        return [
            c
            for c in self.index.calls
            if (last_name(c.func) in names or (handed and self._is_held(c.func))) and self.function(c.func) is function
        ]

    def _is_handed_on(self, function: cst.FunctionDef) -> bool:
        """Whether another function may call it by a name that it has there: it is returned, or given away."""
        uses = ((use, self.index.parents.get(use)) for use in self.index.names[function.name.value])
        return any(not (isinstance(holder, cst.Call) and holder.func is use) for use, holder in uses)

    def _is_held(self, func: cst.CSTNode) -> bool:
        """Whether what is called is a value that a name holds."""
        return isinstance(func, cst.Name) and any(d.kind == "assign" for d in reaching(self.index, func))

    def bind(self, call: cst.Call, function: cst.FunctionDef | cst.Lambda) -> dict[str, cst.BaseExpression]:
        """Parameter name -> argument expression (or the default); absent where a star makes it uncertain."""
        by_class = isinstance(call.func, cst.Attribute) and self._names_class(call.func.value)
        plain = by_class and "builtins.classmethod" not in self._decorators(function)  # `Class.method(object)`
        params = params_of(function)[self.takes_self(function) and not plain :]
        bound = {p.name.value: p.default for p in (*params, *function.params.kwonly_params) if p.default is not None}
        free = iter(params)
        for arg in call.args:
            if arg.star:
                return {}
            if arg.keyword is not None:
                bound[arg.keyword.value] = arg.value
            elif (param := next(free, None)) is not None:
                bound[param.name.value] = arg.value
        return bound
