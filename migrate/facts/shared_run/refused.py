"""All that keeps a script from sharded calls, put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import libcst as cst

from ...catalogue import STRATEGIES, Kind
from ..hazards import patched
from ..other_training import other_training
from ..program import Problem, last_name, receiver
from ..training_file import TrainingFile
from ..untaught import distributed, without_tape
from .entries import Entries
from .threads import in_threads

if TYPE_CHECKING:
    from .run import SharedRun

_OWN = "TFDP080"
OTHER_SYSTEMS = frozenset({"TFDP070", "TFDP075"})
_SYSTEM = "remove that system's calls first, or migrate that file by hand with tfdp.runtime"
_DIVIDED = ("tensorflow.GradientTape", "keras.layers.Layer", "keras.Layer", "keras.Model", "keras.models.Model")
"""What the runtime looks into to share a model's calls."""
_TUNERS = ("autokeras.", "keras_tuner.", "kerastuner.")


def refused(script: TrainingFile, run: SharedRun) -> tuple[Problem, ...]:
    """All problems, but those that the author ignores; of a script of another system, no others."""
    every = (p for p in _all(script, run) if p is not None)
    found = [p for p in dict.fromkeys(every) if not script.ignored(p.code, p.node)]
    others = [p for p in found if p.code in OTHER_SYSTEMS]
    return tuple(others or found)


def _as_own(script: TrainingFile, problem: Problem) -> Problem | None:
    """A problem of the other road, under this one's code; None where the author ignores it there."""
    if script.ignored(problem.code, problem.node):
        return None
    return replace(problem, code=_OWN, next_step=problem.next_step.replace(problem.code, _OWN))


def _all(script: TrainingFile, run: SharedRun) -> Iterator[Problem | None]:
    yield from (p for p in (*distributed(script), *other_training(script)) if p.code in OTHER_SYSTEMS)
    yield from (Problem(e.code, c, e.system, _without(e.system)) for c, e in script.elsewhere.items() if e.system)
    yield from _started(script)
    if (step := Entries(script.origins).trains_nothing_itself(run.training.steps)) is not None:
        reason = "nothing that this file runs comes here: other files call what trains, and the one that is run starts"
        yield Problem("TFDP001", step, f"{reason} the workers", "migrate the script that is run, and leave this one")
    elif run.training.steps and not run.divides:
        reason = "no layer, model or function is called here of which each worker could compute its own rows"
        next_step = "put what gives each row of the batch a result of its own into a function, and call it here"
        yield Problem("TFDP032", run.training.steps[0], reason, next_step)
    trains = run.training.steps or any(script.origins.kind(c.func) is Kind.TAPE for c in script.index.calls)
    yield from (_as_own(script, p) for p in (() if trains else without_tape(script)))
    yield from in_threads(script.origins, run.training.steps)
    yield from run.compiled.problems()
    yield from script.devices.problems
    yield from (p for p in patched(script.origins) if _is_divided(script, p.node))
    yield from run.callbacks.problems()
    yield from run.retired.problems()
    yield from _tuned(script)


def _without(system: str) -> str:
    """What to do about a system in another file, `training.py:3: …`."""
    if f"by {STRATEGIES}" not in system:
        return _SYSTEM
    return (
        f"first `tfdp migrate --target single {system.partition(':')[0]}`, which takes that out, then this file again"
    )


def _started(script: TrainingFile) -> Iterator[Problem]:
    """A script that has joined a job by another way of being migrated."""
    if script.on_input:
        reason = "the script is migrated already, whole or in part, and not to sharded calls"
        yield Problem("TFDP001", script.calls("init")[0], reason, "start again from the original script")


def _is_divided(script: TrainingFile, node: cst.CSTNode) -> bool:
    return (script.names.api(node) or "").startswith(_DIVIDED) if isinstance(node, cst.BaseExpression) else False


def _tuned(script: TrainingFile) -> Iterator[Problem]:
    tuners = dict.fromkeys([*(n for n in script.fitted.handed_models if _is_tuned(script, n)), *_searches(script)])
    reason = "a tuner keeps its trials in one folder, which every worker would write"
    yield from (Problem("TFDP050", n, reason, "train the model by fit in this file") for n in tuners)


def _is_tuned(script: TrainingFile, node: cst.CSTNode) -> bool:
    around = [n for n in script.index.ancestors(node) if isinstance(n, cst.Call | cst.ClassDef)]
    return any(_of_tuner(script, n) for n in around)


def _of_tuner(script: TrainingFile, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.ClassDef):
        return script.origins.below(node, _TUNERS)
    return script.origins.called(node).startswith(_TUNERS) or last_name(cst.ensure_type(node, cst.Call).func) == "Tuner"


def _searches(script: TrainingFile) -> Iterator[cst.Call]:
    """Calls by which a tuner trains, whatever else the script fits."""
    for call in script.index.methods("search", "fit"):
        if any(script.origins.called(o.node).startswith(_TUNERS) for o in script.origins.of(receiver(call))):
            yield call
