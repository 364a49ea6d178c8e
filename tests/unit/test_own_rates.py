"""Facts about the learning rates of optimizers that a script writes by hand."""

from __future__ import annotations

import libcst as cst
import pytest

from tfdp.migrate.facts import Script, read

OWN = """
import tensorflow as tf
class Own(tf.Module):
    def __init__(self, variables, rate={default}, decay=0.9):
        self.variables_ = variables
        self.rate = rate
        self.decay = decay
        self.t = tf.Variable(1.)
        self.m = [tf.Variable(tf.zeros_like(v)) for v in variables]
        self.s = []
        for v in variables:
            slot = tf.Variable(tf.zeros_like(v))
            self.s.append(slot)
    def half(self):
        return 0.5 * self.rate
    def apply_gradients(self, grads):
        for i, (g, v) in enumerate(zip(grads, self.variables_)):
            {update}
        self.t.assign_add(1.)
{more}
data = tf.data.Dataset.from_tensor_slices(arrays).batch(8)
model = tf.keras.Sequential([])
opt = {made}(model.trainable_variables{given})
for x in data:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    opt.apply_gradients(tape.gradient(loss, model.trainable_variables))
{after}
"""


def _codes(script: Script) -> set[str]:
    return {p.code for p in script.problems("per-worker")}


def own(
    *update: str, default: str = "1e-2", given: str = "", more: str = "", made: str = "Own", after: str = ""
) -> Script:
    lines = "\n            ".join(update)
    return read(OWN.format(default=default, given=given, update=lines, more=more, made=made, after=after))


@pytest.mark.parametrize(
    "update",
    [
        ["v.assign_sub(self.rate * g)"],
        ["v.assign_sub(g * self.rate)"],
        ["v.assign_add(-self.rate * g)"],
        ["v.assign(v - self.rate * g)"],
        ["v.assign_sub(self.rate * g / (tf.norm(g) + 1e-6))"],
        ["step = self.rate * g", "v.assign_sub(step)"],
        ["rate = self.rate", "v.assign_sub(rate * g)"],
        ["self.m[i].assign(self.decay * self.m[i] + g)", "v.assign_sub(self.rate * self.m[i])"],
        ["self.m[i].assign_add(self.decay * (g - self.m[i]))", "v.assign_sub(self.rate * self.m[i])"],
        ["self.s[i].assign_add(g * g)", "v.assign_sub(self.rate * g / (tf.sqrt(self.s[i]) + 1e-7))"],
        ["m = self.m[i] / (1 - self.decay ** self.t)", "v.assign_sub(self.rate * m)"],
        ["v.assign_sub(self.rate / (1. - tf.pow(self.decay, self.t)) * self.m[i])"],
    ],
)
def test_the_rate_of_an_optimizer_written_by_hand(update: list[str]) -> None:
    script = own(*update)
    (omitted,) = script.rates
    assert (omitted.keyword, omitted.value, omitted.default) == ("rate", None, "1e-2")
    assert not _codes(script)
    (given,) = own(*update, given=", 0.5").rates
    assert given.value is not None
    assert cst.Module([]).code_for_node(given.value) == "0.5"


@pytest.mark.parametrize(
    "update",
    [
        ["v.assign_sub(self.rate * self.decay * g)"],
        ["v.assign_sub(g)"],
        ["v.assign(next_value(v, g))"],
        ["self.m[i].assign_add(self.decay * (g - self.m[i]))", "v.assign_sub(self.half() * self.m[i])"],
        ["self.m[i].assign_add(self.rate * g)", "v.assign_sub(self.m[i])"],
        ["v.assign_sub(self.rate * g)", "v.assign_sub(self.decay * v)"],
        ["v.assign_sub(self.rate / (1. + 0.01 * self.t) * g)"],
        ["v.assign_sub(self.rate * g / (1. + 0.01 * self.t))"],
        ["v.assign_sub(self.rate * self.decay ** self.t * g)"],
        ["late = 0.01 * self.t", "v.assign_sub(self.rate * g / (1. + late))"],
        ["step = self.rate * g", "step = self.rate * step", "v.assign_sub(step)"],
        ["self.rate = 0.9 * self.rate", "v.assign_sub(self.rate * g)"],
        ["self.m[i].assign(g)", "import helper", "helper.update(v, self.rate * self.m[i])"],
    ],
)
def test_an_uncertain_rate_is_a_problem(update: list[str]) -> None:
    script = own(*update)
    assert not script.rates
    assert "TFDP020" in _codes(script)


SUB = "v.assign_sub(self.rate * g)"


def test_a_class_that_inherits_the_constructor_is_scaled_where_it_is_made() -> None:
    script = own(SUB, more="class Child(Own):\n    pass", made="Child", given=", 0.5")
    (rate,) = script.rates
    assert script.index.code(rate.call).startswith("Child(")
    assert not _codes(script)


def test_a_constructor_that_passes_the_rate_on_is_scaled_there() -> None:
    child = "class Child(Own):\n    def __init__(self, v, r=0.1):\n        super().__init__(v, r)"
    script = own(SUB, more=child, made="Child", given=", 0.5")
    (rate,) = script.rates
    assert script.index.code(rate.call) == "super().__init__(v, r)"
    assert not _codes(script)


@pytest.mark.parametrize(
    ("more", "made", "after"),
    [
        ("from other import Made", "Made", "Own"),
        ("class C(Own):\n    def __init__(self, v, r=0.1):\n        Own.__init__(self, v, r)", "C", ""),
        ("class C(Own):\n    def __init__(self, v, r=0.1):\n        self.rate = r", "C", ""),
        ("", "Own", "opt.rate = 0.001"),
        ("", "Own", "for o in [opt]:\n    o.rate = 0.001"),
        ("", "Own", "setattr(opt, 'rate', 0.001)"),
    ],
)
def test_a_rate_that_is_not_all_the_constructors_is_a_problem(more: str, made: str, after: str) -> None:
    script = own(SUB, more=more, made=made, after=after)
    assert _codes(script) & {"TFDP020", "TFDP010", "TFDP030"}
    assert not script.rates
