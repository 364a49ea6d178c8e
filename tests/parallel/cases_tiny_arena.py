"""Where the shared memory is the smallest there can be, every exchange takes many chunks."""

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
DEVICE_RANKS = ()
ENVIRON = {"TFDP_SHM_BYTES": "8192"}
INIT = {"same_start": False}


def case_everything_through_a_few_cache_lines():
    @tf.function
    def step(x, n, h):
        sums = dp.grouped_allreduce([x, n, h], dp.Sum)
        return *sums, dp.allgather(x[: dp.rank() * 100 + 1]), dp.broadcast(x, 1)

    x = tf.random.stateless_normal([40, 51], [dp.rank(), 2])
    every = [tf.random.stateless_normal([40, 51], [rank, 2]) for rank in range(dp.size())]
    total, count, half, rows, spread = step(x, tf.range(700, dtype=tf.int64), tf.ones([300], tf.float16))
    want = every[0].numpy()
    for other in every[1:]:
        want = want + other.numpy()
    assert total.numpy().tobytes() == want.tobytes()
    assert count.numpy().tolist() == [n * dp.size() for n in range(700)]
    assert set(half.numpy()) == {np.float16(dp.size())}
    parts = [each[: rank * 100 + 1] for rank, each in enumerate(every)]
    assert rows.numpy().tobytes() == tf.concat(parts, 0).numpy().tobytes()
    assert spread.numpy().tobytes() == every[1].numpy().tobytes()


def case_objects_and_variables():
    assert dp.broadcast_object(list(range(5000 * (dp.rank() + 1))), 1) == list(range(10_000))
    variables = [tf.Variable(tf.fill([size], float(dp.rank()))) for size in (0, 1, 3000)]
    dp.broadcast_variables(variables, 1)
    assert all(set(variable.numpy()) <= {1.0} for variable in variables)
