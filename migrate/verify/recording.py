"""One run of the reference, and any number of migrated scripts held against it."""

import contextlib
import dataclasses
import functools
import itertools
import math
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from . import checks, obstacles, runs
from .could_not_run import NOT_FREE, CouldNotRun, is_for_one_process, refuse_tracer_error, text_to_run, told
from .diagnosis import Diagnosis, diagnose, places
from .failed_run import cut_short, diverged, failed_run
from .judge import (
    UNDECIDED,
    UNDECIDED_CALLS,
    Comparison,
    Failure,
    Rounding,
    compared,
    compared_by_rank,
    drawn,
    first,
    in_float64,
    in_permuted_rows,
    lock,
    narrow,
    undecided,
)
from .moved import Moved
from .proof import FailedRun, Proof
from .record import (
    BY_FILE,
    FEWEST,
    FILES,
    LOCALLY_NORMALIZED,
    MOST,
    Data,
    Header,
    Spec,
    Trace,
    described,
    read_coverage,
    read_division,
    scratch_place,
)
from .runs import Ended, Watch

Batch: TypeAlias = Literal["per-worker", "global"]
SEED = 20240229
TIMEOUT = 600.0


class Recording:
    """The reference's trace. Made by `record`, valid until its `with` block ends."""

    def __init__(
        self,
        folder: Path,
        spec: Spec,
        np: int,
        batch: Batch,
        *,
        timeout: float,
        watch: Watch | None,
        original: bytes | None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._np = np
        self._batch = batch
        self._timeout = timeout
        self._told = watch
        self._original = original
        self._room_is_known = False
        self._number = itertools.count(1)
        self._traces = [Trace(Path(spec.out) / f"rank{rank}") for rank in range(np if spec.names else 1)]
        self._trace = self._traces[0]
        self._wide: Recording | None = None
        self._narrow = ""  # why there is no record in float64
        self._permuted: Comparison | None = None
        self._is_whole = False  # whether the reference came to its own end

    def make(self) -> None:
        """Run the reference.

        Raises:
            CouldNotRun: with the end of its output.
        """
        ranks = self._np if self._spec.names else 0
        ended = runs.run(self._folder, self._spec, ranks, self._timeout, self._watch)
        self._require(ended)
        if self._spec.fitting:
            known = read_coverage(self._trace.folder)
            done, short = min(trace.closed_steps() for trace in self._traces), known.short if known else None
            self._spec = dataclasses.replace(self._spec, steps=done, fitting=False, short=short)
        coverage = read_coverage(self._trace.folder)
        self._is_whole = coverage is not None and coverage.whole and coverage.short is None
        for trace in self._traces:
            trace.write_lock(lock(trace, self._spec.steps))
            trace.write_start(drawn(trace.start(), trace.lock().trained))
        if self._spec.float64 and (left := narrow(self._trace)):
            raise CouldNotRun(f"{self._spec.path}: {NOT_FREE}: {', '.join(left)} is not float64 all the same")

    def _watch(self, run: str, steps: int) -> None:
        if steps and not self._room_is_known:
            self._room_is_known = True
            wanted = FEWEST if self._spec.fitting else self._spec.steps
            short = obstacles.no_room(self._trace.folder, wanted, self._np)
            if short:
                raise CouldNotRun(f"{self._spec.path}: {short}")
        if self._told is not None:
            self._told(run, steps)

    def prove(self, migrated: bytes, path: str | Path | None = None) -> Proof:
        """Run `migrated` in place of the script on `np` processes and compare.

        path: the name and folder that the text runs under; None for the script's.

        Raises:
            CouldNotRun: the proof itself failed; never because of what `migrated` does.
        """
        folder = self._folder / f"migrated{next(self._number)}"
        folder.mkdir()
        source = folder / "source.py"
        source.write_bytes(text_to_run(self._spec.path, migrated, float64=self._spec.float64))
        names = _names(folder)
        names["path"] = str(Path(path).absolute()) if path else self._spec.path
        reference = self._trace.folder.parent if self._spec.names else self._trace.folder
        # One more where the reference came to its end: a script that goes on is another one.
        whole = self._is_whole
        more: dict[str, Any] = {"reference": str(reference), "steps": self._spec.steps + whole, "one_more": whole}
        spec = Spec(**{**vars(self._spec), **names, **more})
        ended = runs.run(folder, spec, self._np, self._timeout, self._watch)
        refuse_tracer_error(spec)
        ranks = [Trace(Path(spec.out) / f"rank{rank}") for rank in range(self._np)]
        self._refuse_idle(ranks, ended, Moved(names["path"], migrated, "the migrated script"))
        examples = checks.data_of_calls if spec.calls else checks.data
        data = None if spec.keep_randomness or spec.names else examples(self._trace, ranks, self._spec.steps)
        found = self._compared(ranks, spec)
        found.failure = found.failure or checks.going_on(ranks, self._spec.steps)
        failed = failed_run(ended, ranks, Moved(names["path"], migrated, "the migrated script"), self._timeout)
        proof = self._judged(found, ranks, ended, failed, data)
        if spec.calls:
            proof = checks.with_division(proof, ranks)
        if data is not None:
            proof = checks.with_data(proof, data)
        proof = checks.with_settings(proof, self._trace, ranks)
        if spec.names:
            wrote = checks.files_by_rank(self._traces, ranks, self._spec.steps)
            return dataclasses.replace(checks.with_files(proof, wrote), names=True)
        if spec.float64:
            proof = checks.with_float64(proof, self._trace, ranks)
        proof = checks.with_files(proof, checks.files(ranks, spec, self._spec.steps))
        if found.undecided and proof.proved:
            found.failure = one = first(found.undecided)
            measured = self._in_float64(found, migrated, path) or self._in_permuted_rows(found)
            known = functools.partial(self._diagnosis, found, ranks, data=data)
            return checks.with_rounding(proof, measured, one, _sentence(one), known)
        return checks.with_randomness(proof) if spec.keep_randomness else proof

    def _compared(self, ranks: Sequence[Trace], spec: Spec) -> Comparison:
        """The ranks held against the reference: each against its own one, where that has ranks."""
        if spec.names:
            return compared_by_rank(self._traces, ranks, self._spec.steps)
        times = UNDECIDED_CALLS if spec.calls else UNDECIDED
        free = spec.float64 or spec.keep_randomness
        return compared(self._trace, ranks, self._spec.steps, times=1 if free else times)

    def _in_float64(self, found: Comparison, migrated: bytes, path: str | Path | None) -> Rounding | None:
        """What both runs show in float64, None where they show nothing there."""
        try:
            if self._wide is None and not self._narrow:
                self._wide = self._made_wide()
            again = self._wide.prove(migrated, path) if self._wide else None
        except CouldNotRun as error:
            self._narrow = told(self._spec.path, error)
            return None
        if again is None or again.float64 is None:
            return None
        if not again.proved and again.failure is None:
            self._narrow = "the migrated run fails there"
            return None
        largest = {"loss": again.loss, "gradient": again.gradient, "variables": again.float64}
        return in_float64(found, largest, "" if again.proved else again.reason)

    def _made_wide(self) -> "Recording":
        folder = self._folder / "float64"
        folder.mkdir()
        source = Path(self._spec.source).read_bytes()
        (folder / "source.py").write_bytes(text_to_run(self._spec.path, source, float64=True))
        spec = Spec(**{**vars(self._spec), **_names(folder), "float64": True})
        wide = Recording(folder, spec, self._np, self._batch, timeout=self._timeout, watch=self._told, original=None)
        wide.make()
        return wide

    def _in_permuted_rows(self, found: Comparison) -> Rounding:
        if self._spec.calls:  # draws and statistics are those of the rows' order
            return undecided(found, self._narrow)
        if self._permuted is None:
            folder = self._folder / "permuted"
            folder.mkdir()
            names = {**_names(folder), "source": self._spec.source, "reference": str(self._trace.folder)}
            spec = Spec(**{**vars(self._spec), **names, "permuted": True})
            runs.run(folder, spec, 0, self._timeout, self._told)
            refuse_tracer_error(spec)
            other = Trace(Path(spec.out) / "rank0")
            self._permuted = compared(self._trace, [other], self._spec.steps)
        return in_permuted_rows(found, self._permuted, self._spec.steps, self._narrow)

    def _judged(
        self, found: Comparison, ranks: Sequence[Trace], ended: Ended, failed: FailedRun | None, data: Data | None
    ) -> Proof:
        header = self._trace.header()
        late = ended.code is None
        missed = _sentence(found.failure) if found.failure else ""
        # A crash ends the steps too early: then it is the reason, and not the steps that are missing.
        ends_steps = found.failure is None or found.failure.kind == "steps" or cut_short(found, ranks)
        crashed = failed if ends_steps and not diverged(ranks) else None
        known = None
        if (crashed or found.failure) and not (crashed and late):
            said = f"{crashed.cause}\n{crashed.error}" if crashed else ""
            known = self._diagnosis(found, ranks, reason=said, data=data)
        # What the runtime finds before the first update says that nothing was trained; later, that ranks train apart.
        trained = all(rank.closed_steps() for rank in ranks)
        return Proof(
            script=self._spec.path,
            np=self._np,
            batch=self._batch,
            steps=self._spec.steps,
            seed=self._spec.seed,
            proved=found.failure is None and failed is None,
            loss=found.loss,
            gradient=max(found.gradients.values(), default=0.0),
            update=max(found.updates.values(), default=0.0),
            failure=None if crashed else found.failure,
            reason=crashed.reason if crashed else missed,
            table=found.rows(header.names if header else {}),
            neutralised=self._neutralised(ranks[0].header()),
            kept=described(header.kept, *self._texts()) if header else (),
            timed_out=crashed is not None and late,
            could_not_compare=crashed is not None and not late and not (known and trained),
            failed_run=crashed,
            points=tuple(found.points),
            diagnosis=known.text if known else None,
            cause=known.cause.value if known else None,
            limits=found.limits,
            coverage=read_coverage(self._trace.folder) if len(found.points) == self._spec.steps else None,
        )

    def _diagnosis(
        self, found: Comparison, ranks: Sequence[Trace], *, reason: str = "", data: Data | None
    ) -> Diagnosis | None:
        steps, script = self._spec.steps, self._spec.path
        of: dict[str, Any] = {"batch": self._batch, "script": script, "calls": self._spec.calls}
        return diagnose(found, self._trace, ranks, steps, reason=reason, data=data, **of)

    def _neutralised(self, migrated: Header | None) -> tuple[str, ...]:
        header = self._trace.header()
        found = described(header.neutralised, *self._texts()) if header else ()
        notes = migrated.notes if migrated else ()
        for kind, text in ((BY_FILE, FILES), (LOCALLY_NORMALIZED, LOCALLY_NORMALIZED)):
            sites = [note.site for note in notes if note.what == kind]
            found = (*found, f"{text}: {places(sites)}") if sites else found
        return found

    def _texts(self) -> tuple[bytes, bytes]:
        """The reference, and the script that its author has."""
        return Path(self._spec.source).read_bytes(), Path(self._spec.path).read_bytes()

    def _refuse_idle(self, ranks: Sequence[Trace], ended: Ended, moved: Moved) -> None:
        """Raise where every rank did all the work of every step: that they agree says nothing of sharded calls."""
        if reason := checks.idle(read_division(ranks[0].folder), ended.code == 0) if self._np > 1 else "":
            raise CouldNotRun(f"{self._spec.path}: {moved.message(reason)}")

    def _require(self, ended: Ended) -> None:
        """Raise unless the reference did what a proof needs."""
        spec = self._spec
        refuse_tracer_error(spec)
        done = min(trace.closed_steps() for trace in self._traces)
        moved = Moved(spec.path, Path(spec.source).read_bytes(), "the reference")
        known = failed_run(ended, self._traces, moved, self._timeout, "" if spec.names else moved.word)
        failed = known and (self._own_failure(ended) or known)
        if failed is not None:
            of = f" of {spec.steps}" if ended.code is None and not spec.fitting else ""
            how = f"{NOT_FREE}: " if spec.float64 and ended.code is not None else ""
            reason = "\n".join(filter(None, (f"{how}{failed.cause}{of}", failed.hint)))
            raise CouldNotRun(f"{spec.path}: {reason}", failed)
        if done == 0:
            text = "no update of a variable with the gradient of a tf.GradientTape was seen: nothing can be compared"
            raise CouldNotRun(f"{spec.path}: {text}\n{ended.output}")
        if done < spec.steps and not spec.fitting:
            text = f"the reference ends after {done} updates, {spec.steps} were asked for: ask for at most {done}"
            raise CouldNotRun(f"{spec.path}: {text}")
        for index in range(done):
            step = self._trace.step(index)
            if step and not all(math.isfinite(call.loss) for call in step.calls):
                text = f"the reference's loss is not finite in step {index}: ask for fewer steps"
                raise CouldNotRun(f"{spec.path}: {text}")

    def _own_failure(self, reference: Ended) -> FailedRun | None:
        """Whether the original fails, too: then it is that which its author has to see, with its own lines."""
        if self._original is None or not reference.code or self._spec.names:
            return None
        if not is_for_one_process(self._spec.path, self._original):
            return None
        folder = self._folder / "original"
        folder.mkdir()
        (folder / "source.py").write_bytes(self._original)
        spec = Spec(**{**vars(self._spec), **_names(folder), "float64": False})
        ended = runs.run(folder, spec, 0, self._timeout, self._told)
        name = "the script itself, as it is and in one process,"
        moved = Moved(spec.path, self._original, "the script")
        return failed_run(ended, [Trace(Path(spec.out) / "rank0")], moved, self._timeout, name)


@contextlib.contextmanager
def record(
    path: str | Path,
    np: int,
    steps: int | None,
    *,
    reference: bytes,
    batch: Batch = "per-worker",
    seed: int = SEED,
    args: Sequence[str] = (),
    timeout: float = TIMEOUT,
    watch: Watch | None = None,
    original: bytes | None = None,
    keep_randomness: bool = False,
    float64: bool = False,
    calls: bool = False,
    names: bool = False,
) -> Iterator[Recording]:
    """Run `reference` under the name of `path`, in one process, for `steps` updates; None: past the end of an epoch.

    np: processes of the migrated runs to come. seed: what the generators of reference and rank 0 start from. args: the
    script's own. timeout: seconds for each run, the reference's and every migrated one. watch: told a few times a
    second which run is under way, and how many steps it has done. original: run where the reference fails, to tell
    whether the script fails by itself. keep_randomness: neutralise nothing, so that nothing can be concluded. float64:
    run freely in float64, and compare the variables after each step. calls: the migrated runs shard calls: nothing is
    neutralised, and all processes draw by the same entropy; `reference` is the original as it is, or with the batches
    of all workers what is migrated of it, in one process that stands for them. names: the script keeps the functions
    of another system; `reference` is the original, which runs on `np` processes, and by each rank's own entropy.

    Raises:
        CouldNotRun: the reference fails, or ends before `steps` updates.
        ValueError: `np` or `steps` is below 1.
    """
    if np < 1 or (steps is not None and steps < 1):
        raise ValueError(f"np is {np} and steps is {steps}: both must be at least 1")
    if names and float64:
        raise CouldNotRun(f"{path}: {NOT_FREE}: nothing of a script that keeps another system's names is changed")
    with tempfile.TemporaryDirectory(prefix="tfdp-verify-") as name:
        folder = Path(name)
        (folder / "source.py").write_bytes(text_to_run(path, reference, float64=float64))
        spec = Spec(
            path=str(Path(path).absolute()),
            **_names(folder),
            reference="",
            steps=MOST if steps is None else steps,
            fitting=steps is None,
            short=None,
            seed=seed,
            keep_randomness=keep_randomness and not (calls or names),
            float64=float64,
            args=tuple(args),
            permuted=False,
            calls=calls,
            stands_for=np if calls and batch == "per-worker" else 1,
            names=names,
        )
        recording = Recording(folder, spec, np, batch, timeout=timeout, watch=watch, original=original)
        recording.make()
        yield recording


def _names(folder: Path) -> dict[str, Any]:
    """Where a run under `folder` has its things."""
    root = folder / "scratch"
    return {
        "source": str(folder / "source.py"),
        "out": str(folder / "trace"),
        "root": str(root),
        "scratch": str(scratch_place(root, Path.cwd())),
    }


def _sentence(failure: Failure) -> str:
    who = "the mean over the ranks" if failure.rank is None else f"rank {failure.rank}"
    what = "start value" if failure.kind == "start" else failure.kind
    if failure.kind in ("calls", "missing", "steps"):
        return f"step {failure.step}, {who}: {failure.variable} {failure.text}".replace(":  ", ": ")
    of = f" of {failure.variable}" if failure.variable else ""
    return f"step {failure.step}, {who}: {what}{of} {failure.text}"
