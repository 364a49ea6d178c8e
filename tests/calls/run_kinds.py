"""What each process runs for launches.py: kinds in order; for each a line of what came of it, and a file of arrays.

A worker that fails goes on only if all others fail in the same kind: else they are in the middle of a collective, or of
the next kind.
"""

import importlib
import json
import pathlib
import random
import sys
import time
import traceback
import zlib

import tfdp.runtime as dp
from tfdp.runtime.calls import swallowed
from tfdp.runtime.job import current

REFUSALS = dp.TfdpError


def main(plan_path):
    plan = json.loads(pathlib.Path(plan_path).read_text())
    if plan["calls"]:
        dp.init(shard_calls=True)
        kinds = importlib.import_module("kinds")
        kinds.DIVIDE[0], kinds.CALLBACKS[0] = dp.by_rows, dp.fit_callbacks
    rank = dp.rank() if plan["calls"] else 0
    folder = pathlib.Path(plan_path).parent
    with (folder / f"{rank}.jsonl").open("w", buffering=1) as lines:
        entropy(folder / f"entropy.{rank}.npz")
        lines.write(json.dumps({"kind": "entropy", "error": None}) + "\n")
        for module, name in plan["kinds"]:
            line = outcome(module, name, folder / f"{name}.{rank}.npz")
            lines.write(json.dumps({"kind": name, **line}) + "\n")
            if line["error"] and not all_have_failed(name):
                sys.exit(1)


def entropy(path):
    """What a script draws that seeds nothing, before anything is seeded here: equal on all workers of a job."""
    import numpy as np
    from kinds import keras, tf

    dropout, dense, row = keras.layers.Dropout(0.5), keras.layers.Dense(3), np.ones((1, 30), "f")
    numbers = [
        random.random(),
        random.Random().random(),
        np.random.rand(),
        np.random.RandomState().rand(),
        np.random.default_rng().random(),
        np.random.Generator(np.random.PCG64()).random(),
        *tf.random.uniform([2]),
        *tf.random.get_global_generator().uniform([2]),
        *tf.random.Generator.from_non_deterministic_state().uniform([2]),
        *dropout(row, training=True)[0],
        *dense(row)[0],
    ]
    np.savez(path, numbers=np.array([float(each) for each in numbers]), order=np.array(list({"a", "b", "c", "d"})))


def outcome(module, name, path):
    """Train one kind; its arrays go into a file."""
    import numpy as np

    run = importlib.import_module(f"kinds.{module}")
    kinds = importlib.import_module("kinds")
    begin(kinds, name)
    started = time.monotonic()
    steps, line = {}, {"error": None, "refused": False}
    try:
        for number, (things, loss) in enumerate(getattr(run, name)()):
            for label, array in kinds.arrays(things).items():
                steps[f"{number:03} {label}"] = array
            for label, array in flat(loss):
                steps[f"{number:03} loss{label}"] = np.array(array)
    except Exception as error:
        swallowed.forget()
        line = {"error": traceback.format_exc(), "refused": isinstance(error, REFUSALS), "said": str(error)}
    np.savez(path, **steps)
    return {**line, "report": report(), "seconds": time.monotonic() - started}


def begin(kinds, name):
    """Each kind begins alike, whatever ran before it: what earlier ones had divided under the same names, and functions
    of Keras that they had replaced, too."""
    from tfdp.runtime.calls import draw_by

    getattr(sys.modules.get("tfdp.runtime.calls.report"), "_lines", {}).clear()
    if (replaced := sys.modules.get("tfdp.runtime.calls.replaced")) is not None:
        for found in (replaced._state.classes, replaced._state.functions, replaced._state.met):
            found.clear()
    keras = kinds.keras
    keras.backend.clear_session()
    keras.backend.set_floatx("float64")
    keras.mixed_precision.set_global_policy("float64")
    draw_by(zlib.crc32(name.encode()))
    random_numbers = kinds.tf.random
    random_numbers.set_global_generator(random_numbers.Generator.from_non_deterministic_state())  # as it is at first
    keras.utils.set_random_seed(7)
    is_beside = getattr(kinds.KINDS[name], "divided", True) == "beside"
    kinds.BESIDE[0] = kinds.something_beside() if is_beside else lambda: None


def flat(loss):
    return [(f" {name}", loss[name]) for name in sorted(loss)] if isinstance(loss, dict) else [("", loss)]


def report():
    from tfdp.runtime import calls

    return [(each.name, each.reason) for each in calls.report()]


def all_have_failed(name):
    if not dp.is_initialized() or dp.size() == 1:
        return True
    store = current().store
    store.publish(f"{name} failed on rank {dp.rank()}", b"")
    try:
        for rank in range(dp.size()):
            if rank != dp.rank():
                store.fetch(f"{name} failed on rank {rank}", timeout=3)
    except dp.TfdpError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1])
