"""What is known of Python, NumPy, TensorFlow and Keras: functions that compute of what they are given and do no more.

Nothing else of them is called by code that is divided. Draws, writes and the like of an operation are not told here: a
look sees these.
"""

from __future__ import annotations

import builtins
import collections
import dataclasses
import functools
import inspect
import math
import operator
import re
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from ..reach import code_of, root
from .reads import holds_own, innermost, is_framework, is_own, is_scripts
from .values import RefusedError

OURS, BY_ROWS = "tfdp.runtime", "by_rows"
# Modules, by how their names begin, all of whose functions are operations, or put some together.
_OPERATIONS = re.compile(
    r"tensorflow\.python\.ops\.(?:gen_|ragged\.|linalg\.|signal\.|numpy_ops\.)?(?:array_ops|bincount|candidate_sampling|"
    r"check_ops|clip|cond$|confusion|control_flow|ctc|embedding|functional_ops|histogram|image|linalg|manip|map_fn|math|"
    r"nn|random|sort|special_math|spectral|stateless_random|string|sparse|tensor_array|tensor_getitem|tensor_math|"
    r"weak_tensor|while_loop|numerics|dct|fft|mel|mfcc|reconstruction|shape|window|ragged|np_(?:array|math)|bitwise|sets)"
    r"|tensorflow\.python\.util\.nest$"
    r"|(?:tf_)?keras\.src\.(?:ops|activations|random|layers\.merging|losses\.losses|backend\.tensorflow|backend\.numpy|initializers)"
    r"|(?:tf_)?keras\.src\.(?:legacy\.)?backend$|numpy$"
)
# And of other modules these.
_FUNCTIONS = frozenset(
    """
    as_dtype broadcast_static_shape cast constant constant_v1 convert_to_tensor convert_to_tensor_v1_with_dispatch
    convert_to_tensor_v2_with_dispatch executing_eagerly is_symbolic_tensor is_tensor
    is_tf_type shape_tensor epsilon floatx image_data_format standardize_dtype
    """.split()  # noqa: SIM905 - a list of words
)
# Of those modules these change what others ask for, or give numbers of tensors to Python.
_OTHERS = re.compile(
    r"(?:set|clear|reset|enable|disable|batch_set|batch_get|get_uid|get_value|manual|track|update|moving_average|print|"
    r"name_scope|learning_phase|function|eval|save|load|call_context|convert_to_numpy|vectorized_map)"
)
# Of Keras 2's backend these make variables, or give the state of a session.
_OF_BACKEND = re.compile(r"(?:variable|placeholder|zeros|ones|eye|get_|random_.*_variable$|is_keras_tensor)")
_NUMPY = frozenset(
    """
    abs arange array asarray ceil clip concatenate cos cumprod cumsum diag exp expand_dims eye finfo floor full
    full_like iinfo isscalar linspace log log1p log2 max maximum mean meshgrid min minimum mod ndim ones ones_like
    power prod repeat reshape round shape sign sin size sqrt square stack sum tan tanh tile transpose zeros zeros_like
    """.split()  # noqa: SIM905 - a list of words
)
CONSTANTS = frozenset({"__version__", "e", "euler_gamma", "inf", "nan", "newaxis", "pi", "tau"})
ATTRIBUTES = frozenset(
    """
    T base_dtype count dims dtype idx imag indices is_floating is_integer max mean min ndim ndims rank real shape size
    start step stop value values variance y
    """.split()  # noqa: SIM905 - a list of words
)
# Methods of data, texts, containers and frameworks' tensors that change nothing.
METHODS = frozenset(
    """
    as_list astype capitalize concat concatenate copy count endswith format gather get get_shape identity index
    is_compatible_with is_fully_defined items join keys lower lstrip num_elements read read_value replace reshape rstrip
    scatter set_shape size split splitlines stack startswith strip title to_tensor unstack upper value values
    with_rank write
    """.split()  # noqa: SIM905 - a list of words
)
# Methods of variables, which do nothing to what there is where they are only traced.
ASSIGNING = frozenset({"assign", "assign_add", "assign_sub"})
# Methods of a container that the code has made.
CHANGING = frozenset(
    {
        "add",
        "append",
        "clear",
        "discard",
        "extend",
        "insert",
        "pop",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "update",
    }
)
GENERATING = frozenset({"normal", "truncated_normal", "uniform", "uniform_full_int"})
_BUILTINS = frozenset(
    """
    abs all any bool callable complex dict divmod enumerate float frozenset getattr hasattr int isinstance issubclass
    len list map max min pow print range reversed round set slice sorted str sum super tuple zip
    """.split()  # noqa: SIM905 - a list of words
) | {name for name, each in vars(builtins).items() if isinstance(each, type) and issubclass(each, BaseException)}
BUILTINS = {name: vars(builtins)[name] for name in _BUILTINS}
_OPERATORS = (
    "abs add and_ eq floordiv ge getitem gt invert le lt matmul mod mul ne neg not_ or_ pos pow sub truediv xor"
)
_TYPES = (tf.DType, tf.TensorShape)
_DATA = ("KerasVariable", "SeedGenerator", "Variable")  # by the names of their classes
# Of an object, what Python calls for others than those who compare it, go through it, or ask for its truth.
_BESIDE = frozenset(
    """
    __call__ __del__ __delattr__ __enter__ __exit__ __getattr__ __init__ __init_subclass__ __new__ __post_init__
    __repr__ __set_name__ __setattr__ __str__
    """.split()  # noqa: SIM905 - a list of words
)
_OF_PYTHON = (
    types.BuiltinFunctionType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    type(inspect.FrameInfo.frame),
)
CONTEXTS = ("name_scope", "device")


def is_frameworks(thing: Any) -> bool:
    """Whether an object's class is."""
    return is_framework(type(thing).__module__)


def is_tensor(thing: Any) -> bool:
    """Whether it is what operations take: a tensor, a variable, an array, a type of numbers, a shape."""
    if isinstance(thing, np.ndarray):
        return type(thing) is np.ndarray and thing.dtype != object
    if isinstance(thing, (tf.Tensor, tf.Variable, np.generic, *_TYPES)):
        return is_frameworks(thing)
    return is_frameworks(thing) and any(each.__name__ in _DATA for each in type(thing).__mro__)


def python_of(function: Any) -> Any:
    """The function that a `tf.function` was made of; others as they are.

    Raises:
        RefusedError: it is traced for shapes that it is not given.
    """
    if isinstance(function, types.FunctionType | type) or is_scripts(type(function)):
        return function
    inner = getattr(function, "python_function", None)
    if inner is None:
        return function
    if getattr(function, "_reduce_retracing", False):
        raise RefusedError("calls a tf.function that is traced for shapes that it has not met")
    return inner


def is_by_rows(thing: Any) -> bool:
    """Whether it is the runtime's `by_rows`, which `migrate` writes around functions of the script's."""
    return thing is getattr(sys.modules.get(OURS), BY_ROWS, None)


def only_computes(function: Any) -> bool:
    """Whether a function of a framework's computes of what it is given, and does no more."""
    if id(function) in _of_python():
        return True
    if gives_arrays(function):  # not one that the script has made of a function
        name = function.__name__
        return vars(np).get(name) is function and (isinstance(function, np.ufunc) or name in _NUMPY)
    if isinstance(function, types.FunctionType | types.BuiltinFunctionType):
        return _is_operation(function)
    return isinstance(function, type) and (
        function in (tf.TensorShape, tf.TensorArray) or issubclass(function, np.generic)
    )


@functools.cache
def _of_python() -> dict[int, Any]:
    """Python's own mathematics and operators, by what tells them apart."""
    found = [each for name, each in vars(math).items() if callable(each) and not name.startswith("_")]
    found += [getattr(operator, name) for name in _OPERATORS.split()]
    return {id(each): each for each in found}


def _is_operation(function: Any) -> bool:
    inner = innermost(function)
    if is_own(inner) or holds_own(inner):
        return False
    if isinstance(inner, types.FunctionType):
        module = str(inner.__globals__.get("__name__", ""))
    else:
        module = str(getattr(inner, "__module__", "") or "")
    name = inner.__name__
    if not is_framework(module):
        return False
    if _OPERATIONS.match(module):
        return not (_OTHERS.match(name) or (module.endswith(".backend") and _OF_BACKEND.match(name)))
    return name in _FUNCTIONS


def has_own_methods(cls: type) -> bool:
    """Whether there are methods, properties or the like of the script's in a class."""
    return any(True for _ in _written(cls))


def answers_python(thing: Any) -> bool:
    """Whether code of the script's own runs where an object is compared, gone through or asked for its truth."""
    written = (name for name in _written(type(thing)) if name.startswith("__") and name.endswith("__"))
    return any(name not in _BESIDE for name in written)


def fields_of(cls: type) -> tuple[str, ...]:
    """Those of a named tuple, or of a data class, of which nothing but Python's own code is written."""
    if type(cls) is not type or not is_scripts(cls) or has_own_methods(cls):
        return ()
    if issubclass(cls, tuple):
        return tuple(getattr(cls, "_fields", ()))
    if not dataclasses.is_dataclass(cls) or cls.__mro__[1:] != (object,):
        return ()
    fields = dataclasses.fields(cls)
    is_simple = all(each.init and each.default_factory is dataclasses.MISSING for each in fields)
    return tuple(each.name for each in fields) if is_simple else ()


def _written(cls: type) -> Iterator[str]:
    """Methods, properties and the like in classes of the script's; not what Python makes of fields."""
    for base in cls.__mro__:
        for name, value in vars(base).items() if is_scripts(base) else ():
            inner = getattr(value, "__func__", value) if isinstance(value, classmethod | staticmethod) else value
            code = code_of(inner)
            is_made = code is not None and (code.co_filename.startswith("<") or not is_own(inner))
            if not is_made and hasattr(type(value), "__get__") and not isinstance(value, _OF_PYTHON):
                yield name


def defaults_of(cls: type) -> dict[str, Any]:
    """What the fields of such a class hold where nothing is given for them."""
    if issubclass(cls, tuple):
        return dict(getattr(cls, "_field_defaults", {}))
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    return {each.name: each.default for each in fields if each.default is not dataclasses.MISSING}


def is_container(thing: Any) -> bool:
    """Whether it is a list or the like, of Python's own or a framework's, that makes no elements by itself."""
    if type(thing) in (list, tuple, dict, set, frozenset, range, collections.OrderedDict):
        return True
    return isinstance(thing, list | tuple | dict) and is_frameworks(thing)


def is_array(thing: Any) -> bool:
    """Whether it is an array of NumPy's."""
    return isinstance(thing, np.ndarray)


def gives_arrays(function: Any) -> bool:
    """Whether it is a function of NumPy's, or one that is made by it."""
    if isinstance(function, type):
        return False
    return isinstance(function, np.ufunc) or root(str(getattr(function, "__module__", "") or "")) == "numpy"


def is_error(thing: Any) -> bool:
    """Whether it is a class of errors."""
    return isinstance(thing, type) and issubclass(thing, BaseException)


def is_module(thing: Any) -> bool:
    """Whether it is a module of a framework's."""
    return isinstance(thing, types.ModuleType) and is_framework(thing.__name__)


def is_generator(thing: Any) -> bool:
    """Whether it is one of TensorFlow's generators of random numbers."""
    return isinstance(thing, tf.random.Generator)


def is_unchanging(thing: Any) -> bool:
    """Whether `+=` makes another one of it."""
    return isinstance(thing, (tf.Tensor, *_TYPES)) and is_frameworks(thing)


def builtins_of(function: Any) -> dict[str, Any]:
    """What a function's module has besides its globals."""
    found = function.__globals__.get("__builtins__", builtins)
    return vars(found) if isinstance(found, types.ModuleType) else found
