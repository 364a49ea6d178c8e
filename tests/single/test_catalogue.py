"""The catalogue says what TensorFlow says: every name exists, every default and position is the real one."""

from __future__ import annotations

import importlib
import inspect

import pytest
import tensorflow as tf

from tfdp.migrate import outputs
from tfdp.migrate.catalogue import BATCHING, KINDS, OPTIMIZERS, SAVES, SCHEDULES, STAGES, VARIABLE_COLLECTIONS, Kind

OTHERS = {"numpy", "matplotlib", "tqdm", "tensorflow_datasets", "os", "shutil", "random"}
# Not in every version, or under `import keras` alone.
NEWER = {"keras.saving.load_model", "keras.saving.save_model", "keras.datasets.california_housing.load_data"}
KERAS_3 = hasattr(tf.keras, "ops")


def resolve(name: str) -> object:
    root, _, rest = name.partition(".")
    if root in OTHERS:
        module, _, attribute = name.rpartition(".")
        return getattr(importlib.import_module(module), attribute)
    found: object = tf if root == "tensorflow" else tf.keras
    for part in rest.split("."):
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", sorted(KINDS.keys() - NEWER))
def test_every_name_exists(name: str) -> None:
    if name.partition(".")[0] in OTHERS:
        pytest.importorskip(name.partition(".")[0])
    if name.startswith("keras.random.") and not KERAS_3:
        pytest.skip("of Keras 3")
    assert callable(resolve(name))


LISTS = (outputs.WRITES, outputs.PRINTS, outputs.OPENS, outputs.FETCHES)

CHECKED = sorted(n for n in set().union(*LISTS) - NEWER if n.startswith(("tensorflow.", "keras.")))


@pytest.mark.parametrize("name", CHECKED)
def test_every_function_that_writes_or_reads_exists(name: str) -> None:
    assert callable(resolve(name))


@pytest.mark.parametrize("name", sorted(n for n in OPTIMIZERS if f"keras.optimizers.{n}" not in NEWER))
def test_default_learning_rates(name: str) -> None:
    parameters = inspect.signature(getattr(tf.keras.optimizers, name).__init__).parameters
    assert list(parameters)[1] == "learning_rate"
    if OPTIMIZERS[name] is not None:
        assert parameters["learning_rate"].default == OPTIMIZERS[name]


@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_schedule_arguments(name: str) -> None:
    parameters = list(inspect.signature(getattr(tf.keras.optimizers.schedules, name).__init__).parameters)[1:]
    for keyword, position in SCHEDULES[name]:
        assert parameters.index(keyword) == position


@pytest.mark.parametrize("name", sorted(n for n, k in KINDS.items() if k is Kind.LOSS_CLASS))
def test_loss_objects_are_means_by_default(name: str) -> None:
    labels, predictions = (
        tf.constant([[0.0, 1.0]] * 3 + [[1.0, 0.0]]),
        tf.constant([[0.3, 0.7], [0.6, 0.4], [0.2, 0.8], [0.9, 0.1]]),
    )
    if "Sparse" in name:
        labels = tf.constant([1, 0, 1, 0])
    loss = resolve(name)()
    whole = float(loss(labels, predictions))
    halves = [float(loss(labels[i : i + 2], predictions[i : i + 2])) for i in (0, 2)]
    assert whole == pytest.approx(sum(halves) / 2, rel=1e-5)


@pytest.mark.parametrize("name", sorted(n for n, k in KINDS.items() if k is Kind.LOSS_FUNCTION))
def test_loss_functions_give_one_value_per_example(name: str) -> None:
    labels, predictions = tf.constant([[0.0, 1.0]] * 4), tf.constant([[0.3, 0.7]] * 4)
    if "sparse" in name:
        labels = tf.constant([1, 1, 1, 1])
    assert resolve(name)(labels, predictions).shape == (4,)


def test_dataset_stages_exist() -> None:
    assert set(BATCHING) <= set(STAGES)
    assert all(callable(getattr(tf.data.Dataset, name, None)) for name in STAGES)


def test_saving_methods_and_collections_exist() -> None:
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.build((None, 2))
    assert all(callable(getattr(model, name)) for name in SAVES[Kind.MODEL])
    assert all(callable(getattr(tf.train.Checkpoint, name)) for name in SAVES[Kind.CHECKPOINT])
    assert all(len(getattr(model, name)) == 2 for name in VARIABLE_COLLECTIONS)


def test_the_omitted_default_that_differs_by_version_is_known() -> None:
    default = inspect.signature(tf.keras.optimizers.Lion.__init__).parameters["learning_rate"].default
    assert default == (0.001 if KERAS_3 else 0.0001)
