"""Gradients that are wrong, on the right data: not averaged, summed, divided, averaged where they should be local."""

from ..judge import LOSS
from ..record import INPUT_AVERAGED
from .causes import Cause, Diagnosis, place, places
from .patterns import Scene, StepGradient


def first_wrong(seen: Scene) -> StepGradient | None:
    """The first gradient of the failing step whose loss or value is not the reference's."""
    if seen.failure is None or seen.failure.kind not in ("loss", "gradient"):
        return None
    return next((taken for taken in seen.taken if seen.wrong(taken)), None)


def penalty(seen: Scene) -> Diagnosis | None:
    """A gradient that is part of a loss, or makes inputs, is combined over the ranks."""
    if first_wrong(seen) is None:
        return None
    inner = (call.site for step in seen.steps if step for call in step.calls if call.inner and call.combined)
    sites = (*inner, *seen.noted(INPUT_AVERAGED))
    if not sites:
        return None
    text = (
        f"the gradient at {places(sites)} is part of the loss or makes inputs, and is averaged over the ranks: it must "
        "stay each rank's own (take it from the tf.GradientTape itself)"
    )
    return Diagnosis(Cause.PENALTY, text)


def constant(seen: Scene) -> Diagnosis | None:
    """The gradient on which all ranks agree is a constant times the reference's."""
    taken = first_wrong(seen)
    if taken is None or not taken.same_gradients:
        return None
    gradient, size = taken.gradient(), seen.size
    at = place(taken.calls[0].site)
    for factor, words in ((size, f"{size} times"), (1 / size, f"1/{size} of")):
        if not gradient.is_(factor, seen.tolerance):
            continue
        if taken.combined == "sum" and factor == size:
            text = (
                f"the gradient at {at} is {words} the reference's: op=dp.Sum adds up gradients of a loss that is a mean"
            )
            return Diagnosis(Cause.SUMMED, text)
        if abs(taken.loss - factor) <= seen.tolerance * factor:
            text = (
                f"loss and gradient at {at} are {words} the reference's: the loss is a sum over the examples, or is "
                "divided by a constant, and is averaged like a mean"
            )
            return Diagnosis(Cause.LOSS_SUM, text)
        cause = Cause.SUMMED if factor == size else Cause.DIVIDED
        return Diagnosis(cause, f"the gradient at {at} is {words} the reference's, whose loss is right")
    return None


def not_averaged(seen: Scene) -> Diagnosis | None:
    """Each rank goes on with its own gradient; their mean is the reference's."""
    if seen.failure is None or seen.failure.kind not in ("gradient", "update"):
        return None
    own = [taken for taken in seen.taken if not taken.combined and not taken.same_gradients]
    own = [taken for taken in own if taken.gradient().is_(1.0, seen.tolerance)]
    if not own or seen.same_states():
        return None
    sites = places([taken.calls[0].site for taken in own])
    others = places([taken.calls[0].site for taken in seen.taken if taken.combined])
    but = f", while those at {others} are" if len(own) < len(seen.taken) else ""
    text = f"the gradients at {sites} are each rank's own: they are not averaged over the ranks{but}"
    return Diagnosis(Cause.NOT_AVERAGED, text)


def partly_constant(seen: Scene) -> Diagnosis | None:
    """Some variables have exactly 1/N of their gradient: others also get that of a term that does not shrink."""
    taken = first_wrong(seen)
    if taken is None or not taken.same_gradients or abs(taken.loss - 1) <= LOSS:
        return None
    exact = taken.exact(1 / seen.size)
    if not exact:
        return None
    text = (
        f"part of the loss at {place(taken.calls[0].site)} is 1/{seen.size} of the reference's: a sum over "
        "examples that is divided by a constant, next to a term that does not depend on them, such as a regularizer"
    )
    return Diagnosis(Cause.LOSS_SUM, text)
