"""`broadcast_state`: what exists now takes rank 0's values."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)


def spoil(variables):
    """Make the ranks differ."""
    for variable in variables:
        variable.assign(tf.cast(tf.fill(variable.shape, 3 + 2 * dp.rank()), variable.dtype))


def assert_rank_0s(variables, value=3):
    assert variables
    for variable in variables:
        assert np.all(tf.convert_to_tensor(variable).numpy() == value), (variable.name, variable)


def listed(thing):
    found = thing.variables
    return list(found() if callable(found) else found)


def states(variables):
    return [each for each in variables if "seed_generator_state" not in each.name and "StateVar" not in each.name]


def built():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(2)])
    model(tf.ones([1, 4]))
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def case_keras_model_and_optimizer():
    model, optimizer = built()
    everything = states(listed(model)) + listed(optimizer)
    spoil(everything)
    dp.broadcast_state(model, optimizer)
    assert_rank_0s(everything)


def case_what_is_not_built_has_nothing_to_send():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
    optimizer = tf.keras.optimizers.SGD(0.1, momentum=0.9)
    dp.broadcast_state(model, optimizer)
    dp.broadcast_state(model)
    dp.broadcast_state([], None)


def case_a_rate_of_a_ranks_own_is_an_error():
    """Rank 0's in its place would be one that only rank 0's examples have made."""
    own = tf.keras.optimizers.SGD(0.1 * (1 + dp.rank()))
    with pytest.raises(dp.TfdpError, match=r"of its SGD" if dp.rank() else "another rank"):
        dp.broadcast_state(own)


def case_settings_of_a_ranks_own_are_an_error():
    penalty = tf.keras.regularizers.L2(0.01 * (1 + dp.rank()))
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(3, kernel_regularizer=penalty)])
    with pytest.raises(
        dp.TfdpError, match=r"numbers among the settings .* not rank 0's" if dp.rank() else "another rank"
    ):
        dp.broadcast_state([model])
    decay = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 10, 0.6 if dp.rank() else 0.5)
    with pytest.raises(dp.TfdpError, match=r"of its SGD" if dp.rank() else "another rank"):
        dp.broadcast_state(tf.keras.optimizers.SGD(decay))


def case_seeds_are_of_each_rank():
    model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dropout(0.5, seed=dp.rank())])
    dp.broadcast_state(model, tf.keras.optimizers.SGD(0.1))


class Adam(tf.Module):
    def __init__(self, variables):
        super().__init__()
        self.t = tf.Variable(1.0)
        self.slots = [tf.Variable(tf.zeros(each.shape)) for each in variables]


class Plain:
    """An optimizer of the script's own, known to nobody."""

    def __init__(self, variables):
        self.rate, self.name, self.by_name = 0.1, "plain", {}
        self.velocity = [tf.Variable(tf.zeros(each.shape)) for each in variables]
        self.by_name["step"] = tf.Variable(0)


class Holder(tf.Module):
    """A tf.Module around a Keras model, which `tf.Module.variables` of Keras 3 does not see."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        self.scale = tf.Variable(1.0)


def case_modules_checkpoints_lists_and_plain_objects():
    model, optimizer = built()
    weights = [tf.Variable(tf.ones([2])), tf.Variable(tf.ones([3, 1]))]
    adam, plain, holder = Adam(weights), Plain(weights), Holder(model)
    checkpoint = tf.train.Checkpoint(adam=adam, optimizer=optimizer)
    alone = tf.Variable([1, 2])
    everything = [*weights, adam.t, *adam.slots, *plain.velocity, plain.by_name["step"], holder.scale, alone]
    everything += states(listed(model)) + listed(optimizer)
    spoil(everything)
    dp.broadcast_state({"weights": weights}, [[plain], (holder, alone)], checkpoint)
    assert_rank_0s(everything)


def case_a_list_that_tensorflow_cannot_save():
    adam = Adam([tf.Variable(tf.ones([2])), tf.Variable(tf.ones([2]))])
    adam.slots.reverse()
    spoil(adam.variables)
    dp.broadcast_state(adam)
    assert_rank_0s(list(adam.variables))


def case_no_objects_means_all_that_live():
    kept, dropped = tf.Variable(tf.ones([2]), name="kept"), tf.Variable(tf.ones([2]), name="dropped")
    del dropped
    alone = tf.Variable(1.0, name="alone") if dp.rank() == 0 else None
    model, optimizer = built()
    everything = [kept, *states(listed(model)), *listed(optimizer)]
    spoil(everything)
    dp.broadcast_state()
    assert_rank_0s(everything)
    assert alone is None or alone.numpy() == 1.0


def case_variables_of_rank_0_alone_stay_its_own():
    shared = tf.Variable(1.0, name="shared")
    holder = tf.Module()
    if dp.rank() == 0:
        holder.alone = tf.Variable(5.0, name="alone")
    holder.shared = shared
    spoil([shared])
    dp.broadcast_state(holder)
    assert_rank_0s([shared])


def case_more_variables_than_rank_0_is_an_error_on_all_ranks():
    variables = [tf.Variable(1.0), tf.Variable(2.0)]
    with pytest.raises(dp.TfdpError, match="beyond those of rank 0"):
        dp.broadcast_state(variables[: 1 if dp.rank() == 0 else 2])
    with pytest.raises(TypeError, match="3 holds no variables"):
        dp.broadcast_state(3)


def case_generators_stay_each_ranks_own():
    generator = tf.random.Generator.from_seed(3)
    before = generator.state.numpy().tolist()
    dp.broadcast_state(generator, tf.train.Checkpoint(generator=generator))
    assert generator.state.numpy().tolist() == before


def case_inside_a_function():
    variables = [tf.Variable(tf.ones([3])), tf.Variable(1)]
    spoil(variables)

    @tf.function
    def train():
        dp.broadcast_state(variables)
        return variables[0] * 2

    assert train().numpy().tolist() == [6.0] * 3
    assert_rank_0s(variables)
