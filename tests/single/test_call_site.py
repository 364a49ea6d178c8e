"""Messages name the line of the script, also where AutoGraph has compiled it into another file."""

import pathlib
import sys

import pytest
import tensorflow as tf

from tfdp.runtime.foundation import site_of

found = []


def line_of(mark):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))


@tf.autograph.experimental.do_not_convert
def note():
    found.append(site_of(sys._getframe(1)))


def called(x):
    note()  # in a function that the compiled one calls
    return x


class Trainer(tf.Module):
    @tf.function
    def step(self, x):
        note()  # at the top
        if tf.reduce_sum(x) > 0:
            x = called(x)
        for _ in tf.range(2):
            with tf.GradientTape():
                note()  # in a loop
        print(
            note(),  # over several lines
        )
        return x


@tf.function(autograph=False)
def as_it_is(x):
    note()  # without AutoGraph
    return x


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (
            lambda: Trainer().step(tf.ones([2])),
            [
                ("at the top", 0, "step"),
                ("in a function that the compiled one calls", 0, "called"),
                ("in a loop", 0, "step"),
                ("over several lines", -1, "step"),
            ],
        ),
        (lambda: as_it_is(tf.ones([2])), [("without AutoGraph", 0, None)]),
        (lambda: tf.data.Dataset.range(1).map(called), [("in a function that the compiled one calls", 0, "called")]),
    ],
)
def test_the_line_of_the_script(run, expected):
    found.clear()
    run()
    places = [f"{__file__}:{line_of(mark) + shift}" for mark, shift, _ in expected]
    assert found == [
        place + (f" (in {inside})" if inside else "") for place, (_, _, inside) in zip(places, expected, strict=True)
    ]
