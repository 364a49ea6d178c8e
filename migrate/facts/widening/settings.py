"""What is set, or done to an optimizer, that goes by the number of the step: where it is not known not to, it may."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, fold, is_none, method
from ..vocabulary import CALLBACK_SETTINGS, OPTIMIZER_SETTINGS
from .reads import is_own, objects

_OF_OPTIMIZERS = OPTIMIZER_SETTINGS | {"lr", "decay", "name", "clipnorm", "clipvalue", "global_clipnorm", "jit_compile"}
_OF_CALLBACKS = CALLBACK_SETTINGS | {
    *("histogram_freq", "write_graph", "write_images", "update_freq", "profile_batch", "period", "min_lr", "options"),
    *("initial_value_threshold", "backup_dir", "delete_checkpoint", "embeddings_freq", "schedule", "count_mode"),
    *("on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end", "stateful_metrics"),
}
_DONE = frozenset(
    """
    apply apply_gradients minimize build get_gradients get_scaled_loss get_unscaled_gradients scale_loss iterations
    learning_rate lr name
    """.split()  # noqa: SIM905 - a list of words
)
_PASSES = (
    *(cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.Return, cst.Param, cst.Expr, cst.Element, cst.DictElement),
    *(cst.IfExp, cst.Comparison, cst.ComparisonTarget, cst.BooleanOperation, cst.If, cst.UnaryOperation),
)
_GIVEN_TO = frozenset(
    {"builtins.dict", "builtins.print", "keras.mixed_precision.LossScaleOptimizer", "tensorflow.train.Checkpoint"}
)


def unknown_settings(origins: Origins) -> Iterator[cst.CSTNode]:
    """Settings of Keras' optimizers and callbacks that may count steps."""
    for call in origins.index.calls:
        api = fold(origins.called(call))
        if origins.kind(call.func) is Kind.OPTIMIZER:
            known = _OF_OPTIMIZERS
        elif api.startswith("keras.callbacks."):
            known = _OF_CALLBACKS
        else:
            continue
        for arg in call.args:
            names = _keys(origins, arg.value) if arg.star else [arg.keyword.value] if arg.keyword else []
            if names is None or not (known.issuperset(names) or _is_usual(origins, arg)):
                yield arg.value


def _keys(origins: Origins, table: cst.BaseExpression) -> list[str] | None:
    """The names of the arguments that a table holds; None where it does not say them."""
    made = origins.made(table)
    entries = made.elements if isinstance(made, cst.Dict) else [None]
    keys = [e.key if isinstance(e, cst.DictElement) else None for e in entries]
    texts = [str(key.evaluated_value) for key in keys if isinstance(key, cst.SimpleString)]
    return texts if len(texts) == len(keys) else None


def _is_usual(origins: Origins, arg: cst.Arg) -> bool:
    """Whether it says no number: `save_freq="epoch"`."""
    is_word = isinstance(arg.value, cst.SimpleString) and arg.value.evaluated_value == "epoch"
    return is_word or is_none(origins, arg.value) or origins.index.code(arg.value) == "False"


def other_uses(origins: Origins) -> Iterator[cst.CSTNode]:
    """Where an optimizer is given to what may read or change it, or asked for what is not known."""
    made = frozenset(call for call in origins.index.calls if origins.kind(call.func) is Kind.OPTIMIZER)
    for node in objects(origins) if made else ():
        if any(o.node in made and not o.path for o in origins.of(node)) and not _is_known(origins, node):
            yield node


def _is_known(origins: Origins, optimizer: cst.BaseExpression) -> bool:
    """Whether it is passed on by a name, compared, or used for what is known."""
    parent = origins.index.parents[optimizer]
    if isinstance(parent, cst.Attribute):
        return parent.attr.value in _DONE
    if not isinstance(parent, cst.Arg):
        return isinstance(parent, _PASSES)
    call = origins.index.parents[parent]
    if not isinstance(call, cst.Call) or is_own(origins, call):
        return True
    api = fold(origins.called(call))
    return method(call) == "compile" or api in _GIVEN_TO or origins.kind(call.func) is Kind.OPTIMIZER
