"""A `tf.function` inside a divided call of the script's own code.

Its Python runs at each call, for the operations to be seen one by one. In one process it runs once for each kind of
arguments, and what it has read then holds for good.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ..foundation import TfdpError, is_users
from . import guard, sight
from .effects import of_code
from .kinds import PLAIN, kind_of_call
from .muted import muted
from .names import put_back
from .reach import closed_over, named

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
        again = _unseen(python) if is_known else contextlib.nullcontext()
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
    if (road, kind) not in known:
        known.add((road, kind))
        _compare(function, kind)


def _compare(function: Any, kind: Any) -> None:
    now = _read_by(function)
    if _read.setdefault(function, {}).setdefault(kind, now) != now:
        _refuse(function)


def _read_by(function: Any) -> dict[str, Any]:
    """The numbers, texts and flags that it asks for by their names, of its object, globals and what it closes over."""
    plain, owner = plain_of(function)
    code = getattr(plain, "__code__", None)
    if code is None:
        return {}
    held = {**plain.__globals__, **closed_over(plain)}
    for each in () if owner is None else (*reversed(type(owner).__mro__), owner):
        held |= vars(each)
    names = (named(code) | set(code.co_freevars)) & held.keys()
    return {name: held[name] for name in names if isinstance(held[name], PLAIN)}


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


@contextlib.contextmanager
def _unseen(python: Callable[..., Any]) -> Iterator[None]:
    """What it prints and changes in Python it does not in one process."""
    before, _ = of_code(python)
    with muted():
        yield
    put_back(before)
