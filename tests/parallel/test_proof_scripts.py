"""Variations of two migrated scripts that have no other place: what the proof must not let pass, and what it must.

A mutant is a text substitution in the migrated script, and says which criterion it must miss. Those that apply to many
scripts are in tests/proofs.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import pytest
from handmade import Change, changed

pytest.importorskip("tensorflow")

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import Recording, record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.migrate.verify.reference import reference
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

SCRIPTS = Path(__file__).parent.parent.parent / "fixtures" / "scripts"
# They cross the end of an epoch, with its smaller last batch.
STEPS = 11

Mode: TypeAlias = Literal["per-worker", "global"]


def path(script: str) -> Path:
    return SCRIPTS / script / "before.py"


def migrated(script: str, batch: Mode, before: str) -> str:
    migration = migrate(str(path(script)), before.encode(), Policy("input", batch))
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


def cases() -> Iterator[Case]:
    """Of a script whose variables are made by the first call inside a graph, and one of two models."""
    adam = "Adam(dp.scale_lr(0.001))"
    apart = ("dp.init()", "dp.init(same_start=False)")
    # The model is built by its first call, after the broadcast; the runtime notices at the first gradient.
    yield Case("smddp_mnist", "broadcast too early", (apart,), "on rank(s) 1", cause=Cause.START)
    scaled = ("Adam(0.001)", adam)
    yield Case("smddp_mnist", "rate scaled in global mode", (scaled,), "update", "global", Cause.RATE)

    slices = "tf.data.Dataset.from_tensor_slices((images[:1440], labels[:1440], bright[:1440]))"
    tests = "tf.data.Dataset.from_tensor_slices((images[1440:], labels[1440:]))"
    other = ((f"dp.shard({slices})", slices), (tests, f"dp.shard({tests})"))
    yield Case("two_models", "test set sharded instead", other, "loss", cause=Cause.BATCH)
    tape = "dp.DistributedGradientTape(tape).gradient(loss, classifier.trainable_variables)\n"
    again = (tape, f"{tape}    gradients = dp.grouped_allreduce(gradients, op=dp.Sum)\n")
    yield Case("two_models", "averaged, then summed", (again,), "update", cause=Cause.SUMMED)
    # The job's common seed comes too late for this order.
    drawn = (
        ("dp.init()", "order = np.random.permutation(1440)\ndp.init()"),
        (slices, slices.replace(":1440", "order")),
    )
    yield Case("two_models", "order drawn too early", drawn, "the records given to dp.shard", cause=Cause.ORDERS)


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("case", list(cases()), ids=str)
def test_variations(case: Case, references: References) -> None:
    before = path(case.script).read_text()
    after = changed(migrated(case.script, case.batch, before), case.changes)
    expected = reference(str(path(case.script)), before.encode(), 2, case.batch)
    proof = references.get(case.script, 2, case.batch, expected).prove(after.encode())
    print(proof)
    assert proof.proved == (not case.fails), proof.reason
    assert case.fails in (proof.failure.kind if proof.failure else proof.reason), proof.reason
    assert proof.cause == (case.cause.value if case.cause else None), proof


@pytest.mark.long
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


def test_whole_files_are_sharded_by_record_and_named(references: References) -> None:
    before = path("smddp_mnist").read_text()
    slices = "tf.data.Dataset.from_tensor_slices((images, labels))"
    by_file = f"dp.shard(['a', 'b'], by='file', read=lambda _: {slices})"
    after = changed(migrated("smddp_mnist", "per-worker", before), [(f"dp.shard({slices})", by_file)])
    expected = reference(str(path("smddp_mnist")), before.encode(), 2, "per-worker")
    proof = references.get("smddp_mnist", 2, "per-worker", expected).prove(after.encode())
    assert proof.proved, proof.reason
    assert any("by='file'" in each and "before.py:" in each for each in proof.neutralised), proof.neutralised


LABELS = 'labels = digits["labels"].astype(np.int64)\n'
LESS_DATA = (LABELS, f"{LABELS}images, labels = images[:485], labels[:485]\n")
KEEP_THE_TAIL = [
    ("from_tensor_slices((images, labels)))", "from_tensor_slices((images, labels)), remainder='weight')"),
    ("dataset = dataset.shuffle(2000).batch(96)", "dataset = dp.count_examples(dataset.shuffle(2000).batch(96))"),
    ("def training_step(images, labels):", "def training_step(images, labels, count):"),
    ("batch, (images, labels) in", "batch, ((images, labels), count) in"),
    ("= training_step(images, labels)", "= training_step(images, labels, count)"),
]
