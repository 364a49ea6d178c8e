"""Sharded calls against sharded input and against the whole batch on each worker: `python benchmarks/sharded_calls.py`.

The steps of a model are traced in one job, and taken in turn, so that whatever else the machine does falls on all of
them. The peer is the step over sharded input, whose gradients a DistributedGradientTape averages. One more step has no
checksums of what must be equal on all workers.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

MARK = "TFDP-BENCHMARK "
KINDS = ("mlp", "cnn", "cnn_bn", "autoencoder", "language")
WAYS = ("input", "calls", "whole", "unchecked")


def main() -> None:
    """Launch, collect, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-np", type=int, default=2, help="ranks (default 2)")
    parser.add_argument("--steps", type=int, default=25, help="of each way (default 25)")
    parser.add_argument("kinds", nargs="*", default=KINDS, help=", ".join(KINDS))
    asked = parser.parse_args()
    print(f"{asked.np} ranks, {os.cpu_count()} cores, medians in milliseconds; look: once, before the first step")
    names = f"{'calls / input':>15}{'checksums':>11}{'look':>8}{'bytes a row':>13}"
    print(f"{'model':<12}{'input':>8}{'calls':>8}{'whole':>8}{names}")
    for kind in asked.kinds:
        found = launched(kind, asked.np, asked.steps)
        times = {way: statistics.median(found[way]) * 1e3 for way in WAYS}
        row = "".join(f"{times[way]:>8.1f}" for way in WAYS[:3])
        pairs = zip(found["calls"], found["unchecked"], strict=True)
        checks = statistics.median(calls / unchecked for calls, unchecked in pairs) - 1
        row += f"{times['calls'] / times['input']:>15.2f}{checks:>11.1%}"
        print(f"{kind:<12}{row}{found['look'] * 1e3:>8.0f}{found['row_bytes']:>13}")


def launched(kind: str, np: int, steps: int) -> dict[str, Any]:
    """What rank 0 has measured."""
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(np), __file__, kind, str(steps)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    (line,) = (line for line in done.stdout.splitlines() if MARK in line)
    found: dict[str, Any] = json.loads(line.partition(MARK)[2])
    return found


def made(kind: str) -> tuple[Any, Any, Any]:
    """A model, inputs and labels."""
    import numpy as np
    import tensorflow as tf

    layers, random = tf.keras.layers, np.random.RandomState(0)
    dense = [layers.Dense(512, activation="relu"), layers.Dense(512, activation="relu")]
    if kind == "mlp":
        return tf.keras.Sequential([*dense, layers.Dense(10)]), random.rand(256, 784), random.randint(0, 10, 256)
    if kind in ("cnn", "cnn_bn"):
        normal = [layers.BatchNormalization()] if kind == "cnn_bn" else []
        again = [layers.BatchNormalization()] if kind == "cnn_bn" else []
        body = [layers.Conv2D(32, 3), *normal, layers.ReLU(), layers.Conv2D(64, 3), *again, layers.ReLU()]
        model = tf.keras.Sequential([*body, layers.MaxPool2D(), layers.Flatten(), layers.Dense(128), layers.Dense(10)])
        return model, random.rand(128, 28, 28, 1), random.randint(0, 10, 128)
    if kind == "autoencoder":
        inputs = random.rand(256, 784)
        return tf.keras.Sequential([*dense[:1], layers.Dense(64), *dense[1:], layers.Dense(784)]), inputs, inputs
    if kind == "language":
        model = tf.keras.Sequential(
            [layers.Embedding(4000, 64), layers.GRU(128, return_sequences=True), layers.Dense(4000)]
        )
        return model, random.randint(0, 4000, (32, 16)), random.randint(0, 4000, (32, 16))
    if kind == "resnet50":
        model = tf.keras.applications.ResNet50(weights=None, input_shape=(64, 64, 3), classes=10)
        return model, random.rand(32, 64, 64, 3), random.randint(0, 10, 32)
    raise SystemExit(f"no model {kind!r}: {', '.join((*KINDS, 'resnet50'))}")


def measure(kind: str, steps: int) -> None:
    """One rank."""
    import tfdp.runtime as dp

    dp.init(row_check=False)
    import tensorflow as tf

    from tfdp.runtime.calls import hook_layers, install, nets, report

    model, inputs, labels = made(kind)
    inputs = inputs.astype("float32") if inputs.dtype.kind == "f" else inputs
    labels = labels.astype("float32") if labels.dtype.kind == "f" else labels
    model(inputs[:2])
    optimizer = tf.keras.optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    own = inputs[dp.rank() :: dp.size()], labels[dp.rank() :: dp.size()]

    losses = tf.keras.losses
    loss_of: Any = losses.MeanSquaredError()
    if labels.dtype.kind != "f":
        loss_of = losses.SparseCategoricalCrossentropy(from_logits=kind != "resnet50")

    def step(average: Callable[[Any], Any]) -> Any:
        def take(given: Any, wanted: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = loss_of(wanted, model(given, training=True))
            gradients = average(tape).gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        return tf.function(take)

    taken = {"input": (step(dp.DistributedGradientTape), own), "whole": (step(lambda tape: tape), (inputs, labels))}
    taken = {way: (function, tuple(map(tf.constant, given))) for way, (function, given) in taken.items()}
    for function, given in taken.values():
        function(*given)
    install()
    hook_layers()
    taken["calls"] = step(lambda tape: tape), taken["whole"][1]
    begun = time.perf_counter()
    taken["calls"][0].get_concrete_function(*taken["calls"][1])
    traced = time.perf_counter() - begun
    begun = time.perf_counter()
    step(lambda tape: tape).get_concrete_function(*taken["calls"][1])
    note, nets.note = nets.note, lambda *_: None
    taken["unchecked"] = step(lambda tape: tape), taken["whole"][1]
    taken["unchecked"][0].get_concrete_function(*taken["unchecked"][1])
    nets.note = note
    found: dict[str, Any] = {"look": traced - (time.perf_counter() - begun), **{way: [] for way in WAYS}}
    for index in range(steps + 2):
        turn = index % len(WAYS)  # so that none always comes behind the same one
        for way in WAYS[turn:] + WAYS[:turn]:
            function, given = taken[way]
            dp.barrier()
            begun = time.perf_counter()
            function(*given).numpy()
            if index > 1:
                found[way].append(time.perf_counter() - begun)
    found["row_bytes"] = sum(line.row_bytes or 0 for line in report() if not line.reason)
    if dp.rank() == 0:
        print(MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    if "TFDP_RANK" in os.environ:
        measure(sys.argv[1], int(sys.argv[2]))
    else:
        main()
