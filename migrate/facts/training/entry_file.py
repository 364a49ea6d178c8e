"""Where a script starts: the place before its first TensorFlow operation."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from ..program import Origins, nodes
from .at_import import AtImport, Body, spawning


@dataclass(frozen=True)
class Place:
    """The statement to insert at: after it (the last leading import) or, with `first`, before it."""

    anchor: cst.CSTNode
    first: bool


@dataclass(frozen=True)
class Entry:
    """Where the runtime is imported, and where it is initialised.

    needing: what a module's own code runs and must come after the start.
    at_import: the functions that it runs, and the first statement that does.
    spawning: the calls by which processes are started that import the module again.
    """

    imports: Place
    start: Place
    needing: tuple[cst.CSTNode, ...]
    at_import: Mapping[Body, cst.CSTNode]
    spawning: tuple[cst.Call, ...]


def entry(
    module: cst.Module,
    origins: Origins,
    joint: Iterable[cst.CSTNode] = (),
    writes: Callable[[cst.Call], bool] = lambda _: False,
) -> Entry:
    """After the leading imports, and before what the workers do together, or rank 0 does for all: what `writes`.

    Initialised inside the `if __name__ == "__main__":` block where nothing runs before that: processes that
    multiprocessing spawns import the module again.
    """
    guard, run = main_guard(module), AtImport(origins, writes)
    needing = [node for s in _beside(module, guard) for node in run.needing(s)]
    runs = {parent for node in (*needing, *joint) for parent in origins.index.ancestors(node)}
    imports = _imports_end(module, runs)
    under = guard is not None and not needing
    start = Place(guard.body.body[0], True) if guard is not None and under else imports
    return Entry(imports, start, tuple(needing), run.first, spawning(origins))


def main_guard(module: cst.Module) -> cst.If | None:
    """The `if __name__ == "__main__":` statement of the module."""
    tried = [s for t in module.body if isinstance(t, cst.Try) for s in t.body.body]
    guards = [s for s in (*module.body, *tried) if isinstance(s, cst.If) and isinstance(s.body, cst.IndentedBlock)]
    return next((guard for guard in guards if _asks_main(guard.test)), None)


def _beside(module: cst.Module, guard: cst.If | None) -> Iterator[cst.CSTNode]:
    """What the module runs beside that statement, which may stand in a `try`."""
    for statement in module.body:
        if isinstance(statement, cst.Try) and guard in statement.body.body:
            parts = (*statement.body.body, *statement.handlers, statement.orelse, statement.finalbody)
            yield from (part for part in parts if part is not None and part is not guard)
        elif statement is not guard:
            yield statement


def _asks_main(test: cst.BaseExpression) -> bool:
    sides = [test.left, *(c.comparator for c in test.comparisons)] if isinstance(test, cst.Comparison) else []
    names = [s.value for s in sides if isinstance(s, cst.Name)]
    texts = [s.evaluated_value for s in sides if isinstance(s, cst.SimpleString)]
    return names == ["__name__"] and texts == ["__main__"]


def _imports_end(module: cst.Module, runs: Container[cst.CSTNode]) -> Place:
    """After the last of the leading imports.

    Calls such as `matplotlib.use("Agg")` may stand between them. Without any: the top.
    """
    last: cst.CSTNode | None = None
    for statement in module.body:
        if statement in runs:
            break
        if isinstance(statement, cst.SimpleStatementLine):
            if all(isinstance(s, cst.Import | cst.ImportFrom) for s in statement.body):
                last = statement
            elif not all(isinstance(s, cst.Expr | cst.Assign) for s in statement.body):
                break
        elif isinstance(statement, cst.Try | cst.If) and _imports(statement):
            last = statement
        else:
            break
    if last is not None:
        return Place(last, False)
    documented = module.get_docstring() is not None and len(module.body) > 1
    return Place(module.body[1 if documented else 0], True)


def _imports(statement: cst.CSTNode) -> bool:
    return any(isinstance(n, cst.Import | cst.ImportFrom) for n in nodes(statement))
