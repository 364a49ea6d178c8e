"""The stage before the facts: text in, one-worker text out, with the origin of each line."""

from __future__ import annotations

import contextlib

import libcst as cst

from ..catalogue import STRATEGIES
from . import dtensor
from .one_replica import OneReplica
from .strategy import Strategies
from .texts import Change, NotReadError, Single, Taken, untouched

_WORD = STRATEGIES.rpartition(".")[2]  # without which there is nothing to look for
_MOST = 100  # changes of one text


def single(module: cst.Module) -> Single | None:
    """The one-worker form of a script; None where it is that already, or is not understood.

    Strategies are taken out where all that is done by them is understood, else they are those of one replica.
    """
    for strategies in (Strategies, OneReplica):
        with contextlib.suppress(NotReadError, cst.ParserSyntaxError):
            return _changed(module, strategies)
    return None


def _changed(module: cst.Module, strategies: type[Strategies | OneReplica]) -> Single | None:
    places, taken = untouched(module.code), list[Taken]()
    while (found := _next_change(module, strategies)) is not None:
        if len(taken) == _MOST:
            raise NotReadError
        change, said = found
        origin = places[said.line - 1]
        taken.append(said._replace(line=origin.line, column=said.column + origin.shift))
        text, places = change.applied(module.code, places)
        module = cst.parse_module(text)
    return Single(module, places, tuple(taken)) if taken else None


def _next_change(module: cst.Module, strategies: type[Strategies | OneReplica]) -> tuple[Change, Taken] | None:
    """Of the first system of which something is left."""
    found = dtensor.next_change(module) if dtensor.WORD in module.code else None
    return strategies(module).next_change() if found is None and _WORD in module.code else found
