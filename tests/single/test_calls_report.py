"""What is told of sharded calls: a network of a hundred layers is no hundred lines."""

import importlib

import pytest
import tensorflow as tf

from tfdp.runtime.calls.callee import Callee, given_to
from tfdp.runtime.calls.kept import Kept

report = importlib.import_module("tfdp.runtime.calls.report")  # in its package a function has the name


@pytest.fixture(autouse=True)
def _of_its_own(monkeypatch):
    monkeypatch.setattr(report, "_lines", {})


def test_what_is_not_divided_is_told_by_its_reason():
    report.divided("Dense 'a'")
    for number in range(5):
        report.undivided(f"Conv2D 'c{number}'", report.SINGLE)
    report.undivided("Own 'o'", "adds a loss")
    _, single, own = report.said()
    assert single == "tfdp: computed by every worker: Conv2D 'c0', Conv2D 'c1', Conv2D 'c2' and 2 more (one row)"
    assert own == "tfdp: computed by every worker: Own 'o' (adds a loss)"


def test_so_is_why_a_job_ends():
    for number in range(4):
        report.undivided(f"Conv2D 'c{number}'", report.SINGLE)
    report.undivided("Own 'o'", "adds a loss")
    said = report.nothing_divided("train.py:3")
    assert "Conv2D 'c0', Conv2D 'c1', Conv2D 'c2' and 1 more: one row; Own 'o': adds a loss. This was seen" in said


@pytest.mark.parametrize(("rows", "said"), [(1, report.SINGLE), (4, "takes no tensors")])
def test_what_is_given_one_row_in_a_variable_is_given_one_row(rows, said):
    callee = Callee(tf.identity, None, "net", lambda: Kept([], [], [], []), is_atom=False)
    assert given_to(callee, ((tf.Variable(tf.zeros([rows, 3])),), {})) == said
