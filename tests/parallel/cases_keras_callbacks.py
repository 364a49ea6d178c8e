"""`dp.fit_callbacks` and `dp.callbacks`: logs over all ranks' examples, one decision, one writer."""

# ruff: noqa: ARG002 - Keras says which arguments a hook has
import pathlib
import tempfile

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.keras import Hooks

RANKS = (2,)
DEVICE_RANKS = ()

keras = tf.keras


def by_rank(value):
    return [dp.broadcast_object(value, root) for root in range(dp.size())]


def alike(value):
    every = by_rank(value)
    assert all(str(each) == str(every[0]) for each in every), every
    return every[0]


def shared_folder():
    folder = dp.broadcast_object(tempfile.mkdtemp() if dp.rank() == 0 else None)
    return pathlib.Path(folder)


def data(rows=61):
    draws = np.random.default_rng(3)
    x = draws.normal(size=(rows, 4)).astype("float32")
    return x, (x.sum(axis=1, keepdims=True) + draws.normal(size=(rows, 1)) > 0).astype("float32")


def model_of(rate=0.0, metrics=(), **arguments):
    keras.utils.set_random_seed(5)
    model = keras.Sequential([keras.layers.Dense(1, activation="sigmoid")])
    model.compile(
        dp.DistributedOptimizer(keras.optimizers.SGD(rate)), "binary_crossentropy", metrics=list(metrics), **arguments
    )
    return model


class Stop(keras.callbacks.Callback):
    """A callback of one's own, which ends the training where `when(epoch, batch)` says so on its rank."""

    def __init__(self, when):
        super().__init__()
        self.when, self.epoch, self.batches = when, 0, 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_epoch_end(self, epoch, logs=None):
        if self.when(epoch, None):
            self.model.stop_training = True


class StopAtBatch(Stop):
    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        if self.when(self.epoch, batch):
            self.model.stop_training = True


def metrics():
    return ["accuracy", keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision"),
            keras.metrics.TruePositives(name="hits"), keras.metrics.Recall(name="recall")]  # fmt: skip


def case_logs_are_those_of_one_process_with_all_examples():
    x, y = data()
    whole = len(x) - len(x) % dp.size()
    # Rate 0 keeps the weights, so that the order of the batches does not count.
    model = model_of(metrics=metrics())
    history = model.fit(dp.shard(x), dp.shard(y), batch_size=7, epochs=2, validation_data=(x, y), verbose=0,
                        callbacks=dp.fit_callbacks()).history  # fmt: skip
    alike(history)
    alone = model_of(metrics=metrics())
    alone.build((None, 4))
    alone.set_weights(model.get_weights())
    for prefix, rows in (("", whole), ("val_", len(x))):
        expected = alone.evaluate(x[:rows], y[:rows], batch_size=7, verbose=0, return_dict=True)
        for name, value in expected.items():
            found = history[prefix + name]
            assert np.allclose(found, value, rtol=1e-6), (prefix, name, found, value)
    assert "val_hits" in history


def case_shared_validation_counts_every_example_once():
    x, y = data()
    model = model_of(metrics=metrics())
    history = model.fit(dp.shard(x), dp.shard(y), epochs=2, verbose=0, validation_data=(x[dp.rank() :: dp.size()],
                        y[dp.rank() :: dp.size()]), callbacks=dp.fit_callbacks([])).history  # fmt: skip
    expected = model.evaluate(x, y, verbose=0, return_dict=True)
    for name, value in expected.items():
        assert np.allclose(history[f"val_{name}"], value, rtol=1e-6), (name, history[f"val_{name}"], value)


def case_a_train_step_of_ones_own_logs_means():
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)
            self.tracker = keras.metrics.Mean(name="seen")

        def call(self, inputs):
            return self.dense(inputs)

        @property
        def metrics(self):
            return [self.tracker]

        def train_step(self, batch):
            x, _ = batch
            super().train_step(batch)
            self.tracker.update_state(tf.cast(tf.shape(x)[0], tf.float32) * (dp.rank() + 1), tf.shape(x)[0])
            return {"seen": self.tracker.result(), "last": tf.constant(float(dp.rank()))}

    x, y = data()
    model = Own()
    model.compile(dp.DistributedOptimizer("sgd"), "mse")
    logs = model.fit(x[: 8 + dp.rank()], y[: 8 + dp.rank()], batch_size=64, verbose=0, callbacks=dp.fit_callbacks())
    rows = [8 + rank for rank in range(dp.size())]
    expected = sum(count * count * (rank + 1) for rank, count in enumerate(rows)) / sum(rows)
    assert np.allclose(logs.history["seen"], expected)
    assert logs.history["last"] == [np.mean(range(dp.size()))]


def case_early_stopping_on_a_value_that_differs_by_rank():
    x, y = data()
    other = np.random.default_rng(dp.rank()).normal(size=x.shape).astype("float32")
    for monitor in ("val_loss", "val_accuracy"):
        model = model_of(0.1, ["accuracy"])
        stop = keras.callbacks.EarlyStopping(monitor, patience=2)
        done = model.fit(dp.shard(x), dp.shard(y), epochs=30, verbose=0, validation_data=(other, y),
                         callbacks=dp.fit_callbacks([stop]))  # fmt: skip
        alike(done.history)
        assert alike((len(done.epoch), stop.stopped_epoch))[0] < 31


def case_whoever_stops_stops_all():
    x, y = data()
    last = dp.size() - 1
    for when, epochs in ((lambda epoch, _: dp.rank() == last and epoch == 1, 2), (lambda *_: False, 4)):
        done = model_of(0.1).fit(x, y, epochs=4, verbose=0, callbacks=dp.fit_callbacks([Stop(when)]))
        assert alike(len(done.epoch)) == epochs
    stop = StopAtBatch(lambda epoch, batch: dp.rank() == last and (epoch, batch) == (1, 2))
    done = model_of(0.1).fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=dp.fit_callbacks([stop]))
    assert alike((len(done.epoch), stop.batches)) == (2, 8 + 3)
    only_there = [StopAtBatch(lambda _, batch: batch == 1)] if dp.rank() == last else []
    done = model_of(0.1).fit(x, y, batch_size=8, epochs=4, verbose=0, callbacks=dp.fit_callbacks(only_there))
    assert alike(len(done.epoch)) == 1


def case_stop_at_a_value_that_is_not_a_number():
    x, y = data()
    if dp.rank() == dp.size() - 1:
        x = x * np.float32("nan")
    done = model_of(0.1).fit(x, y, batch_size=8, epochs=3, verbose=0,
                             callbacks=dp.fit_callbacks([keras.callbacks.TerminateOnNaN()]))  # fmt: skip
    assert alike(len(done.epoch)) == 1


def case_a_plateau_lowers_the_rate_on_all_ranks():
    x, y = data()
    model = model_of(0.5)
    plateau = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=10, verbose=1)
    # Horovod users know this mistake: the rate falls on one rank alone.
    given = plateau if dp.rank() == 0 else None
    model.fit(dp.shard(x), dp.shard(y), epochs=4, verbose=0, callbacks=dp.fit_callbacks(given))
    assert alike(float(np.asarray(model.optimizer.learning_rate))) < 0.5


def case_writers_write_once_and_are_in_step():
    x, y = data()
    folder = shared_folder()
    (folder / "csv").mkdir(exist_ok=True)
    best = keras.callbacks.ModelCheckpoint(
        str(folder / "best.weights.h5"), "val_loss", save_best_only=True, save_weights_only=True
    )
    log = str(folder / "csv" / f"{dp.rank()}.csv")
    board = keras.callbacks.TensorBoard(str(folder / "board"))
    assert (board in dp.fit_callbacks([board])) == (dp.rank() == 0)
    model = model_of(0.3)
    arranged = dp.fit_callbacks([best, [keras.callbacks.CSVLogger(log)]])
    done = model.fit(dp.shard(x), dp.shard(y), epochs=3, verbose=0, validation_data=(x, y), callbacks=arranged)
    assert alike(best.best) == pytest.approx(min(done.history["val_loss"]))
    assert [each.name for each in (folder / "csv").iterdir()] == ["0.csv"]
    # What rank 0 has written is complete when `fit` ends anywhere.
    model.load_weights(str(folder / "best.weights.h5"))
    # To save, Keras makes an optimizer of rate 1 on rank 0, only to look at it.
    assert alike(float(np.asarray(keras.optimizers.SGD(0.25).learning_rate))) == 0.25


def case_all_ranks_go_on_where_the_backup_of_rank_0_does():
    x, y = data()
    folder = shared_folder()

    def fit(epochs, delete):
        model = model_of(0.3)
        model.build((None, 4))
        backup = keras.callbacks.BackupAndRestore(str(folder / "backup"), delete_checkpoint=delete)
        callbacks = dp.fit_callbacks([backup])
        done = model.fit(dp.shard(x), dp.shard(y), epochs=epochs, verbose=0, callbacks=callbacks)
        return done.epoch, model

    epochs, first = fit(2, False)
    assert alike(epochs) == [0, 1]
    epochs, second = fit(4, True)
    assert alike(epochs) == [2, 3]
    alike([each.tobytes() for each in dp.broadcast_object(second.get_weights())])
    assert first is not second


def case_moving_averages_are_rank_0s_at_the_end_of_an_epoch():
    x, y = data()
    model = keras.Sequential([keras.layers.BatchNormalization(), keras.layers.Dense(1, activation="sigmoid")])
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.0)), "binary_crossentropy", metrics=["accuracy"])
    mean = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            mean.append(model.layers[0].moving_mean.numpy().tolist())

    done = model.fit(dp.shard(x), dp.shard(y), epochs=2, verbose=0, validation_data=(x, y),
                     callbacks=dp.fit_callbacks([Look()]))  # fmt: skip
    assert len({str(each) for each in by_rank(mean[-1])}) == dp.size()
    alike(model.layers[0].moving_mean.numpy().tolist())
    found = model.evaluate(x, y, verbose=0, return_dict=True)
    assert np.allclose(done.history["val_loss"][-1], found["loss"], rtol=1e-6)


def case_models_that_differ_become_rank_0s_before_the_first_batch():
    x, y = data()
    model = model_of()
    model.build((None, 4))
    for weight in model.trainable_variables:
        weight.assign(weight + dp.rank())
    model.fit(x, y, verbose=0, callbacks=dp.fit_callbacks())
    alike([each.tolist() for each in model.get_weights()])


def rates_of(callback, epochs=3, rate=0.6):
    x, y = data(32)
    rates = []

    class Look(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(round(float(np.asarray(model.optimizer.learning_rate)), 5))

    model = model_of(rate)
    model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, callbacks=dp.fit_callbacks([callback, Look()]))
    return alike(rates)


def case_warm_up_and_schedule():
    rates = rates_of(dp.callbacks.LearningRateWarmupCallback(0.6, warmup_epochs=2, verbose=1))
    slope = 0.6 * (dp.size() - 1) / dp.size() / 8
    assert np.allclose(rates[:8], [0.6 / dp.size() + slope * (batch + 1) for batch in range(8)], atol=1e-5)
    assert rates[8:] == [0.6] * 4
    halved = dp.callbacks.LearningRateScheduleCallback(0.6, lambda epoch: 0.5**epoch, start_epoch=1)
    assert rates_of(halved) == [0.6] * 4 + [0.3] * 4 + [0.15] * 4
    once = dp.callbacks.LearningRateScheduleCallback(0.6, 0.1, start_epoch=0, end_epoch=1)
    assert rates_of(once, 2) == [0.06] * 8


def case_lists_and_what_is_in_them():
    average = dp.callbacks.MetricAverageCallback(validation="whole")
    own = Stop(lambda *_: False)
    arranged = dp.fit_callbacks((own, average, dp.callbacks.BroadcastGlobalVariablesCallback(0)))
    assert sum(isinstance(each, dp.callbacks.MetricAverageCallback) for each in arranged) == 1
    assert arranged.index(average) < arranged.index(own)
    assert all(isinstance(each, Hooks) for each in dp.fit_callbacks(None))
    kept = keras.callbacks.CallbackList([own], add_history=True, model=model_of(), epochs=1)
    inside = dp.fit_callbacks(kept)
    assert isinstance(inside, keras.callbacks.CallbackList)
    assert own in inside.callbacks
    with pytest.raises(ValueError, match="'half'"):
        dp.callbacks.MetricAverageCallback(validation="half")
