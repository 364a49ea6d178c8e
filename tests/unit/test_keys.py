"""Which collectives of TensorFlow share a key. A key is never given back, so their number must stay bounded."""

from tfdp.runtime.transports._keys import Keys


def test_one_kind_and_size_has_one_key_for_good():
    keys = Keys()
    first = keys.take("float32 Add", 100)
    assert keys.take("float32 Add", 100) == first
    assert len({keys.take(kind, size)[0] for kind in ("float32 Add", "float32 Max") for size in (100, 101)}) == 4
    assert len(keys) == 4


def test_keys_depend_on_nothing_but_the_order_of_the_calls():
    calls = [("int64 Add", 7), ("float32 Add", 9), ("int64 Add", 7), ("int64 gather", 1000)]
    one, other = Keys(), Keys()
    assert [one.take(*call) for call in calls] == [other.take(*call) for call in calls]


def test_nothing_is_sent_as_one_element():
    assert Keys().take("float32 Add", 0)[1] == 1


def test_sizes_that_vary_share_keys_and_grow_by_an_eighth_at_most():
    keys = Keys()
    for size in range(1, 100_000):
        _, width = keys.take("int64 gather", size, varies=True)
        assert size <= width <= size * 9 / 8
    assert len(keys) < 150


def test_sizes_that_nobody_said_would_vary_share_keys_too_in_the_end():
    keys = Keys()
    assert all(keys.take("float32 Add", size)[1] == size for size in range(1, 1025))
    known = len(keys)
    for size in range(1025, 100_000):
        assert keys.take("float32 Add", size)[1] >= size
    assert len(keys) < known + 80
    assert keys.take("float32 Add", 1000)[1] == 1000
