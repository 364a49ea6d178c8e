"""Exact fragments: data, models, losses, learning rates; what is drawn for every script."""

from __future__ import annotations

from pen import Pen
from sketch import FITS, LOOPS, TAPES, Sketch

_START = """\
rng = np.random.default_rng({seed})
{x} = rng.normal(size=({rows}, 6)).astype("float32")
{y} = ({x}[:, :1] * 2.0 + {x}[:, 1:2]).astype("float32")"""


def start(pen: Pen, roads: tuple[str, ...], plain: bool = False) -> Sketch:
    """A script that trains the same model, with data, a model, a loss and a learning rate drawn."""
    s = Sketch(pen, pen.pick(roads), plain=plain)
    pen.tops.append("SEED = 7")
    s.batch = pen.pick((8, 12, 16, 24))
    s.steps = pen.pick((4, 6, 8))
    return s


def finish(s: Sketch) -> str:
    """What the fragments so far have not said is drawn."""
    if not s.data:
        data(s)
    if not s.model_lines:
        model(s)
    rates(s)
    return s.text()


def arrays(s: Sketch) -> tuple[str, str]:
    """The examples, as two NumPy arrays."""
    x, y = s.pen.name("x"), s.pen.name("y")
    s.arrays = (x, y)
    s.batch_text = str(s.batch) if s.plain else s.pen.number(str(s.batch))
    s.data = [_START.format(seed=s.pen.pick(("0", "SEED")), x=x, y=y, rows=s.batch * s.steps)]
    return x, y


def data(s: Sketch, stages: str = "", forms: tuple[str, ...] = ("tensors", "shuffled", "generator", "own")) -> None:
    """Where batches come from; `stages` are put behind `.batch()`."""
    x, y = arrays(s)
    form = s.pen.pick(forms)
    if form == "own":
        return _own_batches(s, x, y) if not stages else data_of_tensors(s, x, y, "", stages)
    return data_of_tensors(s, x, y, form, stages)


def data_of_tensors(s: Sketch, x: str, y: str, form: str, stages: str) -> None:
    """A dataset of tf.data."""
    pen, ds = s.pen, s.pen.name("dataset")
    made = f"tf.data.Dataset.from_tensor_slices(({x}, {y}))"
    if form == "generator":
        records = pen.name("helper")
        s.data.append(f"def {records}():\n    for pair in zip({x}, {y}):\n        yield pair")
        signature = 'output_signature=(tf.TensorSpec((6,), "float32"), tf.TensorSpec((1,), "float32"))'
        made = f"tf.data.Dataset.from_generator({records}, {signature})"
    if form == "shuffled":
        made += f".shuffle({s.batch * s.steps}, seed={pen.pick(('3', 'SEED'))})"
    batch = pen.pick((f".batch({s.batch_text})", f".batch({s.batch_text}, drop_remainder=True)"))
    last = pen.pick(("", ".prefetch(2)", ".prefetch(tf.data.AUTOTUNE)"))
    if pen.maybe():
        s.data += [f"{ds} = {made}", f"{ds} = {ds}{batch}{stages}{last}"]
    else:
        s.data.append(f"{ds} = {made}{batch}{stages}{last}")
    s.source, s.shared, s.fit_arguments = ds, [ds], ds
    s.header = f"for {s.xb}, {s.yb} in {ds}:"
    if s.road in LOOPS and pen.pick((False, False, True)):
        s.header = f"for {pen.name('local')}, ({s.xb}, {s.yb}) in enumerate({ds}):"


def _own_batches(s: Sketch, x: str, y: str) -> None:
    """Batches taken out of the arrays by the script."""
    s.shared = [x, y]
    s.fit_arguments = f"{x}, {y}, batch_size={s.batch_text}"
    i, n = s.pen.pick((("i", "n"), ("start", "count"))), s.batch_text
    i = i[0]
    rows = f"range(0, len({x}), {n})"
    taken = f"    {s.xb} = {x}[{i}:{i} + {n}]\n    {s.yb} = {y}[{i}:{i} + {n}]"
    s.source = x
    s.header = f"for {i} in {rows}:\n{taken}"


def model(s: Sketch, form: str | None = None) -> None:
    """A model of one output; `in_layers` stand before its last layer."""
    pen, m = s.pen, s.model
    if s.road == "train_step":
        form = "trained by itself"
    form = form or pen.pick(("sequential", "functional", "own", "added"))
    width = 4
    hidden = pen.pick(("'relu'", "'tanh'", "None"))
    layers = [f"keras.layers.Dense({width}, activation={hidden})", *s.in_layers]
    if form == "sequential":
        s.model_lines = [f"{m} = keras.Sequential([keras.Input((6,)), {', '.join(layers)}, keras.layers.Dense(1)])"]
    elif form == "added":
        adds = [f"{m}.add({layer})" for layer in [*layers, "keras.layers.Dense(1)"]]
        s.model_lines = [f"{m} = keras.Sequential()", f"{m}.add(keras.Input((6,)))", *adds]
    elif form == "functional":
        functional(s, [f"{layer}({{0}})" for layer in layers])
    else:
        own_model(s, layers, "def train_step" if form == "trained by itself" else "")


def functional(s: Sketch, expressions: list[str]) -> None:
    """The functional API; each expression has the tensor before it at {0}."""
    start, h = s.pen.pick((("inp", "h"), ("i", "t"), ("first", "hidden")))
    s.model_lines = [f"{start} = keras.Input((6,))"]
    before = start
    for expression in [*expressions, "keras.layers.Dense(1)({0})"]:
        s.model_lines.append(f"{h} = {expression.format(before)}")
        before = h
    s.model_lines.append(f"{s.model} = keras.Model({start}, {h})")


_STEP = """
    def train_step(self, data):
        {x}, {y} = data
        with tf.GradientTape() as tape:
            {loss} = {expression}
        gradients = tape.gradient({loss}, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {{"loss": {loss}}}
"""
_SUPER = """
    def train_step(self, data):
        {x}, {y} = data
        return super().train_step(({rows}, {y}))
"""


def own_model(s: Sketch, layers: list[str], step: str = "", changed: str = "{0}") -> None:
    """A class of its own, perhaps with a training step; `changed` is what `call` does with the first layer's output."""
    name = s.pen.pick(("Net", "MyModel", "Regressor"))
    makes = "\n".join(f"        self.part_{i} = {layer}" for i, layer in enumerate([*layers, "keras.layers.Dense(1)"]))
    calls = "\n".join(f"        t = self.part_{i}(t)" for i in range(1, len(layers)))
    text = f"class {name}(keras.Model):\n    def __init__(self):\n        super().__init__()\n{makes}\n\n"
    text += f"    def call(self, t, training=False):\n        t = {changed.format('self.part_0(t)')}\n{calls}\n"
    text += f"        return self.part_{len(layers)}(t)\n"
    if step and s.step_rows == "{0}" and s.pen.maybe():
        x, y, loss = s.xb, s.yb, s.value
        text += _STEP.format(x=x, y=y, loss=loss, expression=s.loss.format(y, f"self({x}, training=True)") + s.penalty)
    elif step:
        text += _SUPER.format(x=s.xb, y=s.yb, rows=s.step_rows.format(s.xb))
    s.pen.tops.append(text.rstrip())
    s.model_lines = [f"{s.model} = {name}()"]


_LOSSES = (
    "tf.reduce_mean(tf.square({0} - {1}))",
    "tf.reduce_mean(tf.abs({0} - {1}))",
    "tf.reduce_mean(keras.losses.mean_squared_error({0}, {1}))",
    "keras.losses.MeanSquaredError()({0}, {1})",
    "keras.losses.Huber()({0}, {1})",
    "tf.reduce_mean(tf.reduce_sum(tf.square({0} - {1}), axis=1))",
    "tf.math.reduce_mean(tf.math.log(tf.cosh({0} - {1})))",
)


def loss(s: Sketch) -> None:
    """A mean over the examples, perhaps with terms of the weights."""
    chosen = s.pen.pick(_LOSSES)
    s.loss = s.pen.called(chosen, "{0}", "{1}") if s.road in TAPES or s.road == "train_step" else chosen
    if s.road in TAPES and s.pen.maybe():
        factor = s.pen.number("0.001")
        weights = s.pen.pick(
            (
                "tf.add_n([tf.nn.l2_loss(v) for v in {m}.trainable_variables])",
                "sum(tf.reduce_sum(v ** 2) for v in {m}.trainable_variables)",
                "tf.reduce_sum({m}.trainable_variables[0] ** 2)",
            )
        )
        s.penalty += f" + {factor} * {weights.format(m=s.m)}"


_RATES = (
    "0.05",
    "learning_rate=0.02",
    "{number}",
    "keras.optimizers.schedules.ExponentialDecay(0.05, 8, 0.9)",
    "keras.optimizers.schedules.CosineDecay(0.05, {steps})",
    "keras.optimizers.schedules.PiecewiseConstantDecay([{half}], [0.05, 0.01])",
)


def rates(s: Sketch) -> None:
    """An optimizer and its learning rate, also one by the epoch."""
    pen, whole = s.pen, s.steps * s.epochs
    kind = pen.pick(("SGD", "SGD", "Adam", "RMSprop"))
    if s.optimizer != "keras.optimizers.SGD(0.05)":
        return
    number = pen.number("0.03")
    rate = pen.pick(_RATES).format(number=number, steps=whole, half=whole // 2)
    s.optimizer = f"keras.optimizers.{kind}({rate})"
    if "schedules" in rate or s.plain:
        return
    if s.road in LOOPS and pen.pick((False, False, True)):
        optimizer = s.o if s.road in TAPES else f"{s.m}.optimizer"
        by = pen.called("0.05 * 0.5 ** {0}", s.epoch)
        s.before_epoch.append(f"{optimizer}.learning_rate = {by}")
    if s.road in FITS and pen.pick((False, False, True)):
        schedule = pen.function("0.05 * 0.5 ** {0}")
        s.callbacks.append(f"keras.callbacks.LearningRateScheduler(lambda e: {schedule}(e))")
