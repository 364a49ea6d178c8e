"""A `tf.function` of the script's that is compiled more than once here, and once in one process.

Inside a divided call of the script's own code its Python runs at each call, for the operations to be seen one by one;
with a tape, without one, and where no exchange can be made it is compiled by itself. In one process it runs once for
each kind of arguments, and what it has read then holds for good. So it is compiled anew only where it is known to only
compute, of what it read at first.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from ..foundation import TfdpError, is_users
from ..start import variables_created
from . import guard, sight
from .kinds import kind_of_call
from .muted import muted
from .plain import Verdict, verdict
from .unspent import unspent


class _Compiled(NamedTuple):
    """What a `tf.function` was first compiled as, for a kind of arguments.

    roads: by their `id`, those that it has been compiled on. first: that of the first time, or 0 in a divided call.
    has_exchanges: whether calls inside were divided then.
    """

    roads: dict[int, Any]
    first: int
    verdict: Verdict
    has_exchanges: bool


_FIRST = "_tfdp_first_call"  # of a `tf.function`: the kind of the call that is about to be the first of it
# Of a `tf.function`, by kinds of arguments: what it was first compiled as, and its operations in a divided call.
_COMPILED, _OPERATIONS = "_tfdp_compiled", "_tfdp_operations"


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
        known = vars(function).setdefault(_OPERATIONS, {})
        is_known = kind in known
        compiled = vars(function).setdefault(_COMPILED, {})
        is_first = not is_known and kind not in compiled
        if is_first:
            compiled[kind] = _Compiled({}, 0, _verdict(function, arguments, options), True)
        if not is_known:
            _require_same(function, compiled[kind])
        try:
            with watching.recorded() as operations, here.for_good(strictly=is_known), _again(is_known):
                found = python(*arguments, **options)
        except BaseException:
            if is_first:  # it is not compiled yet, and runs anew: after the variables that it makes first are made, say
                del compiled[kind]
            raise
        if known.setdefault(kind, operations) != operations:
            _refuse(function, compiled.get(kind))
        return found

    return called


def road_of(function: Any, road: Any, arguments: Any, options: Any, *, divides: bool, is_apart: bool) -> Any:
    """The one of a function's roads on which a call of it as a whole is compiled: `road`; or the first one, where it
    may do more than to compute.

    divides: whether calls in it are divided on `road`. is_apart: whether there can be no exchanges here.

    Raises:
        TfdpError: neither is as one process compiles it.
    """
    code = getattr(plain_of(function)[0], "__code__", None)
    if code is None or not is_users(code.co_filename):
        return road
    kind, compiled = kind_of_call(function, None, (arguments, options)), vars(function).setdefault(_COMPILED, {})
    if kind not in compiled:
        found = _verdict(function, arguments, options)
        compiled[kind] = _Compiled({id(road): road}, id(road), found, divides)
        vars(function)[_FIRST] = kind
        return road
    known = compiled[kind]
    if id(road) in known.roads:
        return road
    if known.verdict.reason:
        return _first_road(function, known, is_apart=is_apart)
    _require_same(function, known)
    with unspent(), muted():
        road.get_concrete_function(*arguments, **options)
    known.roads[id(road)] = road
    return road


def compiled_first(function: Any, call: Callable[[], Any], arguments: Any, options: Any) -> Any:
    """`call()`, after `road_of`. A function that makes variables where it is called first is compiled again then, by
    what is so after they are made: a layer of the script's that asks whether it has been built, say."""
    kind = vars(function).pop(_FIRST, None)
    if kind is None:
        return call()
    count = variables_created()
    result = call()
    if variables_created() > count:
        compiled = vars(function)[_COMPILED]
        compiled[kind] = compiled[kind]._replace(verdict=_verdict(function, arguments, options))
    return result


def _first_road(function: Any, known: _Compiled, *, is_apart: bool) -> Any:
    if known.first not in known.roads or (known.has_exchanges and is_apart):
        raise TfdpError(
            f"{_name(function)}, which tf.function compiles, {known.verdict.reason}. It has been called before where "
            "calls of layers are divided, and is called now where none can be (in tf.data, vectorized_map, a Jacobian "
            "or another thread). One process compiles it once for both. Give one of them a function of its own"
        )
    return known.roads[known.first]


def _verdict(function: Any, arguments: Any, options: Any) -> Verdict:
    plain, owner = plain_of(function)
    return verdict(plain, (), arguments if owner is None else (owner, *arguments), options)


def _again(is_known: bool) -> contextlib.AbstractContextManager[None]:
    """What one process does not run is not seen."""
    return muted() if is_known else contextlib.nullcontext()


def _require_same(function: Any, known: _Compiled) -> None:
    if not known.verdict.holds:
        _refuse(function, known)


def plain_of(function: Any) -> tuple[Any, Any]:
    """The Python of such a function, and the object of which it is a method: TensorFlow has tied it to that by a
    decorator that AutoGraph takes off."""
    from tensorflow.python.util import tf_decorator

    plain = tf_decorator.unwrap(function._python_function)[1]
    owner = getattr(getattr(plain, "__self__", None), "target", None)
    return getattr(plain, "__func__", plain), owner


def _refuse(function: Any, known: _Compiled | None) -> NoReturn:
    what = known.verdict.reads.changed() if known is not None else ""
    raise TfdpError(
        f"{_name(function)}, which tf.function compiles, reads something else in Python than when it was first called"
        f"{what and f': {what}'}. In one process that makes no difference, as it has been compiled by then. Give it as "
        "an argument, or keep it in a tf.Variable"
    )


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", function))
