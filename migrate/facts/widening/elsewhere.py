"""What may train, or be trained, out of sight: its batches would stay, at the learning rate of all workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...outputs import TRACKERS
from ..keras import given_to
from ..program import Origins, argument, backward, fold, is_none, last_name, method
from ..training_file import TrainingFile
from .reads import is_own

# Libraries that train nothing, or whose training is known where it stands.
_KNOWN = frozenset(
    """
    argparse builtins collections csv cv2 datetime functools glob itertools json keras math matplotlib numpy os pandas
    pathlib PIL random re scipy sklearn string sys tensorflow tensorflow_datasets tensorflow_hub time tqdm typing
    """.split()  # noqa: SIM905 - a list of words
)
_DEPTH = 8  # calls of what calls have given
_HOLDS = frozenset({"add", "append", "extend", "insert", "setdefault", "update", "watch"})  # and trains nothing


def trained_elsewhere(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Calls of what other files train by; and calls out of sight that are given a model or optimizer that trains here,
    by itself or as a part of something."""
    yield from script.elsewhere
    trained = frozenset(_made(script.origins, _objects(script)))
    for call in script.index.calls:
        if trained and not _is_in_sight(script.origins, call) and _gets(script.origins, call, trained):
            yield call


def made_elsewhere(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Classes out of sight that make a part of a fitted model or a callback: it may add sums to the loss, have
    a step of its own, or count steps. And in loops of the file those of what a loss with added losses follows from."""
    fits = [place for fit in script.fitted.by_keras for place in (fit.model, given_to(fit.call, "callbacks"))]
    adds = any(isinstance(node, cst.Attribute) and node.attr.value == "losses" for node in script.sliced)
    made = backward(script.origins, [place for place in fits if place is not None])
    for node in (*made, *(script.sliced if adds else ())):
        name = last_name(node.func) if isinstance(node, cst.Call) else None
        # Functions make data, whose sizes a model has.
        if name and name[0].isupper() and not _is_in_sight(script.origins, cst.ensure_type(node, cst.Call)):
            yield node


def optimized_elsewhere(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Updates by an optimizer that no call in the file is known to make."""
    for update in (update for gradient in script.trained for update in gradient.updates if update.kind == "keras"):
        made = [o.node for o in script.origins.of(update.receiver) if not is_none(script.origins, o.node)]
        if not made or not all(isinstance(node, cst.Call) for node in made):
            yield update.call


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


def _is_in_sight(origins: Origins, call: cst.Call, depth: int = 0) -> bool:
    """Whether it is known what a call does: of the file's own, of known libraries, or of what these have made."""
    if is_own(origins, call):
        return True
    api = fold(origins.called(call))
    if api:
        return api.partition(".")[0] in _KNOWN | TRACKERS
    if isinstance(call.func, cst.Call):
        return _is_in_sight(origins, call.func, depth)
    if isinstance(call.func, cst.Attribute):
        return method(call) in _HOLDS or _is_made_in_sight(origins, call.func.value, depth + 1)
    return _is_made_in_sight(origins, call.func, depth + 1)


def _is_made_in_sight(origins: Origins, value: cst.BaseExpression, depth: int) -> bool:
    """Whether all that may have made a value is in sight."""
    made = [o.node for o in origins.of(value)] if depth < _DEPTH else []
    calls = (node for node in made if isinstance(node, cst.Call))
    return bool(made) and all(_is_in_sight(origins, call, depth) for call in calls)


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
