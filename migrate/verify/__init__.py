"""The proof that a migrated script trains the same model: run both, compare every update.

    proof = prove("train.py", np=2, steps=10)
    print(proof)

Runs the script, unlike the rest of the tool: once as the reference in one process, once migrated on `np`. TensorFlow is
imported by those processes only.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...rules._base import AS_USUAL, Policy
from . import texts
from .could_not_run import CouldNotRun
from .judge import Failure, Row
from .proof import Proof
from .recording import SEED, TIMEOUT, Recording, record

__all__ = ["CouldNotRun", "Failure", "Proof", "Recording", "Row", "prove", "record"]


def prove(
    path: str | Path,
    np: int = 2,
    steps: int | None = None,
    *,
    policy: Policy = AS_USUAL,
    seed: int = SEED,
    migrated: bytes | None = None,
    reference: bytes | None = None,
    args: Sequence[str] = (),
    timeout: float = TIMEOUT,
    keep_randomness: bool = False,
    float64: bool = False,
) -> Proof:
    """Compare the script at `path`, migrated, on `np` processes with its reference for `steps` updates.

    steps: None for as many as it takes to go past the end of an epoch, where that does not take long.
    migrated, reference: source texts to use instead of what the tool makes of `path`. seed: start of all generators.
    policy: as in `tfdp migrate`. keep_randomness: neutralise nothing; then nothing is proved.
    float64: run freely in float64, where the script allows it, and compare the variables after each step.
    args: the script's own arguments. timeout: seconds for each of the two runs.
    Where the migrated script shards calls and keeps the batch, the reference is the original.

    Raises:
        CouldNotRun: the tool refuses the script, or the reference fails, updates nothing or ends too early.
        OSError: `path` cannot be read.
    """
    source = Path(path).read_bytes()
    after = texts.migrated(str(path), source, policy).after if migrated is None else migrated
    road = texts.road_of(after) or "input"
    calls, names = road == "calls", road == "names"
    mode = texts.mode_of(road, policy.batch, after)
    if reference is None:
        reference = texts.reference_of(road, str(path), source, np, mode, policy)
    options: dict[str, Any] = {"batch": mode, "seed": seed, "args": args, "timeout": timeout}
    options |= {"keep_randomness": keep_randomness, "float64": float64, "calls": calls, "names": names}
    with record(path, np, steps, reference=reference, original=source, **options) as recording:
        return recording.prove(after)
