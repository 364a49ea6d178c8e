"""Values and places that are certainly the same on all ranks: made of numbers, counters, arguments and rates alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from ...catalogue import Kind
from .asking import within_itself
from .conditions import exits_before, parses_arguments
from .flow import reaching
from .grown import Addition, additions, attribute_additions
from .index import ITER
from .lengths import Lengths
from .origins import Origin, Origins

_PURE = (
    "builtins.",
    "math.",
    "numpy.",
    "tensorflow.math.",
    "os.",
    "argparse.",
    "json.",
    "absl.flags.",
    "sys.",
    "yaml.",
)
_IMPURE = ("numpy.random", "builtins.input", "builtins.next", "builtins.iter", "os.times", "os.urandom", "os.getpid")
_TENSORS = "constant cast convert_to_tensor identity pow exp cos sqrt"
_OF_TENSORS = frozenset(f"tensorflow.{name}" for name in _TENSORS.split())
_CHOOSES = frozenset({"tensorflow.maximum", "tensorflow.minimum", "tensorflow.where", "keras.backend.get_value"})
_LOOKS_UP = frozenset({"numpy", "read_value", "item", "get", "index"})
_COUNTS = frozenset({"builtins.len", "numpy.shape", "numpy.size"})
_CHANGED_LATER = ("builtins.", "collections.", "weakref.", "queue.")  # what they make may be put into out of sight
_CONTROLS = (cst.If, cst.IfExp, cst.While)
_LIMIT = 500  # nodes of one value; real ones stay below a hundred


class Alike:
    """Follows a value, and the conditions under which it is made, to everything it comes from."""

    def __init__(self, origins: Origins, shared: Collection[cst.Param] = frozenset()) -> None:
        """shared: parameters that Keras gives the same value on all ranks."""
        self._origins, self._shared = origins, shared
        self._controls: dict[cst.CSTNode, list[cst.CSTNode]] = {}

    def differing(self, *values: cst.CSTNode) -> cst.CSTNode | None:
        """The first part of the values that is not certainly the same on all ranks."""
        seen: set[cst.CSTNode] = set()
        todo = list(values)
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            more = self._next(node)
            if more is None or len(seen) > _LIMIT:
                return node
            todo += more
        return None

    def reached(self, node: cst.CSTNode) -> cst.CSTNode | None:
        """The first condition that decides whether a place is reached and may differ."""
        return self.differing(*self.controls(node))

    def controls(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The conditions that decide whether a place is reached, also where its function is called."""
        statement = self._origins.index.statement_of(node)
        if statement not in self._controls:
            self._controls[statement] = []  # conditions that depend on themselves add none
            self._controls[statement] = self._find_controls(statement)
        inside = [p.test for p in self._origins.index.ancestors(node) if isinstance(p, cst.IfExp)]
        return [*inside, *self._controls[statement]]

    def _find_controls(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        found: list[cst.CSTNode] = []
        seen: set[cst.CSTNode] = set()
        todo = [node, *exits_before(node, self._origins)]
        while todo:
            child = todo.pop()
            for parent in self._origins.index.ancestors(child):
                if isinstance(parent, cst.FunctionDef):
                    if parent not in seen:
                        seen.add(parent)
                        todo += self._origins.calls_of(parent)
                    break
                if isinstance(parent, _CONTROLS) and child is not parent.test:
                    found.append(parent.test)
                child = parent
        return found

    # --- one node -----------------------------------------------------------------------------------------------------

    def _next(self, node: cst.CSTNode) -> list[cst.CSTNode] | None:
        """What the node is alike by, if that is; None where it is not certainly."""
        if node in self._origins.settled:
            return []
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.BaseExpression) and self._origins.names.api(node) is not None:
            return []
        if isinstance(node, cst.Name):
            return self._origin_nodes(node)
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.AugAssign):
            return [node.value, *self.controls(node)]
        if isinstance(node, cst.Lambda | cst.Await | cst.Yield | cst.NamedExpr | cst.GeneratorExp):
            return None
        return list(node.children)

    def _call(self, node: cst.Call) -> list[cst.CSTNode] | None:
        args: list[cst.CSTNode] = [a.value for a in node.args]
        api = self._origins.names.api(node.func)
        if api in _COUNTS and len(args) == 1 and (decides := self._count(args[0])) is not None:
            return decides
        if api is not None:
            pure = (api.startswith(_PURE) and not api.startswith(_IMPURE)) or api in _OF_TENSORS | _CHOOSES
            return args if pure else None
        if parses_arguments(node, self._origins):
            return []
        function = self._origins.function(node.func)
        if function is not None and function not in self._origins.index.generators:
            returns = [r for r in self._origins.index.returns[function] if r.value is not None]
            inside = [c for r in returns for c in self.controls(r)]
            return [*args, *inside, *(r.value for r in returns if r.value is not None)]
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in _LOOKS_UP:
            return [node.func.value, *args]
        schedule = self._origins.kinds(node.func) == {Kind.SCHEDULE}
        return args if schedule else None

    def _attribute(self, node: cst.Attribute) -> list[cst.CSTNode] | None:
        if self._origins.kinds(node.value) == {Kind.OPTIMIZER}:
            return []  # its rate, its counter
        if node.attr.value in {"shape", "size"} and (decides := self._count(node.value)) is not None:
            return decides
        found = self._origins.of(node)
        if any(o.node is not node for o in found):
            return self._origin_nodes(node)
        owner = self._origins.class_of(node.value)
        held = self._origins.one(node.value)
        owner = owner or (held.node if held is not None and isinstance(held.node, cst.ClassDef) else None)
        if owner is not None:
            values = [d.value for d in self._origins.index.definitions[owner].get(node.attr.value, ())]
            made = [a.value for c in self._origins.index.calls for a in c.args if self._origins.constructed(c) is owner]
            stores = [v for _, v, _ in self._origins.index.attribute_stores.get(node.attr.value, ())]
            return [v for v in (*values, *made, *stores) if v is not None] if values else None
        return [node.value]

    # --- how many -----------------------------------------------------------------------------------------------------

    def _count(self, data: cst.CSTNode) -> list[cst.CSTNode] | None:
        """What decides how many elements there are in data that are made once; None where they are not certainly."""
        found = self._origins.of(data)
        if not found or not all(ITER not in o.path and self._is_data(o.node) and self._once(o.node) for o in found):
            return None
        decides = Lengths(self._origins, lambda _: False).of(data)
        return [n for each in decides for n in (self.controls(each.node) if each.reached else [each.node])]

    @within_itself(False)
    def _is_data(self, node: cst.CSTNode) -> bool:
        """An array, a dataset, a part of one: no container that is filled while the model trains."""
        if isinstance(node, cst.Subscript):
            origins = self._origins.of(node.value)
            return bool(origins) and all(self._is_data(o.node) for o in origins)
        if not isinstance(node, cst.Call):
            return False
        if (api := self._origins.names.api(node.func)) is not None:
            return not api.startswith(_CHANGED_LATER)
        origins = self._origins.of(node.func.value) if isinstance(node.func, cst.Attribute) else ()
        return bool(origins) and all(self._is_data(o.node) for o in origins)

    def _once(self, node: cst.CSTNode) -> bool:
        """Whether a place is reached once: at module level, or in functions that are called once, in no loop."""
        index, seen = self._origins.index, set[cst.CSTNode]()
        while node not in seen:
            seen.add(node)
            function = index.enclosing_function(node)
            inside = (cst.Lambda, cst.BaseComp, cst.For, cst.While)
            if any(isinstance(above, inside) for above in index.ancestors(node)):
                return False
            calls = self._origins.calls_of(function) if function is not None else []
            if function is None or len(calls) != 1:
                return function is None
            node = calls[0]
        return False

    def _origin_nodes(self, node: cst.Name | cst.Attribute) -> list[cst.CSTNode] | None:
        found: list[cst.CSTNode] = []
        for origin in self._origins.of(node):
            if (made := self._origin(origin)) is None:
                return None
            found += [m for m in made if m is not node]
            if not isinstance(origin.node, cst.FunctionDef | cst.ClassDef):
                found += self.controls(origin.node)
        for added in self._additions(node):
            if added.values is None:
                return None
            found += [*added.values, *self.controls(added.place)]
        return found if self._origins.of(node) else None

    def _additions(self, node: cst.Name | cst.Attribute) -> Iterator[Addition]:
        if isinstance(node, cst.Attribute):
            return attribute_additions(self._origins, node.attr.value)
        return additions(self._origins, node, reaching(self._origins.index, node))

    def _origin(self, origin: Origin) -> list[cst.CSTNode] | None:
        node = origin.node
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            return []
        if isinstance(node, cst.Param):
            return [] if node in self._shared else None
        if ITER not in origin.path:
            return [node]
        if isinstance(node, cst.List | cst.Tuple):
            return [node]
        api = self._origins.names.api(node.func) if isinstance(node, cst.Call) else None
        if isinstance(node, cst.Call) and api in {"builtins.range", "tensorflow.range", "numpy.arange"}:
            return [a.value for a in node.args]
        counted = api == "builtins.enumerate" and origin.path[-2:] == (ITER, 0)
        return [] if counted else None
