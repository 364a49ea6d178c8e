"""Callbacks of Keras' fit: which are given, and what of the file they run."""

from __future__ import annotations

import libcst as cst

from ..program import Origins, within_itself
from .fit_data import FitData, given_to
from .fits import Fit

_TAKE_FUNCTIONS = ("keras.callbacks.LambdaCallback", "keras.callbacks.LearningRateScheduler")


def open_callbacks(origins: Origins, fit: FitData) -> bool:
    """Whether a fit's callbacks do not go through `dp.fit_callbacks(…)` yet."""
    given = given_to(fit.fit.call, "callbacks")
    found = [given, *(o.node for o in origins.of(given))] if given is not None else []
    return not any(isinstance(n, cst.Call) and origins.names.api(n.func) == "tfdp.runtime.fit_callbacks" for n in found)


def has_callbacks(origins: Origins, fit: Fit) -> bool:
    """Whether a fit is given callbacks, which may write files."""
    given = given_to(fit.call, "callbacks")
    ordered = isinstance(given, cst.Call) and origins.names.api(given.func) == "tfdp.runtime.fit_callbacks"
    none = given is None or origins.names.api(given) == "builtins.None"
    return not none and not (ordered and isinstance(given, cst.Call) and not given.args)


def callback_functions(origins: Origins) -> list[cst.FunctionDef]:
    """Methods of the file's own callbacks, and functions that Keras' callbacks are given."""
    index = origins.index
    methods = [
        s for c in index.classes if is_callback(origins, c) for s in c.body.body if isinstance(s, cst.FunctionDef)
    ]
    given = [
        origins.function(a.value)
        for c in index.calls
        if (origins.names.api(c.func) or "").startswith(_TAKE_FUNCTIONS)
        for a in c.args
    ]
    return [*methods, *(f for f in given if f is not None)]


@within_itself(False)
def is_callback(origins: Origins, owner: cst.ClassDef) -> bool:
    """Whether a class of the file is a callback of Keras."""
    for base in owner.bases:
        if (origins.names.api(base.value) or "").startswith("keras.callbacks."):
            return True
        found = origins.one(base.value)
        if found is not None and isinstance(found.node, cst.ClassDef) and found.node is not owner:
            return is_callback(origins, found.node)
    return False


def is_fitted_model(origins: Origins, node: cst.BaseExpression) -> bool:
    """Whether the expression is `self.model` in a callback."""
    if not isinstance(node, cst.Attribute) or node.attr.value not in {"model", "_model"}:
        return False
    owner = origins.class_of(node.value)
    return owner is not None and is_callback(origins, owner)
