"""`--target single` of a migrated script: the text that it was made of, or one that is migrated to the same."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from click.testing import CliRunner
from test_rules import CASES, migrated, split

from tfdp.migrate import engine
from tfdp.migrate.cli import main

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
# What a migration writes out, or takes away, is not known to be its own: it stays as it is.
WRITTEN_OUT = {
    "adversarial_training/after.py": ["+optimizer = tf.keras.optimizers.Adam(learning_rate=0.001)"],
    "conv_autoencoder/after.py": ['-os.environ["CUDA_VISIBLE_DEVICES"] = "0"'],
    "conv_autoencoder/after_global.py": ['-os.environ["CUDA_VISIBLE_DEVICES"] = "0"'],
    "dtensor_mlp/after.py": ["+optimizer = Adam(mlp_model.trainable_variables, learning_rate=1e-3)"],
    "fit_distillation/after.py": ["+    optimizer=keras.optimizers.Adam(learning_rate=0.001),"],
}
OTHER_WORDS = {
    "a default is written out": (
        "TFDP015/fits TFDP020/omitted TFDP020/subclass_of_an_own_optimizer TFDP031/optimizers_of_fit "
        "TFDP050/files_made_unless_they_are_there TFDP050/temporary_folder TFDP050/written_and_read_in_one_line "
        "TFDP051/draws_in_what_is_shown TFDP053/metrics_of_a_loop TFDP012/global_generators_seeded_again"
    ),
    "a device, a session or XLA goes": (
        "CALLS/callbacks_and_a_generator TFDP001/before_a_line_of_several_statements TFDP001/before_a_line_that_goes "
        "TFDP002/devices_and_sessions TFDP002/environment TFDP002/environment_default TFDP002/visible_devices "
        "TFDP060/automatic_stays TFDP060/compile TFDP060/step TFDP080/clock_and_files_stay"
    ),
    "brackets, blank lines and numbers that are put together": (
        "TFDP001/imports_inside_the_function TFDP011/batches_of_data_that_end TFDP011/break_after_one_more_step "
        "TFDP032/products"
    ),
    "another system, or another Keras": (
        "TFDP054/fit_generator TFDP070/fit_in_a_scope TFDP070/several_hosts TFDP070/steps_on_replicas "
        "TFDP070/strategy_alone TFDP070/strategy_handed_on TFDP070/strategy_in_a_branch TFDP070/values_of_replicas"
    ),
}
NOT_AGAIN = {"TFDP001/imports_inside_the_function", "TFDP032/products"}  # what goes is in a line with others
REFUSED = {
    "TFDP011/steps_of_data_that_a_condition_repeats": "goes by `only_if=shard_records`",
    "TFDP015/helper_for_training_and_test": "goes by `only_if=shard_records`",
    "TFDP015/objects_for_training_and_test": "goes by `only_if=shard_records`",
    "TFDP015/prepared_alike_test_data_stay_whole": "goes by `only_if=shard_records`",
    "TFDP070/dtensor_by_its_words": "is not how a migration imports the runtime",
}
MIGRATED = {
    f"{path.parent.name}/{path.stem}": path
    for path in CASES
    if "import tfdp.runtime as" in (split(path)[1] or "") and "tfdp.runtime" not in split(path)[0]
}
HEAD = "import tensorflow as tf\nimport tfdp.runtime as dp\n\ndp.init()  # tfdp: join the other workers\n"


@pytest.mark.parametrize(
    "path", sorted(SCRIPTS.glob("*/after*.py")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_a_script_comes_back(path: Path) -> None:
    found = engine.single(path.name, path.read_bytes())
    assert not found.refused, found.findings
    before = path.with_name("before.py").read_bytes()
    wanted = WRITTEN_OUT.get(f"{path.parent.name}/{path.name}")
    if wanted is None:
        assert found.after == before
        return
    lines = difflib.unified_diff(before.decode().splitlines(), found.after.decode().splitlines(), lineterm="", n=0)
    changed = [line for line in list(lines)[2:] if not line.startswith("@@")]
    assert [line for line in changed if line in wanted] == wanted
    assert len(changed) == (1 if wanted[0].startswith("-") else 2)


@pytest.mark.parametrize("name", MIGRATED)
def test_what_a_rule_writes_comes_back(name: str) -> None:
    before, after, _ = split(MIGRATED[name])
    assert after is not None
    found = engine.single("train.py", after.encode())
    if name in REFUSED:
        assert REFUSED[name] in found.findings[0].message
        assert found.after == found.before
        return
    assert not found.refused, found.findings
    others = {each for names in OTHER_WORDS.values() for each in names.split()}
    assert (found.after.decode().rstrip() == before.rstrip()) == (name not in others)
    if name in others:
        again = migrated(MIGRATED[name], found.after).after.decode().rstrip()
        assert (again == after.rstrip()) == (name not in NOT_AGAIN)


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("if dp.rank() == 0:\n    save()\n    # as it was\n    show()\nend()", "save()\n# as it was\nshow()\nend()"),
        ("if dp.rank() == 0:\n    save()\nelse:\n    wait()\nend()", "save()\nend()"),
        (
            "if dp.rank() == 0:\n    save()\nelse:\n    fit(x, callbacks=dp.fit_callbacks(), y=dp.shard(y))\nend()",
            "save()\nend()",
        ),
        ("if dp.rank() == 0:\n    save()\nelse: wait()", "if 0 == 0:\n    save()\nelse: wait()"),
        ("if dp.rank() == 0:\n    if dp.rank() == 0:\n        save()", "save()"),
        ("if a:\n    pass\nelif dp.rank() == 0:\n    save()", "if a:\n    pass\nelif 0 == 0:\n    save()"),
        ("if a and dp.rank() == 0:\n    save()", "if a and 0 == 0:\n    save()"),
        ("if a:\n    dp.broadcast_state(model)\nend()", "if a:\n    pass\nend()"),
        ("x = dp.scale_lr(a + b) * 2", "x = (a + b) * 2"),
        ("x = dp.scale_lr(a + b)", "x = a + b"),
        ("x = dp.scale_lr(dp.local_schedule(late), scale='sqrt')", "x = late"),
        ("x = dp.by_rows(lambda a: a @ w)(x)", "x = (lambda a: a @ w)(x)"),
        ("@dp.by_rows\ndef f(x):\n    return x", "def f(x):\n    return x"),
        ("x = dp.matmul(a, b + c) * 2", "x = (a @ (b + c)) * 2"),
        ("dp.report(print, dp.metric_result(m), 2)", "print(m.result(), 2)"),
        ("dp.report(lambda: show(a))", "(lambda: show(a))()"),
        ("x = dp.shard((a, b))", "x = (a, b)"),
        ("x = dp.shard(a for a in b)", "x = (a for a in b)"),
        ("fit(x, callbacks=dp.fit_callbacks(), verbose=0)", "fit(x, verbose=0)"),
        ("fit(callbacks=dp.fit_callbacks(), verbose='auto' if dp.rank() == 0 else 0)", "fit()"),
        ("fit(x, verbose=shown if dp.rank() == 0 else 0)", "fit(x, verbose=shown)"),
        ("calls = dp.fit_callbacks()", "calls = []"),
        ("steps = total * dp.size()", "steps = total"),
        ("print(dp.size(), dp.local_rank())", "print(1, 0)"),
        ("dp.set_random_seed(3)", "tf.keras.utils.set_random_seed(3)"),
    ],
)
def test_what_the_runtimes_names_are_for_one_process(lines: str, wanted: str) -> None:
    found = engine.single("train.py", f"{HEAD}{lines}\n".encode())
    assert not found.refused, found.findings
    assert found.after.decode() == f"import tensorflow as tf\n{wanted}\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("x = dp.allreduce(x)", "what `dp.allreduce(x)` is for one process is not known"),
        ("x = dp.shard(files, by='file', read=records)", "goes by `by='file'`"),
        ("opt = dp.DistributedOptimizer(opt, backward_passes_per_step=4)", "goes by `backward_passes_per_step=4`"),
        ("fit(dp.shard(x, validation_split=0.1))", "goes by `validation_split=0.1`"),
        ("rest = dp.held_out(x, 0.1)", "is not held out for `fit` alone"),
        ("train(dp)", "the runtime is handed on"),
        ("scale = dp.scale_lr", "`dp.scale_lr` is no call"),
        ("from tfdp.runtime import allreduce", "is not how a migration imports the runtime"),
        ("end(); dp.broadcast_state(model)", "does not stand in a line of its own"),
        ("end(); import tfdp.runtime as other", "does not stand in a line of its own"),
        ("x = dp.init()", "what `dp.init()` is for one process is not known"),
    ],
)
def test_what_no_migration_writes_is_refused(lines: str, said: str) -> None:
    source = f"{HEAD}{lines}\n".encode()
    found = engine.single("train.py", source)
    assert found.after == source
    assert [(f.line, said in f.message) for f in found.findings] == [(5, True)]


def test_the_command_takes_it_out(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes((SCRIPTS / "smddp_mnist" / "after.py").read_bytes().replace(b"\n", b"\r\n"))
    run = CliRunner().invoke(main, ["migrate", "--target", "single", str(path)])
    assert run.exit_code == 0, run.output
    assert "tfdp's runtime is taken out" in run.output
    assert path.read_bytes() == (SCRIPTS / "smddp_mnist" / "before.py").read_bytes().replace(b"\n", b"\r\n")
