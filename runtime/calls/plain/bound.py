"""Which parameters of a function get what of a call's arguments."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from .values import Arguments, Held, Made, RefusedError, Value, joined


def bound(
    parameters: ast.arguments, defaults: tuple[Sequence[Value], Mapping[str, Value]], arguments: Arguments
) -> dict[str, Value]:
    """Values of parameters by their names. defaults: of the last of those by place, and of those by name alone."""
    by_place = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    standard = dict(zip(by_place[len(by_place) - len(defaults[0]) :], defaults[0], strict=True)) | dict(defaults[1])
    named = dict(arguments.named)
    found: dict[str, Value] = {}
    for index, name in enumerate(by_place):
        if index < len(arguments.positional):
            found[name] = arguments.positional[index]
        elif name in named:
            found[name] = named.pop(name)
        else:
            found[name] = _other(name, standard, [arguments.rest, arguments.more])
    for each in parameters.kwonlyargs:
        name = each.arg
        found[name] = named.pop(name) if name in named else _other(name, standard, [arguments.more])
    beyond = arguments.positional[len(by_place) :]
    if parameters.vararg is not None:
        found[parameters.vararg.arg] = frozenset({Held(joined([*beyond, arguments.rest or ()]))})
    elif beyond:
        raise RefusedError("is called with more than it takes")
    if parameters.kwarg is not None:
        found[parameters.kwarg.arg] = frozenset({Made({each for value in named.values() for each in value})})
        for made in found[parameters.kwarg.arg]:
            made.elements.update(arguments.more or ())
    elif named:
        raise RefusedError(f"is called with {next(iter(named))}, which it does not take")
    return found


def _other(name: str, standard: Mapping[str, Value], unknown: Sequence[Value | None]) -> Value:
    """Of a parameter that is not named: its default, or what may be meant for it."""
    values = [each for each in (standard.get(name), *unknown) if each is not None]
    if not values:
        raise RefusedError(f"is called without {name}")
    return joined(values)
