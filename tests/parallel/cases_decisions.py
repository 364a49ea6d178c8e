"""Metrics, averages and answers that are the same on every rank, and work that one rank does."""

import datetime
import os
import pathlib
import tempfile
import time
import uuid

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
INIT = {"same_start": False}

METRICS = tf.keras.metrics
BINARY = {
    "auc": lambda: METRICS.AUC(num_thresholds=50),
    "precision": METRICS.Precision,
    "recall": lambda: METRICS.Recall(thresholds=[0.3, 0.6]),
    "recall at precision": lambda: METRICS.RecallAtPrecision(0.6),
    "accuracy": METRICS.BinaryAccuracy,
    "false negatives": METRICS.FalseNegatives,
    "root mean squared error": METRICS.RootMeanSquaredError,
    "intersection over union": lambda: METRICS.BinaryIoU(threshold=0.5),
    "cross-entropy": METRICS.BinaryCrossentropy,
    "f1": lambda: METRICS.F1Score(threshold=0.5),
    "r2": METRICS.R2Score,
}


def examples(rank):
    random = np.random.default_rng(rank)
    labels = random.integers(0, 2, (10 + 7 * rank, 1)).astype("float32")
    return labels, np.clip(labels * 0.3 + random.random(labels.shape) * 0.7, 0, 1).astype("float32")


def case_state_is_summed_over_all_examples_and_the_local_state_kept():
    for name, make in BINARY.items():
        metric, everything, mine = make(), make(), make()
        for rank in range(dp.size()):
            everything.update_state(*examples(rank))
        metric.update_state(*examples(dp.rank()))
        mine.update_state(*examples(dp.rank()))
        np.testing.assert_allclose(dp.metric_result(metric), everything.result(), rtol=1e-5, err_msg=name)
        np.testing.assert_allclose(metric.result(), mine.result(), rtol=0, err_msg=name)
        metric.update_state(*examples(5))
        mine.update_state(*examples(5))
        np.testing.assert_allclose(metric.result(), mine.result(), rtol=0, err_msg=name)
        metric.reset_state()
        assert all(not np.any(np.asarray(tf.convert_to_tensor(v))) for v in metric.variables[:1])


def case_a_weighted_mean_in_a_function():
    metric = METRICS.Mean()

    @tf.function
    def measured(value, weight):
        metric.update_state(value, sample_weight=weight)
        return dp.metric_result(metric)

    ranks = np.arange(dp.size(), dtype="float64")
    found = measured(tf.constant(float(dp.rank())), tf.constant(float(dp.rank() + 1)))
    np.testing.assert_allclose(found, (ranks * (ranks + 1)).sum() / (ranks + 1).sum(), rtol=1e-6)
    assert float(metric.result()) == dp.rank()
    same_bits(found)


def same_bits(value):
    rows = dp.allgather(tf.reshape(tf.convert_to_tensor(value), [1, -1])).numpy()
    assert all(row.tobytes() == rows[0].tobytes() for row in rows), rows


def case_a_metric_that_was_never_updated():
    assert float(dp.metric_result(METRICS.Mean())) == 0.0


def case_the_metric_of_nothing_is_an_error():
    class Bare:
        variables = ()

    with pytest.raises(dp.TfdpError, match="no state variables"):
        dp.metric_result(Bare())


def case_values_are_averaged_in_their_own_form():
    mean = (dp.size() - 1) / 2
    for value, kind in ((float(dp.rank()), float), (np.float32(dp.rank()), np.float32), (dp.rank(), float)):
        found = dp.average_value(value)
        assert isinstance(found, kind), (value, found)
        assert found == mean
    array = dp.average_value(np.full(3, dp.rank(), "float64"))
    assert isinstance(array, np.ndarray)
    assert array.tolist() == [mean] * 3
    tensor = dp.average_value(tf.constant(float(dp.rank())))
    assert tf.is_tensor(tensor)
    assert float(tensor) == mean
    assert np.isnan(dp.average_value(float("nan") if dp.rank() == 1 else 1.0))


def case_rank_0_decides():
    for value in (True, False):
        mine = value if dp.rank() == 0 else not value
        assert dp.agree(mine) is value
        assert dp.agree(tf.constant(mine)) is value
        assert dp.agree(np.bool_(mine)) is value
        assert dp.agree([1] if mine else []) is value
    mine = [datetime.datetime.now(), time.localtime(), uuid.uuid4(), f"run-{os.getpid()}", 0.5 + dp.rank(), b"\0"]
    agreed = [dp.agree(each) for each in mine]
    assert [type(each) for each in agreed] == [type(each) for each in mine]
    assert agreed == dp.broadcast_object(mine)
    assert dp.agree("found" if dp.rank() == 0 else None) == "found"
    assert dp.agree(None if dp.rank() == 0 else "found") is False


def case_rank_0_decides_in_a_function():
    @tf.function
    def chosen(value):
        if dp.agree(value > 0):
            return tf.constant(1)
        return tf.constant(2)

    assert int(chosen(tf.constant(1 if dp.rank() == 0 else -1))) == 1
    assert int(chosen(tf.constant(-1 if dp.rank() == 0 else 1))) == 2


def case_what_is_reported_is_computed_on_every_rank():
    """Lists that are emptied, iterators and counters that go on: each line ends, and leaves all ranks alike."""
    folder = pathlib.Path(dp.broadcast_object(tempfile.mkdtemp() if dp.rank() == 0 else None))
    kept = [folder / str(i) for i in range(5)]
    names, steps, told = iter("abc"), tf.Variable(0), []
    for path in kept:
        dp.report(path.touch)
    while len(kept) > 2:
        dp.report(os.remove, kept.pop(0))
    dp.report(told.append, next(names))
    dp.report(dict, fn=names, function=next(names))

    @tf.function
    def step():
        dp.report(tf.print, "step", steps.assign_add(1), output_stream=f"file://{folder}/steps")
        return steps.read_value()

    step()
    assert (int(step()), [p.name for p in kept], next(names)) == (2, ["3", "4"], "c")
    dp.barrier()
    assert sorted(os.listdir(folder)) == ["3", "4", "steps"]
    assert told == (["a"] if dp.rank() == 0 else [])
    assert (folder / "steps").read_text() == "step 1\nstep 2\n"


def case_rank_0_comes_first():
    folder = pathlib.Path(dp.broadcast_object(tempfile.mkdtemp() if dp.rank() == 0 else None))
    file = folder / "data"

    def load(text):
        if dp.rank() == 0:
            file.write_text(text)
        return dp.rank(), file.read_text()

    assert dp.root_first(load, "downloaded") == (dp.rank(), "downloaded")


def case_what_fails_on_rank_0_fails_everywhere():
    with pytest.raises(ValueError, match="no number"):
        dp.root_first(int, "no number")


def case_one_rank_reports_and_writes():
    said = []
    dp.report(said.append, dp.rank())
    assert said == ([0] if dp.rank() == 0 else [])
    path = pathlib.Path(tempfile.mkdtemp()) / "log"
    with open(dp.root_path(path), "w") as file:
        file.write("line")
    assert path.exists() == (dp.rank() == 0)
    assert dp.root_path(path) == (path if dp.rank() == 0 else os.devnull)
