"""Facts, asked directly: names, bindings, gradients, rates, data."""

from __future__ import annotations

import libcst as cst
import pytest

from tfdp.migrate.facts import Script, read
from tfdp.migrate.facts.data import ShardPoint
from tfdp.migrate.facts.program import reaching


def last_expression(script: Script) -> cst.BaseExpression:
    line = cst.ensure_type(script.program.entry.module.body[-1], cst.SimpleStatementLine)
    return cst.ensure_type(line.body[0], cst.Expr).value


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import tensorflow as tf\ntf.optimizers.Adam", "keras.optimizers.Adam"),
        ("import tensorflow\ntensorflow.keras.optimizers.Adam", "keras.optimizers.Adam"),
        ("import tensorflow.keras as k\nk.optimizers.legacy.Adam", "keras.optimizers.Adam"),
        ("from tensorflow import keras\nkeras.optimizers.Adam", "keras.optimizers.Adam"),
        ("from tensorflow.keras.optimizers import Adam as A\nA", "keras.optimizers.Adam"),
        ("import tensorflow.compat.v2 as tf\ntf.keras.optimizers.Adam", "keras.optimizers.Adam"),
        ("import keras\nkeras.optimizers.Adam", "keras.optimizers.Adam"),
        ("from keras import optimizers\noptimizers.Adam", "keras.optimizers.Adam"),
        ("import tf_keras as keras\nkeras.optimizers.Adam", "keras.optimizers.Adam"),
        ("from tensorflow.python.keras.optimizers import Adam\nAdam", "keras.optimizers.Adam"),
        ("import tensorflow as tf\nopt = tf.keras.optimizers\no = opt\no.Adam", "keras.optimizers.Adam"),
        ("try:\n    from tensorflow import keras\nexcept ImportError:\n    import keras\nkeras.Model", "keras.Model"),
        ("import tensorflow as tf\ntf.math.reduce_mean", "tensorflow.reduce_mean"),
        ("import tfdp.runtime as dp\ndp.shard", "tfdp.runtime.shard"),
        ("from tfdp import runtime as dp\ndp.shard", "tfdp.runtime.shard"),
        ("print", "builtins.print"),
        ("tf = load()\ntf.Variable", None),
        ("import tensorflow as tf\nif x:\n    tf = y\ntf.Variable", None),
        ("import tensorflow as tf\ndef f(tf):\n    pass\ntf.Variable", "tensorflow.Variable"),
    ],
)
def test_names_of_every_import_form(source: str, expected: str | None) -> None:
    script = read(source)
    assert script.names.api(last_expression(script)) == expected


@pytest.mark.parametrize(
    ("source", "values"),
    [
        ("x = 1\nx = 2\nx", ["2"]),
        ("x = 1\nif a:\n    x = 2\nx", ["2", "1"]),
        ("if a:\n    x = 1\nelse:\n    x = 2\nx", ["1", "2"]),
        ("x = 1\nfor i in y:\n    x = 2\nx", ["2", "1"]),
        ("x = 1\nwith a:\n    x = 2\nx", ["2"]),
        ("x = 1\ntry:\n    x = 2\nexcept E:\n    pass\nx", ["2", "1"]),
        ("x, z = 1, 2\nx", ["1, 2"]),
        ("x = 1\ny = [x for x in z]\nx", ["1"]),
        ("def f(x):\n    x = 3\nx = 1\nx", ["1"]),
        ("x = 1\ndef f():\n    global x\n    x = 3\nx", ["1", "3"]),
    ],
)
def test_bindings_that_reach_a_use(source: str, values: list[str]) -> None:
    script = read(source)
    found = reaching(script.index, cst.ensure_type(last_expression(script), cst.Name))
    assert sorted(script.index.code(d.value) for d in found) == sorted(values)


def test_a_loop_brings_bindings_back() -> None:
    script = read("x = 1\nfor i in y:\n    f(x)\n    x = x + 1\n")
    use = next(n for n in script.index.names["x"] if isinstance(script.index.parents[n], cst.Arg))
    assert len(reaching(script.index, use)) == 2


TRAIN = """
import tensorflow as tf
data = tf.data.Dataset.from_tensor_slices(arrays){stages}
model = tf.keras.Sequential([])
opt = tf.keras.optimizers.SGD(0.1)
for x, y in data:
    with tf.GradientTape() as tape:
        loss = {loss}
    grads = tape.gradient(loss, model.trainable_variables)
    {between}
    opt.apply_gradients(zip(grads, model.trainable_variables))
"""


def train(stages: str = ".batch(8)", loss: str = "tf.reduce_mean(model(x) - y)", between: str = "pass") -> Script:
    return read(TRAIN.format(stages=stages, loss=loss, between=between))


@pytest.mark.parametrize(
    "between",
    [
        "grads = [tf.clip_by_norm(g, 1.0) for g in grads]",
        "grads, _ = tf.clip_by_global_norm(grads, 1.0)",
        "grads = [g for g in grads if g is not None]",
        "kept = []\n    for g in grads:\n        kept.append(g)\n    grads = kept",
        "import helper\n    grads = helper.clip(grads)",
    ],
)
def test_gradients_are_followed_to_their_update(between: str) -> None:
    script = train(between=between)
    assert [u.kind for u in script.trained[0].updates] == ["keras"]


@pytest.mark.parametrize(
    ("stages", "around"),
    [
        (".batch(8)", "from_tensor_slices(arrays)"),
        (".shuffle(9).batch(8)", "from_tensor_slices(arrays)"),
        (".repeat().shuffle(9).batch(8)", "from_tensor_slices(arrays).repeat()"),
        (".shuffle(9).repeat().batch(8)", "from_tensor_slices(arrays)"),
        (".map(f).cache().shuffle(9).batch(8).map(g).prefetch(1)", "from_tensor_slices(arrays)"),
        (".filter(f).shuffle(9).batch(8)", "from_tensor_slices(arrays).filter(f)"),
        (".shuffle(9).take(5).batch(8)", "from_tensor_slices(arrays).shuffle(9).take(5)"),
        (".batch(8).unbatch().batch(4)", "from_tensor_slices(arrays).batch(8).unbatch()"),
    ],
)
def test_where_the_records_are_sharded(stages: str, around: str) -> None:
    script = train(stages=stages)
    (point,) = script.shard_points
    assert isinstance(point, ShardPoint)
    assert script.index.code(point.node).endswith(around)
    assert bool(point.shuffles) == ("shuffle" in around)


@pytest.mark.parametrize(
    "stages",
    [
        "",
        ".batch(8).skip(3)",
        ".batch(8).filter(f)",
        ".shard(2, 0).batch(8)",
        ".window(4).batch(8)",
    ],
)
def test_data_that_cannot_be_sharded_is_a_problem(stages: str) -> None:
    assert {p.code for p in train(stages=stages).problems("per-worker")} == {"TFDP010"}


def test_a_cycle_of_names_ends() -> None:
    script = read("import tensorflow as tf\ndef f(x):\n    return g(x)\ndef g(x):\n    return f(x)\na = f(a)\nf(a)")
    assert script.origins.kinds(last_expression(script)) == {None}


def test_sessions_that_several_functions_configure_under_one_name() -> None:
    script = read(
        """
import tensorflow as tf

def train():
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.allow_growth = True
    tf.compat.v1.keras.backend.set_session(tf.compat.v1.Session(config=config))
    return 1

def predict():
    config = tf.compat.v1.ConfigProto()
    config.gpu_options.allow_growth = True
    tf.compat.v1.keras.backend.set_session(tf.compat.v1.Session(config=config))
    return 2
"""
    )
    assert sorted(script.index.line(each) for each in script.devices.choices) == [5, 6, 7, 11, 12, 13]
