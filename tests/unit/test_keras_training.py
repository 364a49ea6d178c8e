"""Which models a script compiles and fits, and what belongs together."""

from __future__ import annotations

import textwrap

import pytest

from tfdp.migrate.facts import Script, read


def script(body: str) -> Script:
    return read("import tensorflow as tf\nfrom tensorflow import keras\n" + textwrap.dedent(body))


def fits(body: str) -> list[list[str]]:
    """For each fit the code of the optimizers of its model's compiles."""
    found = script(body)
    code = found.index.code
    return [[code(c.optimizer) if c.optimizer is not None else "" for c in f.compiles] for f in found.fitted.calls]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param("m = keras.Sequential()\nm.compile('adam')\nm.fit(x, y)\n", [["'adam'"]], id="positional"),
        pytest.param("m = keras.Sequential()\nm.compile(loss='mse')\nm.fit(x)\n", [[""]], id="omitted"),
        pytest.param(
            "m = keras.Model(a, b)\nm.compile(optimizer='sgd')\nm.fit(x)\nm.compile(optimizer='adam')\nm.fit(x)\n",
            [["'sgd'", "'adam'"], ["'sgd'", "'adam'"]],
            id="two compiles",
        ),
        pytest.param(
            """
            def build(rate):
                m = keras.Sequential()
                m.compile(optimizer=keras.optimizers.Adam(rate))
                return m
            build(0.1).fit(x, y)
            other = build(0.2)
            other.fit(x, y)
            """,
            [["keras.optimizers.Adam(rate)"]] * 2,
            id="made and compiled in a function",
        ),
        pytest.param(
            """
            class Trainer:
                def __init__(self):
                    self.model = keras.Sequential()
                    self.model.compile(optimizer='adam')
                def run(self):
                    self.model.fit(x)
                def fit(self):
                    self.run()
            Trainer().fit()
            """,
            [["'adam'"]],
            id="attribute",
        ),
        pytest.param(
            "a = keras.Sequential()\nb = keras.Sequential()\na.compile('sgd')\nb.compile('adam')\nb.fit(x)\n",
            [["'adam'"]],
            id="two models",
        ),
        pytest.param(
            "from models import build\nm = build()\nm.compile('adam')\nm.fit(x)\n", [["'adam'"]], id="imported model"
        ),
        pytest.param("from models import build\nbuild().fit(x, epochs=3)\n", [[]], id="imported and compiled"),
        pytest.param("from sklearn.svm import SVC\nc = SVC()\nc.fit(x, y)\n", [], id="not Keras'"),
        pytest.param("m = keras.Sequential()\nm.compile('adam')\nm.evaluate(x)\n", [], id="never fitted"),
    ],
)
def test_each_fit_knows_what_its_model_was_compiled_with(body: str, expected: list[list[str]]) -> None:
    assert fits(body) == expected


def test_a_train_step_and_a_compile_of_the_models_own_class_are_found() -> None:
    found = script(
        """
        class Gan(keras.Model):
            def compile(self, d_optimizer, g_optimizer):
                super().compile()
                self.d_optimizer = d_optimizer
            def train_step(self, data):
                return {}
        gan = Gan()
        gan.compile(keras.optimizers.Adam(), keras.optimizers.Adam())
        gan.fit(x)
        """
    )
    (fit,) = found.fitted.calls
    assert fit.step is not None
    (compiled,) = fit.compiles
    assert compiled.own is not None
    assert compiled.optimizer is None


@pytest.mark.parametrize("call", ["re.compile('a')", "builtins.compile('a', 'b', 'exec')", "np.polynomial.fit(x, y)"])
def test_functions_of_modules_are_no_models_methods(call: str) -> None:
    found = script(f"import re, builtins\nimport numpy as np\n{call}\n")
    assert not found.fitted.compiles
    assert not found.fitted.calls


@pytest.mark.parametrize(
    ("use", "handed"),
    [
        ("import keras_tuner\nkeras_tuner.RandomSearch(build, 'loss').search(x, y)\n", 1),
        ("from scikeras.wrappers import KerasClassifier\nKerasClassifier(model=build).fit(x, y)\n", 1),
        ("build(None).fit(x, y)\n", 0),
        ("build(None).evaluate(x, y)\n", 0),
    ],
)
def test_models_that_others_train_are_not_passed_over(use: str, handed: int) -> None:
    found = script("def build(hp):\n    m = keras.Sequential()\n    m.compile('adam')\n    return m\n" + use)
    assert len(found.fitted.handed_models) == handed
    assert found.trains is (handed > 0 or ".fit(" in use)


def on_batches(body: str) -> list[list[str]]:
    """For each train_on_batch the code of the optimizers of its model's compiles."""
    found = script(body)
    code = found.index.code
    return [[code(c.optimizer) if c.optimizer is not None else "" for c in f.compiles] for f in found.fitted.on_batches]


def test_what_train_on_batch_trains_is_not_fitted() -> None:
    body = """
    class GAN:
        def __init__(self):
            self.critic = self.build()
            self.critic.compile(loss='mse', optimizer='sgd')
            self.combined = keras.Model(z, self.critic(z))
            self.combined.compile(loss='mse', optimizer='adam')
        def build(self):
            return keras.Sequential()
        def train(self, x, y):
            self.critic.train_on_batch(x, y)
            self.combined.train_on_batch(x, y)
    """
    assert on_batches(body) == [["'sgd'"], ["'adam'"]]
    assert fits(body) == []


def test_a_train_on_batch_of_the_files_own_is_none_of_keras() -> None:
    body = """
    class Trainer:
        def train_on_batch(self, x):
            self.total += x
    Trainer().train_on_batch(1)
    """
    assert on_batches(body) == []
