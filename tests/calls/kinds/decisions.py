"""What a script decides by numbers of its training, in Python."""

import os

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some, square


def losses(steps=6, rate=0.3):
    """A small training: yields a loss, and is sent a learning rate or nothing."""
    x, y = examples()
    net, optimizer = mlp(16, 1), keras.optimizers.SGD(rate)
    for _ in range(steps):
        rows, wanted = some(10, x, y)

        def loss(rows=rows, wanted=wanted):
            return square(net(rows), wanted)

        value = float(descend(optimizer, [net], loss))
        rate = yield net, optimizer, value
        if rate is not None:
            optimizer.learning_rate = rate
            yield None


@kind
def learning_rate_from_the_loss():
    training, best = losses(), 1e9
    for net, optimizer, value in training:
        if value > 0.9 * best:
            training.send(np.array(optimizer.learning_rate) * 0.5 * (1 + value))
        best = min(best, value)
        yield [net, optimizer], value


@kind
def decisions_through_the_environment():
    training = losses()
    for net, optimizer, value in training:
        os.environ["LAST_LOSS"] = repr(value)
        if float(os.environ["LAST_LOSS"]) > 0.1:
            os.environ["RATE"] = str(0.9 * float(os.environ.get("RATE", "0.3")))
            training.send(float(os.environ["RATE"]))
        yield [net, optimizer], value
    del os.environ["LAST_LOSS"]
    os.environ.pop("RATE", None)


class WorseError(Exception):
    pass


@kind
def decisions_through_exceptions():
    def compare(value, best):
        if value > 0.8 * best:
            raise WorseError(value)
        return value

    training, best = losses(), 1e9
    for net, optimizer, value in training:
        try:
            best = compare(value, best)
        except WorseError as worse:
            training.send(0.1 / (1 + worse.args[0]))
        yield [net, optimizer], value


@kind
def steps_taken_back_where_they_are_worse():
    """A line search: weights are restored, and the next step is smaller."""
    x, y = (tf.constant(each[:9]) for each in examples())
    net, rate = mlp(8, 1), 4.0
    before = square(net(x), y)
    for _ in range(4):
        kept = net.get_weights()
        with tf.GradientTape() as tape:
            loss = square(net(x), y)
        for weight, found in zip(net.trainable_variables, tape.gradient(loss, net.trainable_variables), strict=True):
            weight.assign_sub(rate * found)
        after = square(net(x), y)
        if after > before:
            net.set_weights(kept)
            rate /= 2
        else:
            before = after
        yield [net], [loss, after, rate]


@kind
def rows_chosen_by_their_losses():
    """Hard examples are mined from what a call without a tape says; the number of rows follows from them."""
    x, y = examples()
    net, optimizer = mlp(16, 1), keras.optimizers.Adam(0.02)
    net.build((None, 8))
    for _ in range(4):
        each = np.ravel((net.predict(x, verbose=0) - y) ** 2)
        chosen = np.flatnonzero(each > np.quantile(each, 0.8))[: 3 + int(each.mean() * 100) % 7]
        rows, wanted = tf.constant(x[chosen]), tf.constant(y[chosen])

        def loss(rows=rows, wanted=wanted):
            return square(net(rows), wanted)

        yield [net, optimizer, chosen], descend(optimizer, [net], loss)


@kind
def metrics_that_are_no_sums():
    """AUC, a confusion and a median that decide about the learning rate."""
    x, y = examples()
    labels = (y > 0.5).astype(float)
    net, optimizer = mlp(16, 1), keras.optimizers.SGD(0.3)
    auc, recall = keras.metrics.AUC(num_thresholds=20), keras.metrics.RecallAtPrecision(0.5, 20)
    for _ in range(4):
        rows, wanted = some(11, x, labels)
        with tf.GradientTape() as tape:
            out = net(rows)
            loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(wanted, out))
        found = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(found, net.trainable_variables, strict=True))
        auc.update_state(wanted, tf.sigmoid(out))
        recall.update_state(wanted, tf.sigmoid(out))
        seen = [float(auc.result()), float(recall.result()), float(np.median(out))]
        optimizer.learning_rate = 0.3 * (0.5 + seen[0]) + 0.01 * seen[2]
        yield [net, optimizer, auc, recall], seen


@kind
def metrics_of_compile_that_are_no_sums():
    x, y = examples()
    model = keras.Sequential([L.Dense(8), L.Dropout(0.2), L.Dense(1, "sigmoid")])
    metrics = [keras.metrics.AUC(num_thresholds=20), keras.metrics.Precision()]
    compiled(model, "binary_crossentropy", metrics=metrics)
    yield from fitted(model, x, (y > 0.5).astype(float), batch_size=15, epochs=2, validation_split=0.2)


@kind(divided=False)
def grown_where_it_stalls():
    """A layer is added when the loss no longer falls: another model from there on."""
    x, y = examples()
    layers, last = [L.Dense(8, activation="tanh"), L.Dense(1)], 0.0
    for _ in range(5):
        rows, wanted = some(9, x, y)
        net = keras.Sequential(layers)

        def loss(rows=rows, wanted=wanted, net=net):
            return square(net(rows), wanted)

        with tf.GradientTape() as tape:
            value = loss()
        for weight, found in zip(net.trainable_variables, tape.gradient(value, net.trainable_variables), strict=True):
            weight.assign_sub(0.1 * found)
        if float(value) > last and len(layers) < 4:
            layers.insert(1, L.Dense(8, activation="relu"))
        last = float(value)
        yield [net], value


@kind
def search_over_settings():
    """Several small trainings, of which the best goes on."""
    x, y = examples()
    results = []
    for rate in (0.01, 0.1, 0.3):
        net, optimizer = mlp(8, 1), keras.optimizers.SGD(rate)
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted, net=net):
            return square(net(rows), wanted)

        for _ in range(2):
            value = descend(optimizer, [net], loss)
        results.append((float(value), len(results), net, optimizer))
        yield [net, optimizer], value
    _, place, net, optimizer = min(results)
    rows, wanted = some(9, x, y)
    yield [net, optimizer], descend(optimizer, [net], lambda: square(net(rows), wanted) + place)
