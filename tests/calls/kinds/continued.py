"""What a divided call gives and another one takes: losses and metrics of large rows, layers one after the other."""

import gc

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, square

WORDS = 150  # float64: more than 1 KiB a row


def texts(count=22, length=6):
    numbers = np.random.RandomState(0)
    return numbers.randint(1, WORDS, (count, length)), numbers.randint(0, WORDS, (count, length))


def language(activation=None, mask=False):
    layers = [L.Embedding(WORDS, 5, mask_zero=mask), L.GRU(6, return_sequences=True), L.Dense(WORDS, activation)]
    return keras.Sequential(layers)


@kind(sample=True)
def language_model_with_metrics():
    x, y = texts()
    sparse = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = compiled(
        language(), sparse, metrics=["accuracy", keras.metrics.SparseCategoricalCrossentropy(from_logits=True)]
    )
    yield from fitted(model, x, y, epochs=2, batch_size=5)


@kind
def language_model_with_probabilities_and_masks():
    x, y = texts()
    x[:, 4:] *= np.arange(22)[:, None] % 2
    model = compiled(language("softmax", True), "sparse_categorical_crossentropy", weighted_metrics=["accuracy"])
    yield from fitted(model, x, y, epochs=2, batch_size=5)


@kind(sample=True)
def autoencoder_with_losses_of_keras():
    x, _ = examples(23, 140)
    model = compiled(mlp(20, 6, 20, 140), keras.losses.Huber(), metrics=["mae", "cosine_similarity"])
    yield from fitted(model, x, x, epochs=2, batch_size=6)


@kind(sample=True, divided="partly")
def hinge_losses_of_labels_that_are_partly_soft():
    """Keras moves labels to -1 and 1 only if all of the batch are 0 or 1: no worker's rows tell."""
    x, _ = examples(24, 140)
    labels = (x > 0.5) * 1.0
    labels[::4] = 0.05 + 0.9 * labels[::4]
    for count in (2, 5):
        model = compiled(mlp(6, 140), keras.losses.SquaredHinge(), metrics=["hinge"])
        yield from fitted(model, x, labels, epochs=1, batch_size=count, shuffle=False)


@kind
def metric_that_compares_rows():
    """It takes all of them, as a function of the script's own does."""
    x, _ = examples(20, 140)

    def spread(wanted, predicted):
        return tf.reduce_sum(tf.math.reduce_std(predicted - wanted, 0))

    model = compiled(mlp(6, 140), lambda wanted, predicted: spread(wanted, predicted) / 10, metrics=["mse", spread])
    yield from fitted(model, x, x, epochs=2, batch_size=7)


@kind
def reduction_none_and_sum():
    x, _ = examples(21, 140)
    each, total = keras.losses.MeanSquaredError(reduction="none"), keras.losses.LogCosh(reduction="sum")
    model, optimizer = mlp(6, 140, 140), keras.optimizers.Adam(0.01)
    model.build((None, 140))

    @tf.function(input_signature=[tf.TensorSpec([None, 140], tf.float64)])
    def step(rows):
        def loss():
            found = model(rows, training=True)
            return tf.reduce_max(each(rows, found)) + total(rows, found) / 50

        return descend(optimizer, [model], loss)

    optimizer.build(model.trainable_variables)
    for count in (6, 7, 5):
        yield [model, optimizer], step(some(count, x))


class Chain:
    """Models called one after the other."""

    def __init__(self, *models):
        self.models, self.optimizer = models, keras.optimizers.SGD(0.05)
        for model in models:
            model.build((None, 8))
        self.optimizer.build(self.weights)

    @property
    def weights(self):
        return [each for model in self.models for each in model.trainable_variables]

    def steps(self, step, signature=True):
        x, y = examples(30, 8, 8)
        specs = [tf.TensorSpec([None, 8], tf.float64)] * 2
        step = tf.function(step, input_signature=specs if signature else None)
        for count in (8, 7, 5):
            loss = step(*some(count, x, y))
            yield [*self.models, self.optimizer], loss

    def apply(self, gradients):
        self.optimizer.apply_gradients(zip(gradients, self.weights, strict=True))


def chain():
    return Chain(mlp(6, 8), keras.Sequential([L.Dense(8, "relu"), L.Dropout(0.3)]), mlp(8, 8))


@kind
def three_models_in_a_row():
    models = chain()

    def step(x, y):
        with tf.GradientTape() as tape:
            hidden = x
            for model in models.models:
                hidden = model(hidden, training=True)
            loss = square(hidden, y)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    yield from models.steps(step)
    yield from models.steps(step, signature=False)


@kind(sample=True)
def gradient_by_what_is_between_two_models():
    """As in Grad-CAM: no path from the loss may go round it."""
    models = chain()

    def step(x, y):
        with tf.GradientTape(persistent=True) as tape:
            first = models.models[0](x, training=True)
            second = models.models[1](first, training=True)
            loss = square(models.models[2](second), y)
            by_first, by_second = tape.gradient(loss, [first, second])
            loss += 10 * tf.reduce_mean(by_first**2) + tf.reduce_max(tf.abs(by_second))
        models.apply(tape.gradient(loss, models.weights))
        return loss + tf.reduce_sum(tape.gradient(loss, second))

    yield from models.steps(step)


@kind
def what_is_between_two_models_is_used_as_well():
    models = chain()
    kept = tf.Variable(tf.zeros([8], tf.float64))

    def step(x, y):
        with tf.GradientTape() as tape:
            first = models.models[0](x, training=True)
            second = models.models[1](first, training=True)
            found = models.models[2](second)
            if tf.reduce_mean(second) > 0.1:
                found += tf.reduce_mean(first, 0)
            total = tf.zeros([], tf.float64)
            for row in first[:2]:
                total += tf.reduce_sum(row**2)
            loss = square(found, y) + total / 100
        with tf.control_dependencies([second]):
            kept.assign_add(first[0])
        models.apply(tape.gradient(loss, models.weights))
        return loss

    for things, loss in models.steps(step):
        yield [*things, kept], loss


@kind(sample=True)
def function_that_calls_a_model_and_is_called_several_times():
    """Its exchanges are those of each call; of an attack by gradients, too, which is a loop of such calls."""
    models = chain()
    first, second, third = models.models

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float64)])
    def forward(x):
        return first(x, training=True)

    @tf.function(input_signature=[tf.TensorSpec([None, 8], tf.float64)] * 2)
    def attacked(x, y):
        found = x
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(found)
                loss = square(third(second(first(found))), y)
            found += 0.1 * tf.sign(tape.gradient(loss, found))
        return found

    def step(x, y):
        changed = attacked(x, y)
        with tf.GradientTape() as tape:
            one, two, three = forward(x), forward(y), forward(x * y)
            loss = square(third(one), y) + tf.reduce_mean(tf.abs(two - 2 * x))
            loss += square(second(three) * one, x) + square(third(forward(changed)), y)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    yield from models.steps(step)
    yield from models.steps(step, signature=False)


@kind
def functions_one_after_the_other_under_an_eager_tape():
    """The gradient of one is what a function gives, and nothing in that function takes it."""
    models = chain()
    first, second, third = models.models
    body, head = tf.function(lambda x: second(first(x, training=True), training=True)), tf.function(third)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = square(head(body(x)), y)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    x, y = examples(30, 8, 8)
    for count in (8, 7, 8):
        loss = step(*some(count, x, y))
        yield [*models.models, models.optimizer], loss


@kind(sample=True)
def models_of_rows_that_are_chosen_and_may_be_none():
    models = chain()
    first, second, third = models.models

    def step(x, y):
        with tf.GradientTape() as tape:
            chosen = x[:, 0] > 0.5
            some_x, some_y = tf.boolean_mask(x, chosen), tf.boolean_mask(y, chosen)
            difference = second(first(some_x), training=True) - some_y
            count = tf.cast(tf.shape(some_x)[0], x.dtype)
            loss = tf.reduce_sum(difference**2) / tf.maximum(count, 1.0) + square(third(first(x)), y)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    x, y = examples(30, 8, 8)
    step = tf.function(step, input_signature=[tf.TensorSpec([None, 8], tf.float64)] * 2)
    for number in (0.0, 2.0, -2.0):
        rows, wanted = some(8, x, y)
        loss = step(rows + number * tf.one_hot(0, 8, dtype=tf.float64), wanted)
        yield [*models.models, models.optimizer], loss


@kind
def models_in_branches_and_loops():
    """What one has given before enters another inside."""
    models = chain()
    first, second, last = models.models

    def step(x, y):
        with tf.GradientTape(persistent=True) as tape:
            hidden = first(x, training=True)
            found = last(second(hidden, training=True)) if tf.reduce_mean(y) > 0.5 else last(hidden)
            for _ in tf.range(2):
                found += last(hidden)
            loss = square(found, y)
        gradient = tape.gradient(loss, hidden)
        models.apply(tape.gradient(loss, models.weights))
        return loss + tf.reduce_max(gradient)

    yield from models.steps(step)


@kind
def functions_in_functions_give_what_models_give():
    models = chain()
    first, second, last = models.models

    @tf.function
    def encoded(x):
        return second(first(x, training=True), training=True)

    @tf.function
    def both(x):
        hidden = encoded(x)
        return hidden, last(hidden)

    def step(x, y):
        with tf.GradientTape() as tape:
            hidden, found = both(x)
            loss = square(found, y) + tf.reduce_mean(hidden**2)
        gradients = tape.gradient(loss, models.weights)
        models.apply(gradients)
        return loss

    yield from models.steps(step)
    x, y = examples(30, 8, 8)
    for count in (8, 7):  # and with the tape outside of all functions
        rows, wanted = some(count, x, y)
        yield [*models.models, models.optimizer], step(rows, wanted)


@kind
def second_derivatives_through_two_models():
    models = Chain(mlp(6, 8), mlp(8, 8))
    first, last = models.models

    def step(x, y):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(x)
                between = first(x, training=True)
                found = last(between)
            slope = inner.gradient(found, x)
            loss = square(found, y) + tf.reduce_mean(tf.norm(slope, axis=1) ** 2) + tf.reduce_mean(between)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    yield from models.steps(step)


@kind
def probabilities_enter_another_model():
    """A softmax that is looked behind, and by which a gradient is taken."""
    models = Chain(mlp(6, 8), keras.Sequential([L.Dense(8, "softmax")]), mlp(8, 8))
    wanted_of = keras.losses.CategoricalCrossentropy()

    def step(x, y):
        with tf.GradientTape(persistent=True) as tape:
            likely = models.models[1](models.models[0](x, training=True))
            loss = square(models.models[2](likely), y) + wanted_of(y / tf.reduce_sum(y, 1, True), likely)
            loss += 100 * tf.reduce_mean(tape.gradient(loss, likely) ** 2)
        models.apply(tape.gradient(loss, models.weights))
        return loss

    yield from models.steps(step)


class Product(tf.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w

    def __call__(self, x):
        return tf.tanh(x @ self.w)


@kind(sample=True)
def modules_made_anew():
    """Under the name, and perhaps at the place, of one that is gone; with variables of its own, or of that one."""
    x, y = examples(outputs=2)
    kept = tf.Variable(np.ones((8, 2)) / 3)
    for turn in range(6):
        module = Product(kept if turn % 2 else tf.Variable(np.full((8, 2), 0.1 * turn)))
        for _ in range(2):

            def loss(module=module):
                return square(module(x[:9]), y[:9])

            yield [kept, module.w], descend(keras.optimizers.SGD(0.1), [module.w], loss)
        del module
        gc.collect()


@kind(divided="partly")
def functions_that_outlive_an_optimizer():
    """What is looked at while a function is traced is no variable of that function."""
    x, y = examples()
    net = mlp(8, 5, 1)
    net.build((None, 8))
    forward = tf.function(net)
    for _ in range(2):
        optimizer = keras.optimizers.Adam(0.01)
        for _ in range(2):
            yield [net], descend(optimizer, [net], lambda: square(forward(x[:9]), y[:9]))
        del optimizer
        gc.collect()
