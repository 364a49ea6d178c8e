"""A recogniser that gives up says at which place and why: the chain of places is what a refusal tells."""

from __future__ import annotations

import textwrap

import pytest

from tfdp.migrate.facts import describe, provenance, read

_HEAD = """
import numpy as np
import tensorflow as tf
import utils

model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
x, y = np.ones((64, 4)), np.ones((64, 1))


def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(b - model(a)))
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

"""

_LOOPS = {
    "the same data at every step": (
        """
        for _ in range(10):
            step(x, y)
        """,
        ["no batch of data is seen to be taken in this loop", "`y` holds the same data at every step"],
    ),
    "rows at a place that is computed": (
        """
        for number in range(10):
            offset = (number * 8) % (len(x) - 8)
            step(x[offset : offset + 8], y[offset : offset + 8])
        """,
        ["`y[offset : offset + 8]` takes a part of the data by an index that is not followed"],
    ),
    "rows at a place that is computed, in a function": (
        """
        def batch(number):
            start = (number * 8) % (len(x) - 8)
            return x[start : start + 8], tf.gather(y, [start])


        for number in range(10):
            a, b = batch(number)
            step(a, b)
        """,
        ["takes a part of the data by an index that is not followed", "(line 2"],
    ),
    "the same rows at every step": (
        """
        n = 8
        for _ in range(10):
            step(x[:n], y[:n])
        """,
        ["`y[:n]` holds the same data at every step"],
    ),
    "code of another file": (
        """
        loader = utils.Loader()
        for _ in range(10):
            a, b = loader.next_batch(8)
            step(a, b)
        """,
        [
            "cannot tell where this loop's batches come from",
            "`loader.next_batch(8)` is a method that this file does not define",
            "`utils.Loader()` makes its object by utils.Loader, which is outside this file",
        ],
    ),
    "starred arguments": (
        """
        for _ in range(10):
            step(*utils.next_batch(8))
        """,
        ["`step(*utils.next_batch(8))` gives arguments by *, which are not followed"],
    ),
    "a start that the script moves on": (
        """
        start = 0
        for _ in range(10):
            step(x[start : start + 8], y[start : start + 8])
            start += 8
        """,
        ["takes rows that no loop's counter chooses", "`start` is not a loop's counter", "`start += 8` changes it"],
    ),
    "a place that an object keeps": (
        """
        class Data:
            def __init__(self):
                self.at = 0

            def batch(self):
                self.at += 8
                return x[self.at : self.at + 8], y[self.at : self.at + 8]


        data = Data()
        for _ in range(10):
            a, b = data.batch()
            step(a, b)
        """,
        [
            "`data.batch()` calls a function of this file",
            "takes rows that no loop's counter chooses",
            "`self.at` is a place that an object keeps",
            "`self.at += 8` moves it on",
        ],
    ),
    "a list that is filled": (
        """
        seen = []
        for _ in range(10):
            seen.append(utils.play())
            step(np.array(seen), y)
        """,
        ["`seen` is filled step by step", "`seen.append(utils.play())` puts more into it"],
    ),
    "examples drawn themselves": (
        """
        import random

        pairs = list(zip(x, y))
        for _ in range(10):
            drawn = random.sample(pairs, 8)
            step(np.stack([a for a, _ in drawn]), np.stack([b for _, b in drawn]))
        """,
        ["`random.sample(pairs, 8)` draws examples themselves"],
    ),
    "a generator by next": (
        """
        def batches():
            while True:
                yield utils.draw()


        made = batches()
        for _ in range(10):
            a, b = next(made)
            step(a, b)
        """,
        ["`next(made)` takes the next batch", "`batches()` is a generator of this file"],
    ),
    "a loop over no dataset": (
        """
        for a in utils.files:
            step(a, y)
        """,
        ["`utils.files` is made by another file"],
    ),
    "rows by a counter in another way": (
        """
        for i in range(0, 64, 8):
            step(x[i : i + 4], y[i : i + 4])
        """,
        ["takes another number of rows than its counter goes on by"],
    ),
}


def refused(script: str) -> str:
    problems = read(_HEAD + textwrap.dedent(script)).problems("per-worker")
    return next(p.reason for p in problems if p.code == "TFDP010")


@pytest.mark.parametrize("name", _LOOPS)
def test_a_loop_says_where_its_batches_come_from(name: str) -> None:
    script, words = _LOOPS[name]
    reason = refused(script)
    assert [w for w in words if w not in reason] == [], reason


def test_a_step_that_nothing_calls_names_its_function() -> None:
    assert "`step` holds it, and nothing in this file calls that" in refused("")
    assert "`step` holds it (line 11); `utils.Agent(step)` is given step" in refused("agent = utils.Agent(step)")


_RUN = """
def run(data):
    for a, b in data:
        step(a, b)

data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
"""
_GIVEN = {
    "functools.partial(run, data)()": "`functools.partial(run, data)` is given run",
    "pool.submit(run, data)": "`pool.submit(run, data)` is given run",
    "threading.Thread(target=run, args=(data,)).start()": "is given run, and what it does with that is not followed",
    "modes = {'a': run}\nmodes[utils.mode](data)": "`modes = {'a': run}` hands run on",
}


def test_a_function_that_is_handed_on_is_not_said_to_be_called_by_nothing() -> None:
    imports = "import functools, threading\nfrom utils import pool\n"
    for text, words in _GIVEN.items():
        reason = refused(imports + _RUN + text)
        assert words in reason, reason
        assert "nothing in this file" not in reason, reason
    decorated = refused(_RUN.replace("def run", "@utils.command()\ndef run"))
    assert "`utils.command()` is put on it, and may call it" in decorated
    assert "nothing in this file calls" in refused(_RUN)
    again = refused(_RUN + "run(data)\n" + _RUN)  # the second function of that name, which nothing calls
    assert "nothing in this file calls" in again, again


def test_batches_whose_code_is_not_followed_are_not_said_to_be_of_another_file() -> None:
    source = _HEAD + "from torch.utils.data import DataLoader\nfor a, b in DataLoader(utils.rows):\n    step(a, b)\n"
    [problem] = read(source).problems("global")
    assert "the records reach this point in batches" in problem.reason
    assert "file" not in problem.reason


def test_describe_says_what_effects_do_and_no_names_of_the_code() -> None:
    shown = describe(read(f"import cv2\n{_HEAD}{_RUN}run(data)\ncv2.imwrite('m.png', x)\nmodel.save('m')\n"))
    assert "cv2.imwrite('m.png', x) (writes, moves or deletes files)" in shown
    assert "model.save('m')" not in shown
    assert "EffectKind" not in shown


def test_provenance_follows_names_parameters_and_returned_values() -> None:
    source = """\
import numpy as np

def load(n):
    values = np.zeros(n)
    return values

x = load(9)
y = x
print(y)
"""
    shown = provenance(read(source), 9)
    places = [
        "`y = x` gives",
        "`x = load(9)` gives",
        "`load(9)` calls load()",
        "`values = np.zeros(n)`",
        "`9` is written",
    ]
    assert [shown.find(p) for p in places] == sorted(shown.find(p) for p in places)
    assert all(p in shown for p in places)


def test_provenance_says_what_a_value_is_understood_as() -> None:
    source = "import tensorflow as tf\nd = tf.data.Dataset.range(8).batch(2)\nfor b in d:\n    print(b)\n"
    assert "`d` is a dataset: source.batch()" in provenance(read(source), 3)
    assert "is gone over: this is one element of it" in provenance(read(source), 4)
    assert provenance(read(source), 9) == "line 9: no value that has an origin\n"
