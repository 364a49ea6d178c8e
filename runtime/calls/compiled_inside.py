"""A `tf.function` inside a divided call of the script's own code.

Its Python runs at each call, for the operations to be seen one by one. In one process it runs once for each kind of
arguments, and what it has read then holds for good.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

from ..foundation import TfdpError, is_users
from . import guard, sight
from .effects import of_code
from .kinds import kind_of_call
from .once_more import unseen
from .reach import closed_over, code_of, named, state
from .unspent import unspent

_roads: weakref.WeakKeyDictionary[Any, set[Any]] = weakref.WeakKeyDictionary()
_read: weakref.WeakKeyDictionary[Any, dict[Any, dict[str, Any]]] = weakref.WeakKeyDictionary()
_first: weakref.WeakKeyDictionary[Any, dict[Any, list[int]]] = weakref.WeakKeyDictionary()


def as_compiled(function: Any, python: Callable[..., Any]) -> Callable[..., Any]:
    """`python`, which stands for such a function in a divided call.

    Raises:
        TfdpError: it computes otherwise than at its first call of that kind.
    """

    @functools.wraps(python)
    def called(*arguments: Any, **options: Any) -> Any:
        here, watching = sight.now(), guard.now()
        if here is None or watching is None or not here.is_in_earnest():
            return python(*arguments, **options)
        kind = kind_of_call(function, here.whole(), (arguments, options))
        known = _first.setdefault(function, {})
        is_known = kind in known
        if not is_known:
            _compare(function, kind)
        again = unseen(of_code(python)[0]) if is_known else contextlib.nullcontext()
        with watching.recorded() as operations, here.for_good(strictly=is_known), again:
            found = python(*arguments, **options)
        if known.setdefault(kind, operations) != operations:
            _refuse(function)
        return found

    return called


def compiles(function: Any, road: Any, arguments: Any, options: Any) -> None:
    """Such a function is called as a whole: with a tape, without one and in a divided call it is compiled by itself
    (`road`), where one process compiles it once.

    Raises:
        TfdpError: it reads something else in Python by now than when it was compiled on another one.
    """
    code = getattr(plain_of(function)[0], "__code__", None)
    if code is None or not is_users(code.co_filename):
        return
    kind, known = kind_of_call(function, None, (arguments, options)), _roads.setdefault(function, set())
    if (id(road), kind) in known:
        return
    _compare(function, kind)
    if any(each == kind for _, each in known):  # it has been on another road
        with unspent(), unseen(of_code(function)[0]):
            road.get_concrete_function(*arguments, **options)
    known.add((id(road), kind))


def _compare(function: Any, kind: Any) -> None:
    now = _read_by(function)
    if _read.setdefault(function, {}).setdefault(kind, now) != now:
        _refuse(function)


def _read_by(function: Any) -> dict[str, Any]:
    """The numbers, texts and flags in what it asks for by names, of its object, globals and what it closes over; it,
    and functions of the script's that it asks for so."""
    plain, owner = plain_of(function)
    own: dict[str, Any] = {}
    for place in () if owner is None else (*reversed(type(owner).__mro__), owner):
        own |= vars(place)
    found: dict[str, Any] = {}
    waiting, seen = [plain], set()
    while waiting:
        each = waiting.pop()
        code = code_of(each)
        if code is None or id(code) in seen or not is_users(code.co_filename):
            continue
        seen.add(id(code))
        held = {**each.__globals__, **closed_over(each), **own}
        asked = {name: held[name] for name in named(code) | set(code.co_freevars) if name in held}
        waiting += asked.values()
        found |= {name: state(value) for name, value in asked.items() if code_of(value) is None}
    return found


def plain_of(function: Any) -> tuple[Any, Any]:
    """The Python of such a function, and the object of which it is a method: TensorFlow has tied it to that by a
    decorator that AutoGraph takes off."""
    from tensorflow.python.util import tf_decorator

    plain = tf_decorator.unwrap(function._python_function)[1]
    owner = getattr(getattr(plain, "__self__", None), "target", None)
    return getattr(plain, "__func__", plain), owner


def _refuse(function: Any) -> NoReturn:
    raise TfdpError(
        f"{getattr(function, '__name__', function)}, which tf.function compiles, reads something else in Python than "
        "when it was first called. In one process that makes no difference, as it has been compiled by then. Give it "
        "as an argument, or keep it in a tf.Variable"
    )
