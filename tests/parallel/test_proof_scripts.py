"""Variations of two migrated scripts on real processes: what the proof must not let pass, and what it must.

A mutant is a text substitution in the migrated script, and says which criterion it must miss.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import Recording, record
from tfdp.migrate.verify.causes import Cause
from tfdp.migrate.verify.reference import reference

SCRIPTS = Path(__file__).parent.parent.parent / "fixtures" / "scripts"
# They cross the end of an epoch, with its smaller last batch.
STEPS = 11

Change: TypeAlias = tuple[str, str]
Mode: TypeAlias = Literal["per-worker", "global"]


def path(script: str) -> Path:
    return SCRIPTS / script / "before.py"


def changed(text: str, changes: Sequence[Change]) -> str:
    for old, new in changes:
        assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times"
        text = text.replace(old, new)
    return text


def migrated(script: str, batch: Mode, before: str) -> str:
    migration = migrate(str(path(script)), before.encode(), batch)
    assert not migration.refused
    return migration.after.decode()


class References:
    """One run of each reference, however many scripts are held against it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._known: dict[tuple[bytes, int], Recording] = {}

    def get(self, script: str, np: int, batch: Mode, text: bytes) -> Recording:
        if (text, np) not in self._known:
            opened = record(path(script), np, STEPS, reference=text, batch=batch)
            self._known[text, np] = self._stack.enter_context(opened)
        return self._known[text, np]


@pytest.fixture(scope="module")
def references() -> Iterator[References]:
    with ExitStack() as stack:
        yield References(stack)


@dataclass(frozen=True)
class Case:
    """A variation of a migrated script.

    fails: the criterion that it must miss first, or the words with which the runtime must stop it; empty: it must pass.
    cause: what the proof must name for it.
    """

    script: str
    name: str
    changes: tuple[Change, ...]
    fails: str = ""
    batch: Mode = "per-worker"
    cause: Cause | None = None

    def __str__(self) -> str:
        return f"{self.script}: {self.name}"


def mnist() -> Iterator[Case]:
    """Variations of the Keras script, whose variables are made by the first call inside a graph."""

    def case(
        name: str, *changes: Change, fails: str = "", batch: Mode = "per-worker", cause: Cause | None = None
    ) -> Case:
        return Case("smddp_mnist", name, changes, fails, batch, cause)

    slices = "tf.data.Dataset.from_tensor_slices((images, labels))"
    deal, batches, adam = f"dp.shard({slices})", "dataset.shuffle(2000).batch(96)", "Adam(dp.scale_lr(0.001))"
    wrapped = "dp.DistributedGradientTape(tape)"
    tape = f"    grads = {wrapped}.gradient(loss_value, mnist_model.trainable_variables)\n"
    step = "        loss_value = training_step(images, labels)\n"
    state = "dp.broadcast_state(mnist_model, opt)"
    late = "dp.shard(dataset.shuffle(2000), source_check=False).batch(96)"
    skip = "        if dp.rank() == 1 and batch == 2:\n            continue\n"

    yield case("drop the shard", (deal, slices), fails="loss", cause=Cause.NOT_DEALT)
    yield case("deal after an unseeded shuffle", (deal, slices), (batches, late), fails="loss", cause=Cause.ORDERS)
    yield case("shard twice", (deal, f"dp.shard({deal}, source_check=False)"), fails="loss", cause=Cause.DEALT_TWICE)
    # The model is built by its first call, after this broadcast; the runtime notices at the first gradient.
    yield case(
        "broadcast too early",
        ("dp.init()", "dp.init(same_start=False)"),
        fails="differ on rank(s) 1",
        cause=Cause.START,
    )
    yield case(
        "sum for mean", (wrapped, "dp.DistributedGradientTape(tape, op=dp.Sum)"), fails="loss", cause=Cause.SUMMED
    )
    yield case("tape not wrapped", (wrapped, "tape"), fails="gradient", cause=Cause.NOT_AVERAGED)
    yield case(
        "average divided again",
        (tape, f"{tape}    grads = [g / dp.size() for g in grads]\n"),
        fails="update",
        cause=Cause.DIVIDED,
    )
    yield case("skip the learning-rate scale", (adam, "Adam(0.001)"), fails="update", cause=Cause.RATE)
    yield case("one rank skips a batch", (step, f"{skip}{step}"), fails="loss", cause=Cause.DECISION)
    yield case("batch not divided", ("dp.local_batch_size(96)", "96"), fails="loss", batch="global", cause=Cause.BATCH)
    yield case("rate scaled in global mode", ("Adam(0.001)", adam), fails="update", batch="global", cause=Cause.RATE)
    yield case("another print, another name", (step, f"{step}        tf.print(batch)\n"), (state, f"a = opt\n{state}"))
    yield case("common shuffle before the deal", (deal, f"dp.shard({slices}.shuffle(9, seed=dp.shuffle_seed()))"))


def mlp() -> Iterator[Case]:
    """Variations of the script with tf.Modules and an Adam of its own."""

    def case(
        name: str, *changes: Change, fails: str = "", batch: Mode = "per-worker", cause: Cause | None = None
    ) -> Case:
        return Case("dtensor_mlp", name, changes, fails, batch, cause)

    slices = "tf.data.Dataset.from_tensor_slices((images[:train_size], labels[:train_size]))"
    tests = "tf.data.Dataset.from_tensor_slices((images[train_size:], labels[train_size:]))"
    deal, rate = f"dp.shard({slices})", "dp.scale_lr(1e-3)"
    late = f"dp.shard({slices}.shuffle(2000), source_check=False)"
    wrapped = "dp.DistributedGradientTape(tape)"
    tape = f"    grads = {wrapped}.gradient(batch_loss, model.trainable_variables)\n"
    again = f"{tape}    grads = dp.grouped_allreduce(grads, op=dp.Sum)\n"
    apply = "    optimizer.apply_gradients(grads)\n"
    skip = f"    if dp.rank() == 0 or optimizer.t != 3.:\n    {apply}"
    apart, state = ("dp.init()", "dp.init(same_start=False)"), "dp.broadcast_state(mlp_model, optimizer)"
    slot = "optimizer.v_dvar[0].assign_add(tf.fill(optimizer.v_dvar[0].shape, float(dp.rank())))"

    yield case("drop the shard", (deal, slices), fails="loss", cause=Cause.NOT_DEALT)
    yield case("deal after an unseeded shuffle", (deal, late), fails="loss", cause=Cause.ORDERS)
    yield case(
        "test set dealt instead", (deal, slices), (tests, f"dp.shard({tests})"), fails="loss", cause=Cause.NOT_DEALT
    )
    yield case("drop the broadcast", apart, (state, "pass"), fails="differ on rank(s) 1", cause=Cause.START)
    yield case("one rank starts from another slot", (state, slot), fails="start", cause=Cause.START)
    yield case(
        "sum for mean", (wrapped, "dp.DistributedGradientTape(tape, op=dp.Sum)"), fails="loss", cause=Cause.SUMMED
    )
    yield case("tape not wrapped", (wrapped, "tape"), fails="gradient", cause=Cause.NOT_AVERAGED)
    yield case(
        "tape wrapped twice",
        (wrapped, f"dp.DistributedGradientTape({wrapped})"),
        fails="wrap a tape once",
        cause=Cause.AVERAGED_TWICE,
    )
    yield case("averaged, then summed", (tape, again), fails="update", cause=Cause.SUMMED)
    yield case(
        "average divided again",
        (tape, f"{tape}    grads = [g / dp.size() for g in grads]\n"),
        fails="update",
        cause=Cause.DIVIDED,
    )
    yield case("skip the learning-rate scale", (rate, "1e-3"), fails="update", cause=Cause.RATE)
    yield case("scale twice", (rate, f"dp.scale_lr({rate})"), fails="update", cause=Cause.RATE)
    yield case("one rank skips an update", (apply, skip), fails="calls", cause=Cause.DECISION)
    yield case(
        "batch not divided",
        ("dp.local_batch_size(batch_size)", "batch_size"),
        fails="loss",
        batch="global",
        cause=Cause.BATCH,
    )
    yield case("explicit broadcast alone", apart)
    yield case("another name", ("optimizer = Adam(", "adam = optimizer = Adam("), (tape, f"{tape}    g = grads\n"))


ALL = [*mnist(), *mlp()]


@pytest.mark.parametrize("case", ALL, ids=str)
def test_variations(case: Case, references: References) -> None:
    before = path(case.script).read_text()
    after = changed(migrated(case.script, case.batch, before), case.changes)
    expected = reference(str(path(case.script)), before.encode(), 2, case.batch)
    proof = references.get(case.script, 2, case.batch, expected).prove(after.encode())
    print(proof)
    assert proof.proved == (not case.fails), proof.reason
    assert case.fails in (proof.failure.kind if proof.failure else proof.reason), proof.reason
    assert proof.cause == (case.cause.value if case.cause else None), proof
    assert proof.data is not None
    if proof.proved:
        assert proof.data.outcome == "shared", proof.data
    if case.name in {"drop the shard", "deal after an unseeded shuffle", "shard twice"}:
        assert (proof.data.outcome, proof.data.step) == ("broken", 0), proof.data


def test_gradients_are_averaged_before_they_are_clipped(references: References) -> None:
    script = "dtensor_mlp"
    lines = path(script).read_text().splitlines(keepends=True)
    place = next(number for number, line in enumerate(lines) if "tape.gradient(" in line)
    clip = "    grads, _ = tf.clip_by_global_norm(grads, 0.1)\n"
    before = "".join([*lines[: place + 1], clip, *lines[place + 1 :]])
    after = migrated(script, "per-worker", before)
    expected = reference(str(path(script)), before.encode(), 2, "per-worker")
    recording = references.get(script, 2, "per-worker", expected)
    proof = recording.prove(after.encode())
    assert proof.proved, proof.reason
    late = (clip, f"{clip}    grads = dp.grouped_allreduce(grads)\n")
    proof = recording.prove(changed(after, [("dp.DistributedGradientTape(tape)", "tape"), late]).encode())
    assert proof.failure is not None
    assert proof.update > 100 * 1e-4
    assert proof.cause == Cause.LATE.value


def test_an_uneven_tail_counts_by_examples(references: References) -> None:
    few = ("dataset = dataset.shuffle(2000).batch(96)", "dataset = dataset.shuffle(2000).batch(192)")
    before = changed(path("smddp_mnist").read_text(), [LESS_DATA, few, ("Adam(0.001)", "Adam(0.002)")])
    recording = references.get("smddp_mnist", 2, "per-worker", before.encode())
    after = changed(migrated("smddp_mnist", "per-worker", path("smddp_mnist").read_text()), [LESS_DATA, *KEEP_THE_TAIL])
    proof = recording.prove(changed(after, [("Tape(tape)", "Tape(tape, batch_size=count)")]).encode())
    assert proof.proved, proof.reason
    proof = recording.prove(after.encode())
    assert proof.failure is not None
    assert (proof.failure.step, proof.failure.kind) == (2, "loss")
    assert proof.cause == Cause.TAIL.value


LABELS = 'labels = digits["labels"].astype(np.int64)\n'
LESS_DATA = (LABELS, f"{LABELS}images, labels = images[:485], labels[:485]\n")
KEEP_THE_TAIL = [
    ("from_tensor_slices((images, labels)))", "from_tensor_slices((images, labels)), remainder='weight')"),
    ("dataset = dataset.shuffle(2000).batch(96)", "dataset = dp.count_examples(dataset.shuffle(2000).batch(96))"),
    ("def training_step(images, labels):", "def training_step(images, labels, count):"),
    ("batch, (images, labels) in", "batch, ((images, labels), count) in"),
    ("= training_step(images, labels)", "= training_step(images, labels, count)"),
]
