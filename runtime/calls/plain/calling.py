"""What calls come to: of the script's own functions, of what is known of Python and frameworks, and of layers."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Callable
from typing import Any

from ..reach import closed_over, codes
from . import layers, vocabulary
from .builtin import BUILTINS
from .reads import MISSING, Reads, in_class, innermost, is_own, is_scripts
from .sources import syntax_of
from .values import (
    ARRAY,
    ARRAY_ALONE,
    DATA,
    DATA_ALONE,
    Arguments,
    Fixed,
    Held,
    Inner,
    Known,
    Made,
    Method,
    Named,
    RefusedError,
    Scope,
    Super,
    Value,
    is_scalar,
    joined,
)

_DEPTH = 40  # of calls
_STEPS = 100_000  # of one look at code
_CONTAINERS = ("get", "pop", "setdefault")
_TEXTS = ("format", "join")


class Calls:
    """Calls; Evaluator knows the rest."""

    run: Callable[..., Value]
    defined: Callable[..., Any]
    elements: Callable[[Value], Value]
    may_be_a_key: Callable[[Any], bool]

    def __init__(self, reads: Reads) -> None:
        self.reads = reads
        self.layers: dict[int, Any] = {}  # that are seen, or being seen
        self._running: list[Any] = []
        self._steps = 0
        self._telling = 0

    def count(self) -> None:
        """What cannot be followed in reasonable time is not known."""
        self._steps += 1
        if self._steps > _STEPS:
            raise RefusedError("is too involved to be followed")

    def apply(self, function: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
        """What a call gives."""
        match function:
            case Inner(inner, within):
                return self._nested(
                    (id(inner),),
                    lambda: self.run(within.function, inner, within, self.defined(inner, within), arguments),
                )
            case Method(called, bound):
                return self._method(called, bound, arguments)
            case Named(name, of):
                return self._named_method(name, of, arguments, node, scope)
            case Known():
                return self._object(function.thing, arguments, node, scope)
            case _:
                raise RefusedError("calls what it computes")

    def apply_to(self, function: Any, bound: Known) -> Value:
        """A property's function."""
        return self.call(function, Arguments((frozenset({bound}),)))

    def outright(self, thing: Any, arguments: Arguments) -> Value:
        """An object that there is is called."""
        return self._object(thing, arguments, ast.Pass(), _NOWHERE)

    def anyhow(self, function: Any, given: Value = DATA_ALONE) -> Value:
        """What a function gives that is called with any of this, whatever for; that must be data."""
        found = self.apply(function, Arguments((), {}, given, given), ast.Pass(), _NOWHERE)
        for each in found:
            if not self.is_data(each):
                raise RefusedError("has a function that gives what is no data")
        return found

    def call(self, function: Any, arguments: Arguments) -> Value:
        """One of the script's own functions is called."""
        function = innermost(function)
        if not is_own(function) or not isinstance(function, types.FunctionType):
            raise RefusedError(f"calls {getattr(function, '__qualname__', type(function).__name__)}")
        nodes = syntax_of(function.__code__)
        if not nodes:
            raise RefusedError(f"calls {function.__qualname__}, whose text is not at hand")
        self.reads.codes.update((id(each), each) for each in codes(function.__code__))
        for each in ("__code__", "__defaults__", "__kwdefaults__"):
            self.reads.read("attribute", function, each)
        by_place = [frozenset({Known(each)}) for each in function.__defaults__ or ()]
        named = {name: frozenset({Known(each)}) for name, each in (function.__kwdefaults__ or {}).items()}

        def run() -> Value:
            return joined(self.run(function, node, None, (by_place, named), arguments) for node in nodes)

        return self._nested((id(function), *arguments.positional[:1]), run)

    def _nested(self, key: Any, run: Callable[[], Value]) -> Value:
        if key in self._running or len(self._running) > _DEPTH:
            raise RefusedError("calls itself")
        self._running.append(key)
        try:
            return run()
        finally:
            self._running.pop()

    # --- what is called --------------------------------------------------------------------------------------------

    def _method(self, function: Any, bound: Known, arguments: Arguments) -> Value:
        if is_scripts(type(function)) or function is MISSING:
            raise RefusedError(f"calls a {type(bound.thing).__name__}, by no function")
        inner = vocabulary.python_of(function)
        own = innermost(inner)
        if is_own(own):
            self.require_passing_on(inner)
            return self.call(own, arguments._replace(positional=(frozenset({bound}), *arguments.positional)))
        if layers.is_layer(bound.thing):
            if inner.__name__ in ("__call__", "call"):
                called = layers.called if inner.__name__ == "__call__" else layers.within
                return called(self, bound.thing, arguments)
            if inner.__name__ == "get_layer" and all(map(is_scalar, arguments.all())) and arguments.rest is None:
                return self._layer_of(bound.thing, arguments)
            if inner.__name__ in ("compute_mask", "compute_output_shape", "count_params"):
                return DATA_ALONE
        if vocabulary.is_generator(bound.thing) and inner.__name__ in vocabulary.GENERATING:
            return self._frameworks(arguments)
        raise RefusedError(f"calls {_name(inner)}")

    def require_passing_on(self, function: Any) -> None:
        """A framework's wrapper around a function of the script's calls it, and no more."""
        if not _passes_on(function):
            raise RefusedError(f"calls {function.__qualname__} through a framework's wrapper")

    def _layer_of(self, model: Any, arguments: Arguments) -> Value:
        """`model.get_layer(…)` of what is known."""
        if any(len(each) != 1 for each in (*arguments.positional, *arguments.named.values())):
            raise RefusedError("asks for a layer that is not known")
        self.reads.read("attribute", model, "layers")
        positional = [next(iter(each)).thing for each in arguments.positional]
        named = {name: next(iter(each)).thing for name, each in arguments.named.items()}
        return frozenset({Known(model.get_layer(*positional, **named))})

    def _object(self, thing: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
        if isinstance(thing, functools.partial) and type(thing) is functools.partial:
            return self._partial(thing, arguments, node, scope)
        if isinstance(thing, types.MethodType):
            return self._method(thing.__func__, Known(thing.__self__), arguments)
        if vocabulary.is_by_rows(thing) and len(arguments.positional) == 1:  # what is in a divided call is not again
            return arguments.positional[0]
        handler = BUILTINS.get(thing.__name__) if isinstance(thing, type | types.BuiltinFunctionType) else None
        if handler is not None and thing is vocabulary.BUILTINS[thing.__name__]:
            return handler(self, arguments, node, scope)
        if vocabulary.python_of(thing) is not thing:
            return self.call(vocabulary.python_of(thing), arguments)
        if isinstance(thing, types.FunctionType) and is_own(innermost(thing)):
            self.require_passing_on(thing)
            return self.call(thing, arguments)
        if layers.is_layer(thing):
            return layers.called(self, thing, arguments)
        if is_scripts(thing) and not isinstance(thing, type):
            return self._method(in_class(type(thing), "__call__", self.reads), Known(thing), arguments)
        if vocabulary.only_computes(thing):
            return self._of_framework(thing, arguments)
        if layers.is_class(thing):
            self._frameworks(arguments)
            return frozenset({Named("__call__", DATA)})
        if isinstance(thing, type) and (names := vocabulary.fields_of(thing)):
            return self._record(thing, names, arguments)
        raise RefusedError(f"calls {_name(thing)}")

    def _of_framework(self, function: Any, arguments: Arguments) -> Value:
        if not vocabulary.gives_arrays(function):
            return self._frameworks(arguments)
        is_clear = arguments.rest is None and arguments.more is None and "out" not in arguments.named
        if not is_clear or len(arguments.positional) > getattr(function, "nin", 2):
            raise RefusedError(f"calls {_name(function)} with a place for what it computes")
        return joined([self._frameworks(arguments), ARRAY_ALONE])

    def _record(self, cls: type, names: tuple[str, ...], arguments: Arguments) -> Value:
        """An object that holds what it is given, and computes nothing of it."""
        defaults = vocabulary.defaults_of(cls)
        named = dict(zip(names, arguments.positional, strict=False)) | dict(arguments.named)
        if arguments.rest is not None or arguments.more is not None or not named.keys() <= set(names):
            raise RefusedError(f"makes a {cls.__name__} of what is not known")
        standard = {name: frozenset({Known(each)}) for name, each in defaults.items()}
        held = standard | named
        if not held.keys() >= set(names):
            raise RefusedError(f"makes a {cls.__name__} of too little")
        return frozenset({Fixed(tuple(held[name] for name in names), names)})

    def _partial(self, thing: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
        self.reads.read("elements", thing.keywords)
        positional = tuple(frozenset({Known(each)}) for each in thing.args)
        named = {name: frozenset({Known(each)}) for name, each in thing.keywords.items()}
        found = arguments._replace(positional=(*positional, *arguments.positional), named={**named, **arguments.named})
        return self._object(thing.func, found, node, scope)

    def _named_method(self, name: str, of: Any, arguments: Arguments, node: ast.AST, scope: Scope) -> Value:
        given = arguments.all()
        if name == "__call__":  # of a layer that the code has made
            return self._frameworks(arguments)
        if name in vocabulary.CHANGING and isinstance(of, Made):
            self._require_order(name, of, arguments)
            into = joined([self.elements(given), *map(self.values, given)]) if name in ("extend", "update") else given
            before = frozenset(of.elements)
            of.elements |= into
            return joined([before, {Known(None)}, given])
        if any(not self.is_data(each) for each in given):
            raise RefusedError(f"gives {name} what is no data")
        if name in _TEXTS and not self._telling and any(not is_scalar(each) for each in self._deep(given)):
            raise RefusedError("makes a text of what is no known number or text")
        if of in (DATA, ARRAY) or is_scalar(of):
            return frozenset({of if of is ARRAY else DATA})
        if name == "items":
            keys = self.elements(frozenset({of}))
            pair = Fixed((keys, self.values(of)))
            return scope.container(node, self._pairs(of) or {pair})
        if name in ("keys", "values"):
            return scope.container(node, self.elements(frozenset({of})) if name == "keys" else self.values(of))
        if name == "copy":
            return scope.container(node, joined([self.elements(frozenset({of})), self.values(of)]))
        if name in _CONTAINERS:
            return joined([self.values(of), given, {Known(None)}])
        return DATA_ALONE

    def _require_order(self, name: str, of: Made, arguments: Arguments) -> None:
        """Nothing of the script's compares what is sorted, found or put into a set."""
        if name == "sort":
            self.sorts(frozenset(of.elements), arguments)
        elif name in ("add", "discard", "remove") and not all(map(self.may_be_a_key, (*arguments.all(), *of.elements))):
            raise RefusedError("compares what the script says how to compare")

    def sorts(self, elements: Value, arguments: Arguments) -> None:
        """It is sorted, by a key perhaps."""
        for each in arguments.named.get("key", ()):
            if each != Known(None):
                self.anyhow(each, elements)
        if "key" not in arguments.named and not all(map(self.is_data, elements)):
            raise RefusedError("sorts what the script says how to compare")

    def values(self, of: Any) -> Value:
        """What a dictionary holds; of others their elements."""
        if isinstance(of, Known) and isinstance(of.thing, dict) and vocabulary.is_container(of.thing):
            self.reads.read("elements", of.thing)
            return frozenset(map(Known, of.thing.values()))
        return self.elements(frozenset({of}))

    def _pairs(self, of: Any) -> set[Any]:
        if not isinstance(of, Known) or not vocabulary.is_container(of.thing):
            return set()
        self.reads.read("elements", of.thing)
        return {Fixed((frozenset({Known(k)}), frozenset({Known(v)}))) for k, v in of.thing.items()}

    def _frameworks(self, arguments: Arguments) -> Value:
        """What a function gives that computes, and may call those that it is given."""
        inside = self._deep(arguments.all())
        has_arrays = any(each is ARRAY or vocabulary.is_array(_thing(each)) for each in inside)
        data = DATA_ALONE | ARRAY_ALONE if has_arrays else DATA_ALONE  # arrays may be given on, and back
        given: list[Value] = [data]
        for each in inside:
            thing = _thing(each)
            if isinstance(thing, type):
                continue
            if callables(each) and not (isinstance(each, Known) and is_scripts(thing)):
                given.append(self.anyhow(each, data))
            elif not self.is_data(each):
                raise RefusedError(f"gives a function of a framework's a {type(thing).__name__}")
        return joined(given)

    def _deep(self, value: Value) -> set[Any]:
        """With the elements of containers in their places."""
        found: set[Any] = set()
        waiting, seen = list(value), set()
        while waiting:
            each = waiting.pop()
            if each in seen:
                continue
            seen.add(each)
            thing = _thing(each)
            if isinstance(each, Made | Held | Fixed) or vocabulary.is_container(thing):
                waiting += self.elements(frozenset({each}))
                waiting += self.values(each)
            else:
                found.add(each)
        return found

    def is_data(self, value: Any) -> bool:
        """Whether operators and functions of frameworks take it for data, and call nothing of the script's."""
        if value in (DATA, ARRAY) or is_scalar(value):
            return True
        if isinstance(value, Known):
            thing = value.thing
            if vocabulary.is_tensor(thing) or isinstance(thing, slice | range):
                return True
            if isinstance(thing, type):
                return not is_scripts(thing)
            if not vocabulary.is_container(thing):
                return False
        elif not isinstance(value, Made | Held | Fixed):
            return False
        return all(self.is_data(each) for each in self._deep(frozenset({value})))

    def super_of(self, scope: Scope) -> Value:
        """`super()`."""
        while scope.parent is not None:
            scope = scope.parent
        owner = closed_over(scope.function).get("__class__")
        code = scope.function.__code__
        bound = scope.held.get(code.co_varnames[0], set()) if code.co_argcount else set()
        if not isinstance(owner, type) or not all(isinstance(each, Known) for each in bound):
            raise RefusedError("uses super() of what is not known")
        return frozenset(Super(owner, each) for each in bound)


_NOWHERE = Scope(None, None, frozenset(), frozenset())


def callables(value: Any) -> bool:
    """Whether it is a function of some kind."""
    if isinstance(value, Inner | Method | Named):
        return True
    return isinstance(value, Known) and callable(value.thing) and not vocabulary.is_tensor(value.thing)


def _thing(value: Any) -> Any:
    return value.thing if isinstance(value, Known) else value


def _passes_on(function: Any) -> bool:
    """Whether a framework's wrapper around a function of the script's calls it, and no more."""
    while not is_own(function):
        module = str(function.__globals__.get("__name__", ""))
        if not (module.startswith("tfdp.") or module.endswith((".autograph.impl.api", ".module.module"))):
            return False
        function = function.__wrapped__
    return True


def _name(thing: Any) -> str:
    return str(getattr(thing, "__qualname__", None) or f"a {type(thing).__name__}")
