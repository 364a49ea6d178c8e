"""Which road a script is migrated on: the calls of its models are sharded, or where that is asked for its input."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest

from tfdp.migrate import engine
from tfdp.migrate.facts import read
from tfdp.migrate.inputs import Input
from tfdp.migrate.one_file import MigrateOptions, migrate_file
from tfdp.migrate.report import github, markdown, text
from tfdp.rules import RULES
from tfdp.rules._base import CALLS_ONLY, EVERY_ROAD, INPUT_ONLY, Policy

_HEAD = """\
import time
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
"""
_STEP = """\
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2){more}
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
"""
_LISTED = (
    _HEAD.replace("import time\n", "")
    + """\
loss_of = tf.keras.losses.MeanSquaredError()
data = tf.data.Dataset.from_tensor_slices((tf.ones([64, 3]), tf.ones([64, 1]))).batch(8)
"""
)
_LISTED_STEP = _STEP.format(more="").replace("tf.reduce_mean(model(x) ** 2)", "loss_of(y, model(x))")
UNDERSTOOD = _LISTED + "for x, y in data:\n" + _LISTED_STEP
TWICE = UNDERSTOOD + "for x, y in data:\n    print(loss_of(y, model(x)))\n"
ALONG = _HEAD + "while True:\n    x = next(source)\n" + _STEP.format(more="")
NEITHER = ALONG + "tf.keras.layers.Layer.build = print\n"


def migrated(source: str, *, partial: bool = False, **options: object) -> engine.Migration:
    return engine.migrate("train.py", source.encode(), Policy(**options), partial)  # type: ignore[arg-type]


def test_calls_are_sharded_whatever_the_script_says() -> None:
    for source in (UNDERSTOOD, ALONG, TWICE):
        for options in ({}, {"shard": "auto"}, {"shard": "calls"}, {"batch": "global"}):
            found = migrated(source, **options)
            assert (found.road, found.batch, found.refused) == ("calls", "global", False)
            assert b"dp.init(shard_calls=True)" in found.after
            assert b"scale_lr" not in found.after
    refused = migrated(NEITHER)
    assert (refused.road, refused.changed) == ("calls", False)
    assert [f.code for f in refused.findings] == ["TFDP080"]


def test_the_input_is_sharded_where_that_is_asked_for_and_can_be() -> None:
    for options in ({}, {"batch": "per-worker"}, {"batch": "global"}):
        found = migrated(UNDERSTOOD, shard="input", **options)
        assert (found.road, found.refused) == ("input", False)
        assert b"dp.init()" in found.after
        assert (b"dp.scale_lr(0.1)" in found.after) == (found.batch == "per-worker")
        again = migrated(found.after.decode(), batch=options.get("batch"))
        assert (again.road, again.changed, again.refused) == ("input", False, False)


def test_else_it_is_refused_for_the_first_reason() -> None:
    (why,) = migrated(ALONG, shard="input").findings
    assert (why.code, why.line, why.message) == ("TFDP010", 6, "`while` is not in the vocabulary of sharded input")
    assert why.next_step == "leave --shard input out"
    every = "for step, (x, y) in enumerate(data):\n    if step % 2 == 0:\n        continue\n"
    (why,) = migrated(UNDERSTOOD.replace("for x, y in data:\n", every), shard="input").findings
    assert "`step % 2 == 0`, which goes by the number of the step," in why.message
    (why,) = migrated(TWICE, shard="input").findings  # all its words are known, but it trains on what it measures
    assert (why.code, "vocabulary" in why.message) == ("TFDP010", False)


SQUARED = UNDERSTOOD.replace("loss_of(y, model(x))", "tf.reduce_mean((model(x) - y) ** 2)")


@pytest.mark.parametrize(
    ("asked", "rate"),
    [
        ({"batch": "per-worker"}, "dp.scale_lr(0.1)"),
        ({"lr_scale": "sqrt"}, 'dp.scale_lr(0.1, scale="sqrt")'),
        ({"warmup_steps": 5}, "dp.scale_lr(0.1, warmup_steps=5)"),
        ({"lr_scale": "none"}, "SGD(0.1)"),
    ],
)
def test_sharded_calls_get_the_batches_of_all_workers_where_that_is_understood(
    asked: dict[str, object], rate: str
) -> None:
    found = migrated(SQUARED, **asked)
    assert (found.road, found.batch, found.refused) == ("calls", "per-worker", False)
    assert ".batch(dp.global_batch_size(8))" in found.after.decode()
    assert rate in found.after.decode()
    shown = SQUARED.replace(
        "for x, y in data:", "for step, (x, y) in enumerate(data):\n    if step % 9 == 0: print(step)"
    )
    assert migrated(shown, **asked).batch == "per-worker"
    for options in ({}, {"batch": "global"}):
        kept = migrated(SQUARED, **options)
        assert (kept.road, kept.batch, kept.refused) == ("calls", "global", False)
        assert b".batch(8)" in kept.after
    assert b"SGD(0.1)" in kept.after


NUMBERED = SQUARED.replace("for x, y in data:", "for step, (x, y) in enumerate(data):")
UNKNOWN = {
    "source": (ALONG, "TFDP010", 6),
    "rate that is read": (SQUARED + "    print(optimizer.learning_rate)\n", "TFDP020", 11),
    "rate in its settings": (SQUARED + "print(optimizer.get_config())\n", "TFDP020", 11),
    "rate of a log": (SQUARED + "rate = {}\nprint(rate['lr'])\n", "TFDP020", 12),
    "rate that is changed": (SQUARED + "    optimizer.learning_rate = 0.01\n", "TFDP020", 11),
    "end by something": ("from watch import stop\n" + SQUARED + "    if stop():\n        break\n", "TFDP011", 13),
    "end by a list": (
        "done = []\n" + SQUARED + "    done.append(1)\n    if len(done) == 3:\n        break\n",
        "TFDP011",
        14,
    ),
    "at a step": (
        SQUARED.replace("for x, y in data:", "for step, (x, y) in enumerate(data):\n    if step == 3: model = model"),
        "TFDP011",
        8,
    ),
    "picked by a step": (NUMBERED + "    for _ in 'aab'[: step // 6 + 1]: model.built\n", "TFDP011", 11),
    "picked one by one": (NUMBERED + "    for _ in range(int('112'[step])): model.built\n", "TFDP011", 11),
    "given to a lambda": (
        "go = lambda k: range(k)\n" + NUMBERED + "    for _ in go(step): model.built\n",
        "TFDP011",
        12,
    ),
    "trained in what is shown": (
        SQUARED.replace("for x, y in data:", "def train(x, y):")
        + "for step, (x, y) in enumerate(data):\n    if step % 4 == 0: print(train(x, y))\n",
        "TFDP011",
        12,
    ),
    "drawn in what is shown": (NUMBERED + "    if step % 4 == 0: print(numpy.random.rand())\n", "TFDP011", 11),
    "kept in what is shown": (
        "kept = [0]\ndef say():\n    kept[0], y = 1, 2\n    return y\n"
        + NUMBERED
        + "    if step % 4 == 0: print(say())\n",
        "TFDP011",
        15,
    ),
    "put into a table": ("kept = {}\n" + NUMBERED + "    kept['now'] = step\n", "TFDP011", 12),
    "given to the model": (NUMBERED + "    model.trainable = step < 6\n", "TFDP011", 11),
    "batches": (SQUARED.replace(".batch(8)", ".batch(8).apply(own)"), "TFDP010", 6),
}


@pytest.mark.parametrize("unknown", UNKNOWN)
def test_else_it_is_refused(unknown: str) -> None:
    source, code, line = UNKNOWN[unknown]
    found = migrated(source)
    assert (found.road, found.batch, found.refused) == ("calls", "global", False)
    assert b"global_batch_size" not in found.after
    assert b"scale_lr" not in found.after
    script = read(source)
    assert (kept := script.unwidened) is not None
    assert (kept.code, script.position(kept.node)[0]) == (code, line)
    for asked in ({"batch": "per-worker"}, {"lr_scale": "sqrt"}):
        insisted = migrated(source, shard="calls", **asked)
        assert [(f.code, f.line) for f in insisted.findings if f.refusal] == [("TFDP015", line)]
        assert not insisted.changed


def test_a_migrated_script_is_left_on_its_road() -> None:
    on_calls, on_input = migrated(ALONG).after, migrated(UNDERSTOOD, shard="input").after
    for shard in ("auto", "calls"):
        again = engine.migrate("train.py", on_calls, Policy(shard))  # type: ignore[arg-type]
        assert (again.after, again.findings, again.trains, again.road) == (on_calls, (), True, "calls")
    for shard in ("auto", "input"):
        assert engine.migrate("train.py", on_input, Policy(shard)).findings == ()  # type: ignore[arg-type]
    for source, shard in ((on_calls, "input"), (on_input, "calls")):
        other = engine.migrate("train.py", source, Policy(shard))  # type: ignore[arg-type]
        assert [f.code for f in other.findings if f.refusal] == ["TFDP001"], shard
        assert "start again from the original script" in other.findings[0].next_step


def test_a_migrated_script_that_has_left_the_vocabulary_is_refused() -> None:
    changed = migrated(UNDERSTOOD, shard="input").after + b"import secrets\n"
    for options in ({}, {"shard": "input"}):
        found = engine.migrate("train.py", changed, Policy(**options))  # type: ignore[arg-type]
        assert [(f.code, f.refusal) for f in found.findings] == [("TFDP010", True)]
        assert "`import secrets` is not in the vocabulary" in found.findings[0].message
        assert not found.changed


@pytest.mark.parametrize(
    "addition",
    ["    epochs = 2", "    model.fit(data)", "    train()", "    dp.barrier()\nelse:\n    print(1)"],
)
def test_rank_0_of_a_migrated_script_does_no_more_than_to_write(addition: str) -> None:
    script = "def train():\n    for x, y in data:\n        print(model(x))\n" + (
        migrated(UNDERSTOOD, shard="input").after.decode()
    )
    assert read(f"{script}if dp.rank() == 0:\n    print(1)\n    model.save('m.keras')\n").outside_vocabulary is None
    assert read(f"{script}if dp.rank() == 0:\n{addition}\n").outside_vocabulary is not None


def test_an_optimizer_that_fits_and_takes_a_tapes_gradients_is_averaged_once() -> None:
    fitted = "import numpy as np\nx = np.ones([8, 1])\nmodel.compile(optimizer, 'mse')\nmodel.fit(x, x, batch_size=4)\n"
    assert not migrated(UNDERSTOOD + fitted).refused
    found = migrated(UNDERSTOOD + fitted, shard="input")
    assert "would be averaged twice" in found.findings[0].message
    other = migrated(UNDERSTOOD + fitted.replace("compile(optimizer", "compile('sgd'"), shard="input")
    assert (other.road, other.refused) == ("input", False)


def test_a_part_is_migrated_on_sharded_calls() -> None:
    assert migrated(ALONG, partial=True).road == "calls"
    found = migrated(NEITHER, partial=True)
    assert (found.road, found.refused, b"TODO(tfdp): TFDP080" in found.after) == ("calls", True, True)


PLAIN = """\
import tensorflow as tf
{imported}
w = tf.Variable(tf.zeros([3]))
optimizer = tf.keras.optimizers.SGD(0.1)
for x in tf.data.Dataset.from_tensor_slices(tf.ones([64, 3])).batch(8):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(({made} * w) ** 2)
    optimizer.apply_gradients([(tape.gradient(loss, w), w)])
"""

CLASS = """\
class Features({base}):
    def __call__(self, x):
        return x
features = Features()
"""


@pytest.mark.parametrize(
    ("imported", "made", "shared"),
    [
        ("", "x", False),
        ("import matplotlib.pyplot as plt", "x", False),
        ("from models import features", "features(x)", True),
        ("from .models import features", "features(x)", True),
        ("from models import *", "features(x)", True),
        ("features = tf.keras.layers.Dense(3)", "features(x)", True),
        ("layers, api = tf.keras.layers, tf.keras\n" + CLASS.format(base="api.Model"), "features(x)", True),
        ("from tensorflow.keras.models import *\n" + CLASS.format(base="Model"), "features(x)", True),
        (CLASS.format(base="object"), "features(x)", False),
        ("features = tf.keras.Sequential([tf.keras.layers.Dense(3)])", "features.stateless_call(*held, x)[0]", True),
    ],
)
def test_where_no_call_could_be_shared_that_is_said(imported: str, made: str, shared: bool) -> None:
    source = PLAIN.format(imported=imported, made=made)
    found = migrated(source)
    assert (found.road, found.refused) == ("calls", not shared)
    assert {f.code for f in found.findings if f.refusal} == (set() if shared else {"TFDP032"})
    starred = migrated(source.replace("import tensorflow as tf", "from common import *"))
    assert (starred.road, starred.refused) == ("calls", False), "what `tf` is may be anything: the run tells"


def test_every_rule_says_its_roads() -> None:
    by_roads = {roads: {r.code for r in RULES if r.roads == roads} for roads in (INPUT_ONLY, CALLS_ONLY, EVERY_ROAD)}
    assert by_roads[CALLS_ONLY] == {"TFDP015", "TFDP032", "TFDP054", "TFDP080"}
    assert {"TFDP010", "TFDP030", "TFDP040", "TFDP053"} <= by_roads[INPUT_ONLY]
    assert {"TFDP001", "TFDP002", "TFDP011", "TFDP020", "TFDP050", "TFDP051", "TFDP070"} <= by_roads[EVERY_ROAD]
    assert sum(map(len, by_roads.values())) == len(RULES)


def test_each_report_says_the_road_and_the_batch(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ALONG)
    options = MigrateOptions(Policy(), check_only=True)
    outcome = replace(migrate_file(Input(str(path), named=True), options), path="train.py")
    calls = "sharded calls: every worker runs the whole script, and its own rows of each model call"
    said = [click.unstyle(line) for line in text.lines(outcome)]
    kept = f"{calls} (batch and learning rate stay the script's own; --batch per-worker asks for N times both)"
    assert f"train.py: {kept}" in said
    page, log = markdown.render(outcome).decode(), github.render(outcome).decode()
    assert f"\n{calls}" in page
    assert f"::notice file=train.py,title=tfdp::{calls}" in log
    path.write_text(UNDERSTOOD)
    by_input = replace(options, policy=Policy("input"))
    shared = "sharded input: each worker trains on its share of the records; a step's loss that the script keeps"
    shown = [click.unstyle(line) for line in text.lines(migrate_file(Input(str(path), named=True), by_input))]
    assert any(shared in line and "N times the script's own, for N workers" in line for line in shown), shown
    path.write_text(NEITHER)
    refused = replace(migrate_file(Input(str(path), named=True), MigrateOptions(Policy())), path="train.py")
    said = [click.unstyle(line) for line in text.lines(refused)]
    assert not any(calls in line for line in said)


def test_options_that_contradict_one_another() -> None:
    for wrong, said in (({"batch": "global"}, "are for --batch per-worker"), ({"lr_scale": "none"}, "to rise to")):
        with pytest.raises(ValueError, match=said):
            Policy(warmup_steps=3, **wrong)  # type: ignore[arg-type]
    assert Policy(batch="global").scales_by_workers


def test_sharded_calls_keep_the_scripts_batch_unless_another_is_asked_for() -> None:
    found = migrated(UNDERSTOOD, shard="calls")
    assert (found.road, found.batch) == ("calls", "global")
    assert b"scale_lr" not in found.after
    assert migrated(UNDERSTOOD, shard="calls", batch="per-worker").batch == "per-worker"


def test_what_trains_in_a_file_beside_it_goes_by_calls(tmp_path: Path) -> None:
    loop = "    def train(self, data):\n        for x in data:\n            self.step(x)\n"
    step = "    def step(self, x):\n" + _STEP.format(more="").replace("    ", "        ").replace("model", "self.model")
    (tmp_path / "package").mkdir()
    helper = tmp_path / "package" / "steps.py"
    helper.write_text(
        "import tensorflow as tf\n\n\nclass Trainer:\n    def size(self):\n        return 8\n\n" + step + loop
    )
    path, run = (
        tmp_path / "train.py",
        "from package.steps import Trainer\n\ntrainer = Trainer()\n{}\nprint(trainer.size())\n",
    )

    def found(source: str) -> engine.Migration:
        return engine.migrate(str(path), source.encode())

    trains = found(run.format("trainer.train(batches)"))
    assert (trains.road, b"dp.init(shard_calls=True)" in trains.after) == ("calls", True)
    assert not engine.migrate(str(path), run.format("").encode(), is_run=False).trains
    assert ((unseen := found(run.format(""))).road, unseen.unseen) == ("calls", True)
    library = engine.migrate(str(helper), helper.read_bytes())
    assert [f.code for f in library.findings] == ["TFDP001"]
    helper.write_text(helper.read_text() + "        tf.io.write_file('done', 'yes')\n")
    (tmp_path / "package" / "__init__.py").write_text("from .steps import Trainer\n\n\nclass Own(Trainer):\n    pass\n")
    for other in (
        "from package import Trainer\ntrain = Trainer().train\nTrainer().train(batches)\n",
        "from package import *\nOwn().train(batches)\n",
        "import package.steps as steps\n\n\nclass Mine(steps.Trainer):\n    pass\n\n\nMine().train(batches)\n",
        "from package.steps import Trainer\nways = {'own': Trainer.train}\nways['own'](Trainer(), batches)\n",
    ):
        assert found(other).road == "calls", other
    assert found("from package import Trainer\nprint(Trainer().size())\n").unseen
    assert not found(run.format("trainer.train(batches)")).refused, "rank 0 writes, wherever that stands"
    helper.write_text(helper.read_text() + "        tf.distribute.MirroredStrategy()\n")
    assert [f.code for f in found(run.format("trainer.train(batches)")).findings] == ["TFDP070"]
