"""Everything that keeps a script from being migrated, put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from .counting import uncertain
from .hazards import (
    UNSETTLED,
    Inputs,
    OwnValues,
    Paired,
    RowLengths,
    Shares,
    Stepwise,
    fed_otherwise,
    patched,
    replayed,
    unplaced,
)
from .program import Problem, entered, nodes
from .steps import Steps
from .training_file import TrainingFile
from .untaught import escaped, general, in_loops, on_calls, untaught, unwrapped


def refusals(script: TrainingFile, steps: Steps, batch: str, numbers: OwnNumbers) -> tuple[Problem, ...]:
    """All problems of a script in a batch mode, also those that the author ignores."""
    if shared := on_calls(script):
        return tuple(shared)
    loops = script.unread_loops
    found, mixed = [] if loops else _data_problems(script, steps, batch), list[Problem]()
    unknown = any(not script.ignored(p.code, p.node) for p in loops)
    found += [*loops, *untaught(script), *escaped(script), *unwrapped(script)]
    found += [*script.fitted.averaging.problems, *script.keras_reductions.problems]
    if not unknown:  # else the batches are not known
        mean = [*script.reductions.problems()]
        mixed = [] if mean or script.migrated else _mixed(script)
        found += [*mean, *script.shared_totals.problems, *script.drift.problems(script.trained), *_inputs(script)]
        found += _unnamed(script, numbers.problems, found)
    found += [*(() if script.migrated else script.noise.problems), *general(script, batch)]
    if script.trained or script.fitted.calls:
        found += patched(script.origins)
    if not script.migrated:
        found += [*uncertain(script.fitted.data, script.agreement.certain), *script.unlike_seeds]
    named = {p.node for p in found}
    decisions = [p for p in script.agreement.problems(script.written.effects) if p.node not in named]
    found = [*(p for p in found if not _follows(script, p, decisions)), *decisions, *_written(script)]
    found += script.agreement.asked_apart(script.written.effects)
    decided = {script.position(p.node)[0] for p in found if p.code == "TFDP053"}
    return _settled(script, [*found, *(p for p in mixed if script.position(p.node)[0] not in decided)])


def _settled(script: TrainingFile, found: list[Problem]) -> tuple[Problem, ...]:
    """What is only not known to keep examples apart is a problem where there is no other."""
    others = [p for p in found if p.headline != UNSETTLED]
    known = any(not script.ignored(p.code, p.node) for p in others)
    return tuple(dict.fromkeys(others if known else found))


def _mixed(script: TrainingFile) -> list[Problem]:
    """Where a training step, or a loss, makes values of each example out of others."""
    targets = [g.target for g in (*script.trained, *script.fitted.stepped) if g.target is not None]
    shared = {share.node for share in script.shared_totals.found}
    return [*script.mixing.of_calls(script.sliced), *script.mixing.of_losses(targets, shared)]


def _follows(script: TrainingFile, problem: Problem, decisions: list[Problem]) -> bool:
    """Whether an exit is a problem only because its test is one."""
    tests = {d.node for d in decisions}
    around = script.index.ancestors(problem.node) if isinstance(problem.node, cst.Break | cst.Return) else ()
    return any(isinstance(n, cst.If | cst.While) and n.test in tests for n in around)


def _written(script: TrainingFile) -> list[Problem]:
    """What is written where it cannot be guarded, and what reads it where it cannot wait."""
    certain = script.agreement.certain
    found = [p for e in script.written.effects if (p := unplaced(e, script.origins, certain)) is not None]
    reason = "this reads what rank 0 writes, under a condition that may differ by worker"
    next_step = "read the file outside the condition"
    found += script.written.own_names.problems()
    return [*found, *(Problem("TFDP050", s, reason, next_step) for s in script.written.waiting_reads if not certain(s))]


def _data_problems(script: TrainingFile, steps: Steps, batch: str) -> list[Problem]:
    """What cannot be sharded, scaled or counted, where all loops are understood."""
    found = [*script.fitted.unread, *script.shard_plan.problems, *script.array_batches.problems(batch)]
    found += [*in_loops(script), *(script.rate_problems if batch == "per-worker" else ())]
    if not script.migrated:
        found += RowLengths(script.origins).problems(script.chains, script.shard_points, script.loops, batch)
        own = OwnValues(script.origins, script.agreement.sameness.beneath(script.made_common))
        found += own.problems(script.chains, script.fitted.calls, script.loops)
        found += replayed(script.origins, script.fitted.data)
        found += Paired(script.origins, script.datasets).problems(script.loops, script.sliced)
        found += script.mixing.problems(script.fitted.by_keras, script.loops)
        found += fed_otherwise(script.origins, script.losses, script.loops)
        found += script.shard_plan.problems_of(batch)
        found += _stepwise(script) if batch == "per-worker" else []
    return [*found, *steps.problems(batch), *steps.of_decisions(batch)]


def _stepwise(script: TrainingFile) -> list[Problem]:
    """What is trained that changes with the number of the step."""
    counted = {loop for take in script.array_batches.takes if take.counted for loop in take.loops[:1]}
    keras = script.keras_stepping
    return Stepwise(script.origins, [loop.loop for loop in script.loops], counted, keras).problems(
        (*script.trained, *script.fitted.stepped), script.sliced | keras.computed
    )


@dataclass(frozen=True)
class OwnNumbers:
    """What follows a worker's own number of examples, and is no part of a loss: refused, or made that of all."""

    problems: tuple[Problem, ...] = ()
    whole: tuple[cst.BaseExpression, ...] = ()


def own_numbers(script: TrainingFile) -> OwnNumbers:
    """The same for a script; for the global mode alone."""
    if script.migrated or script.unread_loops or not (script.trained or script.fitted.calls):
        return OwnNumbers()
    agreement = script.agreement
    shares = Shares(
        script.origins,
        script.datasets,
        agreement.sameness,
        script.losses,
        loops=script.loops,
        gradients=script.gradients,
        averaged=agreement.collectives,
    )
    split = {point.node for point in script.shard_points if point.batches}  # these are changed before
    found = shares.found(
        (*script.trained, *script.fitted.stepped),
        rates=script.rate_changes.read,
        drift=script.drift,
        read=script.sliced,
        mapped=[f for c in script.chains if split.isdisjoint(c.nodes) for f in c.mapped_over_batches],
    )
    return OwnNumbers(*found)


def _unnamed(script: TrainingFile, problems: Iterable[Problem], found: list[Problem]) -> list[Problem]:
    """Those of problems at places, with the functions that they call, in which no other one is known."""
    others = (*found, *script.batch_uses.problems, *script.rate_changes.differing)
    known = {p.node for p in others}
    return [
        p
        for p in problems
        if not any(each in known for part in entered(script.origins, [p.node]) for each in nodes(part))
    ]


def _inputs(script: TrainingFile) -> list[Problem]:
    """What training steps read besides their examples, and differs by worker."""
    inputs = Inputs(script.origins, script.agreement.sameness, script.losses, script.loops)
    return inputs.problems(script.sliced)
