"""Ways to break one script that no other has a place for, and an original whose data end soon."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfdp.migrate.verify.diagnosis import Cause

Change = tuple[str, str]


@dataclass(frozen=True)
class Handmade:
    """Changes of a migrated script. original: changes of the script before it is migrated."""

    script: str
    name: str
    cause: Cause
    changes: tuple[Change, ...]
    original: tuple[Change, ...] = ()


def changed(text: str, changes: Sequence[Change]) -> str:
    """The text after changes of places that occur once."""
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


def handmade() -> Iterator[Handmade]:
    """All of them."""
    step = "        loss_value = training_step(images, labels)\n"
    skip = "        if dp.rank() == 1 and batch == 2:\n            continue\n"
    yield Handmade("smddp_mnist", "one rank skips a batch", Cause.DECISION, ((step, skip + step),))
    state = "dp.broadcast_state(classifier, optimizer, brightness, other)"
    own = "classifier.trainable_variables[-1].assign_add([float(dp.rank())] * 10)"
    yield Handmade("two_models", "one rank starts from another bias", Cause.START, ((state, f"{state}; {own}"),))
    few = (("images[:1440], labels[:1440], bright[:1440]", "images[:301], labels[:301], bright[:301]"),)
    shards = "dp.shard(tf.data.Dataset.from_tensor_slices((images[:301], labels[:301], bright[:301])))"
    tail = (shards, f"{shards[:-1]}, remainder='weight')")
    yield Handmade("two_models", "uneven tail unweighted", Cause.TAIL, (tail,), few)
