"""Sharded calls: datasets give all workers the same elements in the same order, whatever runs at the same time."""

import time

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp

DEVICE_RANKS = ()
INIT = {"shard_calls": True}
COUNT = 500
AT_ONCE = {"num_parallel_calls": 4}


def drawn(x):
    return x + tf.random.uniform([]) + tf.random.gamma([], 2.0)


def drawn_by_python(x):
    return tf.numpy_function(lambda v: (v + np.random.rand()).astype("float32"), [x], tf.float32)


def slow_at_random(x):
    return tf.numpy_function(lambda v: (time.sleep(np.random.rand() * 1e-3), v)[1], [x], tf.float32)


def numbers():
    return tf.data.Dataset.range(COUNT).map(lambda i: tf.cast(i, tf.float32))


def seen(dataset):
    """The elements, which must be those of all workers."""
    found = np.array(list(dataset.as_numpy_iterator()), "float32")
    every = dp.allgather(tf.constant(found[None])).numpy()
    np.testing.assert_array_equal(every, np.stack([found] * dp.size()))
    return found


def case_what_is_drawn_at_the_same_time_is_drawn_in_order():
    generator, flip = tf.random.Generator.from_seed(3), tf.keras.layers.RandomFlip("horizontal", seed=3)

    def flipped(x):
        return tf.reduce_sum(flip(tf.reshape(tf.range(16.0) * x, [4, 4, 1]), training=True)[0])

    for function in (drawn, drawn_by_python, lambda x: x + generator.uniform([]), flipped):
        seen(numbers().map(function, **AT_ONCE))
        seen(numbers().map(function, tf.data.AUTOTUNE).batch(25, drop_remainder=True).prefetch(2))
    tf.random.set_seed(2)
    in_order = seen(numbers().map(drawn))
    tf.random.set_seed(2)
    np.testing.assert_array_equal(seen(numbers().map(drawn, **AT_ONCE)), in_order)


def halved(x):
    if x > 2:
        x = x / 2
    return x


def alone(x):
    return tf.data.Dataset.from_tensors(halved(x))


def added(total, x):
    return total + halved(x)


def case_autograph_compiles_the_functions_of_stages_as_everywhere():
    few = tf.data.Dataset.from_tensor_slices([1.0, 4.0])

    def every_stage():
        return (
            few.map(halved),
            few.map(halved, **AT_ONCE),
            few.map(halved, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False),
            few.interleave(alone, cycle_length=4, **AT_ONCE),
            few.flat_map(alone),
            few.batch(2).unbatch().map(halved),
        )

    @tf.function
    def in_a_graph():
        return [dataset.reduce(0.0, added) for dataset in every_stage()]

    for dataset in every_stage():
        np.testing.assert_array_equal(seen(dataset), [1.0, 2.0])
    assert float(few.reduce(0.0, added)) == 3.0
    assert [float(total) for total in in_a_graph()] == [3.0] * 6


def case_autograph_compiles_what_gradients_call_as_everywhere():
    @tf.custom_gradient
    def bent(x):
        return x, tf.autograph.to_graph(halved)

    @tf.recompute_grad
    def again(x):
        return tf.data.Dataset.from_tensors(4.0).map(halved).reduce(0.0, lambda total, each: total + each) * x

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = 4.0 * bent(x) + again(x)
        return tape.gradient(y, x)

    assert float(step(tf.constant(1.0))) == 4.0


def case_what_is_drawn_by_datasets_in_a_dataset_is_drawn_in_order():
    nested = tf.data.Dataset.range(4).interleave(lambda _: numbers().take(50).map(drawn), cycle_length=4, **AT_ONCE)
    seen(nested)


def case_the_order_is_no_matter_of_the_moment():
    options = tf.data.Options()
    options.deterministic = False
    for dataset in (
        numbers().map(slow_at_random, **AT_ONCE, deterministic=False),
        numbers().map(slow_at_random, **AT_ONCE).with_options(options),
        tf.data.Dataset.range(5).interleave(
            lambda _: numbers().take(9), cycle_length=4, **AT_ONCE, deterministic=False
        ),
    ):
        seen(dataset)
    np.testing.assert_array_equal(seen(numbers().map(slow_at_random, **AT_ONCE, deterministic=False)), range(COUNT))


def case_what_draws_nothing_runs_at_the_same_time():
    def asked(dataset):
        return int(dataset._num_parallel_calls)

    assert asked(numbers().map(lambda x: x * 2, **AT_ONCE)) == 4
    assert asked(numbers().map(lambda x: x + tf.random.stateless_uniform([], [1, 2]), **AT_ONCE)) == 4
    assert asked(tf.data.Dataset.range(4).interleave(lambda _: numbers().take(50), **AT_ONCE)) == 4
    assert asked(numbers().map(drawn, **AT_ONCE)) == 1
