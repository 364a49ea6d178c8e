"""What is read of objects that there are; what is found of code holds as long as all that is read stays the same."""

from __future__ import annotations

import array
import collections
import functools
import types
import zlib
from collections.abc import Mapping
from types import CodeType
from typing import Any

import numpy as np

from ...foundation import is_users
from ...keras import PACKAGES
from ..own_code import configuration
from ..reach import closed_over, code_of, is_of_users, root
from .values import SCALARS, RefusedError

MISSING = object()
_FRAMEWORKS = frozenset({"tensorflow", "numpy", "ml_dtypes", *PACKAGES})
# Of frameworks' objects, what comes to no code of the script's.
_PROPERTIES = frozenset(
    """
    beta bias built compute_dtype dtype dtype_policy embeddings gamma input_dtype input_shape kernel layers
    metrics_names moving_mean moving_variance name ndim non_trainable_variables non_trainable_weights
    output_dim output_shape output_size policy rank recurrent_kernel shape state_size submodules
    supports_masking trainable trainable_variables trainable_weights units value variable_dtype variables
    weights
    """.split()  # noqa: SIM905 - a list of words
)
_HOLDERS = (list, tuple, dict, set, frozenset, collections.deque, bytearray, array.array)
_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)


class Reads:
    """All that has been read. codes: of the functions that code comes to, by what tells them apart."""

    def __init__(self) -> None:
        self.codes: dict[int, CodeType] = {}
        self._found: dict[tuple[str, int, str], tuple[Any, Any, Any]] = {}

    def read(self, kind: str, holder: Any, name: str = "") -> Any:
        """The value, which is remembered.

        Raises:
            RefusedError: whoever asks the value anything asks code of the script's own.
        """
        value = _read(kind, holder, name)
        cls: Any = type(value)
        if _answers_all(cls):
            raise RefusedError(f"uses a {cls.__name__}, which has a __getattribute__ of its own")
        self._found.setdefault((kind, id(holder), name), (holder, value, _key(kind, value)))
        return value

    def still_hold(self) -> bool:
        """Whether all of it is the same by now."""
        return not self.changed()

    def changed(self) -> str:
        """The first that is another by now, in words; "" where all of it is the same."""
        for (kind, _, name), (held, before, key) in self._found.items():
            now = _read(kind, held, name)
            if _key(kind, now) != key:
                return f"{_place(kind, held, name)}{_became(before, now)}"
        return ""


def _place(kind: str, holder: Any, name: str) -> str:
    """Where something was read."""
    match kind:
        case "global":
            return f"the global name {name}"
        case "class":
            return f"{holder.__name__}.{name}"
        case "held" | "attribute":
            return f"{name} of a {type(holder).__name__}"
        case "cell":
            return "a variable of a function around it"
        case "configuration":
            return f"a setting of {type(holder).__name__} {getattr(holder, 'name', '')!r}"
        case _:
            return f"what is in a {type(holder).__name__}"


def _became(before: Any, now: Any) -> str:
    if type(before) in SCALARS and type(now) in SCALARS:
        return f" ({before!r} then, {now!r} now)"
    return ""


def _read(kind: str, holder: Any, name: str) -> Any:
    match kind:
        case "global":
            return holder.get(name, MISSING)
        case "class":
            return vars(holder).get(name, MISSING)
        case "held":
            return getattr(holder, "__dict__", {}).get(name, MISSING)
        case "attribute":
            return getattr(holder, name, MISSING)
        case "class of":
            return type(holder).__mro__
        case "configuration":
            return configuration(holder)
        case "cell":
            try:
                return holder.cell_contents
            except ValueError:
                return MISSING
        case _:
            return elements(holder)


@functools.lru_cache(1024)
def _answers_all(cls: Any) -> bool:
    own = (base for base in cls.__mro__ if is_scripts(base))
    return any("__getattribute__" in vars(base) for base in own)


def elements(container: Any) -> list[Any]:
    """Of a list, tuple, set or dictionary that there is; of the last by keys and values."""
    if isinstance(container, Mapping):
        return [*container.keys(), *container.values()]
    return list(container)


class _Same:
    """An object by itself, which is kept so that no other one can have its place."""

    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self._thing is other._thing

    __hash__ = None  # type: ignore[assignment]


def _key(kind: str, value: Any) -> Any:
    """By what it is seen to be the same."""
    if kind == "configuration":
        return value
    made_anew = kind in ("class of", "elements") or (kind == "attribute" and type(value) in (list, tuple, dict))
    return _identity(value, set(), within=made_anew)


def _identity(value: Any, seen: set[int], *, within: bool = False) -> Any:
    """The object, with what is in it where that may be changed in place; `within`: that alone."""
    if type(value) in SCALARS:
        return type(value), repr(value) if isinstance(value, float | complex) else value
    if isinstance(value, np.ndarray):
        return _Same(value), value.shape, zlib.crc32(value.tobytes())
    if isinstance(value, _HOLDERS) and not is_scripts(value) and id(value) not in seen:
        seen.add(id(value))
        inside = [_identity(each, seen) for each in elements(value)]
        return inside if within else (_Same(value), inside)
    return _Same(value)


def is_scripts(thing: Any) -> bool:
    """Whether an object is of a class of the script's, or of a library that nobody here knows; or is such a class."""
    cls: Any = thing if isinstance(thing, type) else type(thing)
    return _is_scripts_class(cls)


@functools.lru_cache(4096)
def _is_scripts_class(cls: Any) -> bool:
    return is_of_users(cls) and not is_framework(cls.__module__)


def static(thing: Any, name: str, reads: Reads) -> tuple[str, Any]:
    """What an attribute of an object comes to, without any code of the script's own: ("value", it), ("method", the
    function), or ("property", its function)."""
    cls = type(thing)
    reads.read("class of", thing)
    if any("__getattr__" in vars(base) for base in cls.__mro__ if is_scripts(base)):
        raise RefusedError(f"asks an object of {cls.__name__} for {name}, which has a __getattr__ of its own")
    found = in_class(cls, name, reads)
    if is_scripts(type(found)) and hasattr(type(found), "__get__"):
        raise RefusedError(f"asks an object of {cls.__name__} for {name}, which a {type(found).__name__} answers")
    is_frameworks = found is not MISSING and hasattr(type(found), "__set__") and not isinstance(found, property)
    if isinstance(found, property):
        if not isinstance(found.fget, types.FunctionType) or (is_own(innermost(found.fget)) and not is_own(found.fget)):
            raise RefusedError(f"asks a {cls.__name__} for {name}, by no function of its own")
        if is_own(found.fget):
            return "property", found.fget
        if name not in _PROPERTIES:
            raise RefusedError(f"asks a {cls.__name__} for {name}")
        return "value", reads.read("attribute", thing, name)
    if is_frameworks:
        return "value", reads.read("attribute", thing, name)
    value = reads.read("held", thing, name)
    if value is not MISSING:
        return "value", value
    if found is MISSING:
        raise RefusedError(f"asks a {cls.__name__} for {name}, which it has not when it is looked at")
    return of_class(found, thing)


def of_class(found: Any, thing: Any) -> tuple[str, Any]:
    """What stands in a class, as an object of it gives it."""
    if isinstance(found, staticmethod):
        return "value", found.__func__
    if isinstance(found, classmethod):
        return "class", found.__func__
    if isinstance(found, _SLOTS):
        return "value", getattr(thing, found.__name__)
    if isinstance(found, types.FunctionType) or (not is_scripts(type(found)) and hasattr(found, "python_function")):
        return "method", found
    if hasattr(type(found), "__get__"):
        return "other", found
    return "value", found


def in_class(cls: type, name: str, reads: Reads, after: type | None = None) -> Any:
    """What stands under a name in a class or those that it derives from; `after` one of these."""
    bases = cls.__mro__ if after is None else cls.__mro__[cls.__mro__.index(after) + 1 :]
    for base in bases:
        if is_scripts(base) or name in vars(base):
            value = reads.read("class", base, name)
            if value is not MISSING:
                return value
    return MISSING


def innermost(function: Any) -> Any:
    """What a framework's wrappers, and ours, have inside of them."""
    while not is_own(function) and getattr(function, "__wrapped__", None) is not None:
        function = function.__wrapped__
    return function


def holds_own(function: Any) -> bool:
    """Whether a framework's function has one of the script's within, which it may call."""
    held = list(closed_over(function).values()) if isinstance(function, types.FunctionType) else []
    return any(is_own(each) or (code_of(each) is not None and holds_own(each)) for each in held if each is not function)


def is_own(function: Any) -> bool:
    """Whether a function is the script's, or of a library that nobody here knows."""
    code = code_of(function)
    if code is None or not is_users(code.co_filename):
        return False
    return not is_framework(str(getattr(function, "__globals__", {}).get("__name__", "")))


def is_framework(name: str) -> bool:
    """Whether a module, by its name, is one of TensorFlow, Keras or NumPy."""
    return root(name) in _FRAMEWORKS
