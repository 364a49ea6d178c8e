"""Ways to break one script that no other has a place for, and originals whose data end soon."""

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


def _averaged(tape: str) -> str:
    return f"dp.DistributedGradientTape({tape})"


def _weighted(few: tuple[Change, ...], script: str, shards: str) -> Handmade:
    tail = (shards, f"{shards[:-1]}, remainder='weight')")
    return Handmade(script, "uneven tail unweighted", Cause.TAIL, (tail,), few)


def handmade() -> Iterator[Handmade]:
    """All of them."""
    slopes, sign = "gp_tape.gradient(scores", "tape.gradient(loss, x)"
    wrapped = (slopes, f"{_averaged('gp_tape')}.gradient(scores")
    yield Handmade("wgan_gp", "wrap a penalty's tape", Cause.PENALTY, (wrapped,))
    wrapped = (sign, f"{_averaged('tape')}.gradient(loss, x)")
    yield Handmade("adversarial_training", "wrap a penalty's tape", Cause.PENALTY, (wrapped,))

    step, skip = "    loss = train_step(x, y)\n", "    if dp.rank() == 1 and step == 3:\n        continue\n"
    yield Handmade("raw_variables", "one rank skips a batch", Cause.DECISION, ((step, skip + step),))
    step = "        loss_value = training_step(images, labels)\n"
    skip = "        if dp.rank() == 1 and batch == 2:\n            continue\n"
    yield Handmade("smddp_mnist", "one rank skips a batch", Cause.DECISION, ((step, skip + step),))
    step = "    optimizer.apply_gradients(grads)\n"
    skip = f"    if dp.rank() == 0 or optimizer.t != 3.:\n    {step}"
    yield Handmade("dtensor_mlp", "one rank skips an update", Cause.DECISION, ((step, skip),))

    state = "dp.broadcast_state(mlp_model, optimizer)"
    slot = "optimizer.v_dvar[0].assign_add(tf.fill(optimizer.v_dvar[0].shape, float(dp.rank())))"
    yield Handmade("dtensor_mlp", "one rank starts from another slot", Cause.START, ((state, slot),))

    mean, total = "tf.reduce_mean(tf.nn.sparse", "tf.reduce_sum(tf.nn.sparse"
    constant = (
        "logits=logits))\n\n\ndef accuracy",
        "logits=logits)) / (args.batch_size * dp.size())\n\n\ndef accuracy",
    )
    yield Handmade("raw_variables", "sum divided by a constant", Cause.LOSS_SUM, ((mean, total), constant))

    summed = ((mean, total), ("default=0.2", "default=0.003"))
    kept = (_averaged("g, op=dp.Sum"), _averaged("g"))
    yield Handmade("raw_variables", "keep a sum-reduced loss", Cause.LOSS_SUM, (kept,), summed)
    summed = (("Crossentropy(from_logits=True)", "Crossentropy(from_logits=True, reduction='sum')"),)
    kept = (_averaged("tape, op=dp.Sum"), _averaged("tape"))
    yield Handmade("class_trainer", "keep a sum-reduced loss", Cause.LOSS_SUM, (kept,), summed)

    few = (("images[:1500], labels[:1500]", "images[:301], labels[:301]"),)
    shards = "dp.shard(tf.data.Dataset.from_tensor_slices((images[:301], labels[:301])))"
    yield _weighted(few, "adversarial_training", shards)
    few = (("images[:1437], labels[:1437]", "images[:301], labels[:301]"),)
    yield _weighted(few, "class_trainer", shards)
