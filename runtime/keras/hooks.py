"""What Keras' `fit` calls, for callbacks of ours that serve Keras 2, Keras 3 and tf-keras alike.

Keras asks nothing of a callback but its methods, so there is no Keras to import here, and none to be mistaken about.
"""

from typing import Any

from ..foundation import is_generated, is_users

_HOOKS = (
    *(f"on_{mode}_{end}" for mode in ("train", "test", "predict") for end in ("begin", "end")),
    *(f"on_{mode}batch_{end}" for mode in ("", "train_", "test_", "predict_") for end in ("begin", "end")),
    *(f"on_epoch_{end}" for end in ("begin", "end")),
)
STOCK = ("keras", "tf_keras", "tensorflow")


def _nothing(*arguments: Any, **named: Any) -> None:
    """A hook that does nothing. Both Keras skip what depends on batches where all hooks for them are such."""


_nothing._is_default = True  # type: ignore[attr-defined]


class Hooks:
    """A callback of all Keras versions; a subclass defines the hooks that it needs."""

    # Keras 2 else fetches the logs of each batch from the device.
    _supports_tf_logs = True

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_model(self, model: Any) -> None:
        """Called by Keras: the model that is trained."""
        self.model = model

    def set_params(self, params: dict[str, Any]) -> None:
        """Called by Keras: `epochs`, `steps` and `verbose` of the training."""
        self.params = params

    def _implements_train_batch_hooks(self) -> bool:
        return self._has("on_batch_begin", "on_batch_end", "on_train_batch_begin", "on_train_batch_end")

    def _implements_test_batch_hooks(self) -> bool:
        return self._has("on_test_batch_begin", "on_test_batch_end")

    def _implements_predict_batch_hooks(self) -> bool:
        return self._has("on_predict_batch_begin", "on_predict_batch_end")

    def _has(self, *hooks: str) -> bool:
        return any(getattr(type(self), hook) is not _nothing for hook in hooks)


for _hook in _HOOKS:
    setattr(Hooks, _hook, _nothing)


def is_keras(thing: Any) -> bool:
    """Whether a class or function is one of Keras' own.

    A function is so by where its code stands, too: one that wraps another says of itself what that does.
    """
    if str(getattr(thing, "__module__", "")).split(".")[0] not in STOCK:
        return False
    code = getattr(thing, "__code__", None)
    return code is None or not (is_generated(code.co_filename) or is_users(code.co_filename))


def named_in(callback: object, names: tuple[str, ...]) -> bool:
    """Whether a callback is of one of Keras' classes of these names, or of one that derives from it."""
    return any(cls.__name__ in names and is_keras(cls) for cls in type(callback).__mro__)
