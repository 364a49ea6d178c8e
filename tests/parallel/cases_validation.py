"""Sharded calls: the validation that belongs to `fit` is divided, what a script evaluates by itself is not."""

import contextlib
import gc
import weakref

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.calls import division, report, sight

DEVICE_RANKS = ()
INIT = {"shard_calls": True}
APART = True  # sharded calls change what later cases would meet

ROWS = np.random.RandomState(2).normal(size=(14, 3)).astype("float32")
LABELS = ROWS.sum(1, keepdims=True)


@contextlib.contextmanager
def counted():
    """How many calls are divided, in validation and else."""
    found, original = {True: 0, False: 0}, division._divided

    def divided(*arguments):
        found[sight.is_validation()] += 1
        return original(*arguments)

    division._divided = divided
    try:
        yield found
    finally:
        division._divided = original


def compiled(model, **options):
    model.compile("sgd", "mse", metrics=["mae"], **options)
    return model


def made(**options):
    tf.keras.utils.set_random_seed(3)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(4, "tanh"), layers.Dropout(0.5), layers.BatchNormalization()])
    model.add(layers.Dense(1))
    model(ROWS[:1])
    return compiled(model, **options)


def assert_validates(model):
    """By batches of 5, 5 and 4: the numbers are those of the whole model at the end of the epoch, on all workers."""
    data = {"validation_data": (ROWS, LABELS), "validation_batch_size": 5}
    found = model.fit(ROWS, LABELS, batch_size=7, epochs=1, verbose=0, **data).history
    difference = model(ROWS).numpy() - LABELS
    np.testing.assert_allclose(found["val_loss"], [np.square(difference).mean()], rtol=1e-5)
    np.testing.assert_allclose(found["val_mae"], [np.abs(difference).mean()], rtol=1e-5)
    assert len({tuple(each) for each in dp.allgather(tf.constant([found["val_loss"]])).numpy()}) == 1


def case_validation_is_divided():
    with counted() as found:
        assert_validates(made())
    assert found[True]


def case_each_step_of_it_without_a_function():
    with counted() as found:
        assert_validates(made(run_eagerly=True))
    assert found[True] >= 3


def case_a_model_that_was_built_on_one_row_is_divided_as_a_whole():
    model = made()
    model.fit(ROWS, LABELS, batch_size=14, epochs=1, verbose=0)
    lines = {line.name: line.reason for line in report()}
    assert [name for name in lines if repr(model.name) in name and not lines[name]]


def case_what_is_compiled_again_is_validated_by_what_it_was_compiled_with():
    model = made()
    assert_validates(model)
    model.compile("sgd", "mae", metrics=["mae"])
    found = model.fit(ROWS, LABELS, epochs=1, verbose=0, validation_data=(ROWS, LABELS)).history
    assert found["val_loss"] == found["val_mae"]


def case_one_worker_may_evaluate_alone_before_and_after():
    model = made()
    for _ in range(2):
        if dp.rank() == 0:
            with counted() as found:
                model.evaluate(ROWS, LABELS, verbose=0)
                model.test_on_batch(ROWS, LABELS)
                model.predict(ROWS, verbose=0)
            assert found == {True: 0, False: 0}
        assert_validates(model)


def case_a_callback_of_one_worker_may_use_the_model_inside_of_it():
    class Looks(tf.keras.callbacks.Callback):
        def on_test_batch_end(self, batch, logs=None):  # noqa: ARG002
            if dp.rank() == 0:
                self.model(ROWS)

    model = made()
    model.fit(ROWS, LABELS, verbose=0, validation_data=(ROWS, LABELS), callbacks=[Looks()])


def case_a_model_that_was_validated_is_gone_when_the_script_has_let_go_of_it():
    model = made()
    assert_validates(model)
    gone = weakref.ref(model)
    del model
    tf.keras.backend.clear_session()
    gc.collect()
    assert gone() is None
