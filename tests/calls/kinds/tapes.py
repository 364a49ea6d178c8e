"""Gradients of gradients, of tensors, by several tapes, and taken in unusual places."""

import threading

import numpy as np
import tensorflow as tf

from . import KERAS, L, descend, examples, keras, kind, mlp, some, square


def apply(optimizer, gradients, weights):
    optimizer.apply_gradients(zip(gradients, weights, strict=True))


@kind(sample=True)
def differential_equation():
    """Second derivatives by the inputs, and a parameter of the equation that no model has."""
    net, optimizer = mlp(16, 16, 1), keras.optimizers.Adam(0.01)
    points, rate = tf.constant(np.linspace(0, 1, 21)[:, None]), tf.Variable(0.5, dtype=tf.float64)
    for _ in range(3):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as second:
                second.watch(points)
                with tf.GradientTape() as first:
                    first.watch(points)
                    u = net(points)
                slope = first.gradient(u, points)
            curve = second.gradient(slope, points)
            equation = curve + rate * tf.sin(points) + u * slope
            loss = tf.reduce_mean(equation**2) + tf.reduce_mean(net(points[:1]) ** 2)
        weights = [*net.trainable_variables, rate]
        apply(optimizer, tape.gradient(loss, weights), weights)
        yield [net, rate, optimizer], loss


@kind(sample=True)
def inner_updates_of_meta_learning():
    """The gradient of an update: weights of the model in a call, and changed ones outside of any."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)
    net.build((None, 8))
    weights = net.trainable_variables

    def by_hand(kernels, rows):
        return tf.tanh(rows @ kernels[0] + kernels[1]) @ kernels[2] + kernels[3]

    for _ in range(3):
        rows, wanted = some(10, x, y)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                first = square(net(rows), wanted)
            gradients = inner.gradient(first, weights)
            changed = [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)]
            loss = square(by_hand(changed, rows), wanted) + tf.reduce_mean((net(rows) - wanted) ** 4)
        apply(optimizer, outer.gradient(loss, weights), weights)
        yield [net, optimizer], loss


@kind
def penalty_of_the_gradient_by_the_weights():
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)

    @tf.function
    def step(rows, wanted):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                first = square(net(rows), wanted)
            gradients = inner.gradient(first, net.trainable_variables)
            loss = first + 0.1 * tf.add_n([tf.reduce_sum(each**2) for each in gradients])
        apply(optimizer, outer.gradient(loss, net.trainable_variables), net.trainable_variables)
        return loss

    for _ in range(3):
        yield [net, optimizer], step(*some(9, x, y))


@kind
def sharpness_aware_minimization():
    """Two gradients for one update, the second at weights that the first has moved."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
        ascent = tape.gradient(loss, net.trainable_variables)
        steps = [0.05 * each / (tf.linalg.global_norm(ascent) + 1e-12) for each in ascent]
        for weight, moved in zip(net.trainable_variables, steps, strict=True):
            weight.assign_add(moved)
        with tf.GradientTape() as tape:
            second = square(net(rows), wanted)
        gradients = tape.gradient(second, net.trainable_variables)
        for weight, moved in zip(net.trainable_variables, steps, strict=True):
            weight.assign_sub(moved)
        apply(optimizer, gradients, net.trainable_variables)
        yield [net, optimizer], [loss, second]


@kind
def persistent_tape():
    """Gradients of two losses for two sets of weights, and of a tensor, from one tape."""
    x, y = examples()
    body, head, optimizers = mlp(8, 4), L.Dense(1), [keras.optimizers.Adam(0.01), keras.optimizers.SGD(0.1)]
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape(persistent=True) as tape:
            hidden = body(rows)
            first, second = square(head(hidden), wanted), tf.reduce_mean(tf.abs(hidden))
            both = first + second
        by_hidden = tape.gradient(first, hidden)
        apply(optimizers[0], tape.gradient(both, body.trainable_variables), body.trainable_variables)
        apply(optimizers[1], tape.gradient(first, head.trainable_variables), head.trainable_variables)
        del tape
        yield [body, head, *optimizers, by_hidden], [first, second]


@kind
def two_gradients_of_a_first_step_that_builds():
    """The same weights twice, by one tape, in the step that makes them."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.1)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape(persistent=True) as tape:
            found = net(rows)
            first, second = square(found, wanted), tf.reduce_mean(tf.abs(found))
        weights = net.trainable_variables
        pairs = zip(tape.gradient(first, weights), tape.gradient(second, weights), strict=True)
        apply(optimizer, [one + 0.1 * other for one, other in pairs], weights)
        yield [net, optimizer], [first, second]


@kind
def gradient_inside_of_the_tape():
    """The tape goes on recording while its gradient is taken."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.Adam(0.01)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
            gradients = tape.gradient(loss, net.trainable_variables)
        apply(optimizer, gradients, net.trainable_variables)
        yield [net, optimizer], loss


@kind
def weights_watched_by_hand():
    """A tape that watches nothing by itself; a dictionary of sources; a weight that the loss does not reach."""
    x, y = examples()
    net, apart, optimizer = mlp(8, 1), tf.Variable(np.ones(2)), keras.optimizers.SGD(0.1)
    net.build((None, 8))
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([v.value if KERAS == 3 else v for v in net.trainable_variables[-2:]])
            loss = square(net(rows), wanted)
        sources = {"last": net.trainable_variables[-2:], "apart": apart}
        found = tape.gradient(loss, sources, unconnected_gradients=tf.UnconnectedGradients.ZERO)
        apply(optimizer, found["last"], sources["last"])
        yield [net, apart, found["apart"], optimizer], loss


@kind
def losses_of_each_row_as_target():
    """A target that is no number, and gradients that come from outside."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.05)
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            each = (net(rows) - wanted) ** 2
        weights = tf.constant(np.linspace(0, 1, 9)[:, None])
        apply(
            optimizer, tape.gradient(each, net.trainable_variables, output_gradients=weights), net.trainable_variables
        )
        yield [net, optimizer], each


@kind
def perturbation_of_each_row():
    """Virtual adversarial training: the gradient by the input is itself an input."""
    x, y = examples()
    net, optimizer = mlp(8, 3), keras.optimizers.Adam(0.01)

    @tf.function
    def step(rows, wanted):
        drawn = 1e-1 * tf.math.l2_normalize(tf.random.normal(tf.shape(rows), dtype=rows.dtype, seed=3), 1)
        clean = tf.stop_gradient(net(rows))
        with tf.GradientTape() as tape:
            tape.watch(drawn)
            far = tf.reduce_mean(tf.reduce_sum((net(rows + drawn) - clean) ** 2, 1))
        worst = tf.stop_gradient(tf.math.l2_normalize(tape.gradient(far, drawn), 1))
        return descend(optimizer, [net], lambda: square(net(rows), wanted) + square(net(rows + worst), net(rows)))

    for _ in range(3):
        yield [net, optimizer], step(*some(9, x, y))


@kind
def style_optimized_as_a_variable():
    """The image is what is trained; the model is not."""
    image = tf.Variable(np.random.RandomState(0).rand(3, 6, 6, 2))
    features = keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.Conv2D(4, 3)])
    wanted, optimizer = features(np.random.RandomState(1).rand(3, 6, 6, 2)), keras.optimizers.Adam(0.05)
    features.trainable = False
    for _ in range(3):
        with tf.GradientTape() as tape:
            seen = features(tf.convert_to_tensor(image))
            grams = [tf.einsum("bxyc,bxyd->bcd", each, each) for each in (seen, wanted)]
            loss = square(*grams)
        apply(optimizer, tape.gradient(loss, [image]), [image])
        yield [image, optimizer], loss


@kind
def jacobian_of_each_row():
    x, _ = examples()
    net, optimizer = mlp(8, 3), keras.optimizers.SGD(0.1)
    for _ in range(2):
        rows = some(6, x)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(rows)
                out = net(rows)
            loss = tf.reduce_mean(inner.batch_jacobian(out, rows) ** 2) + tf.reduce_mean(out**2)
        apply(optimizer, outer.gradient(loss, net.trainable_variables), net.trainable_variables)
        yield [net, optimizer], loss


@kind
def jacobian_by_the_weights():
    """Gauss-Newton: the derivative of each row's residual by the weights."""
    x, y = examples()
    net = L.Dense(1)
    for _ in range(2):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            residual = (net(rows) - wanted)[:, 0]
        jacobian = tf.concat([tf.reshape(j, [9, -1]) for j in tape.jacobian(residual, net.trainable_variables)], 1)
        step = tf.linalg.lstsq(jacobian, residual[:, None], l2_regularizer=0.1)
        kernel, bias = tf.split(step, [8, 1])
        net.kernel.assign(net.kernel - kernel)
        net.bias.assign(net.bias - bias[0])
        yield [net], tf.reduce_sum(residual**2)


@kind
def jacobian_in_a_loop():
    x, _ = examples()
    net, optimizer = mlp(8, 3), keras.optimizers.SGD(0.1)
    for _ in range(2):
        rows = some(6, x)
        with tf.GradientTape() as outer:
            with tf.GradientTape(persistent=True) as inner:
                inner.watch(rows)
                out = net(rows)
            loss = tf.reduce_mean(inner.jacobian(out, rows, experimental_use_pfor=False) ** 2)
        apply(optimizer, outer.gradient(loss, net.trainable_variables), net.trainable_variables)
        yield [net, optimizer], loss


@kind(divided=False, may_refuse=("jacobian", "vectorized_map"))
def gradients_of_each_row_by_vectorized_map():
    """Differential privacy: each row's gradient is clipped by itself."""
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))

    def of_one(row):
        with tf.GradientTape() as tape:
            loss = square(net(row[0][None]), row[1][None])
        return tape.gradient(loss, net.trainable_variables)

    for _ in range(2):
        gradients = tf.vectorized_map(of_one, tuple(some(6, x, y)))
        clipped = [tf.reduce_mean(tf.clip_by_value(each, -0.1, 0.1), 0) for each in gradients]
        apply(optimizer, clipped, net.trainable_variables)
        yield [net, optimizer], tf.linalg.global_norm(clipped)


@kind
def hessian_by_two_gradients():
    """A product with the Hessian, by the weights, for conjugate gradients."""
    x, y = examples()
    net = mlp(4, 1)
    net.build((None, 8))
    weights = net.trainable_variables
    for _ in range(2):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                loss = square(net(rows), wanted)
            gradients = inner.gradient(loss, weights)
            along = tf.add_n([tf.reduce_sum(each * tf.stop_gradient(each)) for each in gradients])
        curved = outer.gradient(along, weights)
        for weight, gradient, change in zip(weights, gradients, curved, strict=True):
            weight.assign_sub(0.1 * gradient + 0.01 * change)
        yield [net], [loss, along]


@kind
def custom_gradient_around_a_model():
    """A gradient reversal between two models."""
    x, y = examples()
    body, critic, optimizer = mlp(8, 4), mlp(4, 1), keras.optimizers.Adam(0.01)

    @tf.custom_gradient
    def reversed_gradient(hidden):
        return tf.identity(hidden), lambda upstream: -0.3 * upstream

    for _ in range(3):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted):
            return square(critic(reversed_gradient(body(rows))), wanted)

        yield [body, critic, optimizer], descend(optimizer, [body, critic], loss)


@kind(may_refuse=("recompute_grad",))
def recomputed_activations():
    x, y = examples()
    net, optimizer = mlp(8, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))

    @tf.recompute_grad
    def recomputed(rows):
        return net(rows)

    for _ in range(3):
        rows, wanted = some(9, x, y)

        def loss(rows=rows, wanted=wanted):
            return square(recomputed(rows), wanted)

        yield [net, optimizer], descend(optimizer, [net], loss)


@kind
def weights_in_an_order_of_each_process():
    """As sets of variables have one, which go by addresses."""
    x, y = examples()
    net = mlp(*[6] * 6, 1)
    net.build((None, 8))
    order = np.random.RandomState(threading.get_native_id()).permutation(len(net.trainable_variables))
    weights = [net.trainable_variables[number] for number in order]
    for _ in range(3):
        rows, wanted = some(9, x, y)
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
        for weight, found in zip(weights, tape.gradient(loss, weights), strict=True):
            weight.assign_sub(0.1 * found)
        yield [net], loss


@kind(sample=True)
def curvature_by_forward_over_reverse():
    """A gradient that is taken inside an accumulator is exchanged with nobody: no tangent goes through that."""
    x, y = examples()
    net, optimizer = mlp(8, 6, 1), keras.optimizers.SGD(0.1)
    net.build((None, 8))

    def step(rows, wanted):
        weights = net.trainable_variables
        with tf.GradientTape() as tape:
            loss = square(net(rows), wanted)
        slopes = tape.gradient(loss, weights)
        with tf.autodiff.ForwardAccumulator([tf.convert_to_tensor(each) for each in weights], slopes) as pushed:
            with tf.GradientTape() as inner:
                again = square(net(rows), wanted)
            found = inner.gradient(again, weights)
        curved = pushed.jvp(found, tf.UnconnectedGradients.ZERO)
        bend = tf.add_n([tf.reduce_sum(a * b) for a, b in zip(curved, slopes, strict=True)])
        optimizer.apply_gradients([(a / (1.0 + tf.abs(bend)), v) for a, v in zip(slopes, weights, strict=True)])
        return loss + bend

    for each in (step, tf.function(step)):
        for _ in range(3):
            yield [net, optimizer], each(*some(9, x, y))
