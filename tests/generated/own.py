"""Fragments in which a worker's own loss or examples decide what is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from carriers import carried
from counts import optimizer, weighted
from fragments import data
from sketch import TAPES, Sketch

_CONDITIONS = (
    "{0} > 1.3",
    "float({0}) > 1.3",
    "not {0} <= 1.3",
    "1.3 < {0}",
    "np.log(float({0}) + 1.0) > 0.5",
    "int({0} * 4) % 2 == 1",
    "min(float({0}), 2.0) > 1.0",
    "0.5 < {0} < 2.0",
    "bool({0} > 1.0 or {0} < 0.1)",
)
_CHOICES = (
    "({1} if {0} else {2})",
    "({2}, {1})[int({0})]",
    "[{2}, {1}][bool({0})]",
    "{2} + ({1} - {2}) * float({0})",
    "float(np.where({0}, {1}, {2}))",
    "max({2}, {1} * float({0}))",
    "({0} and {1} or {2})",
)
_SMOOTH = (
    "min(0.1, 0.01 * float({0}))",
    "0.01 * float({0})",
    "float(np.exp(-float({0})) * 0.1)",
    "0.02 / (1.0 + float({0}))",
)


_FEW = ("itself", "name", "list")


def lam_by_the_loss(s: Sketch, forms: Sequence[str] = _FEW) -> None:
    """A weight that the step is given."""
    weighted(s, _chosen(s, forms))


def rate_by_the_loss(s: Sketch, forms: Sequence[str] = _FEW) -> None:
    """A learning rate."""
    s.optimizer = "keras.optimizers.SGD(0.02)"
    where = s.pen.pick((s.in_batch, s.after_step))
    where.append(f"{optimizer(s)}.learning_rate = {_chosen(s, forms)}")


def variable_by_the_loss(s: Sketch, forms: Sequence[str] = _FEW) -> None:
    """A variable that the loss reads."""
    variable = _read_by_the_loss(s)
    chosen = _chosen(s, forms)
    s.pen.pick((s.after_step, s.after_epoch)).append(f"{variable}.assign({chosen})")


def number_of_steps(s: Sketch, forms: Sequence[str] = _FEW) -> None:
    """How many more steps are taken."""
    number = s.pen.pick(("int({0} > 1.0)", "int(min(float({0}), 3.0))", "(1 if {0} > 1.3 else 0)"))
    s.around = (f"for _ in range(1 + {s.pen.called(number, _last(s, forms))}):", "")


def by(carrier: str) -> Callable[[Sketch], None]:
    """One of these, by a loss that reaches the next step in one way."""

    def build(s: Sketch) -> None:
        sinks = (lam_by_the_loss, rate_by_the_loss, variable_by_the_loss, number_of_steps)
        s.pen.pick(sinks)(s, (carrier,))

    return build


def property_by_a_made_function(s: Sketch) -> None:
    """A weight, by a function that another one has made, of a property."""
    name, value = s.pen.name("helper"), _last(s, ("property",))
    s.pen.tops.append(
        f"def make_{name}():\n    def inner(z):\n        return 0.02 if z else 0.001\n    return inner\n"
        f"{name} = make_{name}()"
    )
    weighted(s, f"{name}({s.pen.pick(_CONDITIONS).format(value)})")


def stop_by_the_loss(s: Sketch) -> None:
    """The end of the training."""
    condition = s.pen.called(s.pen.pick(("{0} < 0.05", "float({0}) < 0.05", "not {0} >= 0.05")), s.value)
    s.pen.pick((s.after_step, s.after_epoch)).append(f"if {condition}:\n    break")


def skip_by_the_loss(s: Sketch) -> None:
    """Batches that are left out after a good one."""
    last = s.value
    s.before.append(f"{last} = 2.0")
    s.in_batch.append(f"if {s.pen.called(s.pen.pick(_CONDITIONS), last)}:\n    {last} = 0.3\n    continue")


def _last(s: Sketch, forms: Sequence[str]) -> str:
    """The loss of the last step, or a number made of the losses so far."""
    return carried(s, s.value, s.after_step, forms)


def _chosen(s: Sketch, forms: Sequence[str]) -> str:
    """A small number that follows from the loss of the last step."""
    pen, value = s.pen, _last(s, forms)
    if pen.maybe():
        return pen.called(pen.pick(_SMOOTH), value)
    condition = pen.called(pen.pick(_CONDITIONS), value)
    return pen.called(pen.pick(_CHOICES).format("{0}", pen.number("0.02"), pen.number("0.001")), condition)


def _read_by_the_loss(s: Sketch) -> str:
    """A variable at the top of the script, which the loss reads."""
    name = s.pen.pick(("scale", "factor", "temperature"))
    s.pen.tops.append(f"{name} = tf.Variable(0.01, trainable=False)")
    if s.road in TAPES:
        s.penalty += f" + {name} * tf.reduce_sum({s.m}.trainable_variables[0] ** 2)"
    else:
        s.loss = f"tf.reduce_mean(tf.square({{0}} - {{1}})) * (1.0 + {name})"
    return name


# Class 5: variables from examples, outside the step.
_OF_A_BATCH = (
    "tf.reduce_mean({0})",
    "float(np.mean({0}))",
    "float(np.quantile({0}, 0.9))",
    "np.float32(np.median({0}))",
    "tf.reduce_max({0})",
    "float({0}[0, 0])",
)


def variable_of_the_last_batch(s: Sketch) -> None:
    """A variable, from the last batch."""
    made = s.pen.called(s.pen.pick(_OF_A_BATCH), s.pen.pick((s.xb, s.yb)))
    _assigned(s, made, s.pen.pick((s.after_step, s.after_epoch)))


def variable_of_collected_examples(s: Sketch) -> None:
    """A variable, from what was kept of each batch."""
    every = s.pen.name("local")
    s.before_epoch.append(f"{every} = []")
    kept = s.pen.called(s.pen.pick(_OF_A_BATCH), s.pen.pick((s.xb, s.yb)))
    s.after_step.append(s.pen.pick((f"{every}.append({kept})", f"{every} += [{kept}]")))
    made = s.pen.called(
        s.pen.pick(("float(np.mean({0}))", "float(np.median({0}))", "float(max({0}))", "float({0}[-1])")), every
    )
    _assigned(s, made, s.after_epoch)


def variable_of_what_was_kept(s: Sketch) -> None:
    """A variable, from a number of the batches so far."""
    kept = s.pen.called(s.pen.pick(_OF_A_BATCH), s.pen.pick((s.xb, s.yb)))
    _assigned(s, carried(s, kept, s.after_step, ("name", "list", "dict", "array", "deque", "mean")), s.after_epoch)


def variable_of_a_metric(s: Sketch) -> None:
    """A variable, from a metric fed with a number of each batch, whose mean is not that of the whole batches."""
    kept = s.pen.called(
        s.pen.pick(("float(np.quantile({0}, 0.9))", "float(np.median({0}))", "tf.reduce_max({0})")), s.yb
    )
    _assigned(s, carried(s, kept, s.after_step, ("metric",)), s.after_epoch)


def plain_state(s: Sketch) -> None:
    """A plain number that the loss reads, set from the last batch."""
    pen = s.pen
    made = pen.called(pen.pick(_OF_A_BATCH), pen.pick((s.xb, s.yb)))
    form = pen.pick(("dict", "class", "global", "list"))
    if form == "global":
        name, keep = "strength", pen.name("helper")
        pen.tops.append(f"{name} = 0.01\n\n\ndef {keep}(v):\n    global {name}\n    {name} = 0.01 * float(v)")
        action, read = f"{keep}({made})", name
    else:
        start, read = {
            "dict": ("strength = {'now': 0.01}", "strength['now']"),
            "class": ("class Strength:\n    now = 0.01", "Strength.now"),
            "list": ("strength = [0.01]", "strength[0]"),
        }[form]
        pen.tops.append(start)
        action = f"{read} = 0.01 * float({made})"
    s.after_step.append(action)
    s.penalty += f" + {read} * tf.reduce_sum({s.m}.trainable_variables[0] ** 2)"


def variable_of_the_first_batch(s: Sketch) -> None:
    """A variable, from the first batch, before training."""
    data(s, forms=("tensors", "shuffled", "generator"))
    first = s.pen.name("xb")
    taken = s.pen.pick(
        (
            f"{first}, _ = next(iter({s.source}))",
            f"{first} = next(iter({s.source}))[0]",
            f"for {first}, _ in {s.source}.take(1):\n    pass",
            f"{first} = list({s.source})[0][0]",
        )
    )
    s.before.append(taken)
    _assigned(s, s.pen.called(s.pen.pick(_OF_A_BATCH), first), s.before)


def _assigned(s: Sketch, made: str, where: list[str]) -> None:
    form = s.pen.pick(("variable", "bias", "weights", "each") if s.road in TAPES else ("bias", "weights", "each"))
    if form == "variable":
        where.append(f"{_read_by_the_loss(s)}.{s.pen.pick(('assign', 'assign_add', 'assign_sub'))}({made})")
    elif form == "each":
        where.append(f"for v in {s.m}.trainable_variables:\n    v.assign(v + 0.01 * {made})")
    elif form == "bias":
        where.append(f"{s.m}.trainable_variables[-1].assign([0.1 * {made}])")
    else:
        where.append(f"{s.m}.set_weights([w + 0.01 * {made} for w in {s.m}.get_weights()])")


_LAYER = """\
class {name}(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.scale = {made}

    def call(self, h):
        self.scale.{assigned}
        return h / (1.0 + self.scale)"""


def variable_of_a_layer(s: Sketch) -> None:
    """A variable that a layer sets from what passes through it."""
    pen = s.pen
    made = pen.pick(
        ("tf.Variable(1.0, trainable=False)", "self.add_weight(shape=(), initializer='ones', trainable=False)")
    )
    mean = pen.called(
        pen.pick(("tf.reduce_mean(tf.abs({0}))", "tf.reduce_max(tf.abs({0}))", "tf.math.reduce_std({0})")), "h"
    )
    assigned = pen.pick((f"assign(0.9 * self.scale + 0.1 * {mean})", f"assign({mean})"))
    pen.tops.append(_LAYER.format(name="Scaled", made=made, assigned=assigned))
    s.in_layers.append("Scaled()")


# Class 6: exceptions.
_CHECKS = (
    "def {name}({h}):\n    if {condition}:\n        raise {error}('of no use')",
    "def {name}({h}):\n    assert not {condition}, 'of no use'",
    "def {name}({h}):\n    return {{False: 0}}[bool({condition})]",
    "def {name}({h}):\n    return [0][int({condition})]",
    "def {name}({h}):\n    return 1 // (1 - int({condition}))",
)
_ERRORS = ("", "AssertionError", "KeyError", "IndexError", "ZeroDivisionError")
_SWALLOWS = """\
class {owner}:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return kind is not None and issubclass(kind, {error})"""
# None is a question of means: an average over the workers would answer that for the whole batch.
_BAD = ("float(np.median({0})) > 0.05", "np.abs({0}).max() > 2.5", "bool(tf.reduce_max({0}) > 2.0)", "{0}[0, 0] > 0.5")


def exception(s: Sketch) -> None:
    """Batches that a check turns down."""
    _checked(s, s.pen.pick(("around", "before", "suppress", "else")))


def exception_as_a_flag(s: Sketch) -> None:
    """The same, which a flag remembers."""
    _checked(s, "flag")


def exception_in_a_with(s: Sketch) -> None:
    """The same, in a block of an own context manager that catches."""
    _checked(s, "swallow")


def exception_in_a_question(s: Sketch) -> None:
    """Batches for which a function that catches what a check raises says no."""
    _checked(s, "asked")


def _checked(s: Sketch, form: str) -> None:
    pen, h = s.pen, "rows"
    error = pen.pick(("ValueError", "RuntimeError", "KeyError"))
    name = pen.name("helper")
    number = pen.pick((0, 0, 1, 2, 3, 4))
    error = _ERRORS[number] or error
    pen.tops.append(_CHECKS[number].format(name=name, h=h, condition=pen.called(pen.pick(_BAD), h), error=error))
    check = f"{name}({s.xb})"
    if form != "asked" and pen.maybe():
        outer = pen.name("helper")
        pen.tops.append(f"def {outer}(v):\n    {name}(v)\n    return v")
        check = f"{s.xb} = {outer}({s.xb})"
    caught = pen.pick((error, "Exception", f"({error}, OSError)"))
    if form == "around":
        s.in_batch.append(f"try:\n    {check}\nexcept {caught}:\n    continue")
    elif form == "before":
        s.around = (f"try:\n    {check}", f"except {caught}:\n    pass")
    elif form == "swallow":
        owner = pen.name("class")
        pen.tops.append(_SWALLOWS.format(owner=owner, error=error))
        s.around = (f"with {owner}():\n    {check}", "")
    elif form == "suppress":
        pen.imports.add("import contextlib")
        s.around = (f"with contextlib.suppress({error}):\n    {check}", "")
    elif form == "else":
        s.around = (f"try:\n    {check}\nexcept {caught}:\n    print('left out')\nelse:", "")
    elif form == "flag":
        flag = pen.name("local")
        s.in_batch.append(
            f"{flag} = True\ntry:\n    {check}\nexcept {caught}:\n    {flag} = False\nif not {flag}:\n    continue"
        )
    else:
        asked = pen.name("helper")
        pen.tops.append(
            f"def {asked}(v):\n    try:\n        {name}(v)\n    except {caught}:\n        return False\n    return True"
        )
        s.in_batch.append(f"if not {asked}({s.xb}):\n    continue")


def by_the_batch(s: Sketch) -> None:
    """Batches left out, or weighted, by a question about their examples."""
    question = s.pen.called(s.pen.pick(_BAD), s.xb)
    if s.road in TAPES and s.pen.maybe():
        weighted(s, f"(0.02 if {question} else 0.001)")
    else:
        s.in_batch.append(f"if {question}:\n    continue")


def left_out(s: Sketch) -> None:
    """Batches that a generator, a filter or a comprehension leaves out."""
    pen = s.pen
    data(s, forms=("tensors", "generator"))
    form = pen.pick(("generator", "filter", "comprehension", "expression"))
    good = pen.name("helper")
    if form == "generator":
        lines = "for p, q in batches_of:\n        if {0}:\n            continue\n        yield p, q"
        pen.tops.append(f"def {good}(batches_of):\n    {lines.format(pen.called(pen.pick(_BAD), 'p'))}")
        source = f"{good}({s.source})"
    else:
        pen.tops.append(f"def {good}(p):\n    return not {pen.called(pen.pick(_BAD), 'p')}")
        source = {
            "filter": f"filter(lambda pair: {good}(pair[0]), {s.source})",
            "comprehension": f"[(p, q) for p, q in {s.source} if {good}(p)]",
            "expression": f"((p, q) for p, q in {s.source} if {good}(p))",
        }[form]
    s.header = f"for {s.xb}, {s.yb} in {source}:"


def left_out_by_itertools(s: Sketch) -> None:
    """Batches that a function of itertools leaves out."""
    pen = s.pen
    data(s, forms=("tensors", "generator"))
    pen.imports.add("import itertools")
    good = pen.function(f"bool({pen.pick(_BAD)})")
    kind = pen.pick(("takewhile", "dropwhile", "filterfalse"))
    s.header = f"for {s.xb}, {s.yb} in itertools.{kind}(lambda pair: {good}(pair[0]), {s.source}):"


# Class 7: what callbacks are told of each batch.
def callback_of_batches(s: Sketch) -> None:
    """A callback that goes by the loss of a batch."""
    pen = s.pen
    sink = pen.pick(("variable", "rate", "stop"))
    logs = pen.pick(("logs['loss']", "logs.get('loss')", "(logs or {})['loss']", "dict(logs)['loss']"))
    number = (
        pen.called(pen.pick(_SMOOTH), logs.replace("{", "{{").replace("}", "}}"))
        if "{" not in logs
        else f"0.01 * {logs}"
    )
    if sink == "variable":
        action = f"{_read_by_the_loss(s)}.assign({number})"
    elif sink == "rate":
        s.optimizer = "keras.optimizers.SGD(0.02)"
        action = f"self.model.optimizer.learning_rate = {number}"
    else:
        action = f"if {logs} < 0.05:\n    self.model.stop_training = True"
    name = pen.pick(("Watch", "Adapt", "Control"))
    if pen.maybe():
        body = f"    def on_train_batch_end(self, batch, logs=None):\n{_deep(action)}"
    elif pen.maybe():
        kept = f"    def on_train_batch_end(self, batch, logs=None):\n        self.last = {logs}\n\n"
        read = _deep(action.replace(logs, "self.last"))
        body = f"    last = 2.0\n\n{kept}    def on_train_batch_begin(self, batch, logs=None):\n{read}"
    else:
        call = "    def on_train_batch_end(self, batch, logs=None):\n        self.react(logs)\n\n"
        body = f"{call}    def react(self, logs):\n{_deep(action)}"
    pen.tops.append(f"class {name}(keras.callbacks.Callback):\n{body}")
    s.callbacks.append(f"{name}()")


def _deep(text: str) -> str:
    return "\n".join(f"        {line}" for line in text.splitlines())
