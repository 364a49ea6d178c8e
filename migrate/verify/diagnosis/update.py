"""Updates that are wrong although the gradients of the tapes are right."""

from ..record import RATE_SCALED, RATE_SCALED_AGAIN
from .causes import Cause, Diagnosis, places
from .patterns import CONSTANT, Likeness, Scene

# What Adam's epsilon and elements without a gradient leave of a constant factor of an update.
ROUGH = 5 * CONSTANT
RATES = ("rate", "lr")


def updated_otherwise(seen: Scene) -> Diagnosis | None:
    """The gradients are the reference's, what is made of them is not."""
    if seen.failure is None or seen.failure.kind != "update" or not seen.taken:
        return None
    # The gradients are right for that, but for the last digits, of which an optimizer may make much.
    if seen.data is not None and seen.data.whole:
        text = "every rank trains on all examples of the reference's step: they are not sharded"
        return Diagnosis(Cause.NOT_SHARDED, text)
    by_hand = any(not taken.combined and not taken.same_gradients for taken in seen.taken)
    if not seen.same_states():
        text = "the ranks make different updates of the same gradients: each goes on by itself from there"
        return Diagnosis(Cause.DECISION, text)
    update = seen.changed(seen.lock.trained)
    return (
        _off_by_a_factor(seen, update)
        or _handed_on(seen)
        or _late(seen, by_hand)
        or _other_rate(seen, update)
        or _other()
    )


def _off_by_a_factor(seen: Scene, update: Likeness) -> Diagnosis | None:
    """N times the update, or 1/N of it: by the learning rate, or by the gradient that the optimizer got."""
    size = seen.size
    for factor, words in ((float(size), f"{size} times"), (1 / size, f"1/{size} of")):
        if update.is_(factor, max(ROUGH, seen.tolerance)):
            if _by_the_rate(seen, factor):
                return Diagnosis(
                    Cause.RATE, f"gradients are right, updates are {words} the reference's: {_rate(seen, factor)}"
                )
            return _factor(seen, factor)
    return None


def _by_the_rate(seen: Scene, factor: float) -> bool:
    """Whether the rate is to blame, and not what happened to the gradient after its tape."""
    rates = seen.scalars(RATES).values()
    if any(abs(rate - factor) <= CONSTANT * factor for rate in rates):
        return True
    # An optimizer that keeps the gradient's size in its slots shows what it got.
    if seen.lock.slots and seen.changed(seen.lock.slots).is_(1.0, ROUGH):
        return True
    # An optimizer that is made again to be scaled leaves others behind; one of them may have the reference's rate.
    if rates and not (factor > 1 and seen.noted(RATE_SCALED_AGAIN)):
        return False
    if factor > 1:
        return bool(seen.noted(RATE_SCALED_AGAIN)) or (seen.batch == "global" and bool(seen.noted(RATE_SCALED)))
    return seen.batch == "per-worker" and not seen.noted(RATE_SCALED, RATE_SCALED_AGAIN)


def _rate(seen: Scene, factor: float) -> str:
    if factor < 1:
        return "the learning rate is not scaled (dp.scale_lr)"
    if again := seen.noted(RATE_SCALED_AGAIN):
        return f"the learning rate is scaled twice ({places(again)})"
    return f"the learning rate is scaled once too often ({places(seen.noted(RATE_SCALED))})"


def _handed_on(seen: Scene) -> Diagnosis | None:
    """The update has the right size, but slots show a gradient of another one: Adam divides it out."""
    for factor in (float(seen.size), 1 / seen.size):
        if any(seen.changed([slot]).is_(factor, max(ROUGH, seen.tolerance)) for slot in _arrays(seen)):
            return _factor(seen, factor)
    return None


def _factor(seen: Scene, factor: float) -> Diagnosis:
    if factor > 1:
        text = (
            f"gradients are right where they are taken, but {seen.size} times as much is used: they are added up again"
        )
        return Diagnosis(Cause.SUMMED, text)
    text = f"gradients are right where they are taken, but 1/{seen.size} of them is used: they are divided once more"
    return Diagnosis(Cause.DIVIDED, text)


def _late(seen: Scene, by_hand: bool) -> Diagnosis | None:
    if not by_hand:
        return None
    sites = places([taken.calls[0].site for taken in seen.taken if not taken.combined])
    text = f"the gradients at {sites} are averaged only after they were clipped, or changed in another way"
    return Diagnosis(Cause.LATE, text)


def _other_rate(seen: Scene, update: Likeness) -> Diagnosis | None:
    """All updates off by one other factor: a schedule at another place."""
    right = not seen.lock.slots or seen.changed(seen.lock.slots).is_(1.0, ROUGH)
    if not right or update.rest > ROUGH or abs(update.factor - 1) <= ROUGH:
        return None
    text = (
        f"gradients are right, updates are {update.factor:.3g} times the reference's: the learning rate is another one"
    )
    return Diagnosis(Cause.RATE, f"{text}, as where a schedule's steps are not divided by the number of ranks")


def _other() -> Diagnosis:
    text = (
        "gradients are right where they are taken, and are changed or used otherwise than in the reference after that"
    )
    return Diagnosis(Cause.UPDATE, text)


def _arrays(seen: Scene) -> list[str]:
    """Slots of more than one element: of a single one everything is a multiple."""
    after = seen.expected.after if seen.expected else {}
    return [slot for slot in seen.lock.slots if slot in after and after[slot].size > 1]
