"""Callbacks that `fit` is given: those that write files are to be rank 0's."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ..keras import Fit, given_to, has_callbacks
from ..program import Origins, Problem, is_none, literal_key
from ..training_file import TrainingFile

_NAME = "callbacks"
_ORDERED = "tfdp.runtime.fit_callbacks"


class GivenCallbacks:
    """Answers for all fits of a file."""

    def __init__(self, script: TrainingFile) -> None:
        self._script, self._origins = script, script.origins

    @cached_property
    def calls(self) -> tuple[cst.Call, ...]:
        """Calls that are given callbacks by the argument of that name."""
        fits = (f for f in self._script.fitted.calls if has_callbacks(self._origins, f))
        return tuple(f.call for f in fits if (v := given_to(f.call, _NAME)) is not None and not self._is_done(v))

    @cached_property
    def in_dictionaries(self) -> tuple[cst.BaseExpression, ...]:
        """Callbacks in dictionaries of arguments: `fit(x, y, **options)`."""
        made = (o for f in self._script.fitted.calls for v in _starred(f) for o in self._origins.of(v))
        held = dict.fromkeys(value for o in made for value in self._held(o.node))
        return tuple(v for v in held if not is_none(self._origins, v) and not self._is_done(v))

    def problems(self) -> Iterator[Problem]:
        """Callbacks that may write, and that come out of sight."""
        if not any(self._origins.called(c).startswith("keras.callbacks.") for c in self._script.index.calls):
            return
        for fit in self._script.fitted.calls:
            if given_to(fit.call, _NAME) is None and not all(map(self._is_known, _starred(fit))):
                reason = "this fit may be given callbacks by * or **, and those that write have to be rank 0's"
                yield Problem("TFDP052", fit.call, reason, "write callbacks=… out in the call")

    def _is_done(self, value: cst.BaseExpression) -> bool:
        return any(self._origins.called(n) == _ORDERED for n in (value, *(o.node for o in self._origins.of(value))))

    def _is_known(self, value: cst.BaseExpression) -> bool:
        """Whether all dictionaries that an argument may be are made in the file."""
        made = self._origins.of(value)
        return bool(made) and all(not o.path and _is_dictionary(self._origins, o.node) for o in made)

    def _held(self, made: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """What a dictionary holds as callbacks, by its making or by what is stored in it."""
        elements = made.elements if isinstance(made, cst.Dict) else ()
        for element in elements:
            key = element.key if isinstance(element, cst.DictElement) else None
            if isinstance(key, cst.SimpleString) and key.evaluated_value == _NAME:
                yield element.value
        if isinstance(made, cst.Call):
            yield from (a.value for a in made.args if a.keyword is not None and a.keyword.value == _NAME)
        for target, value in self._script.index.subscript_stores.items():
            stored = literal_key(target) == _NAME and any(o.node is made for o in self._origins.of(target.value))
            if stored and isinstance(value, cst.BaseExpression):
                yield value


def _starred(fit: Fit) -> list[cst.BaseExpression]:
    return [a.value for a in fit.call.args if a.star]


def _is_dictionary(origins: Origins, made: cst.CSTNode) -> bool:
    if isinstance(made, cst.Call):
        return origins.called(made) == "builtins.dict" and not any(a.star or a.keyword is None for a in made.args)
    return isinstance(made, cst.Dict) and all(isinstance(e, cst.DictElement) for e in made.elements)
