"""What dp.DistributedOptimizer leaves of an optimizer: configuration, what is saved with it, copies; and refusals."""

import copy
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

keras = tf.keras
KERAS_3 = hasattr(keras, "version") and keras.version().startswith("3")


def trained(optimizer, path=None):
    """A model that has taken two steps; everything about it that must come back from a file."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, kernel_initializer="ones")])
    model.compile(optimizer=optimizer, loss=keras.losses.MeanSquaredError())
    for _ in range(2):
        model.train_on_batch(np.ones((4, 3)), np.zeros((4, 2)))
    if path is not None:
        model.save(path)
    return model


def test_one_worker_is_left_alone():
    for optimizer in (keras.optimizers.SGD(0.1), keras.optimizers.legacy.SGD(0.1) if not KERAS_3 else None):
        if optimizer is not None:
            before = dict(vars(optimizer))
            assert dp.DistributedOptimizer(optimizer) is optimizer
            assert vars(optimizer) == before
    assert type(dp.DistributedOptimizer("adam")) is keras.optimizers.Adam


LOAD = """
import sys, numpy as np, tensorflow as tf
sys.modules["tfdp"] = None

def read(path):
    model = tf.keras.models.load_model(path)
    held = model.optimizer.variables
    held = [*model.weights, *(held() if callable(held) else held)]
    before = [each.numpy() for each in held]
    try:
        model.train_on_batch(np.ones((4, 3)), np.zeros((4, 2)))
    except ValueError:
        # Keras 3 can not go on with what it has loaded from .h5.
        assert path.endswith("h5")
    return type(model.optimizer), before, [each.numpy() for each in held]

for path in sys.argv[1:]:
    (cls, *mine), (plain_cls, *plain) = read(path), read(path.replace("distributed", "plain"))
    assert cls is plain_cls and cls.__name__ == "Adam"
    for found, wanted in zip(mine, plain):
        assert len(found) == len(wanted) and (len(found) > 4 or not path.endswith(".keras"))
        for one, other in zip(found, wanted):
            np.testing.assert_array_equal(one, other)
"""


def test_a_saved_model_loads_where_there_is_no_tfdp_as_the_same_without_it(be_rank, tmp_path):
    kinds = (".keras", ".h5", *([] if KERAS_3 else [""]))
    for kind in kinds:
        trained(keras.optimizers.Adam(0.25), tmp_path / f"plain{kind}")
    be_rank(0, 2)
    paths = [tmp_path / f"distributed{kind}" for kind in kinds]
    for path in paths:
        trained(dp.DistributedOptimizer(keras.optimizers.Adam(0.25)), path)
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    subprocess.run([sys.executable, "-c", LOAD, *paths], check=True, env=quiet)


GO_ON = """
import sys, numpy as np, tensorflow as tf
sys.modules["tfdp"] = None

def go_on(folder):
    made = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    made.compile(optimizer=tf.keras.optimizers.Adam(0.25), loss="mse")
    made.optimizer.build(made.trainable_variables)
    start = [each.numpy() for each in made.weights]
    made.load_weights(f"{folder}/model.weights.h5")
    loaded = [each.numpy() for each in made.weights]
    assert not all(map(np.array_equal, start, loaded))
    checkpoint = tf.train.Checkpoint(model=made, optimizer=made.optimizer)
    checkpoint.restore(f"{folder}/ckpt-1").assert_existing_objects_matched()
    for one, other in zip(made.weights, loaded):
        np.testing.assert_array_equal(one.numpy(), other)
    exported = tf.saved_model.load(f"{folder}/exported")
    answer = exported.serve(tf.ones([4, 3])) if hasattr(exported, "serve") else exported(tf.ones([4, 3]))
    np.testing.assert_allclose(answer, made(tf.ones([4, 3])), rtol=1e-6)
    made.train_on_batch(np.ones((4, 3)), np.zeros((4, 2)))
    held = made.optimizer.variables
    return [each.numpy() for each in [*made.weights, *(held() if callable(held) else held)]]

found, wanted = map(go_on, sys.argv[1:])
assert len(found) == len(wanted) > 4
for one, other in zip(found, wanted):
    np.testing.assert_array_equal(one, other)
"""


@pytest.mark.long
def test_training_goes_on_from_weights_and_checkpoints_where_there_is_no_tfdp(be_rank, tmp_path):
    def save(model, folder):
        folder.mkdir()
        model.save_weights(folder / "model.weights.h5")
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(folder / "ckpt"))
        export = model.export if hasattr(model, "export") else model.save
        export(str(folder / "exported"))

    save(trained(keras.optimizers.Adam(0.25)), tmp_path / "plain")
    be_rank(0, 2)
    save(trained(dp.DistributedOptimizer(keras.optimizers.Adam(0.25))), tmp_path / "distributed")
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    folders = [tmp_path / "distributed", tmp_path / "plain"]
    subprocess.run([sys.executable, "-c", GO_ON, *folders], check=True, env=quiet)


def test_checkpoints_hold_what_they_hold_without_it(be_rank, tmp_path):
    def names(optimizer, folder):
        model = trained(optimizer)
        tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / folder / "ckpt"))
        return [name for name, _ in tf.train.list_variables(str(tmp_path / folder))]

    plain = names(keras.optimizers.Adam(), "plain")
    be_rank(0, 2)
    assert names(dp.DistributedOptimizer(keras.optimizers.Adam()), "distributed") == plain
    summed = dp.DistributedOptimizer(keras.optimizers.Adam(), backward_passes_per_step=2)
    assert names(summed, "summed") == plain


def test_the_rate_and_the_configuration_are_the_optimizers_own(be_rank):
    be_rank(0, 2)
    optimizer = keras.optimizers.Adam(0.25, clipnorm=1.0)
    config = optimizer.get_config()
    assert dp.DistributedOptimizer(optimizer) is optimizer
    assert optimizer.get_config() == config
    assert keras.optimizers.serialize(optimizer)["class_name"] == "Adam"
    optimizer.learning_rate = 0.5
    assert float(optimizer.learning_rate.numpy()) == 0.5
    optimizer.learning_rate.assign(0.125)
    assert float(type(optimizer).from_config(optimizer.get_config()).learning_rate.numpy()) == 0.125


@pytest.mark.skipif(not KERAS_3, reason="Keras 2 cannot copy its optimizers")
def test_a_deep_copy_updates_itself_and_is_averaged(be_rank):
    job = be_rank(0, 2)
    first = dp.DistributedOptimizer(keras.optimizers.SGD(0.5))
    second = copy.deepcopy(first)
    variable = tf.Variable([1.0])
    second.apply_gradients([(tf.constant([1.0]), variable)])
    # In this test's job both ranks send the same.
    assert variable.numpy() == 0.5
    assert (int(first.iterations.numpy()), int(second.iterations.numpy())) == (0, 1)
    assert len([call for call in job.transport.calls if call[0] == "allreduce"]) == 1
    copy.deepcopy(second).apply_gradients([(tf.constant([1.0]), variable)])
    assert len([call for call in job.transport.calls if call[0] == "allreduce"]) == 2


@pytest.mark.parametrize("passes", [1, 2])
def test_passes_are_added_up_with_one_worker_too(passes):
    variable = tf.Variable([1.0])
    optimizer = dp.DistributedOptimizer(keras.optimizers.SGD(0.5), backward_passes_per_step=passes)
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant([1.0]), variable)])
    assert variable.numpy() == 0.0
    assert int(optimizer.iterations.numpy()) == 2


def test_names_and_configurations_are_scaled(be_rank):
    be_rank(0, 4)
    for given in ("adam", "Adam", keras.optimizers.serialize(keras.optimizers.Adam())):
        optimizer = dp.scale_optimizer(given)
        assert type(optimizer) is keras.optimizers.Adam
        np.testing.assert_allclose(optimizer.learning_rate.numpy(), 0.004, rtol=1e-6)
    be_rank(0, 1)
    assert type(dp.scale_optimizer("rmsprop")) is keras.optimizers.RMSprop


def test_what_is_refused(be_rank):
    be_rank(0, 2)
    optimizer = dp.DistributedOptimizer(keras.optimizers.SGD())
    with pytest.raises(TypeError, match="distributed already"):
        dp.DistributedOptimizer(optimizer)
    for wrong in (None, 3, tf.compat.v1.train.GradientDescentOptimizer(0.1), keras.optimizers.SGD):
        with pytest.raises(TypeError, match=r"test_keras_optimizer.* a Keras optimizer, its name or"):
            dp.DistributedOptimizer(wrong)
    with pytest.raises(ValueError, match="nadamax"):
        dp.DistributedOptimizer("nadamax")
    with pytest.raises(ValueError, match="at least 1"):
        dp.DistributedOptimizer("sgd", backward_passes_per_step=0)
    with pytest.raises(TypeError, match="number of calls"):
        dp.DistributedOptimizer("sgd", backward_passes_per_step=2.0)
    with pytest.raises(ValueError, match=r"dp\.Average or dp\.Sum"):
        dp.DistributedOptimizer("sgd", op=dp.Max)
    with pytest.raises(TypeError, match="compression is 'fp16'"):
        dp.DistributedOptimizer("sgd", compression="fp16")
