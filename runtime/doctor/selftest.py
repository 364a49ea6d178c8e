"""`python -m tfdp.runtime.doctor.selftest`, on the ranks of a job: is an all-reduce right, and how long does it take?

Rank 0 prints one line for people, or with `--json` for `tfdp doctor`. It exits with 1 where a sum is wrong.
"""

import json
import statistics
import sys
import time

from .figures import LARGE, SMALL, said

_TIMES = {SMALL: 50, LARGE: 7}


def main() -> int:
    """Join, sum, measure."""
    import tensorflow as tf

    from .. import Sum, allreduce, barrier, init, rank, size
    from ..job import current

    init()
    wrong = []
    for count in (1, 7, 1000, LARGE):
        values = tf.range(count, dtype=tf.float32) % 1000 + float(rank())
        expected = (tf.range(count, dtype=tf.float32) % 1000) * size() + size() * (size() - 1) / 2
        if not bool(tf.reduce_all(allreduce(values, op=Sum) == expected)):
            wrong.append(f"the sum of {count} numbers")
    seconds = {}
    for count, times in _TIMES.items():
        values = tf.ones([count])
        taken = []
        for _ in range(times):
            barrier()
            began = time.perf_counter()
            allreduce(values, op=Sum).numpy()
            taken.append(time.perf_counter() - began)
        seconds[count] = statistics.median(taken)
    found = {
        "size": size(),
        "transport": current().transport.name,
        "gpus": len(tf.config.list_physical_devices("GPU")),
        "wrong": wrong,
        "small_ms": seconds[SMALL] * 1e3,
        "large_ms": seconds[LARGE] * 1e3,
    }
    if rank() == 0:
        print(json.dumps(found) if "--json" in sys.argv else said(found), flush=True)
    barrier()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
