"""Everything that keeps a script from being migrated, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from tfdp.migrate.facts import fit_calls, hazards
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.unplaced import unplaced

if TYPE_CHECKING:
    from tfdp.migrate.facts.script import Script


def refusals(script: Script, batch: str) -> tuple[Problem, ...]:
    """All problems of a script in a batch mode, also those that the author ignores."""
    loops = script.unread_loops
    settled = script.agreement  # before anything asks which conditions are the same on all ranks
    found = [] if loops or settled is None else script.data_problems(batch)
    unknown = any(not script.ignored(p.code, p.node) for p in loops)
    found += [*loops, *hazards.untaught(script), *hazards.escaped(script), *hazards.unwrapped(script)]
    found += [*script.fitted.averaging.problems, *script.keras_reductions.problems]
    if not unknown:  # else the batches are not known
        found += [*script.reductions.problems(), *script.shared_totals.problems, *script.drifting]
    found += [*(() if script.migrated else script.noise.problems), *hazards.general(script, batch)]
    found += [] if script.migrated else fit_calls.uncertain(script.fitted.data, script.agreement.certain)
    named = {p.node for p in found}
    decisions = [p for p in script.agreement.problems(script.effects) if p.node not in named]
    found = [*(p for p in found if not _follows(script, p, decisions)), *decisions, *_written(script)]
    found += script.agreement.asked_apart(script.effects)
    return tuple(dict.fromkeys(found))


def _follows(script: Script, problem: Problem, decisions: list[Problem]) -> bool:
    """Whether an exit is a problem only because its test is one."""
    tests = {d.node for d in decisions}
    around = script.index.ancestors(problem.node) if isinstance(problem.node, cst.Break | cst.Return) else ()
    return any(isinstance(n, cst.If | cst.While) and n.test in tests for n in around)


def _written(script: Script) -> list[Problem]:
    """What is written where it cannot be guarded, and what reads it where it cannot wait."""
    certain = script.agreement.certain
    found = [p for e in script.effects if (p := unplaced(e, script.origins, certain)) is not None]
    reason = "this reads what rank 0 writes, under a condition that may differ by worker"
    next_step = "read the file outside the condition"
    return [*found, *(Problem("TFDP050", s, reason, next_step) for s in script.waiting_reads if not certain(s))]
