"""What draws an order on the way of data of which no more is understood than that they come in batches."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..apis import SEED_PLACES, SHUFFLES_FILES
from ..program import Origins, argument, closure, method, receiver


def seed_place(call: cst.Call) -> tuple[str, int | None] | None:
    """Where a call that shuffles takes its seed: keyword and position; None where it takes none by itself."""
    return SEED_PLACES.get(method(call))


def shuffles_itself(origins: Origins, call: cst.Call) -> bool:
    """Whether a call that makes a dataset draws the order of its files: most do unless told not to."""
    api = origins.called(call)
    if api == "tensorflow_datasets.load":
        told, untold = argument(call, "shuffle_files", 4), False
    elif api in SHUFFLES_FILES or origins.kind(call.func) is Kind.BATCHED_DATASET:
        told, untold = argument(call, "shuffle", SHUFFLES_FILES.get(api)), True
    else:
        return False
    return untold if told is None else origins.names.api(told.value) != "builtins.False"


def shuffles_of(origins: Origins, data: cst.BaseExpression) -> tuple[cst.Call, ...]:
    """The calls that shuffle what the data may be made of: stages of datasets, and makers that shuffle."""
    made = closure(_origins(origins, [data]), lambda node: _origins(origins, _made_of(origins, node)))
    calls = [n for n in made if isinstance(n, cst.Call) and origins.function(n.func) is None]
    stages = [c for c in calls if method(c) == "shuffle" and not origins.called(c)]
    return tuple(c for c in calls if c in stages or shuffles_itself(origins, c))


def _origins(origins: Origins, values: list[cst.BaseExpression]) -> list[cst.CSTNode]:
    return [o.node for value in values for o in origins.of(value)]


def _made_of(origins: Origins, made: cst.CSTNode) -> list[cst.BaseExpression]:
    """One step further back, through datasets and through what holds them."""
    if isinstance(made, cst.Tuple | cst.List):
        return [e.value for e in made.elements]
    if isinstance(made, cst.GeneratorExp | cst.ListComp):
        return [made.elt]
    if not isinstance(made, cst.Call):
        return []
    if (function := origins.function(made.func)) is not None:
        return origins.index.given_back(function)
    if api := origins.called(made):
        return [a.value for a in made.args] if api.startswith("tensorflow.data.") else []
    return [receiver(made)] if method(made) else []
