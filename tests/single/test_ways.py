"""The way that Python takes through code of the script's own: equal where the same instructions follow each other."""

import gc

import tensorflow as tf

from tfdp.runtime.calls.ways import followed


def way(call, *arguments):
    with followed() as found:
        call(*arguments)
    return found


def halved(x, flag):
    return x / 2 if flag and tf.executing_eagerly() else x


def summed(numbers):
    total = 0
    for each in numbers:
        total += each if each % 2 else -each
    return total


def caught(x):
    try:
        return float(x)
    except TypeError:
        return x


def test_a_way_is_the_same_however_often_it_is_taken():
    first = way(halved, tf.constant(4.0), True)
    assert all(way(halved, tf.constant(4.0), True) == first for _ in range(64))  # Python specialises meanwhile


def test_a_way_is_another_within_a_line():
    assert way(halved, tf.constant(4.0), True) != way(halved, tf.constant(4.0), False)
    with tf.Graph().as_default():
        assert way(halved, 4.0, True) != way(halved, 4.0, False)
    assert way(caught, "4") != way(caught, None)


def test_how_often_it_goes_round_makes_no_difference():
    assert way(summed, range(1, 9)) == way(summed, range(1, 99))
    assert way(summed, [1, 3]) == way(summed, [1]) != way(summed, [])


def test_libraries_take_no_ways():
    found = way(tf.nn.relu, tf.constant(4.0))
    assert not found


def test_what_is_collected_meanwhile_is_not_of_it():
    class Held:
        def __del__(self):
            gone.append(self.number)

    gone = []

    def ring(number):
        held = Held()
        held.number, held.itself = number, held

    def busy():
        return [[] for _ in range(100_000)]

    alone = way(busy)
    for number in range(9):
        ring(number)
    assert way(busy) == alone
    gc.collect()
    assert sorted(gone) == list(range(9))
