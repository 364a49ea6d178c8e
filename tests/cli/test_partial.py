"""`--partial`: what is understood is written, what is not is marked, and nobody can run it by mistake."""

from pathlib import Path

SCRIPT = b"""\
import tensorflow as tf

dataset = tf.data.Dataset.from_tensor_slices(tf.random.normal([64, 4])).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
for x in dataset:
    with tf.GradientTape() as tape:
        # for its summary
        tf.keras.layers.Layer.label = str
        loss = tf.reduce_mean(model(x))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def test_edits_and_marks(here, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(SCRIPT)
    assert here("migrate", "train.py").code == 1
    assert path.read_bytes() == SCRIPT
    done = here("migrate", "--partial", "train.py")
    assert done.code == 1
    assert "train.py: migrated in part: " in done.err
    assert "1 file migrated in part" in done.err
    lines = path.read_text().splitlines()
    assert "    optimizer.apply_gradients(zip(gradients, model.trainable_variables))" in lines
    assert any("dp.init(shard_calls=True)" in line for line in lines)
    marks = [i for i, line in enumerate(lines) if "# TODO(tfdp): TFDP080 this replaces " in line]
    assert len(marks) == 1
    assert lines[marks[0]].startswith("        #")
    assert lines[marks[0] - 1] != lines[marks[0]]


def test_diff_shows_it_and_writes_nothing(here, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(SCRIPT)
    done = here("migrate", "--partial", "--diff", "train.py")
    assert done.code == 1
    assert b"+        # TODO(tfdp): TFDP080" in done.out
    assert (tmp_path / "train.py").read_bytes() == SCRIPT


def test_again_adds_nothing(here, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(SCRIPT)
    here("migrate", "--partial", "train.py")
    once = path.read_bytes()
    here("migrate", "--partial", "train.py")
    assert path.read_bytes() == once


def test_nothing_runs_it_until_it_is_finished(here, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(SCRIPT)
    here("migrate", "--partial", "--backup", "train.py")
    for command in (["run", "-np", "2"], ["verify"]):
        done = here(*command, "train.py")
        assert (done.code, done.out) == (2, b"")
        assert "train.py:13: this script is migrated in part: 1 place(s) are marked TODO(tfdp) (line 13)" in done.err


def test_a_file_without_refusals_is_migrated_as_ever(here, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_bytes(SCRIPT.replace(b"        tf.keras.layers.Layer.label = str\n", b""))
    done = here("migrate", "--partial", "train.py")
    assert done.code == 0
    assert b"TODO" not in (tmp_path / "train.py").read_bytes()
