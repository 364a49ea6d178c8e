"""`--target horovod`: a script with sharded input in Horovod's own names, or what Horovod has nothing for."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tfdp.migrate import engine
from tfdp.migrate.cli import main

TAPE = """\
import numpy as np
import tensorflow as tf

x = np.ones((64, 4), "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
loss_fn = tf.keras.losses.MeanSquaredError()
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)
for epoch in range(2):
    for a, b in data:
        with tf.GradientTape() as tape:
            loss = loss_fn(b, model(a, training=True))
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    print("epoch", epoch)
model.save_weights("end.weights.h5")
"""
FIT = """\
import numpy as np
from tensorflow import keras

x = np.ones((64, 4), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
model.fit(x, x[:, :1], batch_size=8, epochs=2)
"""


def text(script: str) -> str:
    found = engine.horovod("train.py", script.encode())
    assert not found.refused, found.findings
    assert found.changed
    after = found.after.decode()
    assert "tfdp" not in after
    return after


def refusals(script: str) -> list[tuple[int, str]]:
    found = engine.horovod("train.py", script.encode())
    assert found.after == found.before
    return [(each.line, each.message) for each in found.findings if each.refusal]


def test_a_loop_with_a_tape() -> None:
    after = text(TAPE)
    for line in (
        "import horovod.tensorflow as hvd",
        "hvd.init()  # join the other workers",
        'gpus = tf.config.list_physical_devices("GPU")',
        '    tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")  # one GPU per worker',
        "data = shard(tf.data.Dataset.from_tensor_slices((x, x[:, :1]))).batch(8)",
        "optimizer = tf.keras.optimizers.SGD(0.1 * hvd.size())",
        "start_from_rank_0(model, optimizer)  # every worker starts from rank 0's variables",
        "    if hvd.rank() == 0:",
        '        print("epoch", epoch)',
        "if hvd.rank() == 0:  # one worker writes",
        '    model.save_weights("end.weights.h5")',
    ):
        assert line in after.splitlines()
    assert "hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)" in after
    assert "horovod.tensorflow.keras" not in after


def test_a_fit() -> None:
    after = text(FIT)
    assert "import horovod.tensorflow.keras as hvd_keras" in after.splitlines()
    assert "import tensorflow as tf" in after.splitlines()  # for what is written for it
    assert "optimizer=hvd_keras.DistributedOptimizer(keras.optimizers.SGD(0.1 * hvd.size()))" in after
    assert "callbacks=[StartFromRank0(), hvd_keras.callbacks.MetricAverageCallback()]" in after
    assert 'verbose="auto" if hvd.rank() == 0 else 0' in after


def test_what_writes_does_so_on_rank_0() -> None:
    given = "callbacks=[keras.callbacks.EarlyStopping('loss'), keras.callbacks.CSVLogger('a.csv')])"
    given = given.replace("[", "[  # two of them\n    ")
    after = text(FIT.replace("epochs=2)", f"epochs=2, {given}"))
    assert "MetricAverageCallback(),   # two of them" in after
    assert "keras.callbacks.EarlyStopping('loss'), *([keras.callbacks.CSVLogger('a.csv')] if hvd.rank() == 0" in after


def test_workers_draw_alike() -> None:
    """Folds and splits, and weights that the first batch builds, whatever the script seeds, and when."""
    lines = text(TAPE).splitlines()
    at = lines.index("tf.keras.utils.set_random_seed(1)  # all workers draw alike; another number for other draws")
    assert lines[at - 1].endswith('"GPU")  # one GPU per worker')
    assert "tf.keras.utils.set_random_seed(3)\n" in text(
        TAPE.replace("\n\nx =", "\n\ntf.keras.utils.set_random_seed(3)\nx =")
    )
    for own in (
        "np.random.default_rng()",
        "np.random.RandomState(None)",
        "np.random.default_rng(np.random.SeedSequence())",
    ):
        assert [line for line, _ in refusals(TAPE.replace("\n\nx =", f"\n\nrng = {own}\nx ="))] == [4], own
    assert text(TAPE.replace("\n\nx =", "\n\nrng = np.random.default_rng(3)\nx ="))


def test_a_rate_that_is_a_sum_is_scaled_as_a_whole() -> None:
    assert "SGD((0.1 + 0.2) * hvd.size())" in text(TAPE.replace("SGD(0.1)", "SGD(0.1 + 0.2)"))
    assert "SGD(0.1 * 2 * hvd.size())" in text(TAPE.replace("SGD(0.1)", "SGD(0.1 * 2)"))


def test_what_a_message_calls_is_called_by_all() -> None:
    after = text(FIT + "print(float(model.evaluate(x, x[:, :1], verbose=0)))\n")
    assert "on_rank_0(print, float(model.evaluate(x, x[:, :1], verbose=0)))" in after.splitlines()
    assert "def on_rank_0(function, *arguments, **options):" in after


def test_names_of_the_script_are_left_alone() -> None:
    after = text(FIT.replace("x = np", "hvd, shard, tf = 1, 2, 3\nx = np"))
    assert "import horovod.tensorflow as hvd_2" in after.splitlines()
    assert "import tensorflow as tf_2" in after.splitlines()
    assert "model.fit(shard_2(x), shard_2(x[:, :1])" in after


def test_steps_are_divided() -> None:
    after = text(TAPE.replace(".batch(8)", ".batch(8).take(6)"))
    assert ".batch(8).take(local_steps(6))" in after


@pytest.mark.parametrize(
    ("script", "line", "message"),
    [
        (
            TAPE.replace("SGD(0.1)", "SGD(tf.keras.optimizers.schedules.ExponentialDecay(0.1, 8, 0.9))"),
            6,
            "Horovod scales numbers: `tf.keras.optimizers.schedules.ExponentialDecay(0.1, ",
        ),
        (
            TAPE.replace("SGD(0.1)", "SGD(lr)").replace(
                "\n\nx =", "\n\nlr = tf.keras.optimizers.schedules.ExponentialDecay(0.1, 8, 0.9)\nx ="
            ),
            7,
            "Horovod scales numbers: `lr` may be a schedule",
        ),
        (
            TAPE.replace(
                "        optimizer.apply",
                "            grads = tape.gradient(loss, model.trainable_variables)\n        optimizer.apply",
            ).replace("zip(tape.gradient(loss, model.trainable_variables)", "zip(grads"),
            13,
            "Horovod takes no gradient inside of the `with` of `tape`",
        ),
        (FIT.replace("keras.optimizers.SGD(0.1)", "'adam'"), 6, "the rate of `'adam'` is not written here"),
        (FIT.replace("epochs=2)", "epochs=2, callbacks=[keras.callbacks.TerminateOnNaN()])"), 7, "what `keras.callb"),
        (
            FIT.replace("epochs=2)", "epochs=2, callbacks=some)").replace("x =", "some = []\nx =", 1),
            8,
            "which callbacks",
        ),
        (FIT.replace("model.fit", "while model:\n    model.fit"), 7, "`while` is not in the vocabulary"),
    ],
)
def test_what_horovod_has_nothing_for_is_refused(script: str, line: int, message: str) -> None:
    found = refusals(script)
    assert [each for each in found if each[0] == line and each[1].startswith(message)], found


def test_what_is_refused_on_sharded_input_names_no_other_road() -> None:
    found = engine.horovod("train.py", FIT.replace("model.fit", "while model:\n    model.fit").encode())
    assert [each.next_step for each in found.findings] == ["leave --target out: tfdp's own runtime trains it"]


def test_lines_end_as_they_did() -> None:
    found = engine.horovod("train.py", TAPE.replace("\n", "\r\n").encode()).after
    assert found.count(b"\n") == found.count(b"\r\n")
    assert found.replace(b"\r\n", b"\n").decode() == text(TAPE)


def test_a_script_for_horovod_is_one_already() -> None:
    written = text(TAPE)
    found = engine.horovod("train.py", written.encode())
    assert [each.message for each in found.findings] == ["this script is distributed by Horovod or SMDDP"]
    assert found.after == written.encode()


def test_a_file_is_written_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(FIT)
    run = CliRunner().invoke(main, ["migrate", "--target", "horovod", str(path)])
    assert run.exit_code == 0, run.output
    assert path.read_text() == text(FIT)
    path.write_text(FIT.replace("epochs=2)", "epochs=2, callbacks=[keras.callbacks.TerminateOnNaN()])"))
    before = path.read_bytes()
    run = CliRunner().invoke(main, ["migrate", "--target", "horovod", str(path)])
    assert run.exit_code == 1, run.output
    assert "train.py:7:" in run.stderr
    assert path.read_bytes() == before


def test_there_is_no_batch_to_choose(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(FIT)
    run = CliRunner().invoke(main, ["migrate", "--target", "horovod", "--batch", "global", str(path)])
    assert run.exit_code == 2
    assert "--target horovod shards the input" in run.stderr
