"""Words of Keras 2 that Keras 3 does not take, in scripts of systems that ended with Keras 2: left, and named."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..facts.program import Index, Names

_FAILS = "{} is of Keras 2 and fails with Keras 3 (TensorFlow 2.16 and later): {}"
_OPTIMIZERS = "keras.optimizers."
_ARGUMENTS = {"lr": "use learning_rate", "decay": "use a schedule as learning_rate"}
_METHODS = {
    "evaluate_generator": "use evaluate",
    "fit_generator": "use fit",
    "predict_classes": "use predict, and argmax or a threshold",
    "predict_generator": "use predict",
    "predict_proba": "use predict",
}


def retired(index: Index, names: Names) -> Iterator[tuple[cst.CSTNode, str]]:
    """Each place, and what is said of it."""
    for call in index.calls:
        api = names.api(call.func) or ""
        for given in call.args:
            word = given.keyword.value if given.keyword is not None else ""
            if api.startswith(_OPTIMIZERS) and word in _ARGUMENTS:
                yield given, _FAILS.format(f"the argument {word}", _ARGUMENTS[word])
            elif api == "keras.callbacks.ModelCheckpoint" and word == "period":
                yield given, _FAILS.format("the argument period", "use save_freq")
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if method in _METHODS:
            yield call, _FAILS.format(method, _METHODS[method])
    for node in index.attributes["lr"]:
        held = node.value
        last = held.attr if isinstance(held, cst.Attribute) else held
        if isinstance(last, cst.Name) and last.value in ("opt", "optimizer"):
            yield node, _FAILS.format(f"{last.value}.lr", "use learning_rate")
