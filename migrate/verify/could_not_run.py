"""Why there is nothing to compare."""

from pathlib import Path

from .. import originals
from ..engine import single
from .proof import FailedRun
from .record import TRACER_LOG, Spec
from .reference import NotWidenedError, widened

NOT_FREE = "it does not run in float64, so leave out --float64"


class CouldNotRun(Exception):  # noqa: N818 - says what happened, and is neither "equal" nor "different"
    """There is nothing to compare: the original fails, updates nothing, or ends too early.

    reason: in words. failed_run: the run that failed, where one did.
    """

    def __init__(self, reason: str, failed_run: FailedRun | None = None) -> None:
        super().__init__(f"{reason}\n{failed_run.short}" if failed_run else reason)
        self.reason = reason
        self.failed_run = failed_run


def text_to_run(path: str | Path, source: bytes, *, float64: bool) -> bytes:
    """The text of a run, with wide constants in float64. Raises CouldNotRun."""
    try:
        return widened(source) if float64 else source
    except NotWidenedError as error:
        raise CouldNotRun(f"{path}: {NOT_FREE}: {error}") from error


def told(path: str, error: CouldNotRun) -> str:
    """The first line of what keeps a script from float64."""
    return str(error).removeprefix(f"{path}: ").removeprefix(f"{NOT_FREE}: ").splitlines()[0]


def refuse_tracer_error(spec: Spec) -> None:
    """Raise CouldNotRun where the instruments of a run have failed."""
    log = Path(spec.out) / TRACER_LOG
    if log.exists():
        raise CouldNotRun(f"{spec.path}: the proof's own instruments failed:\n{log.read_text('utf-8')}")


def is_for_one_process(path: str, source: bytes) -> bool:
    """Whether no other system distributes a script: one of those tells nothing, run alone, of why its one-worker form
    fails."""
    return originals.imports_runtime(source) or not single(path, source).changed
