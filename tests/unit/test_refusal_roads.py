"""Every source of a refusal, with its ground: on which road it counts, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from tfdp.rules import RULES

ROOT = Path(__file__).parents[2]
_MAKERS = {"Problem", "Uncounted", "Refuse"}


class Ground(Enum):
    """Why a place is refused; whether that counts where every worker runs the whole script, on whole batches."""

    DATA = (False, "where records are sharded: nothing is, each worker reads all data")
    WORDS = (False, "words of which it is not listed what they mean for a share: the whole batch is there")
    RATE = (False, "how rates are scaled: they are not")
    STEPS = (False, "what counts steps: there are as many as in one process")
    DECISION = (False, "decisions by a worker's examples: all workers have the same, and the same losses")
    WIDENED = (True, "only where the batches of all workers are insisted on: else the script's own is kept")
    DRAWS = (False, "draws that have to differ, or not to: all are the job's, and the same on every worker")
    OPTIMIZER = (False, "which optimizer averages: gradients are averaged where a tape gives them")
    TAPE = (False, "which tape is averaged, where its gradients go: every tape gives averaged gradients")
    FITTED_ELSEWHERE = (True, "of code that trains a model out of sight only a tuner counts, which writes its trials")
    OTHER_SYSTEM = (True, "another system shares the training, or TensorFlow 1 runs it: no tape of this job records it")
    NO_TAPE = (True, "only where nothing else trains: no call could be shared; else it is the same on every worker")
    PATCHED = (True, "only of what the runtime looks into: tapes, Keras' layers and models")
    FILES = (
        True,
        "what is tracked, or written by callbacks and tuners out of sight, and cannot be one worker's",
    )
    DEVICE = (True, "a GPU that is the same one for every worker")
    XLA = (True, "XLA cannot compile what waits for others, and cannot be turned off here")
    THREADS = (True, "common calls in no one order")
    ENTRY = (True, "where the workers can be started, and what comes before that")
    RETIRED = (True, "a call that Keras no longer has, and whose arguments cannot be told apart")
    MIGRATED = (True, "a script that is migrated already, for the other road")
    FORM = (True, "the form of all: no reason by itself")


SOURCES = {
    "batches.sharding.shard_plan": Ground.DATA,
    "widening.stepwise.Stepwise.problems": Ground.WIDENED,
    "widening.understood._listed": Ground.WIDENED,
    "widening.understood._losses": Ground.WIDENED,
    "widening.understood._others": Ground.WIDENED,
    "widening.understood._sizes": Ground.WIDENED,
    "widening.understood._untold": Ground.WIDENED,
    "rules.tfdp015_widen_batch.outcomes": Ground.WIDENED,
    "vocabulary.statements.first_outside": Ground.WORDS,
    "batches.array_batches.ArrayBatches.problems": Ground.DATA,
    "batches.array_batches.ArrayBatches._shared": Ground.DATA,
    "batches.array_batches.ArrayBatches._without_training": Ground.DATA,
    "batches.sharding._twice": Ground.DATA,
    "data.shard_points.find_shard_point": Ground.DATA,
    "data.shard_points._of_several": Ground.DATA,
    "data.shard_points._place": Ground.DATA,
    "data.shard_points._read_outside": Ground.DATA,
    "keras.fit_data._problem": Ground.DATA,
    "training.loops.Loops._before_loops": Ground.DATA,
    "training.loops.Loops._beside": Ground.DATA,
    "training.loops.Loops._no_data": Ground.DATA,
    "training.loops.Loops.of": Ground.DATA,
    "training.loops.Loops._climb": Ground.DATA,
    "rates.own_optimizers.OwnOptimizers._of": Ground.RATE,
    "rates.own_optimizers.OwnOptimizers._made": Ground.RATE,
    "rates.own_optimizers._not_found": Ground.RATE,
    "rates.rates.Rates._of_keras": Ground.RATE,
    "rates.rates.Rates._hidden": Ground.RATE,
    "rates.rates.Rates._of_own": Ground.RATE,
    "rates.rates.Rates._rate": Ground.RATE,
    "training.plain_updates.PlainUpdates.rate": Ground.RATE,
    "rules.tfdp020_scale_learning_rate._unscalable": Ground.RATE,
    "batches.array_batches.ArrayBatches._drawn": Ground.STEPS,
    "counting.bounds.StepBounds._of_range": Ground.STEPS,
    "counting.bounds.StepBounds._not_counted": Ground.STEPS,
    "counting.bounds.StepBounds._of_while": Ground.STEPS,
    "counting.bounds.StepBounds._of_exits": Ground.STEPS,
    "counting.bounds._merged": Ground.STEPS,
    "counting.counts._uncertain": Ground.STEPS,
    "counting.fit_calls._unneeded": Ground.STEPS,
    "counting.schedules.Schedules._kept": Ground.STEPS,
    "counting.schedules._uncertain": Ground.STEPS,
    "counting.fit_calls.uncertain": Ground.DECISION,
    "untaught.seeded_orders": Ground.DRAWS,
    "keras.averaged.Optimizers._inside": Ground.OPTIMIZER,
    "keras.averaged.Optimizers._starred": Ground.OPTIMIZER,
    "keras.averaging.KerasAveraging.problems": Ground.OPTIMIZER,
    "keras.averaging.KerasAveraging._of_fit": Ground.OPTIMIZER,
    "keras.named_optimizers.unmade_optimizer": Ground.OPTIMIZER,
    "keras.train_steps.KerasSteps.problems": Ground.OPTIMIZER,
    "untaught._untaught": Ground.TAPE,
    "untaught._unknown_tapes": Ground.TAPE,
    "untaught._tensor_updates": Ground.TAPE,
    "untaught.escaped": Ground.TAPE,
    "untaught.unwrapped": Ground.TAPE,
    "untaught.averaged_twice": Ground.OPTIMIZER,
    "other_training._given_away": Ground.TAPE,
    "untaught._in_other_files": Ground.DATA,
    "untaught.untaught": Ground.FITTED_ELSEWHERE,
    "other_training._named": Ground.OTHER_SYSTEM,
    "other_training._graph_gradients": Ground.OTHER_SYSTEM,
    "untaught.distributed": Ground.OTHER_SYSTEM,
    "untaught._distributed": Ground.OTHER_SYSTEM,
    "untaught._other_systems": Ground.OTHER_SYSTEM,
    "untaught._written_out": Ground.NO_TAPE,
    "untaught._untaped": Ground.NO_TAPE,
    "hazards.patching.patched": Ground.PATCHED,
    "hazards.patching._namespaces": Ground.PATCHED,
    "data.generators.Seedings.problems": Ground.DRAWS,
    "shared_run.refused._tuned": Ground.FILES,
    "rules.tfdp051_log_on_root._read": Ground.FILES,
    "shared_run.callbacks.GivenCallbacks.problems": Ground.FILES,
    "training.devices.Devices.problems": Ground.DEVICE,
    "shared_run.compiled.Compiled.problems": Ground.XLA,
    "shared_run.threads.in_threads": Ground.THREADS,
    "shared_run.refused._all": Ground.ENTRY,
    "rules.tfdp001_initialise.outcomes": Ground.ENTRY,
    "migrate.sequence.out_of_place": Ground.ENTRY,
    "shared_run.retired.Retired.problems": Ground.RETIRED,
    "shared_run.refused._started": Ground.MIGRATED,
    "untaught.on_calls": Ground.MIGRATED,
    "untaught.half_migrated": Ground.MIGRATED,
    "program.problem.Problem.since": Ground.FORM,
    "rules._base.Rule.run": Ground.FORM,
}

OF_CALLS = {
    "TFDP001",
    "TFDP002",
    "TFDP011",
    "TFDP015",
    "TFDP020",
    "TFDP032",
    "TFDP050",
    "TFDP051",
    "TFDP052",
    "TFDP054",
    "TFDP060",
    "TFDP070",
    "TFDP075",
    "TFDP080",
}


def made(tree: ast.AST, inside: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The functions in which refusals are made."""
    for node in ast.iter_child_nodes(tree):
        within = (*inside, node.name) if isinstance(node, ast.FunctionDef | ast.ClassDef) else inside
        if isinstance(node, ast.Call):
            func = node.func
            since = isinstance(func, ast.Attribute) and func.attr == "since" and ast.unparse(func.value) == "Problem"
            if since or (isinstance(func, ast.Name) and func.id in _MAKERS):
                yield within
        yield from made(node, within)


def test_every_source_of_a_refusal_is_in_the_table() -> None:
    found = set()
    for path in (*(ROOT / "migrate").rglob("*.py"), *(ROOT / "rules").glob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removeprefix("migrate.facts.")
        found |= {".".join((module, *names)) for names in made(ast.parse(path.read_text()))}
    assert found == SOURCES.keys()


def test_what_counts_on_calls_is_told_by_rules_of_that_road() -> None:
    assert {r.code for r in RULES if "calls" in r.roads} == OF_CALLS
