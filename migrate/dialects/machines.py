"""Machines that a script is not run on here: a TPU that it looks for first, the hosts of a TF_CONFIG."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst
import libcst.matchers as m

from ..facts.program import Index, Origins, SourceFile, spelled
from .texts import Change, Span, Taken, lifted

CLUSTER = "TF_CONFIG"
_TPU = "tensorflow.distribute.cluster_resolver.TPUClusterResolver"
_ENVIRONMENT = "os.environ"
_REACH_TPU = (
    "builtins.print",
    "tensorflow.config.experimental_connect_to_cluster",
    "tensorflow.distribute.TPUStrategy",
    "tensorflow.distribute.experimental.TPUStrategy",
    "tensorflow.tpu.experimental.initialize_tpu_system",
    _TPU,
)
_TEXTS = frozenset({"builtins.dict", "builtins.range", "builtins.str", "json.dumps"})
_LEAVES = m.Raise() | m.Return() | m.Break() | m.Continue()
_NO_TPU = "what is tried on a TPU is left out: there is none, so that what stands under `except` is done"
_NO_CLUSTER = f"{CLUSTER} is left out: `tfdp run` starts the workers"
_ONE_WORKER = """'{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}'"""
_OF_ONE = (
    f"{CLUSTER} is that of one worker: `tfdp run` starts the workers, and what is multiplied by their number (batch, "
    "learning rate) is one worker's"
)


def left_out(file: SourceFile, index: Index, origins: Origins, *, has_strategy: bool) -> Iterator[tuple[Change, Taken]]:
    """What is left of each statement that tries to reach a TPU or, for a strategy, sets or reads TF_CONFIG."""
    yield from _tpu_left_out(file, origins)
    if has_strategy:
        yield from _cluster_left_out(file, index, origins)


def _tpu_left_out(file: SourceFile, origins: Origins) -> Iterator[tuple[Change, Taken]]:
    """What is left of each statement that tries to reach a TPU."""
    for node in m.findall(file.module, m.Try()):
        if isinstance(node, cst.Try) and _only_tries_tpu(origins, node):
            change = _except(file, node)
            if change is not None:
                yield change, Taken(*file.position(node), _NO_TPU)


def _cluster_left_out(file: SourceFile, index: Index, origins: Origins) -> Iterator[tuple[Change, Taken]]:
    """The statements that set TF_CONFIG, or take it out, and one worker's text where it is read, where nothing else has
    to do with it."""
    lines, read = list(_settings(file, index, origins)), list(_read(index, origins))
    if spelled(file.module, CLUSTER) > len(lines) + len(read):
        return
    for node, text in read:
        yield Change(span=Span(*file.span(node), text)), Taken(*file.position(node), _OF_ONE)
    for line in lines:
        first, last = file.span(line)
        yield Change(frozenset(range(first[0], last[0] + 1))), Taken(*file.position(line), _NO_CLUSTER)


def _read(index: Index, origins: Origins) -> Iterator[tuple[cst.BaseExpression, str]]:
    """`os.environ["TF_CONFIG"]`, `os.environ.get("TF_CONFIG", …)`, `"TF_CONFIG" in os.environ`: what stands there for
    one worker."""
    for node in index.order:
        if is_in_text(index, node):
            continue
        if isinstance(node, cst.Subscript) and _is_cluster(node.slice[0].slice):
            if _is_environment(origins, node.value) and not _is_changed(index, node):
                yield node, _ONE_WORKER
        elif isinstance(node, cst.Call) and node.args and _is_cluster(node.args[0].value):
            asks = isinstance(node.func, cst.Attribute) and node.func.attr.value == "get"
            asks = asks and _is_environment(origins, node.func.value)  # type: ignore[attr-defined]
            default = [c for each in node.args for c in m.findall(each, m.Call() | m.NamedExpr())]
            if (asks or origins.called(node) == "os.getenv") and all(_is_text(origins, c) for c in default):
                yield node, _ONE_WORKER
        elif isinstance(node, cst.Comparison) and _is_cluster(node.left) and len(node.comparisons) == 1:
            (one,) = node.comparisons
            if isinstance(one.operator, cst.In | cst.NotIn) and _is_environment(origins, one.comparator):
                yield node, str(isinstance(one.operator, cst.In))


def is_in_text(index: Index, node: cst.CSTNode) -> bool:
    """Whether a node stands in an f-string, where other quotation marks may not."""
    return any(isinstance(above, cst.FormattedString) for above in index.ancestors(node))


def _is_changed(index: Index, node: cst.Subscript) -> bool:
    """Whether an element is set, or deleted."""
    parent = index.parents[node]
    return isinstance(parent, cst.AssignTarget | cst.Del | cst.Element) or getattr(parent, "target", None) is node


def asks_for_cluster(file: SourceFile) -> bool:
    """Whether the text of the variable stands anywhere, as a value."""
    return spelled(file.module, CLUSTER) > 0


def _only_tries_tpu(origins: Origins, node: cst.Try) -> bool:
    """Whether all that is tried is to reach a TPU, first of all to find one, which raises ValueError without one."""
    handler = node.handlers[0].type if len(node.handlers) == 1 else None
    caught = origins.names.api(handler) if handler is not None else "builtins.Exception"
    if len(node.handlers) != 1 or caught not in ("builtins.ValueError", "builtins.Exception"):
        return False
    parts = [node.body, *([node.orelse.body] if node.orelse is not None else [])]
    lines = [line for part in parts for line in part.body]
    small = [one for line in lines for one in (line.body if isinstance(line, cst.SimpleStatementLine) else [line])]
    return bool(small) and _found(origins, small[0]).startswith(_TPU) and all(_found(origins, one) for one in small)


def _found(origins: Origins, statement: cst.CSTNode) -> str:
    """What a statement calls that does nothing but reach a TPU, or say so; empty for another one."""
    value = statement.value if isinstance(statement, cst.Assign | cst.Expr) else None
    if isinstance(statement, cst.Assign) and not all(isinstance(each.target, cst.Name) for each in statement.targets):
        return ""
    if not isinstance(value, cst.Call) or m.findall(value, m.NamedExpr()):
        return ""
    api = origins.called(value)
    return api if api.startswith(_REACH_TPU) else ""


def _except(file: SourceFile, node: cst.Try) -> Change | None:
    """The body of its only handler in place of the whole statement; None where that is not clear."""
    (handler,) = node.handlers
    body = handler.body
    if node.finalbody is not None or handler.name is not None:
        return None
    if not isinstance(body, cst.IndentedBlock) or not body.body or m.findall(body, _LEAVES):
        return None
    first, last = file.span(node)
    start, end = file.span(body.body[0])[0], file.span(body.body[-1])[1]
    return lifted(file.module.code, first, file.span(handler)[0][0], start, end=end[0], last=last[0])


def _settings(file: SourceFile, index: Index, origins: Origins) -> Iterator[cst.SimpleStatementLine]:
    """`os.environ["TF_CONFIG"] = json.dumps({…})`, and `os.environ.pop("TF_CONFIG", None)`."""
    for line in m.findall(file.module, m.SimpleStatementLine()):
        if isinstance(line, cst.SimpleStatementLine) and len(line.body) == 1:
            block = index.parents.get(line)
            several = isinstance(block, cst.Module | cst.IndentedBlock) and len(block.body) > 1
            value = _given(origins, line.body[0])
            if value is None or not several or m.findall(value, m.NamedExpr()):
                continue
            if all(_is_text(origins, c) for c in m.findall(value, m.Call())):
                yield line


def _given(origins: Origins, statement: cst.BaseSmallStatement) -> cst.CSTNode | None:
    """What the variable is set to by a statement, or what it is taken out by; None for other statements."""
    if isinstance(statement, cst.Assign) and len(statement.targets) == 1:
        target = statement.targets[0].target
        of_cluster = isinstance(target, cst.Subscript) and _is_cluster(target.slice[0].slice)
        return statement.value if of_cluster and _is_environment(origins, target.value) else None  # type: ignore[attr-defined]
    call = statement.value if isinstance(statement, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or not call.args:
        return None
    pops = call.func.attr.value == "pop" and _is_environment(origins, call.func.value)
    return call.args[0] if pops and _is_cluster(call.args[0].value) else None


def _is_text(origins: Origins, call: cst.CSTNode) -> bool:
    return isinstance(call, cst.Call) and origins.called(call) in _TEXTS


def _is_cluster(node: cst.CSTNode) -> bool:
    text = node.value if isinstance(node, cst.Index) else node
    return isinstance(text, cst.SimpleString) and text.evaluated_value == CLUSTER


def _is_environment(origins: Origins, node: cst.BaseExpression) -> bool:
    return origins.names.api(node) == _ENVIRONMENT
