"""What Python asks of rows in code of the script's own, and cannot be told."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import tensorflow as tf

from ..foundation import is_generated, is_users
from .guard import Guard, is_eager, now

_ANSWER = frozenset({"dimension_at_index", "from_tensor", "get_shape", "int_shape", "shape"})  # of TensorFlow and Keras
_OF_GRAPHS = ("graph", "name", "op")  # attributes that an eager tensor has not
_CONVERTS = ("__array__", "__bool__", "__complex__", "__float__", "__index__", "__int__", "__iter__", "__len__")


def watch_python() -> None:
    """From now on code of the script's own may not ask how many rows there are where one process would know it, nor for
    what they hold where they are numbers: nothing that it could be told is right. Whether it runs eagerly it is told as
    in one process."""
    original = tf.Tensor.shape

    def shape(self: Any) -> Any:
        guard = _asked(self)
        return original.fget(self) if guard is None else _Shape(original.fget(self), guard)

    tf.Tensor.shape = property(shape, doc=original.__doc__)
    symbolic = _class_in_graphs()
    asked = dict.fromkeys(_CONVERTS, "the numbers") | {
        "__repr__": "the text",
        "__str__": "the text",
        "ref": "the identity",
    }
    for name, what in asked.items():
        if hasattr(symbolic, name):
            setattr(symbolic, name, _refusing(getattr(symbolic, name), what))
    _answer_as_eagerly(symbolic)


def _class_in_graphs() -> Any:
    """That of tensors of graphs, which is not public."""
    with tf.Graph().as_default():
        return type(tf.constant(0))


def _class_where_eager() -> Any:
    """That of eager tensors, which is not public either: a tensor to ask would end the choice of devices."""
    from tensorflow.python.framework.ops import EagerTensor

    return EagerTensor


def _refusing(original: Callable[..., Any], what: str) -> Callable[..., Any]:
    """A method of a tensor that code that is to run eagerly may not call, whatever becomes of the error."""

    @functools.wraps(original)
    def asked(self: Any, *arguments: Any) -> Any:
        guard = now()
        if guard is not None and guard.eager is not None and not guard.is_paused and _is_user(2):
            guard.refuse(f"asks in Python for {what} of rows")
        return original(self, *arguments)

    return asked


def _answer_as_eagerly(symbolic: Any) -> None:
    eager = _class_where_eager()
    attribute = tf.Tensor.__getattr__

    @functools.wraps(attribute)
    def asked(self: Any, name: str) -> Any:
        if is_eager() and hasattr(eager, name) and _is_user(2):
            now().refuse(f"asks in Python for {name} of a tensor")  # type: ignore[union-attr]
        return attribute(self, name)

    tf.Tensor.__getattr__ = asked
    for name in _OF_GRAPHS:
        setattr(symbolic, name, _of_graphs(name, getattr(symbolic, name)))
    answers = (("executing_eagerly", True), ("inside_function", False), ("is_symbolic_tensor", False))
    for name, answer in answers:
        setattr(tf, name, _answering(getattr(tf, name), answer))


def _of_graphs(name: str, original: Any) -> Any:
    def asked(self: Any) -> Any:
        if is_eager() and _is_user(2):
            raise AttributeError(f"Tensor.{name} is undefined when eager execution is enabled.")
        return original.fget(self)

    return property(asked, doc=original.__doc__)


def _answering(original: Callable[..., Any], answer: bool) -> Callable[..., Any]:
    @functools.wraps(original)
    def answered(*arguments: Any, **options: Any) -> Any:
        return answer if is_eager() and _is_user(2) else original(*arguments, **options)

    return answered


def _asked(tensor: Any) -> Guard | None:
    """The guard of rows that code of the script's own asks for what one process knows of them."""
    guard = now()
    if guard is None or not guard.hides or not guard.is_watched(tensor) or not _is_read_by_user():
        return None
    return guard


def _is_read_by_user() -> bool:
    frame = sys._getframe(3)
    while frame.f_code.co_name in _ANSWER and frame.f_back is not None and not _is_of_user(frame):
        # Keras 3 gives a tensor for what is not known. Code that only computes cannot tell it from a number.
        if frame.f_code.co_name == "shape" and str(frame.f_globals.get("__name__")).endswith(".ops.core"):
            return False
        frame = frame.f_back
    return _is_of_user(frame)


def _is_user(above: int) -> bool:
    return _is_of_user(sys._getframe(above))


def _is_of_user(frame: FrameType) -> bool:
    path = frame.f_code.co_filename
    return is_users(path) or is_generated(path)


class _Shape(tf.TensorShape):  # type: ignore[misc]
    """The shape of rows, whose first size may not be asked for."""

    def __init__(self, shape: Any, guard: Guard) -> None:
        super().__init__(shape)
        self._guard = guard

    def __getitem__(self, key: Any) -> Any:
        places = range(self.rank)[key]
        if 0 in (places if isinstance(key, slice) else (places,)):
            self._asked()
        return super().__getitem__(key)

    def __iter__(self) -> Any:
        self._asked()
        return super().__iter__()

    def __eq__(self, other: Any) -> bool:
        self._asked()
        return bool(super().__eq__(other))

    __hash__ = tf.TensorShape.__hash__

    @property
    def dims(self) -> Any:
        """All sizes."""
        self._asked()
        return super().dims

    def __repr__(self) -> str:
        self._asked()
        return str(super().__repr__())

    def __str__(self) -> str:
        self._asked()
        return str(super().__str__())

    def as_list(self) -> Any:
        """All sizes."""
        self._asked()
        return super().as_list()

    def num_elements(self) -> Any:
        """Of all rows."""
        self._asked()
        return super().num_elements()

    def is_compatible_with(self, other: Any) -> bool:
        """As far as one process knows."""
        self._asked()
        return bool(super().is_compatible_with(other))

    def is_fully_defined(self) -> bool:
        """As far as one process knows."""
        self._asked()
        return bool(super().is_fully_defined())

    def _asked(self) -> None:
        self._guard.refuse("asks in Python how many rows there are")
