"""Sharded calls: what must be equal on all workers is seen to be so, wherever the step runs."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.calls import nets, validation

RANKS = (3,)
DEVICE_RANKS = ()
ROWS = np.random.RandomState(2).normal(size=(6, 4))
ERRORS = (dp.TfdpError, tf.errors.UnknownError)


def compared(*tensors):
    """As they are with the gradients of a step."""
    for index, each in enumerate(tensors):
        nets.note(f"tensor {index}", each)
    notes = nets.Notes()
    for dtype, op, ranks in ((tf.float16, dp.Sum, 1), (tf.float32, dp.Sum, 1), (tf.float64, dp.Average, dp.size())):
        notes.received(dp.allreduce(notes.sent(dtype), op=op), ranks)


def ways():
    """Eagerly, and compiled."""
    return compared, tf.function(compared)


def of_this_rank(rows):
    """The last element is another one on the last worker."""
    rows = np.array(rows)
    last = rows.reshape(-1)[-1:]
    if dp.rank() == dp.size() - 1:
        last[:] = 1 - last.astype(int)
    return tf.constant(rows)


def case_a_number_of_one_worker_alone_is_named():
    said = rf"tensor 1 differs between rank 0 and rank\(s\) {dp.size() - 1}, seen"
    kinds = [ROWS.astype(each) for each in ("float32", "int64", "complex128", "bool")]
    for rows in (*kinds, 3.0):
        for compare in ways():
            with pytest.raises(ERRORS, match=said):
                compare(tf.constant(ROWS), of_this_rank(rows), tf.constant(rows))


def case_rows_in_another_order_are_seen():
    one_hot = np.eye(4, dtype="float32")[[[0, 1], [2, 3], [1, 3], [0, 0]]]  # whose sums are equal
    for rows in (ROWS, one_hot, one_hot[:, 0]):
        given = rows[::-1] if dp.rank() else rows
        for compare in ways():
            with pytest.raises(ERRORS, match="tensor 0 differs"):
                compare(tf.constant(given))


def case_columns_in_another_order_are_seen():
    given = ROWS[:, ::-1] if dp.rank() else ROWS
    for compare in ways():
        with pytest.raises(ERRORS, match="tensor 0 differs"):
            compare(tf.constant(given))


def case_what_is_equal_is_no_alarm_nor_what_is_no_number_on_any_worker():
    without, rounding = ROWS.copy(), 1 + 1e-7 * dp.rank()
    without[2, 1] = np.nan
    for compare in ways():
        compare(*map(tf.constant, (ROWS, ROWS[:5], ROWS * 1e30, ROWS * 0, without, ROWS * rounding, 2)))
        compare(tf.IndexedSlices(tf.constant(ROWS), tf.range(6)), tf.zeros([0, 3]), tf.constant(ROWS))


def case_slices_for_other_rows_are_seen():
    for compare in ways():
        with pytest.raises(ERRORS, match=r"tensor 0 \(its rows\) differs"):
            compare(tf.IndexedSlices(tf.constant(ROWS), of_this_rank(np.arange(6))))


def case_nothing_is_compared_where_nothing_was_noted():
    for compare in ways():
        compare()
        compare(tf.constant("text"), None)


def case_workers_that_validate_on_other_examples_end():
    alike = {"loss": 1.0 + 1e-7 * dp.rank(), "f1": np.array([np.nan, 0.0]), "count": 0}
    validation.compare(alike)
    validation.compare([1.0])
    validation.compare({})
    for key, value in (("loss", 1.0 + dp.rank()), ("f1", np.array([np.nan, dp.rank()]))):
        with pytest.raises(dp.TfdpError, match=f"the validation of fit gives {key} from [01] to [23] on the workers"):
            validation.compare({**alike, key: value})
