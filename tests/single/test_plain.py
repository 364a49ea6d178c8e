"""Whether code of the script's own only computes: it is called whole if it may do more."""

import collections
import copy
import functools
import inspect
import sys

import numpy as np
import pytest
import tensorflow as tf
from single import code_of_a_script as code

import tfdp.runtime as dp
from tfdp.runtime.calls.plain import verdict

ROWS = tf.ones([4, 3])
OWN = [each for each in vars(code).values() if inspect.isfunction(each) and each.__module__ == code.__name__]
UNKNOWN = [each for each in OWN if each not in (*code.PLAIN, code.scaled, code.counting)]


def reason(called, *arguments, **options):
    return verdict(called, (), arguments, options).reason


@pytest.mark.parametrize("function", code.PLAIN, ids=lambda each: each.__name__)
def test_code_that_only_computes_is_known_as_such(function, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    assert not reason(function, ROWS)


@pytest.mark.parametrize("function", UNKNOWN, ids=lambda each: each.__name__)
def test_code_that_may_do_more_is_not(function):
    given = {"first": ROWS} if function is code.changes_what_it_is_given else ROWS
    assert "may do more than to compute" in reason(function, given)


def test_what_was_read_is_what_it_holds_for():
    module = code.Module()

    def called(x):
        return module.helper(x) if not module.debug and module.settings.rate else x * module.parts[0]

    found = verdict(called, (), (ROWS,), {})
    assert not found.reason
    assert found.holds
    for holder, name, now, before, said in (
        (module, "debug", True, False, "debug of a Module (False then, True now)"),
        (module.settings, "rate", 0.7, 0.5, "rate of a Settings (0.5 then, 0.7 now)"),
        (module, "settings", code.Settings(), None, "settings of a Module"),
    ):
        setattr(holder, name, now)
        assert not found.holds
        assert found.reads.changed() == said
        if before is not None:
            setattr(holder, name, before)
            assert found.holds


def test_functions_that_are_divided_by_rows_are_seen_as_they_are():
    module = code.Module()
    assert not reason(lambda x: dp.by_rows(module.helper)(x) + 1, ROWS)
    assert "may do more" in reason(lambda x: dp.by_rows(UNKNOWN[0])(x) + 1, ROWS)
    assert "uses the module tfdp.runtime" in reason(lambda x: x * dp.size(), ROWS)


@pytest.mark.parametrize("holder", ["name", "attribute", "list", "attribute of a layer"])
def test_numbers_of_arrays_are_read(holder):
    table, module, layer = np.ones([2, 3]), code.Module(), tf.keras.layers.Dense(3)
    module.table, layer.table, tables = table, table, [table]
    layer(ROWS)
    called = {
        "name": lambda x: x * table[0],
        "attribute": lambda x: x * module.table[0],
        "list": lambda x: x * tables[0][0],
        "attribute of a layer": lambda x: layer(x) * layer.table[0],
    }[holder]
    found = verdict(called, (), (ROWS,), {})
    assert not found.reason
    assert found.holds
    table[0] *= 0.5
    assert not found.holds


@pytest.mark.parametrize("holder", [[1.0], {1.0}, {1.0: 1.0}, collections.deque([1.0]), bytearray(b"a")], ids=repr)
@pytest.mark.parametrize(
    "ask", [lambda held: not held, lambda held: len(held) > 1, lambda held: 3 in held], ids=["empty", "length", "in"]
)
def test_what_a_container_holds_is_read(holder, ask):
    held, more = copy.copy(holder), copy.copy(holder)
    change = {list: "append", set: "add", dict: "setdefault", collections.deque: "append", bytearray: "append"}
    found = verdict(lambda x: x if ask(held) else -x, (), (ROWS,), {})
    if found.reason:
        assert "it may do more than to compute" in found.reason
        return
    assert found.holds
    getattr(held, change[type(held)])(3)
    assert held != more
    assert not found.holds


def test_settings_of_layers_are_read():
    layer = tf.keras.layers.Dense(3)
    layer(ROWS)
    found = verdict(lambda x: layer(x) + 1, (), (ROWS,), {})
    assert not found.reason
    assert found.holds
    layer.activation = code.counting
    assert not found.holds


def test_arguments_of_partial_are_read():
    function = functools.partial(code.scaled, by=2.0)
    found = verdict(lambda x: function(x) + 1, (), (ROWS,), {})
    assert not found.reason
    assert found.holds
    function.keywords["by"] = 3.0
    assert not found.holds


def test_an_object_of_another_class_is_another_one():
    class Other(code.Module):
        def helper(self, x):
            return code.counting(x)

    module = code.Module()
    found = verdict(lambda x: module.helper(x) + 1, (), (ROWS,), {})
    assert not found.reason
    module.__class__ = Other
    assert not found.holds


def test_a_method_that_is_put_into_a_class_is_another_one():
    class Own(code.Module):
        def __call__(self, x):
            return self.helper(x)

    own = Own()
    found = verdict(own, (), (ROWS,), {})
    assert not found.reason
    Own.helper = lambda _, x: code.counting(x)
    assert not found.holds
    assert "may do more than to compute" in reason(own, ROWS)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("layer", "is_plain"),
    [
        (code.Plain, True),
        (code.Derived, True),
        (code.Sampling, True),
        (code.CountingByALayer, False),
        (code.CountingInAGradient, False),
        (code.CountingBySetting, False),
        (code.Counting, False),
        (code.Losing, False),
    ],
)
def test_layers_of_the_script(layer, is_plain, wrapped):
    made = layer()
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), made]) if wrapped else made
    model(ROWS)
    assert (not reason(model, ROWS, training=True)) == is_plain


@pytest.mark.parametrize(("function", "is_plain"), [(code.scaled, True), (code.counting, False)])
@pytest.mark.parametrize("put", ["activation", "lambda"])
def test_functions_that_a_layer_of_keras_is_given(put, function, is_plain):
    layer = tf.keras.layers.Dense(3, activation=function) if put == "activation" else tf.keras.layers.Lambda(function)
    model = tf.keras.Sequential([layer])
    model(ROWS)
    assert (not reason(model, ROWS)) == is_plain


@pytest.mark.skipif(not hasattr(tf.keras, "ops"), reason="Keras 2 has no operations that are no layers")
@pytest.mark.parametrize(("function", "is_plain"), [(code.scaled, True), (code.counting, False)])
def test_functions_that_an_operation_between_layers_is_given(function, is_plain):
    place = tf.keras.Input((3,))
    model = tf.keras.Model(place, tf.keras.ops.map(function, place))
    assert (not reason(model, ROWS)) == is_plain


@pytest.mark.skipif(not hasattr(tf.keras, "Operation"), reason="Keras 2 has no operations that are no layers")
def test_an_operation_of_the_script():
    class Own(tf.keras.Operation):
        def call(self, x):
            return code.counting(x)

        def compute_output_spec(self, x):
            return tf.keras.KerasTensor(x.shape, x.dtype)

    place = tf.keras.Input((3,))
    assert "may do more than to compute" in reason(tf.keras.Model(place, Own()(place)), ROWS)


@pytest.mark.parametrize(("function", "is_plain"), [(code.scaled, True), (code.counting, False)])
def test_a_call_that_is_put_into_one_layer(function, is_plain):
    layer = tf.keras.layers.Dense(3)
    layer(ROWS)
    layer.call = function
    assert (not reason(layer, ROWS)) == is_plain


def test_the_reason_says_where():
    said = reason(code.counts_in_an_attribute, ROWS)
    line = inspect.getsourcelines(code.counts_in_an_attribute)[1] + 1
    assert f"at code_of_a_script.py:{line}" in said
    assert "rate" in said
