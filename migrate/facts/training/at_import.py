"""What runs where a module is imported, and which of it needs the workers to be started."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ...catalogue import Kind
from ..apis import CHOOSES_START, POOL_OF_PROCESSES, RUNS_NOTHING
from ..program import Origins, argument, is_none, method, receiver, text, within_itself

_LITERALS = (cst.BaseString, cst.BaseNumber, cst.BaseList, cst.BaseDict, cst.BaseSet, cst.Tuple, cst.BaseComp)
_OPERATORS = (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.UnaryOperation)
_MAKE_NO_VARIABLES = frozenset({Kind.COMPILER, Kind.LOSS_CLASS, Kind.SCHEDULE})
_RUN_BY_THEMSELVES = ("__new__", "__init__", "__post_init__", "__enter__", "__exit__", "__iter__", "__next__")
_GENERATORS = ("random", "numpy.random")
_MAKE_GENERATORS = frozenset(
    {"default_rng", "Generator", "Random", "RandomState", "SeedSequence", "SystemRandom", "seed"}
)
Body = cst.FunctionDef | cst.Lambda


class AtImport:
    """The calls that a module's own code makes, also in the functions of the file that it calls or gives to others."""

    def __init__(self, origins: Origins, writes: Callable[[cst.Call], bool]) -> None:
        """`writes`: which calls rank 0 alone is to make."""
        self._origins, self._writes = origins, writes
        self._entered: dict[Body, bool] = {}
        self._seeded: set[str] = set()
        self.first: dict[Body, cst.CSTNode] = {}
        """The functions that run in the statements asked about so far, and the first of these that runs each."""

    def needing(self, statement: cst.CSTNode) -> list[cst.CSTNode]:
        """The calls and decorators of a statement that run TensorFlow, draw at random, write, or are not known."""
        found = self._needing(statement)
        self.first.update((body, statement) for body in self._entered if body not in self.first)
        return found

    def _needing(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        return [each for each in _evaluated(node) if self._needs(each)]

    def _needs(self, node: cst.Call | cst.Decorator) -> bool:
        if isinstance(node, cst.Decorator):
            func = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
            return self._any_needs(self._run_by(func))
        if self._writes(node):
            return True
        if self._origins.kind(node.func) in _MAKE_NO_VARIABLES or self._draws_alike(node):
            return False
        called = self._run_by(node.func)
        if self._any_needs([*called, *(body for a in node.args for body in self._run_by(a.value))]):
            return True
        if (owner := self._origins.constructed(node)) is not None:
            return not all(_runs_nothing(base or "") for base in self._origins.bases(owner))
        return not (called or self._harmless(node))

    def _draws_alike(self, node: cst.Call) -> bool:
        """Whether a call seeds Python's or NumPy's generator by a number of the text, or draws by one that was seeded
        so in what was asked about before.

        All workers go on with rank 0's state, so that such calls may come before the start; and after it, what
        importing TensorFlow draws would be missing between them.
        """
        module, _, name = (self._origins.names.api(node.func) or "").rpartition(".")
        if module not in _GENERATORS:
            return False
        if name not in _MAKE_GENERATORS:
            return module in self._seeded
        given = self._origins.of(node.args[0].value) if len(node.args) == 1 else ()
        alike = bool(given) and all(isinstance(origin.node, cst.Integer) for origin in given)
        if alike and name == "seed":
            self._seeded.add(module)
        return alike

    def _run_by(self, value: cst.BaseExpression) -> list[Body]:
        """The code of the file that runs where a value is called."""
        if isinstance(value, cst.Lambda):
            return [value]
        named = self._origins.function(value) or self._origins.lambda_of(value)
        if named is not None:
            return [named]
        owner = self._origins.constructed(cst.Call(value))
        made = [self._origins.method(owner, name) for name in _RUN_BY_THEMSELVES] if owner is not None else []
        return [body for body in made if body is not None]

    def _any_needs(self, bodies: list[Body]) -> bool:
        for body in bodies:
            if body not in self._entered:
                self._entered[body] = False  # one that calls itself needs no more for that
                self._entered[body] = bool(self._needing(body.body))
        return any(self._entered[body] for body in bodies)

    @within_itself(True)
    def _harmless(self, node: cst.CSTNode) -> bool:
        """Whether a call, or what made a value, is known to run nothing of TensorFlow."""
        if api := self._origins.names.api(node.func if isinstance(node, cst.Call) else node):
            return _runs_nothing(api)
        if isinstance(node, cst.Call):
            return bool(method(node)) and self._made_harmlessly(receiver(node))
        if isinstance(node, cst.Attribute | cst.Subscript):
            return self._made_harmlessly(node.value)
        if isinstance(node, _OPERATORS):
            return all(self._made_harmlessly(c) for c in node.children if isinstance(c, cst.BaseExpression))
        return isinstance(node, _LITERALS)

    def _made_harmlessly(self, node: cst.BaseExpression) -> bool:
        found = self._origins.of(node)
        return bool(found) and all(self._harmless(origin.node) for origin in found)


def spawning(origins: Origins) -> tuple[cst.Call, ...]:
    """The calls by which processes are started that import the module again, or may be."""
    chosen = [(c, argument(c, "method", 0)) for c in origins.calls_to(*CHOOSES_START)]
    found = [c for c, how in chosen if how and not is_none(origins, how.value) and text(origins, how.value) != "fork"]
    pools = [c for c in origins.calls_to(*POOL_OF_PROCESSES) if argument(c, "max_tasks_per_child")]
    return (*found, *(c for c in pools if argument(c, "mp_context", 1) is None))


def _evaluated(node: cst.CSTNode) -> Iterator[cst.Call | cst.Decorator]:
    """The calls and decorators that run where a node does: of a function, its decorators and defaults alone."""
    if isinstance(node, cst.FunctionDef | cst.Lambda):
        yield from getattr(node, "decorators", ())
        params = (*node.params.posonly_params, *node.params.params, *node.params.kwonly_params)
        children: list[cst.CSTNode] = [p.default for p in params if p.default is not None]
    else:
        children = [] if isinstance(node, cst.Annotation) else [*node.children]
    if isinstance(node, cst.Call):
        yield node
    for child in children:
        if isinstance(child, cst.Decorator):
            yield child
        else:
            yield from _evaluated(child)


def _runs_nothing(api: str) -> bool:
    return RUNS_NOTHING.match(api) is not None
