"""Which road a script is migrated on: its input is sharded, or where that is refused the calls of its models."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click
import pytest

from tfdp.migrate import engine
from tfdp.migrate.command_line import contradicted
from tfdp.migrate.inputs import Input
from tfdp.migrate.one_file import MigrateOptions, migrate_file
from tfdp.migrate.report import github, markdown, text
from tfdp.rules import RULES
from tfdp.rules._base import CALLS_ONLY, EVERY_ROAD, INPUT_ONLY, Scaling

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
UNDERSTOOD = _HEAD + "for x in tf.data.Dataset.from_tensor_slices(tf.ones([64, 3])).batch(8):\n" + _STEP.format(more="")
ALONG = _HEAD + "while True:\n    x = next(source)\n" + _STEP.format(more="")
NEITHER = ALONG.replace("loss = tf", "loss = time.time() * tf")
KEEPS = "leave --batch per-worker, --lr-scale and --warmup-steps out"


def migrated(source: str, **options: object) -> engine.Migration:
    return engine.migrate("train.py", source.encode(), **options)  # type: ignore[arg-type]


def test_the_input_is_sharded_where_it_can_be() -> None:
    for options in ({}, {"shard": "auto"}, {"shard": "input"}, {"batch": "per-worker"}, {"batch": "global"}):
        found = migrated(UNDERSTOOD, **options)
        assert (found.road, found.not_input, found.advice, found.refused) == ("input", None, "", False)
        assert b"dp.init()" in found.after
    assert b"dp.scale_lr(0.1)" in migrated(UNDERSTOOD).after


def test_else_the_calls_are_and_the_first_reason_is_kept() -> None:
    for options in ({}, {"batch": "global"}):
        found = migrated(ALONG, **options)
        assert (found.road, found.refused) == ("calls", False)
        assert found.not_input is not None
        assert (found.not_input.code, found.not_input.line) == ("TFDP010", 6)
        assert b"dp.init(shard_calls=True)" in found.after
        assert b"scale_lr" not in found.after
    asked = migrated(UNDERSTOOD, shard="calls")
    assert (asked.road, asked.not_input) == ("calls", None)


def test_what_both_roads_refuse_is_refused_for_the_reasons_of_the_last() -> None:
    found = migrated(NEITHER)
    assert (found.road, found.changed) == ("calls", False)
    assert [f.code for f in found.findings] == ["TFDP080"]
    assert found.not_input is not None
    assert found.not_input.code == "TFDP010"
    assert {f.code for f in migrated(ALONG, shard="input").findings} == {"TFDP010"}


@pytest.mark.parametrize(
    "asked", [{"batch": "per-worker"}, {"scaling": Scaling("sqrt")}, {"scaling": Scaling("linear", 5)}]
)
def test_a_batch_for_each_worker_and_scaled_rates_are_not_had_with_sharded_calls(asked: dict[str, object]) -> None:
    found = migrated(ALONG, **asked)
    assert (found.road, found.refused, found.not_input) == ("input", True, None)
    assert KEEPS in found.advice
    assert not migrated(NEITHER, **asked).advice


def test_a_migrated_script_is_left_on_its_road() -> None:
    on_calls, on_input = migrated(ALONG).after, migrated(UNDERSTOOD).after
    for shard in ("auto", "calls"):
        again = engine.migrate("train.py", on_calls, shard=shard)  # type: ignore[arg-type]
        assert (again.after, again.findings, again.trains, again.road) == (on_calls, (), True, "calls")
    for shard in ("auto", "input"):
        assert engine.migrate("train.py", on_input, shard=shard).findings == ()  # type: ignore[arg-type]
    for source, shard in ((on_calls, "input"), (on_input, "calls")):
        other = engine.migrate("train.py", source, shard=shard)  # type: ignore[arg-type]
        assert [f.code for f in other.findings if f.refusal] == ["TFDP001"], shard
        assert "start again from the original script" in other.findings[0].next_step


def test_a_part_is_migrated_on_the_first_road_unless_the_second_is_whole() -> None:
    assert migrated(ALONG, partial=True).road == "calls"
    found = migrated(NEITHER, partial=True)
    assert (found.road, found.refused, b"TODO(tfdp): TFDP010" in found.after) == ("input", True, True)


def test_every_rule_says_its_roads() -> None:
    by_roads = {roads: {r.code for r in RULES if r.roads == roads} for roads in (INPUT_ONLY, CALLS_ONLY, EVERY_ROAD)}
    assert by_roads[CALLS_ONLY] == {"TFDP032", "TFDP054", "TFDP080"}
    assert {"TFDP010", "TFDP020", "TFDP030", "TFDP040", "TFDP053", "TFDP090"} <= by_roads[INPUT_ONLY]
    assert {"TFDP001", "TFDP002", "TFDP050", "TFDP051", "TFDP070"} <= by_roads[EVERY_ROAD]
    assert sum(map(len, by_roads.values())) == len(RULES)


def test_each_report_says_the_road_and_why_not_the_other(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(ALONG)
    outcome = migrate_file(Input(str(path), named=True), MigrateOptions(check_only=True))
    outcome = replace(outcome, path="train.py")
    calls = "sharded calls: every worker runs the whole script, and its own rows of each model call"
    said = [click.unstyle(line) for line in text.lines(outcome)]
    assert any(f"train.py: {calls} (batch and learning rate stay the script's own)" in line for line in said)
    assert any(
        line.startswith("train.py:6: not sharded input: cannot tell") and line.endswith("(TFDP010)") for line in said
    )
    page, log = markdown.render(outcome).decode(), github.render(outcome).decode()
    assert f"\n{calls}" in page
    assert "\nline 6: not sharded input: " in page
    assert f"::notice file=train.py,title=tfdp::{calls}" in log
    assert "::notice file=train.py,line=6,col=1,title=TFDP010::not sharded input: " in log
    path.write_text(NEITHER)
    refused = replace(migrate_file(Input(str(path), named=True), MigrateOptions()), path="train.py")
    said = [click.unstyle(line) for line in text.lines(refused)]
    assert not any(calls in line for line in said)
    assert any(line.startswith("train.py:6: not sharded input: ") for line in said)
    path.write_text(ALONG)
    advised = migrate_file(Input(str(path), named=True), MigrateOptions(batch="per-worker"))
    assert any(KEEPS in line for line in text.lines(advised))


def test_options_that_contradict_one_another() -> None:
    assert contradicted("calls", "per-worker", "linear", 0).startswith("--shard calls keeps the script's batch")
    assert contradicted("calls", None, "sqrt", 0).startswith("--lr-scale and --warmup-steps are for --shard input")
    assert contradicted("auto", "global", "linear", 3).startswith("--lr-scale and --warmup-steps are for --batch")
    assert not contradicted("calls", "global", "linear", 0)
    assert not contradicted("auto", None, "none", 0)


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
    assert trains.not_input is not None
    assert "this trains in another file (steps.py:" in trains.not_input.message
    assert not found(run.format("")).trains
    library = engine.migrate(str(helper), helper.read_bytes())
    assert [f.code for f in library.findings] == ["TFDP001"]
    helper.write_text(helper.read_text() + "        tf.io.write_file('done', 'yes')\n")
    writes = found(run.format("trainer.train(batches)"))
    assert [f.code for f in writes.findings] == ["TFDP050"]
    assert "writes, on every worker" in writes.findings[0].message
