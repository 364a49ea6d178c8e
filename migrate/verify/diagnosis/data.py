"""Losses that are wrong because the ranks' examples are not, together, those of the reference."""

from ..record import BY_FILE, ORDERS_DIFFER, SAME_BATCH, SHARDED, SHARDED_AGAIN
from .causes import Cause, Diagnosis, place, places
from .gradient import first_wrong
from .patterns import Scene


def read_otherwise(seen: Scene) -> Diagnosis | None:
    """From the losses of the failing step, and what was done to the data before.

    Of gradients alone where the examples are known to be others: the loss of a head of zeros is the same for all.
    """
    taken = first_wrong(seen)
    if taken is None or seen.failure is None or not (seen.failure.kind == "loss" or seen.apart):
        return None
    if any(seen.headers):
        found = sharded_twice(seen) or _sharded(seen, same_losses=taken.same_losses) or _batch(seen)
        if found:
            return found
    if seen.failure.step and seen.failure.kind == "loss":
        return _later(seen)
    if by_file := seen.noted(BY_FILE):
        text = f"read= of dp.shard at {places(by_file)} gives other records than the original, or in another order"
        return Diagnosis(Cause.EXAMPLES, f"{text}: to prove the rest, let it keep the order")
    if seen.shared_out:
        text = (
            f"the ranks read the reference's examples, and the mean of their losses at {place(taken.calls[0].site)} is "
            "not the reference's: what a rank's loss makes of its examples depends on how many or which they are, as a "
            "ratio of two sums does (dp.global_sum)"
        )
        return Diagnosis(Cause.LOSS_SUM, text)
    text = "the ranks' examples together are not those of the reference, or their losses are made otherwise of them"
    return Diagnosis(Cause.EXAMPLES, text)


def sharded_twice(seen: Scene) -> Diagnosis | None:
    """Records or rows of which a rank had its share already."""
    if again := seen.noted(SHARDED_AGAIN):
        text = f"what is sharded at {places(again)} is a rank's own share already: most examples are never seen"
        return Diagnosis(Cause.SHARDED_TWICE, text)
    return None


def _sharded(seen: Scene, *, same_losses: bool) -> Diagnosis | None:
    """Records sharded not at all, or of different orders."""
    apart, sharded = (seen.noted(what) for what in (ORDERS_DIFFER, SHARDED))
    if apart:
        text = f"each rank has shuffled for itself before sharding at {places(apart)}: examples are seen twice or never"
        return Diagnosis(Cause.ORDERS, text)
    # A loss of sums over all ranks is one number, whatever they read.
    known = seen.shared_out or (sharded and _batch(seen) is not None)
    if same_losses and not known and seen.failure is not None and seen.failure.kind == "loss":
        but = f", though {places(sharded)} shards records" if sharded else ""
        return Diagnosis(Cause.NOT_SHARDED, f"all ranks have the same loss: they train on the same examples{but}")
    # Draws and shuffles that differ by rank make losses differ on the same examples too.
    if not sharded:
        called = "neither dp.shard, dp.shard_batches nor dp.local_rows is called"
        text = f"{called}: all ranks read all, unless the script shards by hand"
        return Diagnosis(Cause.NOT_SHARDED, text)
    return None


def _batch(seen: Scene) -> Diagnosis | None:
    """Batches of the reference's size on each rank."""
    ours = {int(size) for size in seen.noted(SAME_BATCH)}
    theirs = {int(note.site) for note in seen.reference.notes if note.what == SAME_BATCH}
    same = sorted(size for size in ours if size in theirs and size * seen.size not in theirs)
    if not same:
        return None
    text = (
        f"each rank's batches have {same[0]} examples, as many as the reference's: they must have 1/{seen.size} of that"
    )
    return Diagnosis(Cause.BATCH, text)


def _later(seen: Scene) -> Diagnosis | None:
    """All is equal until a step."""
    step = seen.failure.step if seen.failure else 0
    if seen.right_again():
        text = (
            f"all is equal until step {step}, and again after it: there the ranks' batches have unequal numbers of "
            "examples, as at the end of an epoch, and count the same"
        )
        return Diagnosis(Cause.TAIL, text)
    text = f"all is equal until step {step}, and not after it: from there a rank is ahead of the others, or behind them"
    return Diagnosis(Cause.DECISION, text)
