"""What may train, or be trained, out of sight: its batches would stay, at the learning rate of all workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..program import Origins, argument, fold, method
from ..training_file import TrainingFile

# Libraries that train nothing, or whose training is known where it stands.
_KNOWN = ("builtins", "keras", "math", "matplotlib", "numpy", "os", "pandas", "sklearn.metrics", "tensorflow", "time")
_HOLDS = frozenset({"add", "append", "extend", "insert", "setdefault", "update", "watch"})  # and trains nothing


def trained_elsewhere(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Calls of what other files train by; and calls out of sight that are given a model or optimizer that trains here,
    by itself or as a part of something."""
    yield from script.elsewhere
    trained = frozenset(_made(script.origins, _objects(script)))
    for call in script.index.calls:
        if trained and not _is_in_sight(script.origins, call) and _gets(script.origins, call, trained):
            yield call


def _objects(script: TrainingFile) -> Iterator[cst.BaseExpression]:
    """Models and optimizers that train here, as they are called where they do."""
    for fit in script.fitted.by_keras:
        yield fit.model
        given = (argument(compiled.call, "optimizer", 0) for compiled in fit.compiles)
        yield from (each.value for each in given if each is not None)
    for gradient in (*script.trained, *script.fitted.stepped):
        yield from (update.receiver for update in gradient.updates)
        sources = gradient.sources
        if isinstance(sources, cst.Attribute):
            yield sources.value


def _made(origins: Origins, objects: Iterable[cst.BaseExpression]) -> Iterator[cst.CSTNode]:
    return (o.node for each in objects for o in origins.of(each) if isinstance(o.node, cst.Call))


def _is_in_sight(origins: Origins, call: cst.Call) -> bool:
    """Whether it is known what a call does: of the file's own, of known libraries, or of a method of their objects."""
    if origins.function(call.func) or origins.lambda_of(call.func) or origins.constructed(call):
        return True
    api = fold(origins.called(call))
    if api:
        return any(api == each or api.startswith(f"{each}.") for each in _KNOWN)
    if not isinstance(call.func, cst.Attribute):
        return False
    kinds = origins.kinds(call.func.value)
    return method(call) in _HOLDS or (bool(kinds) and None not in kinds)


def _gets(origins: Origins, call: cst.Call, trained: frozenset[cst.CSTNode]) -> bool:
    return any(o.node in trained for arg in call.args for part in _parts(arg.value) for o in origins.of(part))


def _parts(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """A value, what a list or table holds, and what its attributes are of."""
    yield value
    if isinstance(value, cst.Attribute):
        yield from _parts(value.value)
    elements = value.elements if isinstance(value, cst.List | cst.Tuple | cst.Dict) else ()
    for element in elements:
        if isinstance(element, cst.Element | cst.DictElement):
            yield from _parts(element.value)
