"""All-reduce over shared memory against TensorFlow's own ring, on this host: `python benchmarks/allreduce.py [-np 2]`.

Each transport is launched several times, in turn, so that whatever else the machine does falls on both; the table shows
medians over all launches, and their ratio.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SIZES = (4, 2**20, 10 * 2**20)
REPEATS = {4: 200, 2**20: 60, 10 * 2**20: 12}
MARK = "TFDP-BENCHMARK "


def main() -> None:
    """Launch, collect, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-np", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--launches", type=int, default=3, help="of each transport (default 3)")
    asked = parser.parse_args()
    seconds: dict[tuple[str, str, int], list[float]] = {}
    for _ in range(asked.launches):
        for transport in ("shared_memory", "ring"):
            for way, size, each in launched(transport, asked.np):
                seconds.setdefault((transport, way, size), []).extend(each)
    print(f"float32 all-reduce, {asked.np} ranks, {os.cpu_count()} cores, medians in milliseconds")
    print(f"{'bytes':>10}  {'called':<14}{'shared_memory':>14}{'ring':>10}{'ring / shared_memory':>24}")
    for size in SIZES:
        for way in ("eagerly", "in a function"):
            ours, ring = (statistics.median(seconds[name, way, size]) * 1e3 for name in ("shared_memory", "ring"))
            print(f"{size:>10}  {way:<14}{ours:>14.2f}{ring:>10.2f}{ring / ours:>24.1f}")


def launched(transport: str, np: int) -> list[tuple[str, int, list[float]]]:
    """What rank 0 of one launch has measured: how it was called, bytes, seconds of each call."""
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(np), __file__],
        env={**os.environ, "TFDP_TRANSPORT": transport, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (line,) = (line for line in done.stdout.splitlines() if MARK in line)
    found: list[tuple[str, int, list[float]]] = json.loads(line.partition(MARK)[2])
    return found


def measure() -> None:
    """One rank."""
    import tfdp.runtime as dp

    dp.init(same_start=False)
    import tensorflow as tf

    found = []
    for way, call in (("eagerly", dp.allreduce), ("in a function", tf.function(dp.allreduce))):
        for size in SIZES:
            tensor = tf.ones([size // 4])
            for _ in range(5):
                call(tensor)
            seconds = []
            for _ in range(REPEATS[size]):
                dp.barrier()
                began = time.perf_counter()
                call(tensor)
                seconds.append(time.perf_counter() - began)
            found.append((way, size, seconds))
    if dp.rank() == 0:
        print(MARK + json.dumps(found))


if __name__ == "__main__":
    if "TFDP_RANK" in os.environ:
        measure()
    else:
        main()
