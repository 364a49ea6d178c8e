"""Scripts that train by Horovod's or SMDDP's names: what changes in their texts, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tfdp.migrate import engine
from tfdp.migrate.cli import main
from tfdp.rules._base import Policy
from tfdp.runtime.horovod import LEFT_OUT, MODULES
from tfdp.runtime.smdistributed import NAMES

FIXTURES = Path(__file__).parents[2] / "fixtures" / "names"
SMDDP = "smdistributed.dataparallel.tensorflow"


def migrated(source: str, **policy: str) -> engine.Migration:
    return engine.migrate("train.py", source.encode(), Policy(**policy))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.py")), ids=lambda path: path.stem)
def test_only_the_imports_change_and_what_keras_3_does_not_take(path: Path) -> None:
    found = engine.migrate(str(path), path.read_bytes())
    assert (found.road, found.refused, found.changed) == ("names", False, True)
    after = found.after.decode().replace("tfdp.runtime.horovod", "horovod").replace("tfdp.runtime.smdis", "smdis")
    after = after.replace("from tfdp.runtime import Runner as Horo", "from sparkdl import Horo")
    before = path.read_text().replace(".variables()", ".variables")
    before = before.replace("\n    experimental_run_tf_function=False,", "")
    assert after == before
    again = engine.migrate(str(path), found.after)
    assert (again.changed, again.trains, again.findings) == (False, True, ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import horovod.tensorflow as hvd", "import tfdp.runtime.horovod.tensorflow as hvd"),
        ("import os, horovod.keras as hvd", "import os, tfdp.runtime.horovod.keras as hvd"),
        ("import horovod.tensorflow.keras", "from tfdp.runtime import horovod"),
        ("from horovod import tensorflow as hvd", "from tfdp.runtime.horovod import tensorflow as hvd"),
        (
            "from horovod.tensorflow import rank, size as n",
            "from tfdp.runtime.horovod.tensorflow import rank, size as n",
        ),
        (
            "try:\n    import horovod.keras as hvd\nexcept ImportError:\n    hvd = None",
            "try:\n    import tfdp.runtime.horovod.keras as hvd\nexcept ImportError:\n    hvd = None",
        ),
        (
            "def main():\n    import horovod.tensorflow as hvd",
            "def main():\n    import tfdp.runtime.horovod.tensorflow as hvd",
        ),
        (
            "from horovod.tensorflow.keras.callbacks import (\n    MetricAverageCallback,  # the mean\n)",
            "from tfdp.runtime.horovod.tensorflow.keras.callbacks import (\n    MetricAverageCallback,  # the mean\n)",
        ),
        (
            "import horovod\nprint(horovod.__version__)\nimport horovod.keras as hvd",
            "from tfdp.runtime import horovod\nprint(horovod.__version__)\nimport tfdp.runtime.horovod.keras as hvd",
        ),
        (
            f"import smdistributed.dataparallel\nimport {SMDDP} as sdp",
            f"from tfdp.runtime import smdistributed\nimport tfdp.runtime.{SMDDP} as sdp",
        ),
        (f"import {SMDDP} as sdp", f"import tfdp.runtime.{SMDDP} as sdp"),
    ],
)
def test_every_way_to_import_them(before: str, after: str) -> None:
    found = migrated(f"{before}\n")
    assert found.after.decode() == f"{after}\n"
    assert not found.refused


def test_windows_line_ends_and_byte_order_mark_stay() -> None:
    source = b"\xef\xbb\xbfimport horovod.tensorflow as hvd\r\n\r\nhvd.init()\r\n"
    found = engine.migrate("train.py", source)
    assert found.after == source.replace(b"horovod", b"tfdp.runtime.horovod")


def test_arguments_are_taken_out_at_any_place() -> None:
    source = "import horovod.keras as hvd\nmodel.compile({})\n"
    for given, left in [
        ("experimental_run_tf_function=False", ""),
        ("experimental_run_tf_function=False, loss='mse'", "loss='mse'"),
        ("opt, experimental_run_tf_function=False,\n    loss='mse'", "opt,\n    loss='mse'"),
    ]:
        assert migrated(source.format(given)).after.decode().splitlines(True)[1:] == (
            f"model.compile({left})\n".splitlines(True)
        )


@pytest.mark.parametrize("name", sorted(LEFT_OUT))
def test_names_that_are_left_out_are_refused_with_what_to_do(name: str) -> None:
    if name in ("BestModelCheckpoint",):
        use = f"import horovod.keras.callbacks as c\nc.{name}()\n"
    else:
        use = f"import horovod.tensorflow as hvd\nhvd.{name}()\n"
    found = migrated(use)
    assert [(f.code, f.line, f.refusal) for f in found.findings] == [("TFDP070", 2, True)]
    assert LEFT_OUT[name] in found.findings[0].next_step
    assert not found.changed
    brought = migrated(f"from horovod.tensorflow import {name}\n")
    assert brought.refused


def test_what_is_left_out_may_stand_where_the_script_does_not_come_to() -> None:
    source = "import horovod.tensorflow as hvd\nop = hvd.Adasum if adasum else hvd.Average\n"
    found = migrated(source)
    assert not found.refused
    assert any("Adasum is left out" in f.message for f in found.findings)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import horovod.torch as hvd\n", "horovod.torch"),
        ("import horovod.spark.keras as h\n", "horovod.spark.keras"),
        ("from horovod import torch\n", "horovod.torch"),
        ("from horovod.tensorflow import *\n", "star import"),
        ("import smdistributed.modelparallel.tensorflow as smp\n", "modelparallel"),
        ("import os, horovod.tensorflow\n", "among others"),
        ("import horovod.tensorflow as hvd\nhvd.Init()\n", "Init"),
        ("from sparkdl import HorovodRunner\nHorovodRunner(np=2).run(main)\n", "trains by Horovod"),
        ("from sparkdl import HorovodRunner, x\nimport horovod.keras\n", "HorovodRunner is here alone"),
        ("import os, sys\nimport horovod.keras\nrank = os.environ['OMPI_COMM_WORLD_RANK']\n", "OMPI_COMM_WORLD_RANK"),
        ("import importlib\nhvd = importlib.import_module('horovod.tensorflow')\n", "by a text"),
        ("import horovod.keras as hvd\nimport tensorflow as tf\ntf.compat.v1.train.AdamOptimizer()\n", "TensorFlow 1"),
        ("import horovod.keras as h\nimport tensorflow as tf\ntf.distribute.MirroredStrategy()\n", "MirroredStrategy"),
    ],
)
def test_what_cannot_be_carried_over_is_refused(source: str, said: str) -> None:
    found = migrated(source)
    assert found.refused
    assert not found.changed
    assert any(said in f.message for f in found.findings)


def test_a_session_that_keras_is_given_stays() -> None:
    source = (
        "import horovod.keras as hvd\nimport tensorflow as tf\n"
        "tf.compat.v1.keras.backend.set_session(tf.compat.v1.Session(config=config))\n"
    )
    assert not migrated(source).refused


@pytest.mark.parametrize("policy", [{"batch": "global"}, {"shard": "calls"}, {"lr_scale": "sqrt"}])
def test_there_is_one_mode(policy: dict[str, str]) -> None:
    found = migrated("import horovod.keras as hvd\nhvd.init()\n", **policy)
    assert found.refused
    assert "by itself" in found.findings[0].message


def test_variables_for_horovod_are_named() -> None:
    found = migrated("import os\nimport horovod.keras as hvd\nos.environ['HOROVOD_CYCLE_TIME'] = '5'\n")
    assert [f.message for f in found.findings if f.line == 3] == ["HOROVOD_CYCLE_TIME means nothing to tfdp"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("keras.optimizers.Adam(lr=0.1)", "use learning_rate"),
        ("keras.optimizers.SGD(0.1, decay=1e-4)", "use a schedule"),
        ("keras.callbacks.ModelCheckpoint('a', period=2)", "use save_freq"),
        ("model.fit_generator(batches)", "use fit"),
        ("print(model.optimizer.lr)", "optimizer.lr is of Keras 2"),
    ],
)
def test_words_that_keras_3_does_not_take_are_left_and_named(line: str, said: str) -> None:
    found = migrated(f"import horovod.keras as hvd\nfrom tensorflow import keras\n{line}\n")
    assert not found.refused
    assert any(said in f.message for f in found.findings if f.line == 3), found.findings
    assert found.after.decode().splitlines()[2] == line
    new = line.replace("lr=", "learning_rate=").replace("decay", "momentum").replace("period", "verbose")
    new = new.replace("fit_generator", "fit").replace(".lr", ".learning_rate")
    assert len(migrated(f"import horovod.keras as hvd\nfrom tensorflow import keras\n{new}\n").findings) == 1


def test_the_one_worker_form_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes((FIXTURES / "horovod_tape.py").read_bytes())
    run = CliRunner().invoke(main, ["migrate", "--target", "single", str(path)])
    assert run.exit_code == 1
    assert "TFDP070" in run.output
    assert path.read_bytes() == (FIXTURES / "horovod_tape.py").read_bytes()


def test_the_command_says_how_to_start_it(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import horovod.tensorflow as hvd\n\nhvd.init()\n")
    run = CliRunner().invoke(main, ["migrate", str(path)])
    assert run.exit_code == 0, run.output
    assert "tfdp run -np N" in run.output
    assert path.read_text() == "import tfdp.runtime.horovod.tensorflow as hvd\n\nhvd.init()\n"
    again = CliRunner().invoke(main, ["migrate", "--check", str(path)])
    assert again.exit_code == 0, again.output


def test_no_name_is_both_here_and_left_out() -> None:
    here = {name for names in MODULES.values() for name in names} | set(NAMES)
    assert not here & set(LEFT_OUT)


def test_files_that_a_script_leads_to_are_named(tmp_path: Path) -> None:
    main, source = tmp_path / "main.py", "import horovod.tensorflow as hvd\nfrom lib.fit import train\nhvd.init()\n"
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "fit.py").write_text("def train():\n    import horovod.keras as hvd\n    return hvd.rank()\n")
    (tmp_path / "other.py").write_text("import horovod.tensorflow as hvd\n")
    found = engine.migrate(str(main), source.encode())
    said = [finding.message for finding in found.findings if "migrate it as well" in finding.message]
    assert said == [f"{Path('lib', 'fit.py')}, which it leads to, imports that system, too: migrate it as well"]
    (tmp_path / "lib" / "fit.py").write_bytes(
        engine.migrate("fit.py", (tmp_path / "lib" / "fit.py").read_bytes()).after
    )
    again = engine.migrate(str(main), source.encode())
    assert not any("migrate it as well" in finding.message for finding in again.findings)
