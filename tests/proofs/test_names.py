"""Scripts with Horovod's or SMDDP's names, held against the original in those systems' plain meaning: rank by rank."""

from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import CouldNotRun, record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.migrate.verify.texts import Texts, of_both, of_original

FIXTURES = Path(__file__).parents[2] / "fixtures" / "names"
Mutant = tuple[str, str, str | None]
SCRIPTS: dict[str, tuple[tuple[str, ...], tuple[Mutant, ...]]] = {
    "horovod_tape": (
        (),
        (
            ("0.001 * hvd.size()", "0.001", Cause.RATE.value),
            ("0.001 * hvd.size()", "0.001 * hvd.size() ** 0.5", Cause.RATE.value),
            ("hvd.DistributedGradientTape(tape)", "tape", None),
            ("hvd.DistributedGradientTape(tape)", "hvd.DistributedGradientTape(tape, op=hvd.Sum)", Cause.SUMMED.value),
            (".shard(hvd.size(), hvd.rank())", "", None),
            ("seed=hvd.rank()", "seed=0", None),
            ("100 // hvd.size()", "20", Cause.STEPS.value),
        ),
    ),
    "horovod_fit": (
        ("--fp16",),
        (
            ("warmup_epochs=2", "warmup_epochs=3", Cause.RATE.value),
            ("hvd.Compression.fp16", "hvd.Compression.none", None),
            (
                "tf.keras.optimizers.Adam(scaled_lr), comp",
                "tf.keras.optimizers.Adam(scaled_lr), op=hvd.Sum, comp",
                None,
            ),
            ("hvd.rank() :: hvd.size()", "::1", None),
            ("batch_size=64", "batch_size=32", None),
        ),
    ),
    "horovod_words": (
        ("--passes",),
        (
            ("average_aggregated_gradients=True", "average_aggregated_gradients=False", None),
            ("[hvd.rank()]", "[0]", None),
        ),
    ),
    "switch": (("--hvd",), (("dist.DistributedGradientTape(tape)", "tape", None),)),
    "horovod_runner": (
        (),
        (
            ("learning_rate * hvd.size()", "learning_rate", Cause.RATE.value),
            (
                "hvd.DistributedOptimizer(tf.keras.optimizers.SGD(learning_rate * hvd.size()))",
                "hvd.DistributedOptimizer(tf.keras.optimizers.SGD(learning_rate * hvd.size()), op=hvd.Sum)",
                None,
            ),
        ),
    ),
    "smddp_tape": ((), (("0.000125 * sdp.size()", "0.000125", Cause.RATE.value),)),
}


def texts(name: str, np: int) -> Texts:
    found = of_original(str(FIXTURES / f"{name}.py"), np)
    assert (found.road, found.batch) == ("names", "per-worker")
    assert found.reference == found.original
    return found


def replaced(source: bytes, old: str, new: str) -> bytes:
    assert old.encode() in source, old
    return source.replace(old.encode(), new.encode())


@pytest.mark.parametrize(
    ("name", "np"),
    [
        pytest.param("horovod_tape", 2, marks=pytest.mark.sample),
        ("horovod_tape", 3),
        ("horovod_fit", 2),
        ("horovod_fit", 3),
        ("horovod_words", 2),
        ("horovod_words", 3),
        ("switch", 2),
        ("switch", 3),
        ("horovod_runner", 2),
        ("horovod_runner", 3),
        ("smddp_tape", 2),
        ("smddp_tape", 3),
    ],
)
@pytest.mark.usefixtures("forking")
def test_a_script_is_proved_and_its_mutants_are_not(name: str, np: int) -> None:
    args, mutants = SCRIPTS[name]
    one = texts(name, np)
    with record(one.path, np, None, reference=one.reference, args=args, names=True) as recording:
        proof = recording.prove(one.migrated)
        assert proof.proved, str(proof)
        assert len(proof.points) >= 16
        assert proof.names
        for old, new, cause in mutants:
            failed = recording.prove(replaced(one.migrated, old, new))
            assert not failed.proved, (old, new)
            if cause is not None:
                assert failed.cause == cause, (old, new, str(failed))


@pytest.mark.usefixtures("forking")
def test_smddp_by_the_flag_of_the_switch() -> None:
    one = texts("switch", 2)
    with record(one.path, 2, 12, reference=one.reference, names=True) as recording:
        assert recording.prove(one.migrated).proved
        unwrapped = replaced(one.migrated, "dist.DistributedGradientTape(tape)", "tape")
        assert not recording.prove(unwrapped).proved


VARIANTS = {
    "unscaled rate": ("0.001 * hvd.size()", "0.001"),
    "root of size": ("0.001 * hvd.size()", "0.001 * hvd.size() ** 0.5"),
    "undivided steps": ("100 // hvd.size()", "25"),
    "epochs by size": ("dataset.take(100 // hvd.size())", "dataset.take((60 // hvd.size()) * 1)"),
    "batch by size": (".batch(32)", ".batch(96 // hvd.size())"),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.usefixtures("forking")
def test_what_differs_from_the_usual_is_kept(variant: str, tmp_path: Path) -> None:
    """Output and reference keep it; the usual form in its place fails. All updates of a whole run are counted."""
    usual, own = VARIANTS[variant]
    source = replaced((FIXTURES / "horovod_tape.py").read_bytes(), usual, own)
    source = source.replace(b"Path(__file__).resolve().parent.parent", f'Path("{FIXTURES.parent}")'.encode())
    path = tmp_path / "train.py"
    path.write_bytes(source)
    one = of_original(str(path), 2)
    assert own.encode() in one.migrated
    with record(one.path, 2, None, reference=one.reference, names=True) as recording:
        proof = recording.prove(one.migrated)
        assert proof.proved, str(proof)
        assert proof.coverage is not None
        assert proof.coverage.whole
        assert proof.steps == {"undivided steps": 25, "epochs by size": 30}.get(variant, 50)
        changed = recording.prove(replaced(one.migrated, own, usual))
        assert not changed.proved


@pytest.mark.usefixtures("forking")
def test_files_beside_the_script_count_as_migrated_with_it(tmp_path: Path) -> None:
    """Also where they write what Keras 3 takes no more; and models that are loaded are compiled as they were."""
    helper = "import horovod.tensorflow as hvd\n\n\ndef start():\n    hvd.init()\n    return hvd\n\n\n"
    helper += (
        "def compiled(model, optimizer):\n    model.compile(optimizer, 'mse', experimental_run_tf_function=False)\n"
    )
    (tmp_path / "lib.py").write_text(helper)
    path = tmp_path / "train.py"
    path.write_text(
        "import horovod.tensorflow.keras as hvd_keras\nimport lib\nimport numpy as np\nimport tensorflow as tf\n\n"
        "hvd = lib.start()\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "lib.compiled(model, hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())))\n"
        "model.fit(np.random.rand(64, 3), np.random.rand(64, 1), batch_size=8, verbose=0)\n"
        "if hvd.rank() == 0:\n    model.save('a.keras')\n"
        "    tf.keras.models.load_model('a.keras').evaluate(np.ones((8, 3)), np.ones((8, 1)), verbose=0)\n"
    )
    one = of_original(str(path), 2)
    with record(path, 2, None, reference=one.reference, names=True) as recording:
        assert recording.prove(one.migrated).proved
        assert not recording.prove(replaced(one.migrated, "0.01 * hvd.size()", "0.01")).proved


@pytest.mark.sample
def test_a_migrated_script_needs_its_original(tmp_path: Path) -> None:
    path, original = tmp_path / "train.py", tmp_path / "train_before.py"
    one = texts("smddp_tape", 2)
    path.write_bytes(one.migrated)
    original.write_bytes(one.original)
    with pytest.raises(CouldNotRun, match="--against"):
        of_original(str(path), 2)
    both = of_both(str(path), str(original), 2)
    assert (both.road, both.reference) == ("names", one.original)
    kept = tmp_path / "train.py.orig"
    kept.write_bytes(one.original)
    found = of_original(str(path), 2)
    assert (found.found, found.differs, found.reference) == (str(kept), False, one.original)
