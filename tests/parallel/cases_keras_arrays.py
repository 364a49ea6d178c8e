"""Whole arrays, as `fit` takes them: each rank's rows, and what is held out for validation."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
DEVICE_RANKS = ()


def raises(kind, said, call):
    with pytest.raises(kind, match=re.escape(said)):
        call()


def mine(rows):
    rows = list(rows)
    return rows[: len(rows) - len(rows) % dp.size()][dp.rank() :: dp.size()]


class Frame:
    """As much of a data frame as `dp.shard` uses: its rows are taken by `iloc`, and a plain index takes columns."""

    def __init__(self, array):
        self.iloc, self.shape = array, array.shape

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.iloc, dtype)

    def __getitem__(self, column):
        raise KeyError(column)


def case_rows_of_arrays_and_structures():
    x, y = np.arange(22).reshape(11, 2), np.arange(11)
    assert dp.shard(y).tolist() == mine(range(11))
    assert np.shares_memory(dp.shard(x), x)
    assert dp.shard(tf.constant(y)).numpy().tolist() == mine(range(11))
    pair = dp.shard((x, y))
    assert isinstance(pair, tuple)
    assert pair[0].tolist() == mine(x.tolist())
    inputs = dp.shard([x, {"a": y, "b": None}])
    assert isinstance(inputs, list)
    assert inputs[1]["a"].tolist() == mine(range(11))
    assert inputs[1]["b"] is None
    assert dp.shard(None) is None
    assert dp.shard([float(number) for number in range(11)]) == mine(range(11))
    assert dp.shard([[1, 2], [3], [4, 5, 6], [7]]) == mine([[1, 2], [3], [4, 5, 6], [7]])
    assert dp.shard(list("abcdefg")) == mine("abcdefg")
    assert dp.shard(Frame(x)).tolist() == mine(x.tolist())
    assert [each.tolist() for each in dp.shard(tf.ragged.constant([[1], [2, 3], [], [4], [5]])).numpy()] == mine(
        [[1], [2, 3], [], [4], [5]]
    )
    assert dp.shard(x, only_if=False) is x


def case_validation_split_cuts_where_keras_cuts():
    for rows, split in ((11, 0.2), (10, 0.3), (100, 0.1), (7, 0.5)):
        x = np.arange(rows)
        cut = int(np.floor(rows * (1.0 - split)))
        assert dp.held_out(x, split).tolist() == list(range(cut, rows))
        assert dp.shard(x, validation_split=split).tolist() == mine(range(cut))
    assert dp.held_out((np.arange(10), None), 0.2)[1] is None


def case_the_same_examples_as_keras_holds_out():
    x = np.arange(23, dtype=np.float32)[:, None]
    seen = []

    class Recorder(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.scale = tf.keras.layers.Dense(1)

        def call(self, inputs):
            return self.scale(inputs)

        def test_step(self, data):
            seen.extend(np.ravel(data[0]).tolist())
            return super().test_step(data)

    model = Recorder()
    model.compile(dp.DistributedOptimizer("sgd"), "mse", run_eagerly=True)
    model.fit(x, x, validation_split=0.3, verbose=0, batch_size=4)
    assert seen == np.ravel(dp.held_out(x, 0.3)).tolist()


def case_1001_rows_give_every_rank_equally_many_steps():
    share = dp.shard(np.arange(1001))
    assert len(share) == 1001 // dp.size()
    assert len(dp.allgather(tf.constant(share)).numpy()) == 1001 - 1001 % dp.size()


def case_arrays_that_differ_by_rank():
    other = np.random.default_rng(dp.rank()).permutation(50)
    raises(dp.TfdpError, "differ on rank(s) 1", lambda: dp.shard(other))
    raises(dp.TfdpError, "from rank 0's", lambda: dp.shard(np.arange(50 + dp.size() * dp.rank())))
    large = np.zeros([200_000, 4], np.float32)
    large[123_457, 2] = dp.rank() == dp.size() - 1  # a sample of the rows would not have it
    raises(dp.TfdpError, "from rank 0's", lambda: dp.shard(large))
    raises(dp.TfdpError, "from rank 0's", lambda: dp.shard((tf.constant(large), np.arange(200_000))))
    raises(dp.TfdpError, "from rank 0's", lambda: dp.shard([f"{each}" for each in large[:, 2]]))
    assert len(dp.shard(other, source_check=False)) == 50 // dp.size()
    assert len(dp.shard(np.random.permutation(50))) == 50 // dp.size()


def case_what_cannot_be_sharded():
    x = np.arange(11)
    raises(ValueError, "[10, 11] rows", lambda: dp.shard((x, x[:10])))
    raises(ValueError, "1 row(s)", lambda: dp.shard(x[:1]))
    raises(ValueError, "not for arrays", lambda: dp.shard(x, remainder="weight"))
    raises(ValueError, "for arrays", lambda: dp.shard(tf.data.Dataset.range(9), validation_split=0.5))
    raises(ValueError, "leaves one side empty", lambda: dp.shard(x[:3], validation_split=0.9))
    raises(ValueError, "less than 1", lambda: dp.held_out(x, 1.5))
    raises(TypeError, "dp.shard_batches", lambda: dp.shard(each for each in [x]))
    raises(TypeError, "has no rows", lambda: dp.shard(np.float32(1)))
