"""Every source of a refusal, with its ground: on which road it counts, and why."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from test_rules import CASES, split

from tfdp.migrate import engine
from tfdp.rules import RULES

ROOT = Path(__file__).parents[2]
_MAKERS = {"Problem", "Uncounted", "Unsettled", "Refuse"}


class Ground(Enum):
    """Why a place is refused; whether that counts where every worker runs the whole script, on whole batches."""

    DATA = (False, "where records are sharded: nothing is, each worker reads all data")
    WORDS = (False, "words of which it is not listed what they mean for a share: the whole batch is there")
    ROWS = (False, "what mixes rows, or gives them weights: the whole batch is there; a layer that mixes runs whole")
    LOSS = (False, "what a loss is over the batch: it is computed of the whole batch")
    BATCH = (False, "what stands for the batch or its size: it stays what it is")
    RATE = (False, "how rates are scaled: they are not")
    STEPS = (False, "what counts steps: there are as many as in one process")
    DECISION = (False, "decisions by a worker's examples: all workers have the same, and the same losses")
    DRIFT = (False, "variables that get a worker's own values: they are the same; the run time compares variables")
    WIDENED = (True, "only where the batches of all workers are insisted on: else the script's own is kept")
    DRAWS = (False, "draws that have to differ, or not to: all are the job's, and the same on every worker")
    OPTIMIZER = (False, "which optimizer averages: gradients are averaged where a tape gives them")
    TAPE = (False, "which tape is averaged, where its gradients go: every tape gives averaged gradients")
    FITTED_ELSEWHERE = (True, "of code that trains a model out of sight only a tuner counts, which writes its trials")
    OTHER_SYSTEM = (True, "another system shares the training, or TensorFlow 1 runs it: no tape of this job records it")
    NO_TAPE = (True, "only where nothing else trains: no call could be shared; else it is the same on every worker")
    PATCHED = (True, "only of what the runtime looks into: tapes, Keras' layers and models")
    PROCESS = (True, "what each process makes for itself, in training: nothing makes it equal, unless rank 0 is asked")
    FILES = (
        True,
        "what is written or tracked and cannot be one worker's, and what reads it: all workers run the script",
    )
    DEVICE = (True, "a GPU that is the same one for every worker")
    XLA = (True, "XLA cannot compile what waits for others, and cannot be turned off here")
    THREADS = (True, "common calls in no one order")
    ENTRY = (True, "where the workers can be started, and what comes before that")
    RETIRED = (True, "a call that Keras no longer has, and whose arguments cannot be told apart")
    MIGRATED = (True, "a script that is migrated already, for the other road")
    FORM = (True, "the form of all: no reason by itself")


SOURCES = {
    "rules.tfdp015_widen_batch.outcomes": Ground.WIDENED,
    "widening._others": Ground.WIDENED,
    "vocabulary.statements.first_outside": Ground.WORDS,
    "batches.array_batches.ArrayBatches.problems": Ground.DATA,
    "batches.array_batches.ArrayBatches._shared": Ground.DATA,
    "batches.array_batches.ArrayBatches._without_training": Ground.DATA,
    "batches.sharding.ShardPlan.starred": Ground.DATA,
    "batches.sharding.ShardPlan._of_unknown_size": Ground.DATA,
    "batches.sharding._find": Ground.DATA,
    "batches.sharding._twice": Ground.DATA,
    "data.shard_points.find_shard_point": Ground.DATA,
    "data.shard_points.find_batch_shard_point": Ground.DATA,
    "data.shard_points._of_several": Ground.DATA,
    "data.shard_points.of_padded": Ground.DATA,
    "data.shard_points.of_lengths": Ground.DATA,
    "data.shard_points._place": Ground.DATA,
    "data.shard_points._read_outside": Ground.DATA,
    "data.sharing.Sharing.drawn_before": Ground.DATA,
    "hazards.fed_rows._unsharded": Ground.DATA,
    "hazards.replay.replayed": Ground.DATA,
    "hazards.row_lengths.RowLengths.problems": Ground.DATA,
    "hazards.paired.Paired.problems": Ground.DATA,
    "keras.fit_data._problem": Ground.DATA,
    "training.loops.Loops._before_loops": Ground.DATA,
    "training.loops.Loops._beside": Ground.DATA,
    "training.loops.Loops._no_data": Ground.DATA,
    "training.loops.Loops.of": Ground.DATA,
    "training.loops.Loops._climb": Ground.DATA,
    "hazards.mixing.Mixing.unsettled": Ground.ROWS,
    "hazards.mixing.Mixing._not_told": Ground.ROWS,
    "hazards.mixing.Mixing._problem": Ground.ROWS,
    "hazards.fed_rows._weighted": Ground.ROWS,
    "losses.keras_losses.KerasLosses.problem": Ground.LOSS,
    "losses.keras_losses.KerasLosses._weighted": Ground.LOSS,
    "losses.keras_reductions.KerasReductions._judged": Ground.LOSS,
    "losses.keras_reductions.KerasReductions._wrong": Ground.LOSS,
    "losses.shared_totals.SharedTotals.problems": Ground.LOSS,
    "losses.shared_totals.SharedTotals._misplaced": Ground.LOSS,
    "losses.tape_reductions.Reductions.problems": Ground.LOSS,
    "losses.tape_reductions.Reductions._of_loss": Ground.LOSS,
    "losses.batch_uses.BatchUses._refuse": Ground.BATCH,
    "losses.batch_uses.BatchUses._compared": Ground.BATCH,
    "hazards.shares.Shares._problem": Ground.BATCH,
    "untaught._whole_or_split": Ground.BATCH,
    "rates.changes.RateChanges._differing": Ground.RATE,
    "rates.changes.RateChanges._unscaled": Ground.RATE,
    "rates.changes.RateChanges._unfollowed": Ground.RATE,
    "rates.own_optimizers.OwnOptimizers._of": Ground.RATE,
    "rates.own_optimizers.OwnOptimizers._made": Ground.RATE,
    "rates.own_optimizers._not_found": Ground.RATE,
    "rates.rates.Rates._of_keras": Ground.RATE,
    "rates.rates.Rates._hidden": Ground.RATE,
    "rates.rates.Rates._of_own": Ground.RATE,
    "rates.rates.Rates._rate": Ground.RATE,
    "training.plain_updates.PlainUpdates.rate": Ground.RATE,
    "training_file.TrainingFile.rate_changes": Ground.RATE,
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
    "hazards.stepwise.Stepwise.problems": Ground.STEPS,
    "agreement.plan.Agreement.problems": Ground.DECISION,
    "counting.fit_calls.uncertain": Ground.DECISION,
    "counting.means.DecidedMeans._problem": Ground.DECISION,
    "hazards.inputs.Inputs._problem": Ground.DECISION,
    "hazards.inputs.Inputs._decision": Ground.DECISION,
    "sameness.decisions._decided": Ground.DECISION,
    "sameness.decisions._raised": Ground.DECISION,
    "sameness.decisions._turning": Ground.DECISION,
    "hazards.drift.Drift._update": Ground.DRIFT,
    "hazards.drift.Drift._changed": Ground.DRIFT,
    "batches.array_batches.ArrayBatches._drawn_by_rank": Ground.DRAWS,
    "losses.noise._problem": Ground.DRAWS,
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
    "other_training._given_away": Ground.TAPE,
    "untaught._in_other_files": Ground.DATA,
    "untaught.untaught": Ground.FITTED_ELSEWHERE,
    "other_training._named": Ground.OTHER_SYSTEM,
    "other_training._graph_gradients": Ground.OTHER_SYSTEM,
    "untaught.distributed": Ground.OTHER_SYSTEM,
    "untaught._written_out": Ground.NO_TAPE,
    "untaught._untaped": Ground.NO_TAPE,
    "hazards.patching.patched": Ground.PATCHED,
    "hazards.patching._namespaces": Ground.PATCHED,
    "hazards.own_values.OwnValues._problem": Ground.PROCESS,
    "sameness.seeding.Seedings.problems": Ground.PROCESS,
    "shared_run.per_process.PerProcess._problem": Ground.PROCESS,
    "agreement.plan.Agreement.asked_apart": Ground.FILES,
    "hazards.placing.unplaced": Ground.FILES,
    "hazards.placing._failing": Ground.FILES,
    "hazards.placing._unopened": Ground.FILES,
    "outputs.own_names.OwnNames._problem": Ground.FILES,
    "refusals._written": Ground.FILES,
    "shared_run.refused._written": Ground.FILES,
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


REFUSED = [p for p in CASES if split(p)[2] and not p.read_text().startswith("# shard")]
# What is refused on both roads, by the codes of sharded calls.
STILL = {
    "TFDP001/refused_half_migrated": {"TFDP001"},
    "TFDP001/refused_spawned_processes_run_a_seed": {"TFDP001"},
    "TFDP001/refused_spawned_processes_run_what_opens_a_file": {"TFDP001"},
    "TFDP002/refused_environment_with_others": {"TFDP002"},
    "TFDP010/refused_fit_of_what_each_process_chooses": {"TFDP080"},
    "TFDP010/refused_order_by_the_systems_chance": {"TFDP080"},
    "TFDP011/refused_loop_as_long_as_each_process_says": {"TFDP080"},
    "TFDP012/refused_clock_as_a_seed_for_single_records": {"TFDP080"},
    "TFDP020/refused_rate_of_each_process": {"TFDP080"},
    "TFDP030/refused_contrastive_divergence_by_hand": {"TFDP080"},
    "TFDP030/refused_gradient_written_out": {"TFDP080"},
    "TFDP030/refused_loss_with_a_number_of_each_process": {"TFDP080"},
    "TFDP030/refused_training_without_gradients": {"TFDP080"},
    "TFDP031/refused_optimizer_of_a_parameter": {"TFDP001"},
    "TFDP040/refused_variable_of_the_clock": {"TFDP080"},
    "TFDP050/refused_failing_that_decides": {"TFDP050"},
    "TFDP050/refused_file_in_another_format": {"TFDP050"},
    "TFDP050/refused_files_made_by_a_callback_that_writes": {"TFDP050"},
    "TFDP050/refused_files_made_in_an_expression": {"TFDP050"},
    "TFDP050/refused_files_made_where_items_are_read": {"TFDP050"},
    "TFDP050/refused_mode_unknown": {"TFDP050"},
    "TFDP050/refused_names_of_each_worker": {"TFDP050"},
    "TFDP050/refused_read_in_the_course_of_training": {"TFDP050"},
    "TFDP070/refused_horovod": {"TFDP070"},
    "TFDP070/refused_strategy": {"TFDP070"},
    "TFDP075/refused_gradients_of_a_graph": {"TFDP075"},
    "TFDP075/refused_graph_mode": {"TFDP075"},
    "TFDP075/refused_session": {"TFDP075"},
    "TFDP075/refused_train_operation_of_slim": {"TFDP075"},
    "TFDP075/refused_updates_of_a_backend_function": {"TFDP075"},
}


def test_what_the_cases_of_sharded_input_refuse_goes_by_calls_unless_its_ground_counts_there() -> None:
    found = {}
    for number, path in enumerate(REFUSED):
        if number % 4 and f"{path.parent.name}/{path.stem}" not in STILL:
            continue  # a sample of those that go by calls
        result = engine.migrate(path.name, split(path)[0].encode(), shard="calls")
        assert result.refused or b"shard_calls=True" in result.after, path
        if result.refused:
            found[f"{path.parent.name}/{path.stem}"] = {f.code for f in result.findings if f.refusal}
    assert found == STILL
