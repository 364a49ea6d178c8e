"""Training in graphs: loops, conditions, XLA, and by hand."""

import numpy as np
import tensorflow as tf

from . import L, descend, examples, keras, kind, mlp, some, square, trained


def built(width=8, rate=0.01):
    net, optimizer = keras.Sequential([L.Dense(width, activation="relu"), L.Dropout(0.2), L.Dense(1)]), None
    net.build((None, 8))
    optimizer = keras.optimizers.Adam(rate)
    optimizer.build(net.trainable_variables)
    return net, optimizer


@kind
def loop_over_a_dataset_in_a_graph():
    x, y = examples()
    net, optimizer = built()

    @tf.function
    def epoch(batches):
        total = tf.constant(0.0, tf.float64)
        for rows, wanted in batches:
            with tf.GradientTape() as tape:
                loss = square(net(rows, training=True), wanted)
            gradients = tape.gradient(loss, net.trainable_variables)
            optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
            total += loss
        return total

    batches = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(15)
    for _ in range(2):
        yield [net, optimizer], epoch(batches)


@kind
def whole_training_in_one_graph():
    """Batches are drawn in a `tf.range`; a `while` ends it by its loss."""
    x, y = (tf.constant(each) for each in examples())
    net, optimizer = built()

    def update():
        chosen = tf.random.uniform([9], maxval=64, dtype=tf.int32)
        with tf.GradientTape() as tape:
            loss = square(net(tf.gather(x, chosen), training=True), tf.gather(y, chosen))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        return loss

    @tf.function
    def train():
        loss, steps = tf.constant(1e9, tf.float64), 0
        for _ in tf.range(3):
            loss = update()
        while loss > 0.05 and steps < 4:
            loss = update()
            steps += 1
        return loss, steps

    for _ in range(2):
        loss, steps = train()
        yield [net, optimizer, steps], loss


@kind
def model_called_under_a_condition():
    """The loss of the batch decides which model is called."""
    x, y = examples()
    net, other, optimizer = mlp(8, 1), mlp(4, 1), keras.optimizers.Adam(0.01)
    (
        net.build((None, 8)),
        other.build((None, 8)),
        optimizer.build([*net.trainable_variables, *other.trainable_variables]),
    )

    @tf.function
    def step(rows, wanted):
        with tf.GradientTape() as tape:
            out = tf.cond(tf.reduce_mean(wanted) > 0.5, lambda: net(rows), lambda: 2 * other(rows))
            loss = square(out, wanted)
        weights = [*net.trainable_variables, *other.trainable_variables]
        found = tape.gradient(loss, weights, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        optimizer.apply_gradients(zip(found, weights, strict=True))
        return loss

    for _ in range(4):
        yield [net, other, optimizer], step(*some(9, x, y))


@kind
def model_called_in_a_loop_of_a_graph():
    """One call after the other on its own output: a loop inside of the tape."""
    x, _ = examples()
    net, optimizer = mlp(8, 8), keras.optimizers.Adam(0.01)
    net.build((None, 8)), optimizer.build(net.trainable_variables)

    @tf.function
    def step(rows):
        with tf.GradientTape() as tape:
            state = rows
            for _ in tf.range(3):
                state = state + 0.1 * net(state)
            loss = tf.reduce_mean(state**2)
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables, strict=True))
        return loss

    for _ in range(3):
        yield [net, optimizer], step(some(9, x))


@kind(may_refuse=("scan", "map_fn", "loop"))
def model_called_in_a_scan():
    """Row by row, and time step by time step: the elements of a scan are no batches."""
    sequences = np.random.RandomState(0).rand(16, 4, 3)
    cell, optimizer = mlp(6, 3), keras.optimizers.Adam(0.01)
    cell.build((None, 6)), optimizer.build(cell.trainable_variables)

    @tf.function
    def step(rows):
        def loss():
            times = tf.transpose(rows, [1, 0, 2])
            states = tf.scan(lambda s, x: cell(tf.concat([s, x], 1)), times, tf.zeros_like(times[0]))
            return tf.reduce_mean((states - times) ** 2)

        return descend(optimizer, [cell], loss)

    for _ in range(3):
        yield [cell, optimizer], step(some(6, sequences))


@kind
def compiled_by_xla():
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8)), optimizer.build(net.trainable_variables)

    @tf.function(jit_compile=True)
    def step(rows, wanted):
        return descend(optimizer, [net], lambda: square(net(rows), wanted))

    for _ in range(3):
        yield [net, optimizer], step(*some(9, x, y))


@kind
def gradients_added_up_by_hand():
    """Four batches for one update."""
    x, y = examples()
    net, optimizer, total = mlp(16, 1), keras.optimizers.Adam(0.01), None
    for number in range(8):
        rows, wanted = some(7, x, y)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((net(rows) - wanted) ** 2) / 7
        found = tape.gradient(loss, net.trainable_variables)
        total = found if total is None else [a + b for a, b in zip(total, found, strict=True)]
        if number % 4 == 3:
            optimizer.apply_gradients(zip([each / 4 for each in total], net.trainable_variables, strict=True))
            total = None
        yield [net, optimizer], loss


@kind
def gradients_added_up_in_variables():
    x, y = examples()
    net, optimizer = built()
    totals = [tf.Variable(tf.zeros_like(tf.convert_to_tensor(v)), trainable=False) for v in net.trainable_variables]

    @tf.function
    def step(rows, wanted, last):
        with tf.GradientTape() as tape:
            loss = square(net(rows, training=True), wanted)
        for total, found in zip(totals, tape.gradient(loss, net.trainable_variables), strict=True):
            total.assign_add(found)
        if last:
            optimizer.apply_gradients(zip([t / 2.0 for t in totals], net.trainable_variables, strict=True))
            for total in totals:
                total.assign(tf.zeros_like(total))
        return loss

    for number in range(4):
        yield [net, optimizer, *totals], step(*some(7, x, y), tf.constant(number % 2 == 1))


@kind
def average_of_weights_as_a_teacher():
    """A teacher that follows the weights, and a queue of what it said."""
    x, _ = examples()
    student, teacher, optimizer = mlp(16, 6), mlp(16, 6), keras.optimizers.SGD(0.1)
    student.build((None, 8)), teacher.build((None, 8))
    teacher.set_weights(student.get_weights())
    queue = tf.Variable(np.random.RandomState(1).rand(20, 6))

    @tf.function
    def step(rows):
        keys = tf.stop_gradient(tf.math.l2_normalize(teacher(rows), 1))

        def loss():
            seen = tf.math.l2_normalize(student(rows, training=True), 1)
            near = tf.reduce_mean(tf.reduce_sum(seen * keys, 1))
            return tf.reduce_mean(tf.reduce_logsumexp(seen @ tf.transpose(queue), 1)) - near

        value = descend(optimizer, [student], loss)
        queue.assign(tf.concat([keys, queue[:-10]], 0))
        for followed, weight in zip(teacher.weights, student.weights, strict=True):
            followed.assign(0.9 * followed + 0.1 * weight)
        return value

    for _ in range(3):
        yield [student, teacher, queue, optimizer], step(some(10, x))


@kind
def updates_written_by_hand():
    """No optimizer: momentum and weight decay in the script."""
    x, y = examples()
    net = mlp(8, 1)
    net.build((None, 8))
    speeds = [np.zeros(v.shape) for v in net.trainable_variables]
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
        for number, found in enumerate(tape.gradient(loss, net.trainable_variables)):
            speeds[number] = 0.9 * speeds[number] + found.numpy()
            weight = net.trainable_variables[number]
            weight.assign(weight * 0.999 - 0.1 * speeds[number])
        yield [net, *speeds], loss


@kind
def two_optimizers_for_two_parts():
    x, y = examples()
    body, head = mlp(8, 4), L.Dense(1)
    slow, fast = keras.optimizers.SGD(0.01), keras.optimizers.Adam(0.05)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as slowly, tf.GradientTape() as quickly:
            loss = square(head(body(rows)), wanted)
        for tape, optimizer, model in ((slowly, slow, body), (quickly, fast, head)):
            found = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(found, model.trainable_variables, strict=True))
        yield [body, head, slow, fast], loss


@kind(bound=1e-3)
def mixed_precision():
    keras.mixed_precision.set_global_policy("mixed_float16")
    x, y = (each.astype("float32") for each in examples())
    yield from trained(mlp(16, 1), x, y, loss=lambda p, t: square(tf.cast(p, tf.float32), t), graph=True)


@kind(keras=3, bound=1e-2)
def mixed_bfloat16():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    x, y = (each.astype("float32") for each in examples())
    net = keras.Sequential([L.Dense(16), L.BatchNormalization(), L.Dropout(0.2), L.Dense(1, dtype="float32")])
    yield from trained(net, x, y, count=9, optimizer=keras.optimizers.SGD(0.05))


@kind
def distillation_with_a_second_model():
    x, y = examples()
    teacher = mlp(16, 3)
    student, optimizer = keras.Sequential([L.Dense(4), L.Dropout(0.2), L.Dense(3)]), keras.optimizers.Adam(0.01)

    @tf.function
    def step(rows, wanted):
        soft = tf.nn.softmax(teacher(rows, training=False) / 2)

        def loss():
            own = tf.nn.log_softmax(student(rows, training=True) / 2)
            return -tf.reduce_mean(tf.reduce_sum(soft * own, 1)) + 0.1 * tf.reduce_mean(own[:, :1] * wanted)

        return descend(optimizer, [student], loss)

    for _ in range(3):
        yield [teacher, student, optimizer], step(*some(9, x, y))
