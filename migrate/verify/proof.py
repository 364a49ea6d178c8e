"""What a proof says."""

from dataclasses import dataclass

from .judge import FLOAT32, LIMIT, Failure, Limits, Point, Rounding, Row
from .record import Coverage, Data, Division, Effects, Settings

COMPARED = "loss", "gradient", "update"


@dataclass(frozen=True)
class FailedRun:
    """A run of a script that failed by itself.

    cause: one sentence: who, in which step, where, the error. hint: what to do about it, where that is known. place: a
    line of the file that it names, empty where none is known. short: of the traceback, the frames of the user's own
    files, or the last lines of the output. traceback: all of it; its lines are those of the text that ran. error: what
    was said, in all its lines.
    """

    cause: str
    hint: str
    place: str
    short: str
    traceback: str
    error: str

    @property
    def reason(self) -> str:
        """The cause, and below it what to do."""
        return "\n".join(filter(None, (self.cause, self.hint)))


@dataclass(frozen=True)
class Proof:
    """The outcome of comparing a migrated script on `np` processes with its reference in one. True where it is proved.

    batch: `per-worker` or `global`. loss, gradient, update: largest relative differences over all compared steps, ranks
    and variables, dimensionless. failure: the first criterion missed, None where all hold or where the run failed
    before any was missed. reason: one sentence, empty when proved. table: the same differences by variable.
    neutralised: what computes otherwise in both runs than in life, because it differs by worker by its nature.
    diagnosis: the likely cause of the failure in one sentence, where the pattern of the differences tells it. cause:
    its short name, one of `diagnosis.Cause`. timed_out: the migrated run was not done in time, and had missed no
    criterion before: neither proved nor disproved. could_not_compare: the migrated run failed by itself, had missed no
    criterion before, and the runtime had not found that the ranks train different models: the same. failed_run: how
    the migrated run failed. points: the steps that both runs came to, in order. limits: what
    passes, for the script's dtypes. data: which examples the ranks read. effects: which files they wrote.
    settings: what Keras' optimizers are set to, None where none is used.
    randomness_kept: nothing was neutralised, so that nothing can be concluded: never proved. float64: of runs in
    float64 that nothing held together, the largest relative difference of a variable after the last step. coverage:
    None where not all steps were compared. division: what a job by sharded calls divided, None on the other road, or
    where that is not known. calls: whether calls are sharded. names: whether
    the script keeps another system's names. kept: what draws, and normalises by the batch, and did so
    in both runs.
    """

    script: str
    np: int
    batch: str
    steps: int
    seed: int
    proved: bool
    loss: float
    gradient: float
    update: float
    failure: Failure | None
    reason: str
    table: tuple[Row, ...]
    neutralised: tuple[str, ...] = ()
    diagnosis: str | None = None
    cause: str | None = None
    timed_out: bool = False
    points: tuple[Point, ...] = ()
    limits: Limits = FLOAT32
    data: Data | None = None
    effects: Effects | None = None
    settings: Settings | None = None
    randomness_kept: bool = False
    float64: float | None = None
    rounding: Rounding | None = None
    coverage: Coverage | None = None
    could_not_compare: bool = False
    failed_run: FailedRun | None = None
    calls: bool = False
    names: bool = False
    division: Division | None = None
    kept: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.proved

    @property
    def is_undecided(self) -> bool:
        """Whether all that is missed may be rounding, and nothing could decide."""
        return self.rounding is not None and self.rounding.passed is None

    @property
    def nothing_compared(self) -> bool:
        """Whether the migrated run failed before a step of it could be held against the reference's."""
        return self.could_not_compare and not self.points

    def __str__(self) -> str:
        lines = [f"{self.script} on {self.np} processes ({self.batch} batch, {self.steps} steps): {self._verdict}"]
        lines.extend(f"  {each}" for each in (self.reason, self.diagnosis) if each)
        if self.failed_run:
            lines.extend(f"    {line}" for line in self.failed_run.short.splitlines())
        return "\n".join(lines if self.nothing_compared else [*lines, *self._figures()])

    @property
    def _verdict(self) -> str:
        if self.could_not_compare:
            return "could not be compared: the migrated script failed"
        if self.randomness_kept or self.timed_out or self.is_undecided:
            return "nothing can be concluded"
        return "trains the same model" if self.proved else "DOES NOT train the same model"

    def held_to(self, name: str) -> str:
        """The limit of the loss', the gradients' or the updates' differences, in words, and what decided beside it."""
        found = self.rounding
        by = f": decided by {found.by}" if found and found.passed and name in found.limits else ""
        return f"limit {getattr(self.limits, name):.0e}{by}"

    def _figures(self) -> list[str]:
        lines = []
        if self.table:
            parts = [f"{name} {getattr(self, name):.1e} ({self.held_to(name)})" for name in COMPARED]
            lines.append(f"  largest relative difference: {', '.join(parts)}")
            lines.extend(_table(self.table))
        if self.coverage:
            lines.append(f"  covered: {self.coverage.text}")
        if self.rounding and self.proved:
            lines.append(f"  rounding: {self.rounding.text}")
        if self.float64 is not None:
            lines.append(f"  variables after all steps, free in float64: {self.float64:.1e} (limit {LIMIT:.0e})")
        if self.data:
            lines.append(f"  data: {self.data.text}")
        if self.effects:
            lines.append(f"  files: {self.effects.text}")
        if self.settings:
            lines.append(f"  optimizers: {self.settings.text}")
        lines.extend(f"  {name}: {text}" for name, text in self.of_calls.items())
        return [*lines, *(f"  neutralised: {what}" for what in self.neutralised)]

    @property
    def road(self) -> str:
        """How the work is shared, in words."""
        if self.names:
            return "another system's names: each worker trains on what the script gives it"
        if not self.calls:
            return "sharded input: each worker trains on its share of the records"
        return "sharded calls: every worker runs the whole script, and its own rows of each model call"

    @property
    def of_calls(self) -> dict[str, str]:
        """What there is to say of the road, by what it is; empty where the input is sharded."""
        if self.names:
            return {"road": self.road, "reference": _BY_NAMES, "neutralised": "nothing was neutralised"}
        if not self.calls:
            return {}
        said = {"road": self.road} | ({"reference": _WIDENED} if self.batch == "per-worker" else {})
        if self.division:
            said |= {"divided": self.division.text}
            said |= {"not divided": self.division.text_whole} if self.division.whole else {}
        if self.kept:
            said |= {"as in life in both runs": "; ".join(self.kept)}
        return said if self.neutralised else said | {"neutralised": "sharded calls: nothing was neutralised"}


_WIDENED = (
    "the migrated script in one process that stands for all workers; that its batch, rates and steps are those of the "
    "original for so many is not shown by this"
)


_BY_NAMES = (
    "the original on as many processes, with that system's functions in their plain meaning: what all ranks have is "
    "gathered, and averaged in float64; each rank is compared with its own"
)


def _table(rows: tuple[Row, ...]) -> list[str]:
    width = max(len("variable"), *(len(row.variable) for row in rows))
    head = f"  {'variable':<{width}}  gradient    update"
    return [head, *(f"  {row.variable:<{width}}  {_cell(row.gradient)}  {_cell(row.update)}" for row in rows)]


def _cell(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1e}"
