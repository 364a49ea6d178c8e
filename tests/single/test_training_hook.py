"""What counts as training in a process that has not joined its job, in this process: nothing is ended."""

import contextlib
import functools
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tfdp.runtime import launch

keras = tf.keras
HOOK = Path(launch.__file__).with_name("at_start") / "training_hook.py"


@pytest.fixture(scope="module")
def hook():
    spec = importlib.util.spec_from_file_location("training_hook", HOOK)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Trains(Exception):  # noqa: N818 - no error
    """Raised where a rank would be ended."""


@pytest.fixture
def watched(hook):
    """The hook on TensorFlow and Keras as they are here."""

    def train():
        watching.seen.append(hook._site())
        raise Trains

    watching = hook.Hook(train, lambda: watching.repeats.append(None))
    watching.seen, watching.repeats = [], []
    watching.tensorflow(tf)
    watching.keras(sys.modules[keras.Model.__module__.split(".")[0]])
    yield watching
    watching.remove()


X, Y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")


def model():
    return keras.Sequential([keras.layers.Dense(1)])


def compiled():
    made = model()
    made.compile("sgd", "mse")
    return made


def gradients(trained):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(trained(X) - Y))
    return tape.gradient(loss, trained.trainable_variables)


def by_tape():
    trained, optimizer = model(), keras.optimizers.Adam()
    optimizer.apply_gradients(zip(gradients(trained), trained.trainable_variables, strict=True))


@tf.function
def step(trained, optimizer):
    optimizer.apply_gradients(zip(gradients(trained), trained.trainable_variables, strict=True))


def by_function():
    trained, optimizer = model(), keras.optimizers.Adam()
    trained.build((None, 3))
    step(trained, optimizer)


def mirrored():
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        trained = compiled()
    trained.fit(X, Y, verbose=0)


def written_out(change):
    def train():
        w = tf.Variable(1.0)

        @tf.function
        def step():
            with tf.GradientTape() as tape:
                loss = w * w
            gradient = tape.gradient(loss, w)
            change(w, gradient)

        step()

    return train


def of_keras_variables():
    trained = model()
    for gradient, variable in zip(gradients(trained), trained.trainable_variables, strict=True):
        variable.assign_sub(0.1 * gradient)


def one_by_one():
    w, b = tf.Variable(1.0), tf.Variable(1.0)
    with tf.GradientTape(persistent=True) as tape:
        loss = (w + b) ** 2
    of_w, _ = tape.gradient(loss, w), tape.gradient(loss, b)
    w.assign_sub(0.1 * of_w)


def by_set_weights():
    trained = model()
    taken = gradients(trained)
    trained.set_weights([w - 0.1 * g for w, g in zip(trained.get_weights(), taken, strict=True)])


def of_tensorflow_1():
    w = tf.Variable(1.0)
    tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(lambda: w * w)


def in_a_session():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.compat.v1.get_variable("w", initializer=1.0)
        trains = tf.group(tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(w * w))
        session.run(tf.compat.v1.global_variables_initializer())
        session.run([w, {"trains": trains}])


@tf.function
def by_gradients():
    w = weights()
    w.assign_sub(0.1 * tf.gradients(w * w, [w])[0])


@functools.cache
def weights():
    with tf.init_scope():
        return tf.Variable(1.0)


TRAINING = {
    "gradients one by one": one_by_one,
    "set_weights": by_set_weights,
    "a session of TensorFlow 1": in_a_session,
    "tf.gradients": by_gradients,
    "fit": lambda: compiled().fit(X, Y, verbose=0),
    "train_on_batch": lambda: compiled().train_on_batch(X, Y),
    "a tape": by_tape,
    "a tape in a tf.function": by_function,
    "fit under MirroredStrategy": mirrored,
    "assign_sub": written_out(lambda w, g: w.assign_sub(0.1 * g)),
    "assign": written_out(lambda w, g: w.assign(w - 0.1 * g)),
    "variables of Keras": of_keras_variables,
    "an optimizer of TensorFlow 1, eagerly": of_tensorflow_1,
}


@pytest.mark.parametrize("train", TRAINING.values(), ids=TRAINING.keys())
def test_training_is_seen_before_anything_is_trained(watched, train):
    with contextlib.suppress(Exception):  # inside a tf.function it comes out as another
        train()
    assert {path for path, _ in watched.seen} == {__file__}


def attacked():
    image, judged = tf.Variable(X), model()
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(judged(image))
        image.assign_add(0.1 * tf.sign(tape.gradient(loss, image)))


def saliency():
    image, judged = tf.constant(X), model()
    with tf.GradientTape() as tape:
        tape.watch(image)
        loss = tf.reduce_sum(judged(image))
    assert tape.gradient(loss, image) is not None


def of_several_checkpoints(folder):
    judged = model()
    judged.build((None, 3))
    for number in range(2):
        path = str(folder / f"{number}.weights.h5")
        judged.save_weights(path)
        judged.load_weights(path)
        gradients(judged)  # how large they are, of each


def counted():
    total = tf.Variable(0.0, trainable=False)
    total.assign_add(1.0)
    average = tf.Variable(0.0)
    average.assign(0.9 * average + 0.1)


def graph_of_tensorflow_1():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        w = tf.compat.v1.get_variable("w", initializer=1.0)
        tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(w * w)  # built, and not run
        w.assign_sub(0.1 * tf.gradients(w * w, w)[0])
        session.run(tf.compat.v1.global_variables_initializer())
        session.run([w, "w:0"])


def test_what_is_no_training_is_left_alone(watched, tmp_path):
    judged = compiled()
    judged.evaluate(X, Y, verbose=0)
    judged.predict(X, verbose=0)
    keras.layers.Normalization().adapt(X)
    saliency()
    assert watched.repeats == []
    attacked()
    assert watched.repeats == [None]
    of_several_checkpoints(tmp_path)
    counted()
    graph_of_tensorflow_1()
    assert watched.seen == []


def test_nothing_is_left_of_it(hook):
    classes = [tf.GradientTape, tf.compat.v1.train.Optimizer, keras.optimizers.Optimizer, type(tf.Variable(1.0))]
    classes += [keras.Model, tf.compat.v1.Session]
    before = [dict(vars(cls)) for kind in classes for cls in kind.__mro__]
    watching = hook.Hook(lambda: pytest.fail("removed"))
    watching.tensorflow(tf)
    watching.keras(sys.modules[keras.Model.__module__.split(".")[0]])
    kept = keras.optimizers.Optimizer.apply_gradients
    watching.remove()
    assert [dict(vars(cls)) for kind in classes for cls in kind.__mro__] == before
    assert kept is not keras.optimizers.Optimizer.apply_gradients
    trained = model()
    kept(keras.optimizers.SGD(), zip(gradients(trained), trained.trainable_variables, strict=True))
