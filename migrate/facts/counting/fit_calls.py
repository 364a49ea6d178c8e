"""What around the data of a `fit` has to follow the workers: steps, and what is shown; where the calls are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from ...catalogue import Kind
from ..apis import FITS, RANKS
from ..data import drops_remainder
from ..keras import Fit, FitData
from ..program import Origins, Problem, argument, is_off, leading, method, nodes, number, receiver
from .counts import StepCount, StepCounts

# --- steps ------------------------------------------------------------------------------------------------------------


def steps_of(fit: FitData, counts: StepCounts) -> StepCount | Problem | None:
    """`steps_per_epoch`, where it is to be divided; rounded down where the data end by themselves."""
    call = fit.fit.call
    found = counts.count(call, "steps_per_epoch", 12, "fit()")
    if not isinstance(found, StepCount):
        return found
    given = found.value
    if fit.arrays:
        return _unneeded(given, "the arrays' own length")
    if fit.batches is not None or not fit.chains:
        return StepCount(call, found.keyword, found.position, given, down=True)
    endless = [chain.endless or any(link.stage == "repeat" for link in chain.links) for chain in fit.chains]
    if all(endless):
        return found
    if all(chain.batches and all(map(drops_remainder, chain.batches)) for chain in fit.chains):
        return StepCount(call, found.keyword, found.position, given, down=True)
    more = "make the training data by code that always repeats them" if any(endless) else "add .repeat() to it"
    return _unneeded(given, f"the dataset's own length, or {more}")


def _unneeded(node: cst.CSTNode, instead: str) -> Problem:
    reason = "the data end after a number of steps of their own, which a divided number of steps may miss by one"
    return Problem("TFDP011", node, reason, f"leave steps_per_epoch out: an epoch is then {instead}")


# --- what Keras runs --------------------------------------------------------------------------------------------------


def uncertain(fits: Iterable[FitData], certain: Callable[[cst.CSTNode], bool]) -> list[Problem]:
    """Fits that some ranks may come to and others not."""
    reason = "whether this model is fitted depends on something that may differ by worker"
    next_step = "fit it on every worker, or decide by something that all workers share, or by dp.agree(…)"
    return [Problem("TFDP031", f.fit.call, reason, next_step) for f in fits if not certain(f.fit.call)]


# --- calls that show their progress -----------------------------------------------------------------------------------


def shown(origins: Origins, fits: Iterable[Fit]) -> list[tuple[cst.Call, int]]:
    """Calls of `fit`, `evaluate` and `predict` of the fitted models, with the position of `verbose`, that show their
    progress on every rank."""
    fits = tuple(fits)
    models = {o.node for f in fits for o in origins.of(f.model)}
    calls = [f.call for f in fits if f.method in FITS]
    for call in origins.index.methods("evaluate", "predict"):
        model = receiver(call)
        known = origins.kinds(model) == {Kind.MODEL} or any(o.node in models for o in origins.of(model))
        calls += [call] if known and origins.function(call.func) is None else []
    found = [(c, {"fit": 4, "fit_generator": 3, "evaluate": 3, "predict": 2}[method(c)]) for c in calls]
    return [(c, place) for c, place in found if _shows(origins, c, place)]


def _shows(origins: Origins, call: cst.Call, place: int) -> bool:
    if any(a.star for a in call.args):
        return False
    given = argument(call, "verbose", place)
    if given is None:
        return True
    silent = is_off(origins, given.value) or number(given.value) == 0
    return not silent and not any(origins.called(n) in RANKS for n in nodes(given.value))


# --- places -----------------------------------------------------------------------------------------------------------


def around(origins: Origins, node: cst.CSTNode) -> list[cst.CSTNode]:
    """The loops in which a model is fitted again and again, also through the calls that lead there."""
    return [loop for way in leading(origins, [node]) for loop in origins.index.loops_around(way)]
