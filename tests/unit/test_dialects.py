"""Scripts that another system distributes: their one-worker form, and what is said of it by the original's lines."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from click.testing import CliRunner

from tfdp.migrate import dialects, engine
from tfdp.migrate.cli import main
from tfdp.migrate.verify.could_not_run import is_for_one_process

CASES = Path(__file__).parents[2] / "fixtures" / "rules" / "TFDP070"
SCRIPT = """\
import tensorflow as tf

strategy = {maker}
{middle}
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones([8, 2]), tf.ones([8, 1]))
"""
MIRRORED = "tf.distribute.MirroredStrategy()"


SLURM = "hosts = tf.distribute.cluster_resolver.SlurmClusterResolver(port_base=15000)\n"
SEVERAL = "tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=hosts)"
TPU = """\
import tensorflow as tf

try:  # a TPU
    tpu = tf.distribute.cluster_resolver.TPUClusterResolver.connect()
    print("Device:", tpu.master())
    strategy = tf.distribute.TPUStrategy(tpu)
except ValueError:
    # none
    print("on a GPU")
    strategy = tf.distribute.get_strategy()
print("Replicas:", strategy.num_replicas_in_sync)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.ones([8, 2]), tf.ones([8, 1]))
"""


def script(middle: str = "", maker: str = MIRRORED) -> str:
    return SCRIPT.format(maker=maker, middle=middle)


def single(source: str) -> str | None:
    found = dialects.single(cst.parse_module(source))
    return None if found is None else found.module.code


def test_lines_of_the_one_worker_form_are_those_of_the_original() -> None:
    source = (CASES / "fit_in_a_scope.py").read_text().partition("\n# output\n")[0]
    found = dialects.single(cst.parse_module(source))
    assert found is not None
    before, after = source.splitlines(), found.module.code.splitlines()
    assert len(found.places) == len(after)
    for line, (number, shift) in zip(after, found.places, strict=True):
        if "strategy" not in before[number - 1]:
            assert before[number - 1][shift:] == line
    assert sorted(taken.line for taken in found.taken) == [5, 6, 7, 13, 29]


def test_messages_name_places_of_the_original() -> None:
    source = script().replace("    model.compile", "    tf.config.run_functions_eagerly(1 / 0)\n    model.compile")
    source = source.replace("model.fit(", "tf.compat.v1.disable_v2_behavior()\nmodel.fit(")
    refused = engine.migrate("train.py", source.encode())
    assert [(f.code, f.line, f.column) for f in refused.findings] == [("TFDP075", 9, 1)]
    assert source.splitlines()[8] == "tf.compat.v1.disable_v2_behavior()"


@pytest.mark.parametrize(
    ("middle", "after"),
    [
        ("batch = 8 * strategy.num_replicas_in_sync", "batch = 8"),
        ("steps = total // strategy.num_replicas_in_sync", "steps = total // 1"),
        ("loss = strategy.run(step, args=(a,), kwargs=None)", "loss = step(a)"),
        ("loss = strategy.run(step, None)", "loss = step()"),
        ("share = total / strategy.num_replicas_in_sync", "share = total / 1"),
        ("batch = (8 + 1) * strategy.num_replicas_in_sync", "batch = (8 + 1) * 1"),
        ("loss = strategy.run(step, (a, b))", "loss = step(a, b)"),
        ("loss = strategy.run(step, args=(next(it),), kwargs={'c': 1})", "loss = step(next(it), **({'c': 1}))"),
        ("loss = strategy.run(fn=step, args=pair)", "loss = step(*pair)"),
        ("data = strategy.experimental_distribute_dataset(a if b else c)", "data = (a if b else c)"),
        ("x = 2 * strategy.reduce(tf.distribute.ReduceOp.MEAN, a + b, axis=None)", "x = 2 * (a + b)"),
        ("x = strategy.reduce('sum', a,\n    None)", "x = a"),
    ],
)
def test_what_a_strategy_does_is_what_one_replica_does(middle: str, after: str) -> None:
    assert single(script(middle)) == "\n".join(
        ["import tensorflow as tf", "", after, *script().splitlines()[5:], ""]
    ).replace("    model", "model")


@pytest.mark.parametrize(
    "source",
    [
        script("print(strategy)"),
        script("hand_on(strategy)"),
        script("other = strategy"),
        script("x = strategy.reduce(tf.distribute.ReduceOp.SUM, a, axis=0)"),
        script("x = strategy.run(lambda: 1)"),
        script("x = strategy.gather(a, axis=0)"),
        script("x = tf.distribute.get_replica_context()"),
        script(maker="tf.distribute.MirroredStrategy() if asked() else tf.distribute.get_strategy()"),
        script().replace("\nstrategy =", "\nstrategy = Own()\nif gpus:\n    print()\n    strategy ="),
        script().replace("\nstrategy =", "\nclass A:\n    other = 1\n    strategy ="),
        script(maker="tf.distribute.MirroredStrategy() if gpus else None"),
        script().replace("with strategy.scope():", "with strategy.scope(), tf.device('CPU'):"),
        script().replace("with strategy.scope():", "with strategy.scope() as scope:"),
        script().replace("\nstrategy =", "\nif gpus:\n    strategy ="),
        script("workers = keep(by=tf.distribute.MirroredStrategy([f'GPU:{n}' for n in range(2)]))"),
        script("batches = strategy.distribute_datasets_from_function(lambda context: data.batch(8))"),
        script("def train(strategy: tf.distribute.MirroredStrategy): ...\ntrain(strategy)"),
        script("options = tf.distribute.experimental.CommunicationOptions()\nprint(options, strategy)"),
    ],
)
def test_a_strategy_whose_uses_are_not_followed_has_one_replica(source: str) -> None:
    after = source
    for maker in ("MirroredStrategy()", "MirroredStrategy([f'GPU:{n}' for n in range(2)])"):
        after = after.replace(f"tf.distribute.{maker}", "tf.distribute.get_strategy()")
    assert single(source) == after != source
    found = engine.migrate("train.py", (source + "model.fit(x, y)\n").encode())
    assert (found.road, found.batch, found.refused) == ("calls", "global", False)
    assert single(after) is None  # which is for one device


@pytest.mark.parametrize(
    "source",
    [
        script("import os\nos.environ['TF_CONFIG'] = open('cluster.json').read()"),
        script("import os\ndel os.environ['TF_CONFIG']\nprint(os.environ['TF_CONFIG'])"),
        script("import os\nprint(f\"{os.environ['TF_CONFIG']}\")"),
        script("import os\nname = 'TF_CONFIG'\nprint(os.environ[name])"),
        script("import os\nprint(os.environ.get('TF_CONFIG', open('cluster.json').read()))"),
        script("print(f'{strategy.cluster_resolver.task_id}')"),
        script("strategy.cluster_resolver = None"),
        script("print(strategy, made().cluster_resolver)"),
        TPU.replace("except ValueError:", "except ValueError:\n    pass\nexcept KeyError:"),
        TPU.replace("    strategy = tf.distribute.get_strategy()", "    raise"),
        TPU.replace("except ValueError:", "except KeyError:"),
        TPU.replace("try:  # a TPU", "try:\n    rate = 0.5"),
        TPU.replace('    print("Device', '    rate = 0.5\n    print("Device'),
        TPU.replace('    print("Device:", tpu.master())', "    if flag:\n        tpu = None"),
        TPU.replace("    tpu = tf.d", "    def find():\n        return tf.d").replace(
            "TPUStrategy(tpu)", "TPUStrategy(find())"
        ),
        script("import json, os\nos.environ['TF_CONFIG'] = (text := json.dumps({}))"),
        script(maker="tf.distribute.MirroredStrategy((devices := None))"),
        script("getattr(tf.distribute, kind)()"),
        script("print(tf.distribute.has_strategy(), strategy)"),
        script("kind = tf.distribute.MirroredStrategy\nprint(strategy)"),
        script("from tensorflow.experimental import dtensor\ndtensor.DTensorDataset(dataset)"),
        script(maker="tf.distribute.MirroredStrategy(devices())"),
        script("tpu = tf.distribute.cluster_resolver.TPUClusterResolver()\nother = tf.distribute.TPUStrategy(tpu)"),
        script(SLURM + "print(hosts.cluster_spec())", SEVERAL),
        script(f"{SLURM}def ask(): return hosts", SEVERAL),
        "from tensorflow.distribute import MirroredStrategy\n" + script(maker="MirroredStrategy()"),
    ],
)
def test_what_is_not_understood_is_refused(source: str) -> None:
    assert single(source) is None
    found = engine.migrate("train.py", (source + "model.fit(x, y)\n").encode())
    assert found.refused
    assert found.after == found.before


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (script("import os\nname = 'TF_CONFIG'\nprint(os.environ[name])"), "goes by TF_CONFIG"),
        (script("tpu = tf.distribute.cluster_resolver.TPUClusterResolver()"), "this asks for a TPU"),
        (script(maker="tf.distribute.TPUStrategy()"), "this asks for a TPU"),
        (script("print(tf.distribute.has_strategy())"), "distributed already, by tensorflow.distribute.has_strategy"),
    ],
)
def test_what_another_system_asks_for_is_named(source: str, said: str) -> None:
    found = engine.migrate("train.py", source.encode())
    assert any(f.code == "TFDP070" and f.refusal and said in f.message for f in found.findings)


def test_without_a_tpu_the_other_branch_is_taken() -> None:
    found = dialects.single(cst.parse_module(TPU))
    assert found is not None
    assert found.module.code == (
        'import tensorflow as tf\n\n# none\nprint("on a GPU")\nprint("Replicas:", 1)\n'
        'model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\nmodel.compile("sgd", "mse")\n'
        "model.fit(tf.ones([8, 2]), tf.ones([8, 1]))\n"
    )
    assert [place.line for place in found.places] == [1, 2, 8, 9, 11, 13, 14, 15]
    assert sorted(taken.line for taken in found.taken) == [3, 10, 11, 12]


def test_a_strategy_of_a_tpu_that_is_not_found_has_one_replica() -> None:
    found = (
        TPU.split("    strategy = tf.distribute.TPUStrategy(tpu)\n", maxsplit=1)[0]
        + "except ValueError:\n    tpu = None\n"
    )
    choice = (
        "if tpu:\n    tf.config.experimental_connect_to_cluster(tpu)\n    strategy = {}\nelse:\n    strategy = {}\n"
    )
    rest = TPU.partition("get_strategy()\n")[2]
    none = "tf.distribute.get_strategy()"
    source = f"{found}{choice.format('tf.distribute.TPUStrategy(tpu)', none)}{rest}"
    wanted = f"import tensorflow as tf\n\ntpu = None\n{choice.format(none, none)}{rest}"
    assert single(source) == wanted
    migrated = engine.migrate("train.py", source.encode())
    assert (migrated.road, migrated.batch, migrated.refused) == ("calls", "global", False)


def test_what_is_multiplied_by_the_number_of_replicas_is_said() -> None:
    source = script("def batch(strategy): return 8 * strategy.num_replicas_in_sync\nprint(batch(strategy))")
    found = engine.migrate("train.py", source.encode())
    assert not found.refused
    assert any("num_replicas_in_sync is 1" in f.message for f in found.findings)
    without = engine.migrate("train.py", script("print(strategy)").encode())
    assert not any("num_replicas" in f.message for f in without.findings)


def test_a_model_that_another_file_makes_is_trained_under_a_strategy(tmp_path: Path) -> None:
    (tmp_path / "build.py").write_text("import tensorflow as tf\ndef make():\n    return tf.keras.Sequential()\n")
    source = "import build\nimport tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"
    source += "with strategy.scope():\n    model = build.make()\nmodel.fit(tf.ones([8, 2]), tf.ones([8, 1]))\n"
    found = engine.migrate(str(tmp_path / "train.py"), source.encode())
    assert (found.trains, found.road, found.refused) == (True, "calls", False)
    assert "strategy" not in found.after.decode()
    (tmp_path / "build.py").write_text("import tensorflow as tf\nmake = tf.distribute.MirroredStrategy\n")
    assert not engine.migrate(str(tmp_path / "train.py"), source.encode()).changed


def test_a_strategy_of_another_file_is_to_be_taken_out_there_first(tmp_path: Path) -> None:
    path = tmp_path / "build.py"
    path.write_text(script().replace("model.fit", "def run():\n    model.fit"))
    source = b"import build\nbuild.run()\n"
    refused = engine.migrate(str(tmp_path / "train.py"), source)
    assert [f.next_step for f in refused.findings] == [
        "first `tfdp migrate --target single build.py`, which takes that out, then this file again"
    ]
    assert CliRunner().invoke(main, ["migrate", "--target", "single", str(path)]).exit_code == 0
    assert not engine.migrate(str(tmp_path / "train.py"), source).refused


def test_hosts_that_a_batch_system_is_asked_for_are_left_out() -> None:
    source = script("print(strategy)", SEVERAL).replace("strategy = ", f"{SLURM}strategy = ", 1)
    assert single(source) == script("print(strategy)", "tf.distribute.get_strategy()")


def test_the_hosts_that_a_script_names_are_left_out() -> None:
    middle = (
        "import json, os\nos.environ['TF_CONFIG'] = json.dumps({'cluster': {'worker': ['a:1', 'b:1']}, 'task': {}})\n"
        "os.environ.pop('TF_CONFIG', None)\nos.environ['OTHER'] = 'kept'"
    )
    after = single(script(middle, "tf.distribute.MultiWorkerMirroredStrategy()"))
    assert after is not None
    assert "TF_CONFIG" not in after
    assert "import json, os\nos.environ['OTHER'] = 'kept'\n" in after


ONE_WORKER = """'{"cluster": {"worker": ["localhost:0"]}, "task": {"type": "worker", "index": 0}}'"""


@pytest.mark.parametrize(
    ("asked", "one"),
    [
        ("json.loads(os.environ['TF_CONFIG'])", f"json.loads({ONE_WORKER})"),
        ("json.loads(os.environ.get('TF_CONFIG', '{}'))", f"json.loads({ONE_WORKER})"),
        ("os.getenv('TF_CONFIG') or '{}'", f"{ONE_WORKER} or '{{}}'"),
        ("len('TF_CONFIG' in os.environ)", "len(True)"),
        ("'TF_CONFIG' not in os.environ", "False"),
    ],
)
def test_a_cluster_that_a_script_asks_for_has_one_worker(asked: str, one: str) -> None:
    """Also where it sets one before."""
    middle = "import json, os\nspec: object = {}\nworkers = len(spec['cluster']['worker'])"
    several = "tf.distribute.MultiWorkerMirroredStrategy()"
    wanted = script(middle.format(one), several).replace("strategy = ", "held = strategy = ")
    source = wanted.replace(one, asked)
    after = single(source)
    assert after == wanted.replace(several, "tf.distribute.get_strategy()")
    assert single(source.replace("spec: ", "os.environ['TF_CONFIG'] = json.dumps({})\nspec: ")) == after
    found = engine.migrate("train.py", source.encode())
    assert (found.road, found.batch, found.refused) == ("calls", "global", False)
    assert any("TF_CONFIG is that of one worker" in f.message for f in found.findings)


def test_what_a_strategy_knows_of_its_hosts_is_of_one_worker() -> None:
    source = script("def chief(of): return of.cluster_resolver.task_id == 0\nprint(chief(strategy))")
    one = 'tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec({"worker": ["localhost:0"]}), '
    wanted = source.replace("of.cluster_resolver", f'{one}task_type="worker", task_id=0)')
    assert single(source) == wanted.replace(MIRRORED, "tf.distribute.get_strategy()")
    assert not engine.migrate("train.py", source.encode()).refused


def test_a_script_of_a_strategy_is_not_run_alone_for_its_failures() -> None:
    """It would fail otherwise than its one-worker form, by a TF_CONFIG that is not set."""
    assert not is_for_one_process("train.py", script().encode())
    for alone in (b"import tensorflow as tf\nmodel.fit(x, y)\n", b"import tfdp.runtime as dp\ndp.init()\n"):
        assert is_for_one_process("train.py", alone)


def test_a_cluster_of_another_system_stays() -> None:
    assert single("import os\nimport tensorflow as tf\nos.environ['TF_CONFIG'] = '{}'\ntf.distribute\n") is None


def test_a_strategy_by_another_way_in_is_refused() -> None:
    source = script(maker="mirrored_strategy.MirroredStrategy()")
    source = "from tensorflow.python.distribute import mirrored_strategy\n" + source
    found = engine.migrate("train.py", source.encode())
    assert "TFDP070" in [f.code for f in found.findings if f.refusal]


def test_one_of_two_strategies_is_none() -> None:
    two = "{} if len(tf.config.list_physical_devices('GPU')) > 1 else tf.distribute.get_strategy()"
    after = single(script(maker=two.format(MIRRORED)))
    assert after == single(script())


def test_a_script_for_one_device_is_left_alone() -> None:
    assert single("import tensorflow as tf\n\n# no tf.distribute here\nmodel.fit(x, y)\n") is None


def test_the_batch_of_all_replicas_is_kept_unless_another_is_asked_for() -> None:
    found = engine.migrate("train.py", script().encode())
    assert (found.road, found.batch, found.refused) == ("calls", "global", False)


def test_one_device_is_a_target(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(script().replace("\n", "\r\n").encode())
    run = CliRunner().invoke(main, ["migrate", "--target", "single", str(path)])
    assert run.exit_code == 0, run.output
    wanted = "".join(line for line in script().splitlines(keepends=True) if "strategy" not in line)
    assert path.read_bytes() == wanted.replace("    model", "model").replace("\n", "\r\n").encode()
    again = CliRunner().invoke(main, ["migrate", "--target", "single", "--check", str(path)])
    assert again.exit_code == 0, again.output


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--batch", "global"], "no batch, rate or road"), (["--partial"], "no batch, rate or road")],
)
def test_one_device_has_no_policy(options: list[str], said: str, tmp_path: Path) -> None:
    run = CliRunner().invoke(main, ["migrate", "--target", "single", *options, str(tmp_path)])
    assert run.exit_code == 2
    assert said in run.output


def test_another_system_is_refused_by_that_target(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(script("print(tf.distribute.has_strategy())"))
    run = CliRunner().invoke(main, ["migrate", "--target", "single", str(path)])
    assert run.exit_code == 1
    assert "TFDP070" in run.output
    assert path.read_text() == script("print(tf.distribute.has_strategy())")
