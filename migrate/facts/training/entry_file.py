"""Where a script starts: the place before its first TensorFlow operation."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import RUNS_NOTHING
from ..program import Origins, method, nodes, receiver


@dataclass(frozen=True)
class Place:
    """The statement to insert at: after it (the last leading import) or, with `first`, before it."""

    anchor: cst.CSTNode
    first: bool


@dataclass(frozen=True)
class Entry:
    """Where the runtime is imported, and where it is initialised."""

    imports: Place
    start: Place


def entry(module: cst.Module, origins: Origins, joint: Container[cst.CSTNode] = ()) -> Entry:
    """After the leading imports, and before what the workers do together.

    Initialised inside the `if __name__ == "__main__":` block where nothing runs before that.
    """
    index = origins.index
    guard = main_guard(module)
    runs = {p for c in index.calls if _needs_start(origins, c, joint) for p in index.ancestors(c)}
    imports = _imports_end(module, runs)
    if guard is not None and not any(statement in runs for statement in module.body if statement is not guard):
        return Entry(imports, Place(guard.body.body[0], True))
    return Entry(imports, imports)


def main_guard(module: cst.Module) -> cst.If | None:
    """The `if __name__ == "__main__":` statement of the module."""
    guards = [s for s in module.body if isinstance(s, cst.If) and isinstance(s.body, cst.IndentedBlock)]
    return next((guard for guard in guards if _asks_main(guard.test)), None)


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


def _needs_start(origins: Origins, call: cst.Call, joint: Container[cst.CSTNode]) -> bool:
    """Whether the runtime must be initialised before a call of the module's own code: it runs TensorFlow, draws at
    random, or is not known."""
    later = any(isinstance(p, cst.Decorator | cst.Lambda) for p in origins.index.ancestors(call))
    if later or origins.index.enclosing_function(call) is not None or origins.kind(call.func) is Kind.COMPILER:
        return False
    api = origins.called(call)
    if not api and method(call):
        made = origins.one(receiver(call))
        api = origins.called(made.node) if made is not None else ""
    return call in joint or not RUNS_NOTHING.match(api)
