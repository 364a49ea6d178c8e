"""What a proof says."""

from dataclasses import dataclass

from .judge import FLOAT32, LIMIT, Failure, Limits, Point, Rounding, Row
from .record import Coverage, Data, Effects, Settings


@dataclass(frozen=True)
class Proof:
    """The outcome of comparing a migrated script on `np` processes with its reference in one.

    batch: `per-worker` or `global`. loss, gradient, update: largest relative differences over all compared steps, ranks
    and variables, dimensionless. failure: the first criterion missed, None where all hold or where the run failed
    before any was missed. reason: one sentence, empty when proved. table: the same differences by variable.
    neutralised: what computes otherwise in both runs than in life, because it differs by worker by its nature.
    diagnosis: the likely cause of the failure in one sentence, where the pattern of the differences tells it. cause:
    its short name, one of `diagnosis.Cause`. timed_out: the migrated run was not done in time, and had missed no
    criterion before: neither proved nor disproved. points: the steps that both runs came to, in order. limits: what
    passes, for the script's dtypes. data: which examples the ranks read. effects: which files they wrote.
    settings: what Keras' optimizers are set to, None where none is used.
    randomness_kept: nothing was neutralised, so that nothing can be concluded: never proved. float64: of runs in
    float64 that nothing held together, the largest relative difference of a variable after the last step.
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

    def __str__(self) -> str:
        verdict = "trains the same model" if self.proved else "DOES NOT train the same model"
        if self.randomness_kept:
            verdict = "nothing can be concluded"
        lines = [f"{self.script} on {self.np} processes ({self.batch} batch, {self.steps} steps): {verdict}"]
        if self.reason:
            lines.append(f"  {self.reason}")
        if self.diagnosis:
            lines.append(f"  {self.diagnosis}")
        measured = [(name, getattr(self, name), getattr(self.limits, name)) for name in ("loss", "gradient", "update")]
        if self.table:
            parts = [f"{name} {value:.1e} (limit {limit:.0e})" for name, value, limit in measured]
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
        lines.extend(f"  neutralised: {what}" for what in self.neutralised)
        return "\n".join(lines)


def _table(rows: tuple[Row, ...]) -> list[str]:
    width = max(len("variable"), *(len(row.variable) for row in rows))
    head = f"  {'variable':<{width}}  gradient    update"
    return [head, *(f"  {row.variable:<{width}}  {_cell(row.gradient)}  {_cell(row.update)}" for row in rows)]


def _cell(value: float | None) -> str:
    return f"{'-':>8}" if value is None else f"{value:8.1e}"
