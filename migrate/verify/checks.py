"""What is checked besides the numbers: examples read, files written, and what the optimizers are set to."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from .diagnosis import Cause, Diagnosis
from .judge import Failure, Rounding, judge_free
from .proof import Proof
from .record import (
    Data,
    Division,
    Effects,
    Spec,
    Trace,
    files_made,
    judge_effects,
    judge_effects_by_rank,
    judge_examples,
    judge_settings,
    judge_whole,
    read_division,
    read_effects,
    read_examples,
    read_settings,
    real_path,
    scratch_place,
)

_STEPS = {
    "per-worker": "there are fewer of these for the same examples, by the number of ranks (dp.local_steps divides)",
    "global": "with the same batch there are as many as before",
}


def data(reference: Trace, ranks: Sequence[Trace], steps: int) -> Data:
    """Which examples the ranks read, in the steps that all of them came to."""
    done = min(steps, *(rank.closed_steps() for rank in ranks))
    idle = {(step, number) for number, rank in enumerate(ranks) for step in rank.idle_steps(done)}
    read = [read_examples(rank.folder) for rank in ranks]
    return judge_examples(read_examples(reference.folder), read, done, idle)


def data_of_calls(reference: Trace, ranks: Sequence[Trace], steps: int) -> Data:
    """Whether every rank read what the reference did, as the workers of sharded calls do. It decides nothing: examples
    that differ in their last bits are no others.
    """
    done = min(steps, *(rank.closed_steps() for rank in ranks))
    return judge_whole(read_examples(reference.folder), [read_examples(rank.folder) for rank in ranks], done)


def with_division(proof: Proof, ranks: Sequence[Trace]) -> Proof:
    """The proof with what the job divided."""
    found = (read_division(rank.folder) for rank in ranks)
    return dataclasses.replace(proof, calls=True, division=next((each for each in found if each), None))


def going_on(ranks: Sequence[Trace], steps: int) -> Failure | None:
    """A rank that makes one more update where the reference comes to its end; told where that many were to be made."""
    for rank, trace in enumerate(ranks):
        step = trace.step(steps)
        if step is not None and step.closed:
            text = f"goes on after {steps} steps, where the reference comes to its end"
            return Failure(steps, rank, "", "steps", steps + 1, steps, text)
    return None


def idle(division: Division | None, ended_well: bool) -> str:
    """Why nothing can be concluded of a job of sharded calls: nothing was divided. Empty where something was, where
    there was never more than one row to divide, or where the job has failed for another reason."""
    if division is None or division.divided or not (division.nothing or ended_well):
        return ""
    if division.single_rows and not division.nothing:
        return ""
    if division.nothing or not division.whole:
        return division.nothing or "no call of a Keras layer or model was recorded by a tf.GradientTape"
    return f"nothing in this script could be sharded: every worker did all the work: {division.text_whole}"


def with_data(proof: Proof, found: Data) -> Proof:
    """The proof with what is known of the examples, which fails it where nothing else does before."""
    proof = dataclasses.replace(proof, data=found)
    if found.outcome != "broken" or not proof.proved:
        return proof
    failure = Failure(found.step or 0, None, "", "data", 1, 0, found.text)
    return dataclasses.replace(proof, proved=False, failure=failure, reason=found.text)


def with_settings(proof: Proof, reference: Trace, ranks: Sequence[Trace]) -> Proof:
    """The proof with what is known of the optimizers, which fails it where nothing else does before."""
    found = judge_settings(read_settings(reference.folder), [read_settings(rank.folder) for rank in ranks])
    proof = dataclasses.replace(proof, settings=found)
    if found is None or found.rank is None or not proof.proved:
        return proof
    failure = Failure(proof.steps - 1, found.rank, "", "settings", 1, 0, found.text)
    diagnosis, cause = None, Cause.UPDATE.value
    if found.schedule:
        cause = Cause.RATE.value
        diagnosis = f"the numbers of steps in a schedule are for the job's updates: {_STEPS[proof.batch]}"
    return dataclasses.replace(
        proof, proved=False, failure=failure, reason=found.text, diagnosis=diagnosis, cause=cause
    )


def files(ranks: Sequence[Trace], spec: Spec, steps: int) -> Effects:
    """Which files the ranks wrote in the run's directory."""
    copy = scratch_place(Path(spec.root), real_path(spec.path))
    done = min(steps, *(rank.closed_steps() for rank in ranks))
    return judge_effects([read_effects(rank.folder) for rank in ranks], files_made(Path(spec.scratch), copy), done)


def files_by_rank(references: Sequence[Trace], ranks: Sequence[Trace], steps: int) -> Effects:
    """Which files each rank wrote, against the reference's same rank."""
    theirs, ours = ([read_effects(each.folder) for each in traces] for traces in (references, ranks))
    return judge_effects_by_rank(theirs, ours, steps)


def with_files(proof: Proof, found: Effects) -> Proof:
    """The proof with what is known of the files, which fails it where nothing else does."""
    proof = dataclasses.replace(proof, effects=found)
    if found.path is None or not proof.proved:
        return proof
    failure = Failure(found.step or 0, found.rank, "", "files", 1, 0, found.text)
    return dataclasses.replace(proof, proved=False, failure=failure, reason=found.text)


def with_another_original(proof: Proof) -> Proof:
    """The proof against an original that was found, and of which the tool makes another script: it disproves that one
    is made of the other, and not that the migration is right.
    """
    if proof.proved or proof.timed_out or proof.could_not_compare or proof.randomness_kept:
        return proof
    text = "the script may have been made from another original than the one found (name its own with --against)"
    text += ", or with other options than those given here"
    if proof.diagnosis:
        text += f"; if it was made from this one, with these: {proof.diagnosis}"
    return dataclasses.replace(proof, diagnosis=text, cause=Cause.ORIGINAL.value)


def with_randomness(proof: Proof) -> Proof:
    """What is left of a proof whose two runs drew, ordered and normalised as they do in life: its figures."""
    what = "nothing was neutralised (--keep-randomness), so nothing can be concluded"
    reason = f"{what}; as measured: {proof.reason}" if proof.reason else what
    return dataclasses.replace(proof, proved=False, randomness_kept=True, reason=reason, diagnosis=None, cause=None)


def with_float64(proof: Proof, reference: Trace, ranks: Sequence[Trace]) -> Proof:
    """The proof with how far variables are apart after runs that nothing held together."""
    done = min(proof.steps, *(rank.closed_steps() for rank in ranks))
    found = judge_free(reference, ranks, done)
    proof = dataclasses.replace(proof, float64=found.largest)
    if found.failure is None or not proof.proved:
        return proof
    one = found.failure
    reason = f"step {one.step}, rank {one.rank}: {one.variable} {one.text} in float64"
    return dataclasses.replace(proof, proved=False, failure=one, reason=reason)


def with_rounding(
    proof: Proof, measured: Rounding, failure: Failure, sentence: str, known: Callable[[], Diagnosis | None]
) -> Proof:
    """The proof with how a gradient was decided that may be rounding.

    failure, sentence: that gradient, where it is not. known: asked for the likely cause then.
    """
    proof = dataclasses.replace(proof, rounding=measured)
    if measured.passed:
        return dataclasses.replace(proof, limits=dataclasses.replace(proof.limits, **measured.limits))
    found = None if measured.passed is None else known()
    reason = f"{sentence}\n{measured.text}"
    cause = (found.text, found.cause.value) if found else (None, None)
    return dataclasses.replace(proof, proved=False, failure=failure, reason=reason, diagnosis=cause[0], cause=cause[1])
