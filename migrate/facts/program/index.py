"""One walk over the tree: parents, scopes, definitions, calls and statement positions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from .modules import Program, SourceFile
from .spelling import dotted, last_name, literal_key, method, namespace, stored_by

Scope = cst.Module | cst.FunctionDef | cst.ClassDef | cst.Lambda
Exit = cst.Return | cst.Break | cst.Continue
ITER = -1  # a path element: "an element of iterating over"


@dataclass(frozen=True, eq=False)
class Definition:
    """One binding of a name: `value` is what it is bound to, `path` how to get from that to the name's own value."""

    name: str
    kind: str  # assign, for, comp, with, param, import, def, class, other
    value: cst.CSTNode | None
    statement: cst.CSTNode
    scope: Scope
    path: tuple[int, ...] = ()
    api: str = ""  # kind import: the dotted name


@dataclass(frozen=True)
class Origin:
    """An expression (or def, class, parameter) that gives the value, and the path from it.

    Tuple positions, ITER for "an element of".
    """

    node: cst.CSTNode
    path: tuple[int, ...] = ()


class _Nodes(cst.CSTVisitor):
    """A visitor of nodes alone: libcst's look-up of a method for each attribute of each node takes half of its time."""

    def on_visit_attribute(self, node: cst.CSTNode, attribute: str) -> None:
        """Nothing."""

    def on_leave_attribute(self, original_node: cst.CSTNode, attribute: str) -> None:
        """Nothing."""


class _Parents(_Nodes):
    def __init__(self, parents: dict[cst.CSTNode, cst.CSTNode]) -> None:
        super().__init__()
        self.parents, self.stack, self.found = parents, list[cst.CSTNode](), list[cst.CSTNode]()

    def on_visit(self, node: cst.CSTNode) -> bool:
        if self.stack:
            self.parents[node] = self.stack[-1]
            self.found.append(node)
        self.stack.append(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:  # noqa: ARG002
        self.stack.pop()


class _Found(dict[Any, Any]):
    """What the walk has filed; it gives an empty one for what it has not found, and does not grow by being asked."""

    def __init__(self, found: defaultdict[Any, Any]) -> None:
        super().__init__(found)
        self._empty = found.default_factory

    def __missing__(self, key: Any) -> Any:
        assert self._empty is not None
        return self._empty()


@dataclass
class Index(_Nodes):
    """What the walk over all modules of a program found. Built once; read-only afterwards."""

    program: Program
    parents: dict[cst.CSTNode, cst.CSTNode] = field(default_factory=dict)
    definitions: dict[Scope, dict[str, list[Definition]]] = field(default_factory=lambda: defaultdict(dict))
    globals_declared: dict[Scope, set[str]] = field(default_factory=lambda: defaultdict(set))
    nonlocals_declared: dict[Scope, set[str]] = field(default_factory=lambda: defaultdict(set))
    calls: list[cst.Call] = field(default_factory=list)
    functions: list[cst.FunctionDef] = field(default_factory=list)
    properties: dict[str, list[cst.FunctionDef]] = field(default_factory=lambda: defaultdict(list))
    classes: list[cst.ClassDef] = field(default_factory=list)
    names: dict[str, list[cst.Name]] = field(default_factory=lambda: defaultdict(list))  # reads only
    attributes: dict[str, list[cst.Attribute]] = field(default_factory=lambda: defaultdict(list))
    attribute_stores: dict[str, list[tuple[cst.Attribute, cst.CSTNode, tuple[int, ...]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    loose_stores: list[tuple[cst.Attribute, cst.CSTNode, tuple[int, ...]]] = field(default_factory=list)  # of any name
    subscript_stores: dict[cst.Subscript, cst.CSTNode] = field(default_factory=dict)
    returns: dict[Scope, list[cst.Return]] = field(default_factory=lambda: defaultdict(list))
    exits: dict[cst.FunctionDef | None, list[Exit]] = field(default_factory=lambda: defaultdict(list))
    order: dict[cst.CSTNode, int] = field(default_factory=dict)  # of the nodes in the file
    generators: dict[Scope, list[cst.Yield]] = field(default_factory=lambda: defaultdict(list))
    bound: dict[cst.CSTNode, list[Definition]] = field(default_factory=lambda: defaultdict(list))  # by statement
    reaching: dict[cst.Name, list[Definition]] = field(default_factory=dict)  # answers of `reaching`
    _stores: set[cst.Name] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()
        modules = [file.module for file in self.program.files]
        nodes: list[cst.CSTNode] = []
        for module in modules:  # first: a binding asks for the scope of its own target
            below = _Parents(self.parents)
            module.visit(below)
            nodes += [module, *below.found]
        self.order = {node: place for place, node in enumerate(nodes)}
        for module in modules:
            module.visit(self)
        for name, held in vars(self).items():
            if isinstance(held, defaultdict):
                setattr(self, name, _Found(held))

    # --- the walk -----------------------------------------------------------------------------------------------------

    def _define(  # noqa: PLR0917
        self,
        name: str,
        kind: str,
        value: cst.CSTNode | None,
        at: cst.CSTNode,
        path: tuple[int, ...] = (),
        api: str = "",
    ) -> None:
        scope = self.scope_of(at)
        if name in self.globals_declared[scope]:
            scope = self.root(at)
        elif name in self.nonlocals_declared[scope]:
            scope = self.lookup(name, self.scope_of(scope))[0]
        statement = self.statement_of(at)
        definition = Definition(name, kind, value, statement, scope, path, api)
        self.definitions[scope].setdefault(name, []).append(definition)
        self.bound[statement].append(definition)

    def _bind(self, target: cst.CSTNode, kind: str, value: cst.CSTNode, path: tuple[int, ...] = ()) -> None:
        if isinstance(target, cst.Name):
            self._stores.add(target)
            self._define(target.value, kind, value, target, path)
        elif isinstance(target, cst.Tuple | cst.List):
            starred = False
            for i, element in enumerate(target.elements):
                starred = starred or isinstance(element, cst.StarredElement)
                self._bind(element.value, "other" if starred else kind, value, (*path, i))
        elif isinstance(target, cst.Attribute):
            self.attribute_stores[target.attr.value].append((target, value, path))
        elif isinstance(target, cst.Subscript):
            held, key = namespace(target.value), literal_key(target)
            if held is not None and key:  # `vars(x)["rate"] = 1`
                self._store(held, key, value)
                return
            self.subscript_stores[target] = value
            if held is not None:
                self._store(held, "", value)

    def visit_Assign(self, node: cst.Assign) -> None:
        for target in node.targets:
            self._bind(target.target, "assign", node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None:
            self._bind(node.target, "assign", node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target, "other", node)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self._bind(node.target, "assign", node.value)

    def visit_For(self, node: cst.For) -> None:
        self._bind(node.target, "for", node.iter, (ITER,))

    def visit_CompFor(self, node: cst.CompFor) -> None:
        self._bind(node.target, "comp", node.iter, (ITER,))

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if node.asname is not None:
            self._bind(node.asname.name, "with", node.item)

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> None:
        if node.name is not None:
            self._bind(node.name.name, "other", node)

    def visit_Global(self, node: cst.Global) -> None:
        self.globals_declared[self.scope_of(node)].update(item.name.value for item in node.names)

    def visit_Nonlocal(self, node: cst.Nonlocal) -> None:
        self.nonlocals_declared[self.scope_of(node)].update(item.name.value for item in node.names)

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            full = dotted(alias.name)
            if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                self._define(alias.asname.name.value, "import", node, node, api=full)
            else:
                first = full.partition(".")[0]
                self._define(first, "import", node, node, api=first)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        module = "." * len(node.relative) + (dotted(node.module) if node.module is not None else "")
        if isinstance(node.names, cst.ImportStar):
            return
        for alias in node.names:
            name = dotted(alias.name)
            bound = alias.asname.name.value if alias.asname and isinstance(alias.asname.name, cst.Name) else name
            self._define(bound, "import", node, node, api=f"{module}.{name}")

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self.functions.append(node)
        if any((last_name(d.decorator) or "") in {"property", "cached_property"} for d in node.decorators):
            self.properties[node.name.value].append(node)
        self._define(node.name.value, "def", node, node.name)

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.classes.append(node)
        self._define(node.name.value, "class", node, node.name)

    def visit_Param(self, node: cst.Param) -> None:
        self._define(node.name.value, "param", node, node)

    def visit_Call(self, node: cst.Call) -> None:
        self.calls.append(node)
        if (stored := stored_by(node)) is not None:
            self._store(*stored)

    def _store(self, of: cst.BaseExpression, name: str, value: cst.CSTNode) -> None:
        """A store that is not written as `x.name = value`; of any name where there is none."""
        target = cst.Attribute(of, cst.Name(name or "_"))
        self.parents[target], self.order[target] = self.parents[of], self.order[of]
        (self.attribute_stores[name] if name else self.loose_stores).append((target, value, ()))

    def visit_Name(self, node: cst.Name) -> None:
        parent = self.parents.get(node)
        is_binding = isinstance(parent, cst.Param | cst.FunctionDef | cst.ClassDef) and node is parent.name
        is_binding = is_binding or isinstance(self.statement_of(node), cst.Import | cst.ImportFrom)
        if node not in self._stores and not self.is_label(node) and not is_binding:
            self.names[node.value].append(node)

    def visit_Attribute(self, node: cst.Attribute) -> None:
        self.attributes[node.attr.value].append(node)

    def visit_Return(self, node: cst.Return) -> None:
        self.returns[self.scope_of(node)].append(node)
        self.exits[self.enclosing_function(node)].append(node)

    def visit_Break(self, node: cst.Break) -> None:
        self.exits[self.enclosing_function(node)].append(node)

    def visit_Continue(self, node: cst.Continue) -> None:
        self.exits[self.enclosing_function(node)].append(node)

    def visit_Yield(self, node: cst.Yield) -> None:
        self.generators[self.scope_of(node)].append(node)

    @property
    def taken(self) -> set[str]:
        """Every name that the file reads or binds anywhere."""
        return set(self.names).union(*self.definitions.values())

    # --- questions ----------------------------------------------------------------------------------------------------

    def given_back(self, function: Scope) -> list[cst.BaseExpression]:
        """What a function returns, or yields."""
        values = [each.value for each in self.generators.get(function, ())]
        yields = [v.item if isinstance(v, cst.From) else v for v in values if v is not None]
        return [*self.returned(function), *yields]

    def root(self, node: cst.CSTNode) -> cst.Module:
        """The module that holds a node; of a node that is in no module, the one that is run."""
        while (parent := self.parents.get(node)) is not None:
            node = parent
        return node if isinstance(node, cst.Module) else self.program.entry.module

    def file(self, node: cst.CSTNode) -> SourceFile:
        """The file that holds a node."""
        return self.program.file(self.root(node))

    def line(self, node: cst.CSTNode) -> int:
        """The line of a node in its file, from 1."""
        return self.file(node).position(node)[0]

    def place(self, node: cst.CSTNode) -> str:
        """Where a node stands, for messages: `line 31`, or `data.py:31` in a file that is not the one that is run."""
        file = self.file(node)
        line = file.position(node)[0]
        return f"line {line}" if file is self.program.entry else f"{file.path}:{line}"

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.file(node).code(node)

    def is_label(self, name: cst.Name) -> bool:
        """Whether it names an attribute or an argument, and no variable."""
        parent = self.parents.get(name)
        return name is getattr(parent, "attr", None) or name is getattr(parent, "keyword", None)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """The node's parents, from the nearest outwards."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def scope_of(self, node: cst.CSTNode) -> Scope:
        """The scope in which a name at `node` is looked up first (a function's name, decorators and defaults are
        outside it)."""
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, cst.FunctionDef) and (child is parent.body or child is parent.params):
                if child is parent.params and not isinstance(node, cst.Param):
                    child = parent
                    continue
                return parent
            if isinstance(parent, cst.Lambda) and (child is parent.body or isinstance(node, cst.Param)):
                return parent
            if isinstance(parent, cst.ClassDef) and child is parent.body:
                return parent
            child = parent
        return self.root(node)

    def statement_of(self, node: cst.CSTNode) -> cst.CSTNode:
        """The innermost statement that holds the node.

        A simple statement, or the compound one whose header it is in.
        """
        chain = (node, *self.ancestors(node))
        return next((n for n in chain if isinstance(n, cst.BaseSmallStatement | cst.BaseCompoundStatement)), chain[-1])

    def enclosing_function(self, node: cst.CSTNode) -> cst.FunctionDef | None:
        """The function whose body holds the node."""
        scope: Scope = self.scope_of(node)
        while isinstance(scope, cst.Lambda):
            scope = self.scope_of(scope)
        return scope if isinstance(scope, cst.FunctionDef) else None

    def enclosing_class(self, function: cst.FunctionDef | cst.Lambda) -> cst.ClassDef | None:
        """The class of which the function is a method."""
        scope = self.scope_of(function)
        return scope if isinstance(scope, cst.ClassDef) else None

    def class_around(self, node: cst.CSTNode) -> cst.ClassDef | None:
        """The class in one of whose methods a node is."""
        function = self.enclosing_function(node)
        return self.enclosing_class(function) if function is not None else None

    def is_target(self, node: cst.CSTNode) -> bool:
        """Whether it is an attribute or an element to which something is assigned."""
        stores = self.attribute_stores.get(node.attr.value, ()) if isinstance(node, cst.Attribute) else ()
        return node in self.subscript_stores or any(target is node for target, _, _ in stores)

    def loops_around(self, node: cst.CSTNode) -> list[cst.For | cst.While]:
        """Loops of the same function that run the node repeatedly, from the innermost outwards."""
        loops: list[cst.For | cst.While] = []
        child = node
        for parent in self.ancestors(node):
            if isinstance(parent, cst.FunctionDef | cst.ClassDef | cst.Lambda):
                break
            if isinstance(parent, cst.For | cst.While) and child is parent.body:
                loops.append(parent)
            child = parent
        return loops

    def returned(self, function: Scope) -> list[cst.BaseExpression]:
        """The values that a function returns."""
        if isinstance(function, cst.Lambda):
            return [function.body]
        return [r.value for r in self.returns[function] if r.value is not None]

    def methods(self, *names: str) -> list[cst.Call]:
        """The calls of methods, or of functions of a module, by their last names, in the order of the file."""
        found = (self.parents.get(a) for name in names for a in self.attributes.get(name, ()))
        calls = [c for c in found if isinstance(c, cst.Call) and method(c) in names]
        return sorted(calls, key=lambda c: self.order.get(c, 0)) if len(names) > 1 else calls

    def probe(self, name: str, statement: cst.CSTNode) -> cst.Name:
        """A name as it would be read at the start of a statement: a question, not a part of the file."""
        read = cst.Name(name)
        self.parents[read] = statement
        return read

    def lookup(self, name: str, scope: Scope) -> tuple[Scope, list[Definition]]:
        """The scope that binds the name as seen from `scope` (Python's rules), with all its bindings there."""
        first = True
        while True:
            found = self.definitions[scope].get(name, [])
            if found and (first or not isinstance(scope, cst.ClassDef)):
                return scope, found
            if isinstance(scope, cst.Module):
                return scope, []
            first, scope = False, self.scope_of(scope)
