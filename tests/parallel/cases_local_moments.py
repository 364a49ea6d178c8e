"""`dp.init(shard_calls=True, batch_norm="local")`: BatchNormalization by a worker's own rows."""

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (2,)
DEVICE_RANKS = ()
INIT = {"shard_calls": True, "batch_norm": "local"}
APART = True  # sharded calls change what later cases would meet

ROWS = np.random.RandomState(5).normal(2.0, 3.0, (8, 3)).astype("float32")
LABELS = ROWS[:, :1]
NEAR = {"rtol": 1e-5, "atol": 1e-6}


def taken(rows, labels):
    """A step of such a layer: its loss, and its gradients by scale and offset."""
    layer = tf.keras.layers.BatchNormalization()
    layer.build((None, 3))

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.reduce_sum((layer(rows, training=True) - labels) ** 3, 1))
        return loss, tape.gradient(loss, [layer.gamma, layer.beta])

    return layer, step


def wanted(rows, labels, epsilon=1e-3):
    """The same of these rows by themselves, by the formula."""
    scale, offset = tf.Variable(tf.ones([3])), tf.Variable(tf.zeros([3]))
    mean, variance = tf.nn.moments(tf.constant(rows), [0])
    with tf.GradientTape() as tape:
        given = tf.nn.batch_normalization(rows, mean, variance, offset, scale, epsilon)
        loss = tf.reduce_mean(tf.reduce_sum((given - labels) ** 3, 1))
    return [mean, variance, loss, *tape.gradient(loss, [scale, offset])]


def assert_means_of_halves(step_of):
    layer, step = taken(ROWS, LABELS)
    loss, gradients = step_of(step)()
    halves = [wanted(ROWS[half], LABELS[half]) for half in (slice(0, 4), slice(4, 8))]
    mean, variance, *expected = [np.mean(each, 0) for each in zip(*halves, strict=True)]
    assert np.abs(wanted(ROWS, LABELS)[3] - expected[1]).max() > 0.1  # of the whole batch they are others
    for found, want in zip([loss, *gradients], expected, strict=True):
        np.testing.assert_allclose(found, want, **NEAR)
    np.testing.assert_allclose(layer.moving_mean, 0.01 * mean, **NEAR)
    np.testing.assert_allclose(layer.moving_variance, 0.99 + 0.01 * variance, **NEAR)
    assert len(set(map(bytes, dp.allgather(tf.constant(layer.moving_mean)[None]).numpy()))) == 1


def case_each_half_by_itself_in_a_function():
    assert_means_of_halves(tf.function)


def case_each_half_by_itself_outside_of_functions():
    assert_means_of_halves(lambda step: step)


def case_rows_that_the_workers_cannot_divide_have_finite_statistics():
    layer, step = taken(ROWS[:3], LABELS[:3])
    step()
    assert np.isfinite(layer.moving_variance).all()
    assert np.abs(layer.moving_mean).min() > 0


def case_images_in_fit_end_with_equal_statistics_of_their_own_rows():
    model = tf.keras.Sequential([tf.keras.layers.BatchNormalization(), tf.keras.layers.Flatten()])
    model.compile("sgd", "mse")
    images = np.random.RandomState(1).normal(size=(8, 2, 2, 3)).astype("float32")
    images[4:] += 5.0
    model.fit(images, images.reshape(8, -1), batch_size=8, epochs=1, shuffle=False, verbose=0)
    moved = [np.array(each) for each in model.layers[0].non_trainable_variables]
    for each in moved:
        assert len(set(map(bytes, dp.allgather(tf.constant(each)[None]).numpy()))) == 1
    halves = np.mean([images[:4].var((0, 1, 2)), images[4:].var((0, 1, 2))], 0)
    mean, variance = sorted(moved, key=lambda each: each.min())
    np.testing.assert_allclose(mean, 0.01 * images.mean((0, 1, 2)), rtol=1e-4)
    np.testing.assert_allclose(variance, 0.99 + 0.01 * halves, atol=2e-3)  # Keras 2's is that of a sample
