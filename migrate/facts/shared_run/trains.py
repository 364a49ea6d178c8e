"""Where a script trains and where it calls its models, as far as names tell: more is not asked."""

from __future__ import annotations

import builtins
import sys
from functools import cached_property

import libcst as cst

from ...catalogue import UPDATES, Kind
from ..apis import FITS
from ..program import LAYERS, Origins, entered, is_network, last_name, method, nodes, receiver
from ..training_file import TrainingFile

_GRADIENTS = ("gradient", "jacobian", "batch_jacobian")
_TRAINS = (*_GRADIENTS, *UPDATES, *FITS, "minimize", "train_on_batch", "train_step")
_ASKS = ("evaluate", "evaluate_generator", "predict", "predict_generator", "predict_on_batch", "test_on_batch", "call")


_WITHOUT_MODELS = sys.stdlib_module_names | {
    *("tensorflow", "keras", "tf_keras", "numpy", "scipy", "pandas", "matplotlib", "seaborn", "sklearn", "PIL", "cv2"),
    *("tqdm", "skimage", "h5py", "wandb", "absl", "tensorflow_datasets", "gym", "gymnasium", "tfdp", "builtins"),
}
"""Libraries that hold no model or layer but by the names of Keras, which are seen where they are called."""


class TrainingCalls:
    """Answers for the calls of a file."""

    def __init__(self, script: TrainingFile) -> None:
        self._script, self._origins, self._index = script, script.origins, script.index

    @cached_property
    def steps(self) -> tuple[cst.CSTNode, ...]:
        """Calls that take gradients, or train."""
        known = [g.call for g in self._script.gradients] + [f.call for f in self._script.fitted.by_keras]
        named = (c for c in self._index.methods(*_TRAINS) if self._may_train(c))
        return tuple(dict.fromkeys([*known, *named, *self._script.elsewhere]))

    @cached_property
    def may_be_elsewhere(self) -> bool:
        """Whether something may be called in training that is a model, a layer, or a function out of sight."""
        taped = {g.call for g in self._script.gradients}
        if any(step not in taped and not _is_update(step) for step in self.steps):
            return True  # it has a tape of its own
        tapes = [n for n in self._index.order if isinstance(n, cst.With) and any(map(self._is_tape, n.items))]
        inside = (n for part in entered(self._origins, tapes) for n in nodes(part))
        return any(isinstance(n, cst.Call) and not self._is_known(n.func) for n in inside)

    def _is_tape(self, item: cst.WithItem) -> bool:
        """Also by its name alone, as where TensorFlow comes from another file by `import *`."""
        made = item.item
        named = isinstance(made, cst.Call) and last_name(made.func) == "GradientTape"
        return named or Kind.TAPE in self._origins.kinds(made)

    def _is_known(self, func: cst.BaseExpression) -> bool:
        """Whether what is called is in sight: the file's own, a library's without models, or a method of a tensor.

        A model's may call that, as `stateless_call` does.
        """
        api = self._origins.names.api(func)
        if api is not None:
            return not _may_hold_models(api)
        if self._origins.function(func) is not None or self._origins.lambda_of(func) is not None:
            return True
        if isinstance(func, cst.Attribute) and Kind.MODEL in self._origins.kinds(func.value):
            return False
        held = self._origins.of(func.value) if isinstance(func, cst.Attribute) else self._origins.of(func)
        return bool(held) and all(not o.path and self._is_made_here(o.node) for o in held)  # in a list may be models

    def _is_made_here(self, made: cst.CSTNode) -> bool:
        owner = self._origins.constructed(made)
        apis = [self._origins.called(made)] if owner is None else self._origins.bases(owner)
        return all(api and not _may_hold_models(api) for api in apis)

    def _may_train(self, call: cst.Call) -> bool:
        if self._origins.called(call) or self._origins.function(call.func) is not None:
            return False
        kinds = self._origins.kinds(receiver(call))
        if method(call) in _GRADIENTS:
            return Kind.TAPE in kinds
        wanted = {Kind.OPTIMIZER, Kind.LOSS_SCALE, Kind.MODEL}
        plain = method(call) in {"apply_gradients", "train_on_batch"}  # no other library has methods of these names
        return bool(kinds & wanted) or (plain and None in kinds)

    @cached_property
    def of_models(self) -> frozenset[cst.CSTNode]:
        """Calls that compute a model or a layer, which the runtime divides: every rank has to make them."""
        asks = {c for c in self._index.methods(*_ASKS) if not self._origins.called(c)}
        return frozenset(c for c in self._index.calls if c in asks or self._is_model(c.func))

    def _is_model(self, func: cst.BaseExpression) -> bool:
        if self._origins.names.api(func) or self._origins.function(func) is not None:
            return False
        return any(_is_network(self._origins, o.node) for o in self._origins.of(func) if not o.path)


def _is_update(step: cst.CSTNode) -> bool:
    return isinstance(step, cst.Call) and method(step) in UPDATES


def _may_hold_models(api: str) -> bool:
    root, _, name = api.partition(".")
    return root not in _WITHOUT_MODELS or (root == "builtins" and not hasattr(builtins, name))


def _is_network(origins: Origins, made: cst.CSTNode) -> bool:
    """Whether it is a model, or a layer, that may be called: an object, and not its class."""
    if isinstance(made, cst.ClassDef):
        return False
    owner = origins.constructed(made)
    if owner is not None:
        return is_network(origins, owner)
    made_by = isinstance(made, cst.Call) and origins.called(made).startswith(LAYERS)
    return made_by or (isinstance(made, cst.Call) and origins.kind(made.func) is Kind.MODEL)
