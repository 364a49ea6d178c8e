"""The instruments on scripts of many shapes, in one process: what is recorded must be what the script did."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from tfdp.migrate.verify import CouldNotRun, record
from tfdp.migrate.verify.record import Step, Trace, settings

pytest.importorskip("tensorflow")
pytestmark = pytest.mark.usefixtures("forking")


@contextmanager
def recorded(folder: Path, text: str, steps: int, **options: Any) -> Iterator[Trace]:
    path = folder / "script.py"
    # What is on disk is not what runs: AutoGraph and tracebacks must follow the text given.
    path.write_text("# nothing of this\n" * 3)
    with record(path, 2, steps, reference=dedent(text).encode(), **{"timeout": 60.0, **options}) as recording:
        yield recording._trace


def steps_of(trace: Trace, count: int) -> list[Step]:
    found = [trace.step(index) for index in range(count)]
    return [step for step in found if step is not None]


QUADRATIC = """
import tensorflow as tf
w = tf.Variable([1.0, 2.0], name="w")
v = tf.Variable([0.0, 0.0], name="v")
count = tf.Variable(0, name="count")
"""


@pytest.mark.long
def test_a_hand_written_optimizer_in_a_graph(tmp_path: Path) -> None:
    script = f"""{QUADRATIC}
@tf.function
def step(x):
    if x > 0:
        x = x * 1.0
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w) * x
    g = tape.gradient(loss, w)
    v.assign(0.5 * v + g)
    w.assign_sub(0.1 * v)
    count.assign_add(1)
for _ in range(4):
    step(tf.constant(1.0))
"""
    with recorded(tmp_path, script, 3) as trace:
        lock = trace.lock()
        assert (lock.trained, lock.slots) == (("w|2|float32|0",), ("v|2|float32|0",))
        first, second, third = steps_of(trace, 3)
        assert first.calls[0].loss == 5.0
        np.testing.assert_allclose(first.calls[0].gradients["w|2|float32|0"], [2, 4])
        np.testing.assert_allclose(first.before["w|2|float32|0"], [1, 2])
        np.testing.assert_allclose(first.after["w|2|float32|0"], [0.8, 1.6], rtol=1e-6)
        np.testing.assert_array_equal(second.before["w|2|float32|0"], first.after["w|2|float32|0"])
        np.testing.assert_allclose(second.after["v|2|float32|0"], [1 + 1.6, 2 + 3.2], rtol=1e-6)
        assert third.closed


def test_a_whole_loop_inside_a_graph(tmp_path: Path) -> None:
    script = f"""{QUADRATIC}
@tf.function
def train(data):
    for x in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(w * w) * x
        g = tape.gradient(loss, [w])
        w.assign_sub(0.1 * g[0])
train(tf.data.Dataset.range(1, 100).map(lambda x: tf.cast(x, tf.float32) / 10))
print("NEVER PRINTED")
"""
    with recorded(tmp_path, script, 4) as trace:
        losses = [step.calls[0].loss for step in steps_of(trace, 4)]
        expected, w = [], 5.0
        for x in (0.1, 0.2, 0.3, 0.4):
            expected.append(w * x)
            w *= (1 - 0.2 * x) ** 2
        np.testing.assert_allclose(losses, expected, rtol=1e-6)


def test_keras_models_built_on_first_call_eagerly(tmp_path: Path) -> None:
    script = """
    import tensorflow as tf
    class Doubled(tf.keras.layers.Layer):  # Keras reads the signature of the constructor that this inherits.
        def call(self, inputs):
            return 2 * inputs
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), Doubled(), tf.keras.layers.Dense(1)])
    rate = tf.keras.optimizers.schedules.ExponentialDecay(0.01, 1000, 0.5, staircase=True)
    optimizer = tf.keras.optimizers.Adam(rate, clipnorm=100.0)
    unused = tf.keras.optimizers.SGD(0.1)
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    """
    with recorded(tmp_path, script, 3) as trace:
        lock = trace.lock()
        assert [key.split("|")[1] for key in lock.trained] == ["2x3", "3", "3x1", "1"]
        assert len(lock.slots) == 8
        for step in steps_of(trace, 3):
            assert set(lock.trained) | set(lock.slots) <= set(step.before)
        (used,) = settings.read_settings(trace.folder) or ()
        assert (used.kind, used.numbers["clipnorm"], used.numbers["beta_1"]) == ("Adam", 100.0, 0.9)
        rates = dict(zip(settings.STEPS, used.rates, strict=True))
        np.testing.assert_allclose([rates[0], rates[1024]], [[0.01] * 3, [0.005] * 3], rtol=1e-6)


def test_penalties_accumulation_and_embeddings(tmp_path: Path) -> None:
    script = f"""{QUADRATIC}
table = tf.Variable(tf.ones([4, 2]), name="table")
for k in range(6):
    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            loss = tf.reduce_sum(w * w * w)
        slope = inner.gradient(loss, w)
        total = tf.reduce_sum(slope * slope) + tf.reduce_sum(tf.gather(table, [1, 1, 3]) ** 2)
    with tf.GradientTape() as saliency:
        x = tf.constant(1.0)
        saliency.watch(x)
        y = x * x
    saliency.gradient(y, x)
    g, e = outer.gradient(total, [w, table])
    assert isinstance(e, tf.IndexedSlices)
    if k % 2:
        w.assign_sub(0.001 * g)
        table.assign_sub(0.1 * tf.convert_to_tensor(e))
"""
    with recorded(tmp_path, script, 3) as trace:
        step = steps_of(trace, 3)[0]
        assert [call.inner for call in step.calls] == [True, False, True, False]
        assert trace.lock().calls == (4, 4, 4)
        np.testing.assert_array_equal(step.calls[1].gradients["table|4x2|float32|0"][:, 0], [0, 4, 0, 2])


def test_two_networks_with_two_tapes_and_half_precision(tmp_path: Path) -> None:
    script = """
    import tensorflow as tf
    a, b = tf.Variable(2.0, name="a"), tf.Variable([3.0], dtype=tf.bfloat16, name="b")
    @tf.function
    def step():
        with tf.GradientTape() as one, tf.GradientTape() as two:
            product = a * tf.cast(b, tf.float32)
            first, second = product * product, -product
        ga, gb = one.gradient(first, [a]), two.gradient(second, [b])
        a.assign_sub(0.01 * ga[0][0] if ga[0].shape.rank else 0.01 * ga[0])
        b.assign_sub(tf.cast(0.01, tf.bfloat16) * gb[0])
    for _ in range(3):
        step()
    """
    with recorded(tmp_path, script, 2) as trace:
        step = steps_of(trace, 2)[0]
        assert [call.sources for call in step.calls] == [("a||float32|0",), ("b|1|bfloat16|0",)]
        assert [call.inner for call in step.calls] == [False, False]
        assert step.calls[1].gradients["b|1|bfloat16|0"].dtype == np.float32
        assert step.calls[1].gradients["b|1|bfloat16|0"][0] == -2


def test_two_updates_in_one_graph_are_two_steps(tmp_path: Path) -> None:
    script = """
    import tensorflow as tf
    a, b = tf.Variable(1.0, name="a"), tf.Variable(1.0, name="b")
    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = a * b
        a.assign_add(tape.gradient(loss, a))
        with tf.GradientTape() as tape:
            loss = a * b
        b.assign_add(tape.gradient(loss, b))
    for _ in range(9):
        step()
    """
    with recorded(tmp_path, script, 10) as trace:
        steps = steps_of(trace, 10)
        a, b, expected = 1.0, 1.0, []
        for _ in range(5):
            expected.append((("a||float32|0",), a * b, a + b, b))
            a += b
            expected.append((("b||float32|0",), a * b, a, a + b))
            b += a
        after = [(float(step.after["a||float32|0"]), float(step.after["b||float32|0"])) for step in steps]
        calls = [(step.calls[0].sources, step.calls[0].loss) for step in steps]
        assert [(*call, *values) for call, values in zip(calls, after, strict=True)] == expected


def test_each_step_starts_from_the_reference_for_optimizers_in_graphs_too(tmp_path: Path) -> None:
    script = f"""{QUADRATIC}
@tf.function
def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    g = tape.gradient(loss, w)
    v.assign_add(g - v * 0.5)
    w.assign_sub(0.1 * v)
for _ in range(9):
    step()
"""
    path = tmp_path / "script.py"
    path.write_text(script)
    with record(path, 1, 6, reference=script.encode(), timeout=60.0) as recording:
        assert recording.prove(script.encode()).proved
        proof = recording.prove(script.replace("tape.gradient(loss, w)", "2 * tape.gradient(loss, w)").encode())
        assert proof.failure is not None
        assert (proof.failure.kind, proof.loss, proof.gradient) == ("update", 0, 0)
        wrong = Trace(recording._folder / "migrated2" / "trace" / "rank0")
        for ours, theirs in zip(steps_of(wrong, 6), steps_of(recording._trace, 6), strict=True):
            gradient = theirs.calls[0].gradients["w|2|float32|0"]
            difference = ours.after["v|2|float32|0"] - theirs.after["v|2|float32|0"]
            np.testing.assert_allclose(difference, gradient, rtol=1e-5)


@pytest.mark.long
def test_variables_made_after_clear_session(tmp_path: Path) -> None:
    script = """
    import tensorflow as tf
    for fold in range(2):
        tf.keras.backend.clear_session()
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        optimizer = tf.keras.optimizers.SGD(0.1)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(tf.ones([4, 2])) ** 2)
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
    """
    with recorded(tmp_path, script, 2) as trace:
        assert sorted(key.rsplit("|", 1)[1] for key in trace.lock().trained) == ["0", "0", "1", "1"]


@pytest.mark.usefixtures("own_processes")
def test_the_script_sees_itself_as_started_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "numbers.txt").write_text("1 2")
    (tmp_path / "neighbour.py").write_text("FACTOR = 2.0\n")
    monkeypatch.chdir(here)
    script = """
    import os, pickle, sys
    from pathlib import Path
    import neighbour
    import tensorflow as tf
    class Thing: pass
    pickle.loads(pickle.dumps(Thing()))
    assert __name__ == "__main__" and sys.modules["__main__"].Thing is Thing
    assert sys.argv == [__file__, "--rate", "0.5"] and Path(__file__).name == "script.py"
    w = tf.Variable([float(x) for x in open("numbers.txt").read().split()])
    open("numbers.txt", "w").write("spoiled")
    Path("new.txt").write_text("new")
    with tf.GradientTape() as tape:
        loss = neighbour.FACTOR * tf.reduce_sum(w)
    w.assign_sub(float(sys.argv[2]) * tape.gradient(loss, w))
    sys.exit()
    """
    with recorded(tmp_path, script, 1, args=("--rate", "0.5")) as trace:
        np.testing.assert_allclose(steps_of(trace, 1)[0].after["Variable|2|float32|0"], [0, 1])
    assert sorted(path.name for path in here.iterdir()) == ["numbers.txt"]
    assert (here / "numbers.txt").read_text() == "1 2"


@pytest.mark.long
def test_shuffles_keep_the_order_and_generators_the_seed(tmp_path: Path) -> None:
    script = """
    import random
    import numpy as np
    import tensorflow as tf
    w = tf.Variable(0.0)
    tf.data.Dataset.from_tensor_slices((["a", "b"], {"n": [1, 2]}, tf.ragged.constant([[1], []]), np.eye(2)))
    draws = [random.random(), np.random.rand(), np.random.default_rng().random()]
    for x in [*tf.data.Dataset.range(5).shuffle(5), *draws]:
        with tf.GradientTape() as tape:
            loss = (w + 1) * tf.cast(x, tf.float32)
        w.assign_sub(0.5 + 0 * tape.gradient(loss, w))
    """
    runs = []
    for _ in range(2):
        with recorded(tmp_path, script, 8) as trace:
            gradients = [step.calls[0].gradients["Variable||float32|0"] for step in steps_of(trace, 8)]
            runs.append([float(gradient) for gradient in gradients])
    assert runs[0][:5] == [0, 1, 2, 3, 4]
    assert runs[0] == runs[1]


FAILING = {
    "crash": ("import tensorflow as tf\nraise OSError('no such data')", r"failed in step 0 at .*no such data"),
    "status": ("import sys, tensorflow as tf\nsys.exit(3)", "failed in step 0"),
    "no update": ("import tensorflow as tf\nprint('all done')", r"no update of a variable(.|\n)*all done"),
    "early": (
        "import tensorflow as tf\nw = tf.Variable(1.0)\nfor _ in range(2):\n  with tf.GradientTape() as t:\n"
        "    y = w * w\n  w.assign_sub(0.1 * t.gradient(y, w))",
        "ends after 2 updates, 3 were asked for",
    ),
    "nan": (
        "import tensorflow as tf\nw = tf.Variable(1.0)\nfor _ in range(4):\n  with tf.GradientTape() as t:\n"
        "    y = w * float('nan')\n  t.gradient(y, w)\n  w.assign_sub(0.1)",
        "loss is not finite in step 0",
    ),
}


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize("name", FAILING)
def test_what_cannot_be_compared_is_an_error(tmp_path: Path, name: str) -> None:
    script, message = FAILING[name]
    with pytest.raises(CouldNotRun, match=message), recorded(tmp_path, script, 3):
        pass


@pytest.mark.long
@pytest.mark.usefixtures("own_processes")
def test_a_script_that_never_ends_is_an_error_and_leaves_no_process(tmp_path: Path) -> None:
    script = "import threading; threading.Event().wait()"
    with pytest.raises(CouldNotRun, match="was not done in 8 s"), recorded(tmp_path, script, 3, timeout=8.0):
        pass
