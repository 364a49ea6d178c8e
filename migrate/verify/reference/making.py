"""The reference script: the one-process script that a migrated script's run on N workers must equal.

It is made from the same facts as the migration, by the same engine, and is meant to be read: batch N·B, learning rate
η·N, step counts divided by N, and the last n mod N examples dropped; in the `global` mode only the last of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ....rules._base import AS_USUAL, Batch, Context, Edit, Insert, Outcome, Parameter, Policy, Rule, SetArg
from ... import build, engine, files, nesting
from ...facts.counting import WHOLE, StepBound, divided
from ...facts.data import Switches
from ...facts.script import Script
from . import fit as reference_fit
from . import rates as reference_rates

_HEADER = '''\
import tensorflow as tfdp_tf


def tfdp_shared(dataset, only_if=True):
    """The records that {size} workers share evenly: the last n mod {size} are dropped."""
    if not only_if:
        return dataset
    n = int(dataset.cardinality())
    if n >= 0:
        return dataset.take(n - n % {size})
    if n == int(tfdp_tf.data.INFINITE_CARDINALITY):
        return dataset
    groups = dataset.window({size}, drop_remainder=True)
    if isinstance(dataset.element_spec, tuple):
        return groups.flat_map(lambda *parts: tfdp_tf.data.Dataset.zip(parts))
    return groups.flat_map(lambda part: tfdp_tf.data.Dataset.zip(part) if isinstance(part, dict) else part)
'''
_STEPS = '''\
def tfdp_steps(count, only_if=True, down=False, whole=True):
    """A number of steps that covers the same examples with {size} times the batch; of a list, each."""
    if isinstance(count, (list, tuple)):
        return [tfdp_steps(each, only_if) for each in count]
    if not only_if or count <= 0:
        return count
    if isinstance(count, float) or not whole:
        return count / {size}
    return max(1, int(count / {size} + (0.0 if down else 0.5)))
'''


class NoReferenceError(Exception):
    """The facts do not suffice for a reference: the message says which, with place and next step."""


def reference(path: str, source: bytes, size: int, batch: Batch, policy: Policy = AS_USUAL) -> bytes:
    """The reference of an original script for `size` workers.

    Raises NoReferenceError, and files.UnreadableSource for what is no Python.
    """
    text = files.decode(path, source)
    script = engine.parse(path, text.source)
    with nesting.room(path, script):
        return _made(path, text, script, size, batch, policy)


def _made(  # noqa: PLR0917
    path: str, text: files.Text, script: Script, size: int, batch: Batch, policy: Policy
) -> bytes:
    if not script.trained and not script.fitted.calls:
        reason = "no gradient of a tape reaches an update and no model is fitted, so there is nothing to compare"
        raise NoReferenceError(f"{path}: {reason}")
    if script.migrated:
        reason = "this script is migrated already, and no original of it was found beside it (FILE.orig) or in git"
        keep = "`tfdp migrate --backup` leaves it beside the script the next time"
        raise NoReferenceError(f"{path}: {reason}; name its original: --against ORIGINAL; {keep}")
    outside = [script.outside_vocabulary] if script.outside_vocabulary is not None else []
    if problems := [*outside, *script.problems(batch)]:
        first = problems[0]
        raise NoReferenceError(
            f"{path}:{script.position(first.node)[0]}: {first.code} {first.reason}; {first.next_step}"
        )
    rule = Rule("reference", "reference", "", lambda context: _outcomes(context, size))
    plan = engine.make_plan(script, batch, [rule], policy=policy)
    plan.imported = True  # a reference does not import the runtime
    after = files.encode(text, engine.apply(script, plan))
    engine.check(path, after)
    return after


def _outcomes(context: Context, size: int) -> Iterator[Outcome]:
    script = context.script
    place = script.entry.imports
    per_worker = context.batch == "per-worker"
    parts = [_HEADER]
    parts += reference_fit.helpers(script)
    steps = script.steps
    divides = steps.takes or steps.of_schedules or steps.bounds or steps.of_fits
    parts += [_STEPS] if per_worker and divides else []
    parts += reference_rates.helpers(script, context.policy, size) if per_worker else []
    header = "\n\n".join(parts)
    yield Insert(
        place.anchor, "before" if place.first else "after", header.format(size=size), "helpers of the reference"
    )
    switches = script.switches(context.batch, reference=True)
    for point in script.shard_points:
        change = build.calling("tfdp_shared", **switches.keywords(point.node))
        yield Edit(point.node, change, "drop what the workers drop")
    for function in switches.functions:
        yield Parameter(function, switches.name, "False", "tell training data from others, which stay whole")
    for call, value in switches.calls.items():
        yield SetArg(call, switches.name, build.replacing(value), "these are training data")
    yield from reference_fit.outcomes(script, size, per_worker)
    if per_worker:
        yield from _per_worker(context, size, switches)


def _per_worker(context: Context, size: int, switches: Switches) -> Iterator[Outcome]:
    script = context.script
    for batch in script.batches:
        factor = f"({size} if {switches.name} else 1)" if switches.keywords(batch) else str(size)
        yield SetArg(batch, "batch_size", build.multiplying(factor), "the global batch", position=0)
    yield from reference_rates.outcomes(script, size, context.policy)
    for take in script.steps.takes:
        change = build.calling("tfdp_steps", **switches.keywords(take))
        yield SetArg(take, "count", change, "the divided number of steps", position=0)
    for bound in script.steps.bounds:
        yield Edit(bound.node, _bound(bound), "the divided number of steps")
    for steps in script.steps.of_schedules:
        change = build.calling("tfdp_steps", **({} if steps.keyword in WHOLE else {"whole": "False"}))
        yield SetArg(steps.call, steps.keyword, change, "the divided number of steps", steps.position)


def _bound(bound: StepBound) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    change = build.calling("tfdp_steps", **({"down": "True"} if bound.down else {}))
    return lambda node: divided(node, bound.more, change)
