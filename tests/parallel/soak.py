"""Many small collectives: what each rank holds after a part of them and at the end, which must be the same.

`python -m tfdp.runtime.launch -np 2 tests/parallel/soak.py 100000` prints one line of JSON a rank.
"""

import gc
import json
import os
import sys
import threading

import tensorflow as tf

import tfdp.runtime as dp


def held():
    """Resident memory (KiB), open file descriptors, threads of Python and of the process."""
    gc.collect()
    with open("/proc/self/status") as file:
        status = dict(line.split(":", 1) for line in file)
    return {
        "rss_kib": int(status["VmRSS"].split()[0]),
        "fds": len(os.listdir("/proc/self/fd")),
        "threads": int(status["Threads"]),
        "python_threads": threading.active_count(),
    }


def main(count):
    dp.init()
    variables = [tf.Variable(tf.ones([3])), tf.Variable(1.0)]
    table = tf.Variable(tf.ones([5, 2]))
    expected = dp.size() * (dp.size() + 1) / 2

    @tf.function
    def step(x):
        total = dp.allreduce(x, dp.Sum)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variables[0]) * variables[1] + tf.reduce_sum(tf.gather(table, [1, 1]))
        gradients = dp.DistributedGradientTape(tape).gradient(loss, [*variables, table])
        return total, gradients[0][0] + gradients[2].values[0, 0]

    def eager(x):
        assert dp.allreduce(x, dp.Sum, name="eager").numpy()[0] == expected
        rows = dp.allgather(x)
        assert rows.shape[0] == 2 * dp.size()
        return dp.broadcast(x, root_rank=1)

    x = tf.fill([2], dp.rank() + 1.0)
    done, seen = 0, []
    for part in (count // 10, count // 2, count):
        while done < part:
            # Three in the function (a sum, dense and sparse gradients), three eager ones, one whose shape changes.
            total, gradient = step(x)
            assert total.numpy()[0] == expected
            assert abs(gradient.numpy() - (1 + 1 / dp.size())) < 1e-6
            eager(x)
            dp.allreduce(tf.ones([1 + done % 5000]), dp.Sum)
            done += 7
        seen.append({"collectives": done, **held()})
    print(json.dumps({"rank": dp.rank(), "seen": seen}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
