"""Call `fit` in place of `fit_generator`.

What it does
    For sharded calls, where `fit` may be given any generator: `model.fit_generator(batches, steps_per_epoch=10)`
    becomes `model.fit(batches, steps_per_epoch=10)`, with the same arguments.

Why
    Keras has taken `fit_generator` out; in Keras 2 it does nothing but call `fit`.

Example
    model.fit_generator(generator=batches, steps_per_epoch=10)
    # becomes
    model.fit(x=batches, steps_per_epoch=10)

When it refuses
    Where more than its first three arguments are given without their names: `fit` has others at those places.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate.facts.shared_run import PLACES
from ._base import CALLS_ONLY, Context, Edit, Outcome

ROADS = CALLS_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    for call in context.script.on_calls.retired.calls:
        yield Edit(call, _renamed, "fit takes a generator, too")


def _renamed(node: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    args = [_named(arg, place) for arg, place in zip(call.args, (*PLACES, *([""] * len(call.args))), strict=False)]
    func = cst.ensure_type(call.func, cst.Attribute)
    return call.with_changes(func=func.with_changes(attr=cst.Name("fit")), args=args)


def _named(arg: cst.Arg, place: str) -> cst.Arg:
    """An argument under its name in `fit`; the data may stand first without any."""
    if arg.keyword is not None:
        return arg.with_changes(keyword=cst.Name("x")) if arg.keyword.value == "generator" else arg
    if arg.star or place == PLACES[0]:
        return arg
    return arg.with_changes(
        keyword=cst.Name(place), equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    )
