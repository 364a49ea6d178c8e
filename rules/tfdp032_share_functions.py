"""Share the calls of functions of variables over the workers.

What it does
    For sharded calls: where a loss is computed by a function of the script's own that reads variables, and no layer,
    model or `tf.Module` is called in it, the function is put into `dp.by_rows(…)`. When it is first called it is looked
    at: where all its operations keep rows apart, each worker computes its own rows, and all are gathered; else it is
    called whole. A script that has no such function shares the products by its variables (`x @ w`, `tf.matmul(x, w)`),
    and one that has none of these either the functions that are given more than one argument: one may be the weights.

Why
    The calls of layers, models and modules are seen as they are made; a plain function looks like any other.

Example
    prediction = network(images)
    # becomes
    prediction = dp.by_rows(network)(images)

When it refuses
    Where what a tape records calls no layer, model or function and has no product: every worker would do all the work.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ._base import CALLS_ONLY, Context, Edit, Outcome

ROADS = CALLS_ONLY

_MESSAGE = "each worker computes its own rows, if no row depends on others"


def outcomes(context: Context) -> Iterator[Outcome]:
    run, by_rows = context.script.on_calls, f"{context.dp}.by_rows"
    for call in run.functions.calls:
        yield Edit(call.func, build.calling(by_rows), _MESSAGE)
    for product in run.products:
        if isinstance(product, cst.Call):
            yield Edit(product.func, build.calling(by_rows), _MESSAGE)
        else:
            yield Edit(product, functools.partial(_product, f"{context.dp}.matmul"), _MESSAGE)


def _product(function: str, node: cst.BaseExpression) -> cst.BaseExpression:
    """`dp.matmul(x, w)` of `x @ w`."""
    operation = cst.ensure_type(node, cst.BinaryOperation)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    found = cst.Call(cst.parse_expression(function), [cst.Arg(operation.left, comma=comma), cst.Arg(operation.right)])
    return found.with_changes(lpar=operation.lpar, rpar=operation.rpar)
