"""`# tfdp: ignore[TFDPnnn]`: what the author has decided is neither changed nor refused, and nothing else is."""

import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

SCRIPT = """\
import tensorflow as tf

(images, labels), _ = tf.keras.datasets.mnist.load_data()
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).batch(
    32
){data}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
loss_of = tf.keras.losses.MeanSquaredError()
{above}optimizer = tf.keras.optimizers.SGD(0.1){rate}
for x, y in dataset:
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x)){scale}
    grads = tape.gradient(loss, model.trainable_variables){tape}
    optimizer.apply_gradients(zip(grads, model.trainable_variables))
"""


def migrate(path: str, text: bytes) -> engine.Migration:
    return engine.migrate(path, text, Policy("input"))


def source(**comments: str) -> bytes:
    parts = {"data": "", "above": "", "rate": "", "tape": "", "scale": "", **comments}
    return SCRIPT.format(**parts).encode()


@pytest.mark.parametrize(
    ("where", "code", "change"),
    [
        ("data", "TFDP010", b"dp.shard("),
        ("rate", "TFDP020", b"dp.scale_lr("),
        ("tape", "TFDP030", b"dp.DistributedGradientTape("),
    ],
)
def test_an_ignored_rule_changes_nothing_there(where: str, code: str, change: bytes) -> None:
    assert change in migrate("train.py", source()).after
    ignoring = migrate("train.py", source(**{where: f"  # tfdp: ignore[{code}]"}))
    assert not ignoring.refused
    assert change not in ignoring.after
    assert b"dp.init()" in ignoring.after
    assert code not in {f.code for f in ignoring.findings}
    again = migrate("train.py", ignoring.after)
    assert (again.changed, again.findings) == (False, ())


def test_a_comment_of_its_own_line_stands_for_the_next_code() -> None:
    above = "# tfdp: ignore[TFDP020]\n# tuned for eight workers\n\n"
    assert b"scale_lr" not in migrate("train.py", source(above=above)).after


def test_several_codes() -> None:
    ignoring = migrate("train.py", source(rate="  # tfdp: ignore[TFDP999, TFDP020] tuned"))
    assert b"scale_lr" not in ignoring.after


def test_another_code_is_not_ignored() -> None:
    assert b"dp.scale_lr(" in migrate("train.py", source(rate="  # tfdp: ignore[TFDP030]")).after


def test_an_ignored_refusal_lets_the_file_be_written() -> None:
    put_anew = source() + b"tf.keras.layers.Layer.build = print\n"
    refused = engine.migrate("train.py", put_anew)
    assert [f.code for f in refused.findings] == ["TFDP080"]
    line = put_anew.splitlines()[refused.findings[0].line - 1]
    ignoring = put_anew.replace(line + b"\n", line + b"  # tfdp: ignore[TFDP080]\n")
    assert b"dp.init(shard_calls=True)" in engine.migrate("train.py", ignoring).after


def test_a_comment_in_a_string_is_none() -> None:
    text = source() + b'print("# tfdp: ignore[TFDP020]"); note = """\n# tfdp: ignore[TFDP020]\n"""\n'
    assert b"dp.scale_lr(" in migrate("train.py", text).after
