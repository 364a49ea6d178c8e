"""wandb and mlflow: one run, rank 0's, and nothing of it where other ranks would need it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tfdp.migrate import engine
from tfdp.runtime.job import root

_SCRIPT = """\
import os
import numpy as np
import tensorflow as tf
{imports}

x, y = np.zeros((640, 4), "float32"), np.zeros((640, 1), "float32")
{before}
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile(tf.keras.optimizers.SGD({rate}), "mse")
model.fit(x, y, batch_size=32, callbacks=[{callback}])
{after}
"""


def migrated(imports: str, before: str = "", **given: str) -> engine.Migration:
    parts = {"rate": "0.1", "callback": "", "after": "", **given}
    return engine.migrate("train.py", _SCRIPT.format(imports=imports, before=before, **parts).encode())


_GUARD = "if dp.rank() == 0:  # tfdp: one worker reports\n"
_OUTSIDE = {
    "a run without a name": (
        "import wandb",
        {"before": "wandb.init(project='a')"},
        "dp.report(wandb.init, project='a')",
    ),
    "a run with one": ("import wandb", {"before": "run = wandb.init(id='a')"}, "run = dp.report(wandb.init, id='a')"),
    "a run under a condition": (
        "import wandb",
        {"before": "run = wandb.init() if os.environ.get('LOG') else None", "after": "if run:\n    run.finish()"},
        "run = dp.report(wandb.init) if os.environ.get('LOG') else None",
    ),
    "a module that may be missing": (
        "try:\n    import wandb\nexcept ImportError:\n    wandb = None",
        {"before": "if wandb is not None:\n    wandb.init()"},
        "    dp.report(wandb.init)",
    ),
    "a run around all": (
        "import mlflow",
        {"before": "with mlflow.start_run() as run:\n    mlflow.log_param('a', 1)"},
        "with dp.report(mlflow.start_run) as run:\n    dp.report(mlflow.log_param, 'a', 1)",
    ),
    "functions by their names": (
        "from mlflow import log_metric, start_run",
        {"before": "with start_run():\n    log_metric('a', 1)"},
        "with dp.report(start_run):\n    dp.report(log_metric, ",
    ),
    "autolog": ("import mlflow", {"before": "mlflow.tensorflow.autolog()"}, "dp.report(mlflow.tensorflow.autolog)"),
    "a callback": (
        "import wandb\nfrom wandb.keras import WandbCallback",
        {"callback": "WandbCallback(monitor='loss')"},
        "dp.fit_callbacks([dp.report(WandbCallback, monitor='loss')])",
    ),
    "a callback of mlflow's": (
        "import mlflow",
        {"callback": "mlflow.keras.MlflowCallback()"},
        "dp.fit_callbacks([dp.report(mlflow.keras.MlflowCallback)])",
    ),
    "a call in a callback": (
        "import mlflow",
        {"callback": "tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda e, logs: mlflow.log_metrics(logs))"},
        "lambda e, logs: dp.report(mlflow.log_metrics, logs)",
    ),
    "the module's own run": (
        "import wandb",
        {"before": "wandb.init()\nwandb.config.update({'a': 1})"},
        f"dp.report(wandb.init)\n{_GUARD}    wandb.config.update({{'a': 1}})",
    ),
    "a run as an attribute": (
        "import wandb",
        {
            "before": "class Log:\n    def __init__(self):\n        self.run = wandb.init()\n\n    def say(self):\n"
            "        self.run.log({'a': 1})\n\nlog = Log()\nlog.say()"
        },
        "        dp.report(self.run.log, ",
    ),
    "what is asked of rank 0 by hand": (
        "import wandb\nimport tfdp.runtime as dp",
        {"before": "run = dp.report(wandb.init)\nrate = dp.on_root(lambda: wandb.config.rate)"},
        "dp.on_root(lambda: wandb.config.rate)",
    ),
}


@pytest.mark.parametrize(("imports", "given", "becomes"), _OUTSIDE.values(), ids=_OUTSIDE.keys())
def test_one_run(imports: str, given: dict[str, str], becomes: str) -> None:
    migration = migrated(imports, **given)
    assert not migration.refused, migration.findings
    assert becomes in migration.after.decode()
    again = engine.migrate("train.py", migration.after)
    assert again.after == migration.after
    assert not again.findings


_REFUSED = {
    "a value": ("wandb", {"before": "wandb.init()", "rate": "wandb.config.rate"}, "`wandb.config.rate` is read"),
    "a value of a run": ("wandb", {"before": "run = wandb.init()", "rate": "run.config.rate"}, "`run.config.rate`"),
    "an entry": ("wandb", {"before": "run = wandb.init()", "rate": "run.config['rate']"}, "`run.config` is read"),
    "the settings of a run that has no name": (
        "wandb",
        {"before": "c = wandb.init().config"},
        "what `wandb.init` returns",
    ),
    "the settings under a name": ("wandb", {"before": "c = wandb.config", "rate": "c.rate"}, "`wandb.config` is read"),
    "a number": (
        "mlflow",
        {"before": "run = mlflow.start_run()\nname = run.info.run_id"},
        "`run.info.run_id` is read",
    ),
    "a sweep": ("wandb", {"before": "wandb.agent(wandb.sweep({}), print)"}, "what `wandb.agent` returns"),
    "what is not known": ("mlflow", {"before": "run = mlflow.active_run()"}, "what `mlflow.active_run` returns"),
    "what is stored": ("wandb", {"before": "wandb.init()\nwandb.config.a = 1"}, "`wandb.config.a` is read"),
    "a function that is handed on": ("wandb", {"before": "log = wandb.log"}, "`wandb.log` is read"),
    "a class of its own": (
        "wandb",
        {"before": "class Log(wandb.keras.WandbCallback):\n    pass", "callback": "Log()"},
        "`wandb.keras.WandbCallback` is read",
    ),
    "a condition": ("wandb", {"before": "if wandb.init() == 1:\n    pass"}, "what `wandb.init` returns"),
    "a file of a run": (
        "wandb",
        {"before": "run = wandb.init()\nx = np.load(run.use_artifact('a').download())"},
        "what `run.use_artifact` returns",
    ),
}


@pytest.mark.parametrize(("package", "given", "said"), _REFUSED.values(), ids=_REFUSED.keys())
def test_what_the_other_ranks_would_need_is_refused(package: str, given: dict[str, str], said: str) -> None:
    found = [f for f in migrated(f"import {package}", **given).findings if f.code == "TFDP051"]
    assert found
    assert all(f.refusal and f.next_step for f in found)
    assert said in found[0].message


def test_an_ignored_line_is_the_authors() -> None:
    migration = migrated("import wandb", "name = wandb.run.name  # tfdp: ignore[TFDP051]")
    assert not migration.refused


@pytest.mark.parametrize("rank", [0, 1])
def test_a_run_on_one_rank(monkeypatch: pytest.MonkeyPatch, rank: int) -> None:
    told: list[str] = []

    class Run:
        def __enter__(self) -> Run:
            return self

        def __exit__(self, *_: object) -> None:
            told.append("end")

        def log(self, values: dict[str, int]) -> None:
            told.append(str(values))

    monkeypatch.setattr(root, "known", lambda: SimpleNamespace(topology=SimpleNamespace(rank=rank)))
    turns = 0
    with root.report(Run) as run:
        turns += 1
        run.log({"a": 1})
        run.best = 3
    assert turns == 1
    assert run
    assert run is not None
    assert told == (["{'a': 1}", "end"] if rank == 0 else [])


def test_what_does_nothing_has_nothing_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root, "known", lambda: SimpleNamespace(topology=SimpleNamespace(rank=1)))
    nothing = root.report(print, "not printed")
    assert list(nothing) == []  # as a callback: fit_callbacks finds none
    assert isinstance(nothing, tuple)
    nothing.summary["best"] = 3
    nothing.config.update(rate=0.1)
    assert not hasattr(nothing, "__array__")
