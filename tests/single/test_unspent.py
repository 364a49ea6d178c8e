"""What a look draws is drawn again afterwards, and what other threads draw meanwhile is not."""

import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import random_seed

from tfdp.runtime.calls.unspent import unspent

DRAWS = {
    "python": (lambda: random.seed(3), lambda: random.gauss(0, 1) + random.randrange(9)),
    "numpy": (lambda: np.random.seed(3), lambda: float(np.random.randn() + np.random.sample())),
    "tensorflow": (lambda: tf.random.set_seed(3), lambda: random_seed.get_seed(None)[1]),
}


@pytest.fixture
def other_thread():
    with ThreadPoolExecutor(1) as pool:
        yield lambda draw: pool.submit(draw).result()


@pytest.mark.parametrize("kind", DRAWS)
def test_a_look_takes_no_numbers_and_gives_none_back_that_others_took(kind, other_thread):
    start, draw = DRAWS[kind]
    start()
    numbers = [draw() for _ in range(4)]
    start()
    found = [draw()]
    with unspent():
        looked = draw()
        found.append(other_thread(draw))
        with unspent():
            assert [draw(), draw()] == numbers[2:]
        assert [draw(), draw()] == numbers[2:], "a look inside a look takes numbers"
    found += [draw(), other_thread(draw)]
    assert found == numbers
    assert looked == numbers[1]


def test_threads_that_look_at_a_time_draw_from_copies_of_their_own(other_thread):
    random.seed(3)
    numbers = [random.random() for _ in range(2)]
    random.seed(3)
    names, draw = dict(vars(random)), random.random
    look = unspent()
    other_thread(look.__enter__)
    with unspent():
        assert random.random() == numbers[0]
        assert other_thread(random.random) == numbers[0]
    assert other_thread(random.random) == numbers[1]
    other_thread(lambda: look.__exit__(None, None, None))
    assert [draw(), random.random()] == numbers
    assert vars(random) == names


def test_seeds_are_asked_for_again(other_thread):
    from tfdp.runtime.calls.entropy import draw_by

    def draw():
        return int(np.random.default_rng().integers(2**40)), random.Random().random()

    draw_by(3)
    numbers = [draw() for _ in range(3)]
    draw_by(3)
    with unspent():
        assert draw() == numbers[0]
        assert other_thread(draw) == numbers[0]
    assert [draw(), draw()] == numbers[1:]
