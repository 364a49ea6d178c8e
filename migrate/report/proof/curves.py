"""What the plots of a proof show: for the page and for the image alike."""

from __future__ import annotations

from dataclasses import dataclass

from ...verify.proof import Proof

# More losses than colours that can be told apart: those of accumulated batches look alike anyway.
MOST_LOSSES = 4


@dataclass(frozen=True)
class Curve:
    """values: one for each step, None where there is none. colour: its number among those of the plot. points: drawn as
    marks without a line. limit: the value that it must not exceed.
    """

    name: str
    values: tuple[float | None, ...]
    colour: int = 0
    points: bool = False
    limit: float | None = None


def losses(proof: Proof) -> tuple[Curve, ...]:
    """The reference's losses as lines, and on each the migrated run's mean over the ranks as marks."""
    several = max((len(point.losses) for point in proof.points), default=0)
    curves = []
    for number in range(min(several, MOST_LOSSES)):
        of = f", gradient {number + 1} of {several}" if several > 1 else ""
        for run, name in enumerate(("reference", "migrated, mean over the ranks")):
            values = tuple(p.losses[number][run] if number < len(p.losses) else None for p in proof.points)
            curves.append(Curve(name + of, values, number, points=run == 1))
    return tuple(curves)


def differences(proof: Proof) -> tuple[Curve, ...]:
    """The largest relative differences by step, each with its limit; the weights' has none."""
    limits = vars(proof.limits)
    return tuple(
        Curve(name, tuple(getattr(p, name) for p in proof.points), number, limit=limits.get(name))
        for number, name in enumerate(("loss", "gradient", "update", "weights"))
    )
