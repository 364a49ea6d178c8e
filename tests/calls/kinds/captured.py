"""Tensors that enter a call past its arguments, or leave it past its outputs."""

import numpy as np
import tensorflow as tf

from . import L, descend, examples, keras, kind, mlp, some, square, trained


class Modulated(L.Layer):
    """Scales and shifts its features by tensors that somebody has put into its attributes."""

    def __init__(self):
        super().__init__()
        self.first, self.out, self.by = L.Dense(6), L.Dense(1), None

    def call(self, x):
        scale, shift = self.by
        return self.out(tf.tanh(self.first(x) * (1 + scale) + shift))


def modulation(graph):
    """FiLM with one context for the batch: trained weights reach the layer through its attribute."""
    x, y = examples()
    context, layer, optimizer = L.Dense(12), Modulated(), keras.optimizers.Adam(0.02)

    def step(rows, wanted):
        def loss():
            layer.by = tf.split(context(tf.reduce_mean(rows, 0, keepdims=True)), 2, axis=1)
            return square(layer(rows), wanted)

        return descend(optimizer, [context, layer], loss)

    step = tf.function(step) if graph else step
    for _ in range(3):
        yield [context, layer, optimizer], step(*some(9, x, y))


@kind(divided="partly", sample=True)
def modulation_by_an_attribute():
    yield from modulation(graph=False)


@kind(divided="partly")
def modulation_by_an_attribute_in_a_graph():
    yield from modulation(graph=True)


def hypernetwork(graph):
    """A kernel that another network makes, captured by a function."""
    x, y = examples()
    maker, head, optimizer = mlp(8, 8 * 6), L.Dense(1), keras.optimizers.Adam(0.02)
    code = tf.Variable(np.ones((1, 3)))

    def step(rows, wanted):
        with tf.GradientTape() as tape:
            kernel = tf.reshape(maker(code), [8, 6])
            apply = L.Lambda(lambda a: tf.tanh(a @ kernel))
            loss = square(head(apply(rows)), wanted)
        weights = [*maker.trainable_variables, *head.trainable_variables, code]
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    maker.build((1, 3)), head.build((None, 6)), optimizer.build([*maker.weights, *head.weights, code])
    step = tf.function(step) if graph else step
    for _ in range(3):
        yield [maker, head, code, optimizer], step(*some(9, x, y))


@kind
def hypernetwork_in_a_closure():
    yield from hypernetwork(graph=False)


@kind
def hypernetwork_in_a_closure_in_a_graph():
    yield from hypernetwork(graph=True)


@kind(divided="partly")
def context_of_rows_in_an_attribute():
    """What the attribute holds has a row for each row of the batch: the worker's own rows do not fit it."""
    x, y = examples()
    context, layer, optimizer = L.Dense(12), Modulated(), keras.optimizers.Adam(0.02)
    for _ in range(3):
        rows, wanted = some(10, x, y)

        def loss(rows=rows, wanted=wanted):
            layer.by = tf.split(context(rows), 2, axis=1)
            return square(layer(rows), wanted)

        yield [context, layer, optimizer], descend(optimizer, [context, layer], loss)


class Latent(keras.Model):
    """Leaves a tensor behind, which the loss reads."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = L.Dense(3), L.Dense(8)

    def call(self, x):
        self.latent = self.encoder(x)
        return self.decoder(self.latent)


def with_latent(**options):
    x, _ = examples()
    model = Latent()

    def loss(predicted, wanted):
        return square(predicted, wanted) + tf.reduce_mean(tf.abs(model.latent)) + tf.math.reduce_std(model.latent)

    return trained(model, x, x, loss=loss, count=10, **options)


@kind(divided=False, may_refuse=("latent",), sample=True)
def tensor_left_in_an_attribute():
    yield from with_latent()


@kind(divided=False, may_refuse=("latent",))
def tensor_left_in_an_attribute_in_a_graph():
    yield from with_latent(graph=True)


@kind(divided=False, may_refuse=("kept", "list"))
def tensors_left_in_a_list():
    """Feature maps that a layer appends to a list of the script."""
    x, y = examples()
    kept = []

    class Keeping(L.Layer):
        def __init__(self):
            super().__init__()
            self.dense = L.Dense(6, activation="tanh")

        def call(self, inputs):
            kept.append(self.dense(inputs))
            return kept[-1]

    net, optimizer = keras.Sequential([Keeping(), L.Dense(1)]), keras.optimizers.Adam(0.02)
    net.build((None, 8))
    for _ in range(3):
        rows, wanted = some(10, x, y)

        def loss(rows=rows, wanted=wanted):
            kept.clear()
            return square(net(rows), wanted) + 0.1 * tf.reduce_mean(tf.reduce_sum(kept[0] ** 2, 1) ** 0.5)

        yield [net, optimizer], descend(optimizer, [net], loss)


class Perturbed(keras.Model):
    """Adds a tensor of its attributes to each row."""

    def __init__(self):
        super().__init__()
        self.inner, self.by = mlp(8, 1), None

    def call(self, x):
        return self.inner(x + self.by)


@kind(may_refuse=("by", "Perturbed", "perturbed"), sample=True)
def gradient_of_a_captured_tensor():
    """One perturbation for all rows, in the direction of its gradient: it is no variable, and no argument."""
    x, y = examples()
    model, optimizer = Perturbed(), keras.optimizers.Adam(0.02)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        delta = tf.zeros([8], tf.float64)
        with tf.GradientTape() as tape:
            tape.watch(delta)
            model.by = delta
            loss = square(model(rows), wanted)
        model.by = 0.5 * tape.gradient(loss, delta)

        def adversarial(rows=rows, wanted=wanted):
            return square(model(rows), wanted)

        yield [model, optimizer, model.by], descend(optimizer, [model], adversarial)


@kind
def random_features_drawn_outside():
    """A tensor that is drawn once and captured by all calls."""
    x, y = examples()
    features = tf.random.normal([8, 6], dtype=tf.float64)
    project = L.Lambda(lambda a: tf.cos(a @ features))
    yield from trained(keras.Sequential([project, L.Dense(1)]), x, y, count=9, graph=True)


@kind(divided=False)
def counter_in_a_call():
    """Python counts calls, and what a call does depends on it: calls of the look must not be counted."""
    x, y = examples()

    class Counting(L.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.calls = L.Dense(6), 0

        def call(self, inputs):
            self.calls += 1
            return self.dense(inputs) * (1.0 if self.calls % 2 else 2.0)

    net = keras.Sequential([Counting(), L.Dense(1)])
    net.build((None, 8))
    yield from trained(net, x, y, count=9)


@kind(divided="partly")
def metric_updated_in_a_call():
    """A layer counts what goes through it."""
    x, y = examples()

    class Measured(L.Layer):
        def __init__(self):
            super().__init__()
            self.dense, self.mean = L.Dense(6), keras.metrics.Mean()

        def call(self, inputs):
            hidden = self.dense(inputs)
            self.mean.update_state(tf.abs(hidden))
            return hidden

    measured = Measured()
    net = keras.Sequential([L.Dense(8), measured, L.Dense(1)])
    for things, loss in trained(net, x, y, count=9):
        yield [*things, measured.mean], loss


@kind(divided=False)
def annealed_by_a_variable():
    """A variable that no gradient trains, changed between calls, read in them."""
    x, y = examples()
    heat = tf.Variable(1.0, trainable=False, dtype=tf.float64)
    net = keras.Sequential([L.Dense(6), L.Lambda(lambda a: tf.tanh(a * heat)), L.Dense(1)])
    for things, loss in trained(net, x, y, steps=4, count=9, graph=True):
        heat.assign(heat * 0.5)
        yield [*things, heat], loss


class Lines(tf.Module):
    """Its weights are variables at first, and tensors made of them for the steps within a step."""

    def __init__(self, size):
        super().__init__()
        self.w = tf.Variable(np.linspace(-0.4, 0.5, size)[:, None])

    def __call__(self, x):
        return tf.tanh(x @ self.w)


def fast_weights(graph):
    """A step within the step (MAML), whose gradient is followed: a module is given its weights by its attribute."""
    x, y = examples()
    body, lines, optimizer = mlp(8, 5), Lines(5), keras.optimizers.SGD(0.1)
    w = lines.w
    body.build((None, 8)), optimizer.build([*body.weights, w])

    def step(rows, wanted):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                first = square(lines(body(rows)), wanted)
            lines.w = w - 0.3 * inner.gradient(first, w)
            loss = square(lines(body(rows[::-1])), wanted[::-1] + 0.1) + 0.01 * tf.reduce_sum(lines.w**2)
            lines.w = w
        weights = [*body.trainable_variables, w]
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    step = tf.function(step) if graph else step
    for _ in range(3):
        yield [body, w, optimizer], step(*some(9, x, y))


@kind(divided="partly", sample=True)
def fast_weights_of_a_module():
    yield from fast_weights(graph=False)


@kind(divided="partly")
def fast_weights_of_a_module_in_a_graph():
    yield from fast_weights(graph=True)


WEIGHTS = {}


class Elsewhere(L.Layer):
    """Its weights stand in a global."""

    def call(self, x):
        return tf.tanh(x @ WEIGHTS["w"])


@kind(divided="partly", may_refuse=("computed outside",))
def weights_that_become_a_tensor_elsewhere():
    """What the layer holds does not show it."""
    x, y = examples()
    body, layer, optimizer, w = mlp(8, 5), Elsewhere(), keras.optimizers.SGD(0.1), tf.Variable(np.ones((5, 1)))
    body.build((None, 8)), optimizer.build([*body.weights, w])
    for turn in range(4):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted, turn=turn):
            hidden = body(rows)
            WEIGHTS["w"] = w * tf.reduce_mean(hidden**2) if turn > 1 else w
            return square(layer(hidden), wanted)

        yield [body, w, optimizer], descend(optimizer, [body, w], loss)
