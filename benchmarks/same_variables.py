"""What it costs to see whether the ranks' variables stay the same: `python benchmarks/same_variables.py [-np 2]`.

Two functions of one model, one with the look at the variables and one without, train in turn in one launch: whatever
else the machine does falls on both. Blocks of 128 steps, so that each has two looks; the table shows the median over
the blocks of the ratio of a block with to the block without beside it.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

MARK = "TFDP-BENCHMARK "
BLOCK, BLOCKS = 128, 10
# Units of the hidden layers, and rows of a batch.
SIZES = {"small": (64, 32), "0.5 M parameters": (512, 64)}


def main() -> None:
    """Launch, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-np", type=int, default=2, help="ranks (default 2)")
    asked = parser.parse_args()
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(asked.np), __file__],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (line,) = (line for line in done.stdout.splitlines() if MARK in line)
    print(f"{asked.np} ranks, {os.cpu_count()} cores: a step in milliseconds, without the look and with it")
    for name, without, ratio in json.loads(line.partition(MARK)[2]):
        print(f"{name:<28}{without * 1e3:>8.2f}{without * ratio * 1e3:>8.2f}{(ratio - 1) * 100:>+8.1f} %")


def measure() -> None:
    """One rank."""
    import tfdp.runtime as dp

    dp.init()
    found = []
    for size, (units, rows) in SIZES.items():
        for kind, made in (("tape", _tape), ("fit", _fit)):
            with_it, without = made(units, rows, True), made(units, rows, False)
            for step in (with_it, without):  # the first looks come with the first steps
                step(), step()
            pairs = []
            for _ in range(BLOCKS):
                seconds = []
                for step in (without, with_it):
                    dp.barrier()
                    start = time.perf_counter()
                    step()
                    seconds.append((time.perf_counter() - start) / BLOCK)
                pairs.append(seconds)
            ratio = statistics.median(after / before for before, after in pairs)
            found.append((f"{kind}, {size}", statistics.median(before for before, _ in pairs), ratio))
    if dp.rank() == 0:
        print(MARK + json.dumps(found), flush=True)


def _model(units: int) -> Any:
    import tensorflow as tf

    layers = [tf.keras.layers.Dense(units, activation="relu") for _ in range(2)]
    return tf.keras.Sequential([tf.keras.Input([units]), *layers, tf.keras.layers.Dense(1)])


def _tape(units: int, rows: int, look: bool) -> Any:
    """A block of steps of a `tf.function` with a distributed tape."""
    import tensorflow as tf

    import tfdp.runtime as dp

    model, optimizer, x = _model(units), tf.keras.optimizers.SGD(1e-4), tf.random.normal([rows, units])

    @tf.function
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    def block() -> None:
        for _ in range(BLOCK):
            step()

    with _looking(look):
        step()
    return block


def _fit(units: int, rows: int, look: bool) -> Any:
    """The same by Keras' `fit`."""
    import tensorflow as tf

    import tfdp.runtime as dp

    model = _model(units)
    model.compile(dp.DistributedOptimizer(tf.keras.optimizers.SGD(1e-4)), "mse", jit_compile=False)
    x, y = tf.random.normal([rows, units]), tf.zeros([rows, 1])
    data = tf.data.Dataset.from_tensors((x, y)).repeat(BLOCK)
    with _looking(look):
        model.fit(data.take(1), verbose=0)
    return lambda: model.fit(data, verbose=0)


class _looking:  # noqa: N801 - used as a context
    """While a function is traced: whether it gets the look."""

    def __init__(self, look: bool) -> None:
        self._look = look

    def __enter__(self) -> None:
        from tfdp.runtime.training import averaging, tape

        self._held = averaging.watched, tape.watched
        if not self._look:
            averaging.watched = tape.watched = lambda *_: None  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        from tfdp.runtime.training import averaging, tape

        averaging.watched, tape.watched = self._held


if __name__ == "__main__":
    measure() if "TFDP_RANK" in os.environ else main()
