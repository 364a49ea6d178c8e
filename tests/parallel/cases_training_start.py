"""All ranks hold rank 0's variables before the first forward pass, whatever makes them, whatever their seeds."""

import pathlib
import random
import tempfile

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)

# Keras' default seeds come from Python's generator: without this the ranks would agree by themselves.
random.seed(100 + dp.rank())
np.random.seed(100 + dp.rank())


def all_ranks(value):
    """The value of every rank, by rank."""
    array = np.asarray(value)
    return dp.allgather(array[np.newaxis] if array.dtype.kind != "V" else array).numpy()


def assert_equal_on_ranks(*values):
    for value in values:
        by_rank = all_ranks(tf.convert_to_tensor(value))
        for other in by_rank[1:]:
            assert other.tobytes() == by_rank[0].tobytes(), by_rank


def assert_differ(*values):
    for value in values:
        by_rank = all_ranks(value)
        assert len({each.tobytes() for each in by_rank}) == dp.size(), by_rank


def features(rows=8, columns=5):
    return tf.constant(np.random.default_rng(3).normal(size=(rows, columns)), tf.float32)


def own_features(rows=8, columns=5):
    return tf.constant(np.random.default_rng([dp.rank()]).normal(size=(rows, columns)), tf.float32)


def keras_model():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(7, activation="relu"),
            tf.keras.layers.BatchNormalization(),
            tf.keras.layers.Dense(2),
        ]
    )


def case_rank_0_keeps_its_own_value():
    drawn = tf.random.normal([4, 3])
    assert_differ(drawn)
    variable = tf.Variable(drawn)
    assert_equal_on_ranks(variable)
    if dp.rank() == 0:
        np.testing.assert_array_equal(variable.numpy(), drawn.numpy())


def case_eager_variables_of_every_kind():
    mine = dp.rank() + 1
    variables = [
        tf.Variable(mine),
        tf.Variable(float(mine)),
        tf.Variable([mine, 2]),
        tf.Variable(np.full([2, 3], mine, np.float64)),
        tf.Variable(lambda: tf.fill([3], mine)),
        tf.Variable(mine % 2 == 1),
        tf.Variable(tf.fill([5], tf.cast(mine, tf.bfloat16))),
        tf.Variable(tf.fill([5], tf.cast(mine, tf.float16))),
        tf.Variable(tf.complex(float(mine), 1.0)),
        tf.Variable(tf.zeros([0, 3])),
        tf.Variable(mine, dtype=tf.float64, name="named"),
        tf.Variable(tf.constant([1.0 * mine, 2.0]), shape=tf.TensorShape(None)),
        tf.Variable(tf.fill([3], tf.cast(mine, tf.uint8))),
    ]
    for variable in variables:
        assert_equal_on_ranks(variable)
    assert variables[0].numpy() == 1
    assert variables[5].numpy() == True  # noqa: E712 - a NumPy bool
    assert variables[9].shape == (0, 3)
    assert variables[10].dtype == tf.float64


def case_strings_and_copies_stay_as_they_are():
    assert tf.Variable(f"rank {dp.rank()}").numpy() == f"rank {dp.rank()}".encode()
    original = tf.Variable(tf.random.normal([3]))
    assert_equal_on_ranks(original, tf.Variable(original))


def case_a_large_variable():
    variable = tf.Variable(tf.random.normal([1100, 4000]))
    digest = float(tf.reduce_sum(tf.cast(variable, tf.float64)))
    assert_equal_on_ranks(digest, variable[-1])


class Layer(tf.Module):
    """Makes its variables when it is first traced, as some tf.Module code does."""

    def __init__(self):
        super().__init__()
        self.w = None

    @tf.function
    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.random.normal([x.shape[1], 4]))
            # This initial value depends on the argument, so TensorFlow cannot lift it out of the function.
            self.b = tf.Variable(lambda: tf.reduce_mean(x, 0)[:4])
        return x @ self.w + self.b


def case_module_variables_made_on_the_first_trace():
    layer = Layer()
    first = layer(features())
    assert_equal_on_ranks(first, layer(features()), layer.w, layer.b)
    own = Layer()
    own(own_features())
    assert_equal_on_ranks(own.w, own.b)


def case_keras_model_built_by_its_first_call_in_a_function():
    model, optimizer = keras_model(), tf.keras.optimizers.Adam(0.01)

    @tf.function
    def step(x, shared):
        with tf.GradientTape() as tape:
            before = model(shared, training=False)
            loss = tf.reduce_mean(model(x, training=True) ** 2)
        gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return before

    assert_equal_on_ranks(step(own_features(), features()))
    for _ in range(2):
        step(own_features(), features())
    trained = [variable for variable in model.variables if "moving" not in variable.name]
    slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    assert_equal_on_ranks(*trained, *slots)
    assert len(slots) > 2 * len(model.trainable_variables)


def case_slots_start_with_rank_0s():
    """A slot that does not start with zeros."""
    weights = tf.Variable(tf.ones([3]))
    optimizer = tf.keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.1 * (dp.rank() + 1))
    optimizer.build([weights])
    slots = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    assert_equal_on_ranks(*slots)
    accumulator = next(each for each in slots if tuple(each.shape) == (3,))
    np.testing.assert_allclose(tf.convert_to_tensor(accumulator).numpy(), 0.1)


def case_followed_after_clear_session():
    for _ in range(3):
        tf.keras.backend.clear_session()
        model = keras_model()
        assert_equal_on_ranks(model(features()))
        assert_equal_on_ranks(tf.Variable(tf.random.normal([2])))


class Lazily(tf.Module):
    """Makes its model, its slots and, in a branch, one more variable while a step is traced."""

    def __init__(self, kind):
        super().__init__()
        self.inner, self.embedding = kind(4), tf.keras.layers.Embedding(9, 3, mask_zero=True)
        self.optimizer, self.late = tf.keras.optimizers.Adam(0.1), None

    @tf.function
    def step(self, tokens, take):
        with tf.GradientTape() as tape:
            mask = self.embedding.compute_mask(tokens)
            loss = tf.reduce_mean(self.inner(self.embedding(tokens), mask=mask) ** 2)
        variables = [*self.embedding.trainable_variables, *self.inner.trainable_variables]
        gradients = dp.DistributedGradientTape(tape).gradient(loss, variables)
        self.optimizer.apply_gradients(zip(gradients, variables, strict=True))
        return tf.cond(take, self.branch, lambda: tf.zeros([3]))

    def branch(self):
        if self.late is None:
            self.late = tf.Variable(lambda: tf.random.normal([3]))
        return self.late.assign_add(tf.ones([3]))


def case_made_in_a_branch_and_after_a_collective_of_a_function():
    """TensorFlow runs a function's own initialisers again and again while one of its variables has no value."""
    tokens = tf.constant([[1, 2, 0], [4, 5, 6], [7, 8, 0]])
    for kind in (tf.keras.layers.LSTM, tf.keras.layers.GRU):
        lazily = Lazily(kind)
        results = [lazily.step(tokens, tf.constant(number >= 2)) for number in range(4)]
        np.testing.assert_allclose(results[3] - results[2], np.ones(3), rtol=1e-5)
        assert_equal_on_ranks(*results, *lazily.embedding.weights, *lazily.inner.weights)


def case_generators_draw_other_numbers_on_each_rank():
    generator = tf.random.Generator.from_seed(7)
    if dp.rank() == 0:
        assert generator.state.numpy().tolist() == [7, 0, 0]
    assert_differ(generator.state)
    assert_differ(generator.normal([4]))
    assert_differ(tf.random.get_global_generator().uniform([4]))
    if hasattr(tf.keras, "random"):  # Keras 3
        seeds = tf.keras.random.SeedGenerator(5)
        assert_differ(tf.convert_to_tensor(seeds.state))
        if dp.rank() == 0:
            assert tf.convert_to_tensor(seeds.state).numpy().tolist() == [5, 0]


def case_dropout_masks_differ_by_rank():
    for arguments in ({}, {"seed": 11}):
        layer = tf.keras.layers.Dropout(0.5, **arguments)
        model = tf.keras.Sequential([layer])
        mask = tf.function(lambda x, model=model: model(x, training=True))(tf.ones([4, 50]))
        # Keras 2 keeps no state: a seed given to the layer is the operation's.
        if not arguments or hasattr(layer, "seed_generator"):
            assert_differ(mask)


def case_a_restore_that_waits_for_the_model():
    source = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    source(features())
    folder = dp.on_root(tempfile.mkdtemp)
    path = str(pathlib.Path(folder, "saved"))
    if dp.rank() == 0:
        tf.train.Checkpoint(model=source).write(path)
    dp.barrier()
    target = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    status = tf.train.Checkpoint(model=target).read(path)
    found = target(features())
    status.assert_existing_objects_matched()
    np.testing.assert_array_equal(found.numpy(), source(features()).numpy())
    assert_equal_on_ranks(found)
