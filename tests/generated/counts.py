"""Fragments that count the examples of a batch: a number that is not the reference's where a batch is shared out."""

from __future__ import annotations

from carriers import carried
from fragments import data
from sketch import TAPES, Sketch

_HOST = (
    "len({0})",
    "{0}.shape[0]",
    "int({0}.shape[0])",
    "np.shape({0})[0]",
    "int(tf.shape({0})[0])",
    "np.size({0}[:, 0])",
    "int(tf.size({0}[:, 0]))",
    "np.asarray({0}).shape[0]",
    "sum(1 for _ in {0})",
    "int(np.ones_like({0}[:, 0]).sum())",
    "len(list({0}))",
)
_TENSOR = (
    "tf.cast(tf.shape({0})[0], tf.float32)",
    "tf.cast(tf.size({0}[:, 0]), tf.float32)",
    "tf.cast(len({0}), tf.float32)",
    "tf.reduce_sum(tf.ones_like({0}[:, 0]))",
    "float({0}.shape[0])",
)


def count(s: Sketch) -> str:
    """How many examples the batch has, in the loop."""
    return s.pen.called(s.pen.pick(_HOST), s.pen.pick((s.xb, s.yb)))


def in_step(s: Sketch) -> str:
    """How many examples the batch has, in the step, as a number to multiply by."""
    return s.pen.called(s.pen.pick(_TENSOR), s.xb)


def factor_of_the_loss(s: Sketch) -> None:
    """The loss times the number of examples, over a number that stays."""
    whole = s.pen.number(f"{s.batch}.0")
    s.loss = f"({s.loss}) * {in_step(s)} / {whole}"


def given_to_the_step(s: Sketch) -> None:
    """A weight that the step is given."""
    weighted(s, s.pen.called("0.002 * {0}", count(s)))


def rate(s: Sketch) -> None:
    """A learning rate."""
    data(s)
    s.optimizer = "keras.optimizers.SGD(0.02)"
    s.in_batch.append(f"{optimizer(s)}.learning_rate = {s.pen.called('0.002 * {0}', count(s))}")


def gradients(s: Sketch) -> None:
    """Gradients times, or divided by, the number of examples."""
    n = in_step(s)
    s.step_gradients = s.pen.pick((f"[g / {n} for g in {{0}}]", f"[0.05 * {n} * g for g in {{0}}]"))


def clip_norm(s: Sketch) -> None:
    """The norm to which gradients are clipped."""
    s.step_gradients = f"tf.clip_by_global_norm({{0}}, 0.02 * {in_step(s)})[0]"


def seen_so_far(s: Sketch) -> None:
    """Examples seen so far, and what falls with them."""
    seen = s.pen.name("local")
    s.before.append(f"{seen} = 0")
    n = count(s)
    s.in_batch.append(s.pen.pick((f"{seen} += {n}", f"{seen} = {seen} + {n}")))
    weighted(s, s.pen.called("1.0 / (1.0 + 0.02 * {0})", seen))


def kept(s: Sketch) -> None:
    """The number of examples of the batch before, as a weight."""
    weighted(s, s.pen.called("0.002 * float({0})", carried(s, count(s), s.after_step)))


def threshold(s: Sketch) -> None:
    """Batches that are too short are left out, or count less."""
    pen = s.pen
    limit = pen.number(str(s.batch - pen.pick((1, 2, 3))))
    short = pen.called(pen.pick(("{0} < {1}", "not {0} >= {1}", "{1} > {0}", "{0} - {1} < 0")), count(s), limit)
    form = pen.pick(("continue", "reported", "flag", "weight"))
    if form == "weight" and s.road in TAPES:
        weighted(s, f"(0.0 if {short} else 0.02)")
    elif form == "reported":
        s.in_batch.append(f"if {short}:\n    print('short')\n    continue")
    elif form == "flag":
        flag = pen.name("local")
        s.in_batch.append(f"{flag} = {short}\nif {flag}:\n    continue")
    else:
        s.in_batch.append(f"if {short}:\n    continue")


def weighted(s: Sketch, expression: str) -> None:
    """A term of the loss with a weight that each step is given."""
    name = s.pen.pick(("lam", "weight", "alpha"))
    s.step_given.append((name, expression))
    s.penalty += f" + {name} * tf.reduce_sum({s.m}.trainable_variables[0] ** 2)"


def optimizer(s: Sketch) -> str:
    """The optimizer, where the loop reaches it."""
    return s.o if s.road in TAPES else f"{s.m}.optimizer"
