"""Proofs of sharded calls up to where processes start, and what is made of what these leave. No TensorFlow."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

np = pytest.importorskip("numpy")

from test_proof_report import account, proof  # noqa: E402
from test_verify_compare import STEPS, Traces, W, array, honest  # noqa: E402
from test_verify_examples import element as delivered  # noqa: E402
from test_verify_examples import numbers, reference  # noqa: E402

from tfdp.migrate import originals  # noqa: E402
from tfdp.migrate.engine import migrate  # noqa: E402
from tfdp.migrate.report.proof import data, page, text  # noqa: E402
from tfdp.migrate.verify import checks, texts  # noqa: E402
from tfdp.migrate.verify.record import (  # noqa: E402
    WHOLE,
    Division,
    Part,
    examples,
    read_division,
    write_division,
)
from tfdp.rules._base import Policy  # noqa: E402

# All pairs of a batch: no share of the records could train it.
CONTRASTIVE = b"""\
import tensorflow as tf

model = tf.keras.Sequential([tf.keras.layers.Dense(3)])
optimizer = tf.keras.optimizers.SGD(0.1)
data = tf.data.Dataset.from_tensor_slices(tf.random.normal([24, 4])).batch(6)
for images in data:
    with tf.GradientTape() as tape:
        found = model(images, training=True)
        loss = tf.reduce_mean(tf.nn.relu(1.0 - found @ tf.transpose(found)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""
DIVISION = Division((Part("Dense 'dense'", "", 1200), Part("Lambda 'pairs'", "mixes rows: so", None)))


def test_the_road_is_told_from_the_text() -> None:
    joined = b"import tfdp.runtime as dp\n"
    assert texts.road_of(CONTRASTIVE) is None
    assert texts.road_of(joined + b"dp.init()\n") == "input"
    for given, road in ((b"True", "calls"), (b"False", "input"), (b"wanted", "calls")):
        assert texts.road_of(joined + b"dp.init(shard_calls=" + given + b")\n") == road
    assert not originals.shards_calls(b"import other as dp\ndp.init(shard_calls=True)\n")


def test_the_reference_of_sharded_calls_is_the_original_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(CONTRASTIVE)
    fresh = texts.of_original(str(path), 2, Policy(batch="global"))
    assert (fresh.road, fresh.batch, fresh.reference, fresh.found) == ("calls", "global", CONTRASTIVE, "")
    assert b"dp.init(shard_calls=True)" in fresh.migrated
    assert texts.of_original(str(path), 2, Policy("calls", "global")).migrated == fresh.migrated
    # Migrated, without its original, with it, and with it named.
    path.write_bytes(fresh.migrated)
    alone = texts.of_original(str(path), 2)
    assert (alone.road, alone.reference, alone.batch) == ("calls", fresh.migrated, "global")
    assert "the script itself in one process" in alone.found
    kept = Path(originals.backup_of(str(path)))
    kept.write_bytes(CONTRASTIVE)
    found = texts.of_original(str(path), 2)
    assert (found.found, found.differs, found.reference) == (str(kept), False, CONTRASTIVE)
    both = texts.of_both(str(path), str(kept), 2)
    assert (both.road, both.reference, texts.mode(str(path))) == ("calls", CONTRASTIVE, "global")


def test_an_original_that_input_can_be_sharded_of_is_found_too(tmp_path: Path) -> None:
    plain = (
        b"import tensorflow as tf\n\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        b'model.compile("sgd", "mse")\nmodel.fit(tf.ones([64, 3]), tf.ones([64, 1]), batch_size=16)\n'
    )
    path, kept = tmp_path / "train.py", tmp_path / "train.py.orig"
    path.write_bytes(migrate(str(path), plain, Policy("calls")).after)
    kept.write_bytes(plain)
    assert texts.of_original(str(kept), 2, Policy("input")).road == "input"
    found = texts.of_original(str(path), 2)
    assert (found.road, found.found, found.differs) == ("calls", str(kept), False)


def test_the_reference_of_widened_calls_is_what_the_tool_makes_of_the_original(tmp_path: Path) -> None:
    plain = CONTRASTIVE.replace(b"tf.nn.relu(1.0 - found @ tf.transpose(found))", b"found ** 2")
    path = tmp_path / "train.py"
    path.write_bytes(plain)
    fresh = texts.of_original(str(path), 2, Policy(batch="per-worker"))
    assert (fresh.road, fresh.batch, fresh.reference) == ("calls", "per-worker", fresh.migrated)
    assert b".batch(dp.global_batch_size(" in fresh.migrated
    usual = texts.of_original(str(path), 2)
    assert (usual.road, usual.batch, usual.reference) == ("calls", "global", plain)
    # Migrated and then changed by hand: what the tool makes of the original is the reference.
    changed = fresh.migrated.replace(b"scale_lr(", b"scale_lr(2 * ")
    path.write_bytes(changed)
    alone = texts.of_original(str(path), 2)
    assert (alone.batch, alone.reference, texts.mode(str(path))) == ("per-worker", changed, "per-worker")
    kept = Path(originals.backup_of(str(path)))
    kept.write_bytes(plain)
    found = texts.of_original(str(path), 2)
    assert (found.batch, found.differs, found.reference) == ("per-worker", True, fresh.migrated)
    assert texts.of_both(str(path), str(kept), 2).reference == fresh.migrated


def test_each_rank_computes_the_loss_of_the_reference(tmp_path: Path) -> None:
    traces = Traces(tmp_path)

    def losses(*given: float) -> None:
        for rank, loss in enumerate(given):
            call = replace(honest(1).calls[0], loss=loss, combined=WHOLE)
            traces.change(1, rank, calls=(call,))

    losses(1.0, 1.0)
    assert traces.compared().failure is None
    losses(1.5, 0.5)  # whose mean is right
    failure = traces.compared().failure
    assert failure is not None
    assert (failure.kind, failure.step, failure.rank) == ("loss", 1, 0)
    # What ranks do not average is not taken for averaged by hand where calls are sharded.
    losses(1.0, 1.0)
    for rank, part in enumerate((2.0, 0.0)):
        call = replace(honest(1).calls[0], gradients={W: part * array(0.5, -1, 2)}, combined=WHOLE)
        traces.change(1, rank, calls=(call,))
    failure = traces.compared().failure
    assert failure is not None
    assert failure.kind == "gradient"


def test_every_rank_reads_all_examples_of_the_reference() -> None:
    whole = [reference(drawn=True), reference(drawn=True)]
    found = examples.judge_whole(reference(drawn=True), whole, STEPS)
    assert found.outcome == "shared"
    assert "was read by every rank, in the same step" in found.text
    other = [reference(), [*reference()[:2], delivered(2, numbers(0, 6)), *reference()[3:]]]
    found = examples.judge_whole(reference(), other, STEPS)
    assert (found.outcome, found.step, found.ranks) == ("unfollowed", 2, (1,))
    assert "step 2, rank 1: the examples are not, to the last bit, the reference's" in found.text


def test_what_was_divided_is_kept_and_said(tmp_path: Path) -> None:
    assert read_division(tmp_path) is None
    write_division(tmp_path, DIVISION)
    assert read_division(tmp_path) == DIVISION
    assert DIVISION.text == "Dense 'dense' (1,200 bytes gathered for each row)"
    assert DIVISION.text_whole == "Lambda 'pairs' (mixes rows: so)"
    many = Division(tuple(Part(f"Dense 'dense_{number}'", "", None) for number in range(9)))
    assert many.text.endswith("Dense 'dense_5'; and 3 more")


def test_a_job_in_which_nothing_was_divided_shows_nothing() -> None:
    nothing = Division(DIVISION.parts[1:], "")
    assert checks.idle(DIVISION, True) == checks.idle(None, True) == checks.idle(nothing, False) == ""
    assert checks.idle(nothing, True).endswith("every worker did all the work: Lambda 'pairs' (mixes rows: so)")
    assert "no call of a Keras layer" in checks.idle(Division(), True)
    assert checks.idle(replace(nothing, nothing="nothing could"), False) == "nothing could"


def test_one_row_cannot_be_divided_and_is_no_reason_to_prove_nothing(tmp_path: Path) -> None:
    single = Division((Part("Dense 'dense'", "one row", None),), single_rows=True)
    write_division(tmp_path, single)
    assert read_division(tmp_path) == single
    assert checks.idle(single, True) == ""
    assert "nothing: each call was given one row" in single.text


def test_the_report_says_the_road_what_was_divided_and_that_nothing_was_neutralised() -> None:
    kept = ("draws, each worker its rows of the whole: dropout (line 7)",)
    of = account(proof(batch="global", calls=True, division=DIVISION, kept=kept, neutralised=()))
    lines = "\n".join(click.unstyle(line) for line in text.lines(of))
    for said in (
        "sharded calls: every worker runs the whole script",
        "divided: Dense 'dense' (1,200 bytes gathered for each row)",
        "not divided: Lambda 'pairs' (mixes rows: so)",
        "dropout (line 7)",
        "sharded calls: nothing was neutralised",
    ):
        assert said in lines
        assert said in str(of.proof)
    found = json.loads(data.render(of))
    assert (found["road"], found["neutralised"], found["as_in_life"]) == ("calls", [], list(kept))
    assert found["divided"] == [{"name": "Dense 'dense'", "reason": "", "row_bytes": 1200}]
    assert found["not_divided"][0]["reason"] == "mixes rows: so"
    shown = page.render(of)
    for said in ("<h2>Sharded calls</h2>", "1,200", "mixes rows: so", "dropout (line 7)", "Nothing was neutralised"):
        assert said in shown
    assert "global batch, the marks are" in shown
    widened = account(proof(batch="per-worker", calls=True, division=DIVISION, neutralised=()))
    assert "reference: the migrated script in one process" in str(widened.proof)
    assert "reference: " not in str(of.proof)


def test_the_other_road_is_as_it_was() -> None:
    of = account(proof())
    assert "sharded calls" not in "\n".join(text.lines(of))
    found = json.loads(data.render(of))
    assert (found["road"], found["divided"]) == ("input", None)
    assert "Sharded calls" not in page.render(of)
