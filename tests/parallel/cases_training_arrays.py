"""Rows of batches that are taken from arrays, on real ranks."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)


def raises(kind, said, call):
    with pytest.raises(kind, match=re.escape(said)):
        call()


def mine(rows):
    """What this rank must get of `rows` rows: their numbers."""
    return np.arange(rows - rows % dp.size())[dp.rank() :: dp.size()]


def case_row_i_goes_to_rank_i_mod_n():
    for rows in (3, 6, 7, 12, 100):
        batch = np.arange(rows * 4).reshape(rows, 4)
        assert np.array_equal(dp.local_rows(batch), batch[mine(rows)]), rows
        assert np.array_equal(dp.local_rows(tf.constant(batch)).numpy(), batch[mine(rows)]), rows
        assert dp.local_rows([f"file {i}" for i in range(rows)]) == [f"file {i}" for i in mine(rows)]


def case_structures_keep_their_form():
    x, y = np.arange(13), np.arange(13) * 10
    left, right = dp.local_rows((x, y))
    assert np.array_equal(left, mine(13))
    assert np.array_equal(right, mine(13) * 10)
    both = dp.local_rows({"x": x, "more": (y, x)})
    assert np.array_equal(both["more"][0], mine(13) * 10)
    ragged = tf.ragged.constant([[1], [2, 3], [4], [5, 6], [7], [8]])
    assert dp.local_rows(ragged).to_list() == [ragged.to_list()[i] for i in mine(6)]


def case_in_a_graph_that_does_not_know_the_number_of_rows():
    @tf.function(input_signature=[tf.TensorSpec([None, 2])])
    def total(batch):
        return tf.reduce_sum(dp.local_rows(batch), axis=0)

    for rows in (6, 7, 11):
        batch = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        assert np.array_equal(total(batch), batch[mine(rows)].sum(0))


def case_draws_of_numpy_are_the_same_on_all_ranks():
    for _ in range(100):
        index = np.random.randint(0, 1000, 12)
        every = dp.allgather(tf.constant(dp.local_rows(index))).numpy()
        assert sorted(every) == sorted(index)


def case_a_rank_that_draws_alone_is_noticed():
    generator, said = np.random.default_rng(3), []
    for step in range(70):
        if step == 20 and dp.rank() == 1:
            generator.random()
        try:
            dp.local_rows(generator.permutation(50))
        except dp.TfdpError as error:
            said.append((step, str(error)))
        dp.barrier()
    first = said[0][0] if said else 100
    assert int(dp.allreduce(tf.constant(first), dp.Min)) == 31
    assert all("let no rank draw alone" in text for _, text in said)


def case_what_has_no_rows_to_shard():
    raises(ValueError, f"a batch of {dp.size() - 1} row(s)", lambda: dp.local_rows(np.zeros(dp.size() - 1)))
    raises(ValueError, "have [6, 8] rows", lambda: dp.local_rows((np.zeros(6), np.zeros(8))))
    raises(TypeError, "a single", lambda: dp.local_rows(np.float32(3)))
    raises(TypeError, "'abcdef'", lambda: dp.local_rows("abcdef"))
    raises(TypeError, "a int", lambda: dp.local_rows((np.zeros(6), 6)))


def case_batches_of_an_iterable():
    whole = [np.arange(12), np.arange(7), np.arange(1)]
    sharded = list(dp.local_batches(iter(whole)))
    assert [part.tolist() for part in sharded] == [mine(12).tolist(), mine(7).tolist()]


def case_sizes():
    assert dp.global_batch_size(8) == 8 * dp.size()
    assert dp.even_batch_size(12) == 12
    raises(ValueError, f"the batch size 7 at {__file__}", lambda: dp.even_batch_size(7))
    assert [dp.sharded_length(n) for n in (12, 13, 1)] == [12, 13 - 13 % dp.size(), 0]
    raises(TypeError, "the batch size is 1.5", lambda: dp.global_batch_size(1.5))
