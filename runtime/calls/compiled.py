"""What TensorFlow keeps of a call beyond it: traces of a `tf.function` inside, gradients that functions define.

A `tf.function` that a divided call calls must not be traced for whole batches, and the other way round. A gradient that
is defined by a function computes again what the call has computed, after it has ended.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from ..collective import is_recording
from ..foundation import call_site, is_users
from ..framework import draws_on, keeps_state
from . import apart, functions, guard, sight, validation
from .compiled_inside import as_compiled, compiled_first, plain_of, road_of
from .stateless import keeps_no_state
from .swallowed import not_to_be_passed_over, refuse_swallowed

_STATELESS = "_tfdp_traced_without_state"  # of a tf.function
_TRACES = "_tfdp_traces"  # of a tf.function: those for divided calls, by what they see; and those with none
_VALIDATION = "of validation"
_UNRECORDED = "_tfdp_traced_unrecorded"  # of a tf.function
_DRAWN = "_tfdp_traces_that_draw"  # of a tf.function: of how many traces it is known, and whether one does


def watch_functions() -> None:
    """From now on each kind of sight has traces of its own. The class of what `tf.function` gives is private."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    function = polymorphic_function.Function
    original = function.__call__

    @functools.wraps(original)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        here = sight.now()
        divided = functions.compiled(self, functools.partial(as_it_is, self)) if here is None else None
        with _failing(self) if here is None and tf.executing_eagerly() else contextlib.nullcontext():
            return (divided or functools.partial(as_it_is, self))(*arguments, **options)

    def as_it_is(self: Any, *arguments: Any, **options: Any) -> Any:
        here = sight.now()
        if here is None:
            if keeps_no_state():
                vars(self)[_STATELESS] = True
            if tf.config.functions_run_eagerly():
                return original(self, *arguments, **options)
            whole = _as_a_whole(self, arguments, options)
            call = functools.partial(validation.traced, whole, lambda: original(whole, *arguments, **options))
            return compiled_first(self, call, arguments, options)
        watching = guard.now()
        if watching is not None and not tf.config.functions_run_eagerly():
            with watching.compiled():
                return as_compiled(self, _entered(self))(*arguments, **options)
        if tf.config.functions_run_eagerly():
            here.compiled(_STATELESS in vars(self))
            return original(self, *arguments, **options)
        # Without the signature, which may name the length of the whole batch.
        return original(_traced_again(self, here.key(), None), *arguments, **options)

    function.__call__ = called


@contextlib.contextmanager
def _failing(function: Any) -> Iterator[None]:
    """No script goes on after a compiled step has failed: what the others of its operations have done goes by the
    time."""
    refuse_swallowed()
    try:
        yield
    except tf.errors.OutOfRangeError:  # the end of data, without which no update can be made
        raise
    except tf.errors.OpError:
        if _keeps_state(function):
            not_to_be_passed_over(
                f"a compiled step has failed at {call_site()}, and the script has gone on: TensorFlow does not say "
                "what of it had been done by then, so that the update may be made here and not in one process, or the "
                "other way round. Look at the values before the step, or leave out tf.function"
            )
        raise


def _keeps_state(function: Any) -> bool:
    """Whether anything that it has been traced to changes something. What holds the traces is private."""
    functions_of_it = (function, *vars(function).get(_TRACES, {}).values())
    return any(keeps_state(each.graph) for one in functions_of_it for each in one._function_cache.values())


def _as_a_whole(function: Any, arguments: Any, options: Any) -> Any:
    """The function by whose traces a call of it is made that is in no divided one."""
    road, is_validation, is_apart = _of_whole_calls(function), sight.is_validation(), any(apart.places())
    if is_validation:
        road = _validating(road, arguments, options)
    divides = (is_recording() or is_validation) and not is_apart
    return road_of(function, road, arguments, options, divides=divides, is_apart=is_apart)


def _of_whole_calls(function: Any) -> Any:
    """The same function, with traces of its own where no call in it is divided: one that has been traced elsewhere may
    have exchanges, which no tangent and no parallel graph goes through, and which the threads of a dataset cannot make.
    """
    places, recorded = apart.places(), is_recording()
    if not recorded and not any(places):
        vars(function)[_UNRECORDED] = True
    # Where it has been traced before without a tape, no call in that is divided.
    key = *places, recorded and _UNRECORDED in vars(function)
    if not any(key) or (not any(places) and tf.executing_eagerly() and _draws(function)):
        return function
    return _traced_again(function, key, function.input_signature)


def _draws(function: Any) -> bool:
    """Whether what it has been traced to draws numbers that go on from call to call, which two traces would each draw
    by themselves. What holds the traces is private."""
    traces = function._function_cache.values()
    count, draws = vars(function).get(_DRAWN, (0, False))
    if not draws and len(traces) > count:
        draws = any(draws_on(each.graph) for each in traces)
        vars(function)[_DRAWN] = len(traces), draws
    return bool(draws)


def _validating(whole: Any, arguments: Any, options: Any) -> Any:
    divided = _traced_again(whole, _VALIDATION, whole.input_signature)
    return validation.chosen(whole, divided, arguments, options)


def _traced_again(function: Any, key: Any, signature: Any) -> Any:
    """The same function, with traces of its own: those of earlier calls with such a key, unless that is None."""
    traces = vars(function).setdefault(_TRACES, {})
    found = traces.get(key)
    if found is None:
        found = tf.function(function._python_function, input_signature=signature, autograph=function._autograph)
        if key is not None:
            traces[key] = found
    return found


def _entered(function: Any) -> Any:
    """The Python of a `tf.function`, whose operations are seen one by one; of a method with its object."""
    plain, owner = plain_of(function)
    python = function._python_function if owner is None else types.MethodType(plain, owner)
    internal = tf.__internal__.autograph
    return internal.tf_convert(python, internal.control_status_ctx()) if function._autograph else python


def watch_custom_gradients() -> None:
    """From now on a gradient that a function defines is computed with the sight of the call that it belongs to: by
    whatever name it was defined, and whenever. What calls such a function is private."""
    from tensorflow.python.ops import custom_gradient as module

    for name in ("_eager_mode_decorator", "_graph_mode_decorator"):
        setattr(module, name, _seeing(getattr(module, name)))


def _seeing(call: Any) -> Any:
    @functools.wraps(call)
    def called(f: Any, arguments: Any, options: Any) -> Any:
        return call(_with_sight(f), arguments, options)

    return called


def _is_users(function: Any) -> bool:
    """Whether one that defines a gradient is the script's own, whatever is around it."""
    plain = inspect.unwrap(function)
    code = getattr(getattr(plain, "__func__", plain), "__code__", None)
    return code is None or is_users(code.co_filename)


def _with_sight(f: Any) -> Any:
    @functools.wraps(f)
    def called(*arguments: Any, **options: Any) -> Any:
        here, watching = sight.now(), guard.now()
        if watching is not None and _is_users(f):
            watching.refuse("defines a gradient of its own")
        result, gradient = f(*arguments, **options)
        if here is None:
            return result, gradient

        def seeing(*upstream: Any, **more: Any) -> Any:
            with sight.seen(here):
                return gradient(*upstream, **more)

        return result, seeing

    return called
