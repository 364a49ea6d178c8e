"""Whether a float32 loss or gradient that is off by little is off by rounding: told by what was measured.

The bias of a convolution in a critic, say, has a gradient that is a sum over all places of terms that nearly cancel:
what is left of it may differ by more than the limit where nothing but the order of the sum does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .compare import UNDECIDED, Comparison, Failure
from .free import LIMIT

# What N processes sum up may be off by this many times as much as the same rows in another order.
_TIMES = 4


@dataclass(frozen=True)
class Rounding:
    """How a difference was decided that may be rounding.

    by: what decided. passed: it is rounding; None where nothing could decide. limits: by kind, those that held in
    float32. text: in words.
    """

    by: Literal["float64", "permuted rows"]
    passed: bool | None
    limits: Mapping[str, float]
    text: str


def first(undecided: Mapping[str, Failure]) -> Failure:
    """The one that comes first in order of steps."""
    return min(undecided.values(), key=lambda one: one.step)


def in_float64(found: Comparison, largest: Mapping[str, float], reason: str = "") -> Rounding:
    """found: in float32. largest: by name, the largest differences of both runs in float64. reason: why nothing
    is proved in float64, empty where all is."""
    passed = not reason and all(value <= LIMIT for value in largest.values())
    differences = ", ".join(f"{name} {value:.1e}" for name, value in largest.items())
    text = f"both runs were repeated in float64, and differ by {differences} (limit {LIMIT:.0e})"
    limits = {one.kind: one.limit * found.times for one in found.undecided.values()}
    return Rounding("float64", passed, limits, _said(found.undecided, text, passed, reason))


def undecided(found: Comparison, narrow: str) -> Rounding:
    """found: of the migrated run. narrow: why float64 did not decide."""
    return Rounding("float64", None, {}, _said(found.undecided, f"float64 does not decide ({narrow})", False))


def in_permuted_rows(found: Comparison, permuted: Comparison, steps: int, narrow: str) -> Rounding:
    """found: of the migrated run. permuted: of the reference with the rows of each batch in another order, held against
    the reference itself for `steps` steps. narrow: why float64 did not decide."""
    head = f"float64 does not decide ({narrow}); with the rows of its batches in another order, the reference"
    undecided = found.undecided
    measured = {key: _largest(permuted, key) for key in undecided}
    nothing = ""
    if len(permuted.points) < steps:
        nothing = f"{head} does not take the same steps, which measures nothing"
    elif not any(measured.values()):
        nothing = f"{head} is the same: they do not come from a dataset, and nothing was measured"
    elif any(value > undecided[key].limit * UNDECIDED for key, value in measured.items()):
        nothing = f"{head} differs by {max(measured.values()):.1e}: its rows are not alike, which measures no rounding"
    if nothing:
        return Rounding("permuted rows", None, {}, _said(undecided, nothing, False))
    limits = {key: min(one.limit * UNDECIDED, max(one.limit, _TIMES * measured[key])) for key, one in undecided.items()}
    worst = max(limits, key=lambda key: _largest(found, key) / limits[key])
    passed = _largest(found, worst) <= limits[worst]
    text = f"{head} differs by {measured[worst]:.1e}, the migrated run by {_largest(found, worst):.1e}"
    kinds = {
        one.kind: max(limits[key] for key in limits if undecided[key].kind == one.kind) for one in undecided.values()
    }
    said = _said(undecided, f"{text} (limit {limits[worst]:.1e})", passed)
    return Rounding("permuted rows", passed, kinds, said)


def _largest(found: Comparison, key: str) -> float:
    return found.gradients.get(key, 0.0) if key else found.loss


def _said(undecided: Mapping[str, Failure], text: str, passed: bool, reason: str = "") -> str:
    one = first(undecided)
    of = f" of {one.variable}" if one.variable else ""
    what = f"the {one.kind}{of} differs by {one.value:.1e} in step {one.step}, which may be rounding of float32"
    so = "it is rounding" if passed else "it is not known to be rounding"
    return f"{what}: {text}: {so}{f' ({reason})' if reason else ''}"
