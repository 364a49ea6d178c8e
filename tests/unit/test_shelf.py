from tfdp.runtime.agent.shelf import Shelf


def test_a_value_is_dropped_when_all_others_have_read_it():
    shelf = Shelf(size=3, limit_bytes=100)
    shelf.put("k", b"value", 0, None)
    assert shelf.take("k", 1) == b"value"
    assert shelf.take("k", 1) == b"value", "the same reader again does not count twice"
    assert shelf.why_gone("k") is None
    assert shelf.take("k", 2) == b"value"
    assert shelf.take("k", 1) is None
    assert shelf.why_gone("k") == "it was published for 2 readers, and that many ranks have read it"


def test_readers_can_be_fewer_or_none():
    shelf = Shelf(size=3, limit_bytes=100)
    shelf.put("one", b"a", 0, 1)
    assert shelf.take("one", 2) == b"a"
    assert shelf.take("one", 1) is None
    shelf.put("none", b"a", 0, 0)
    assert shelf.take("none", 1) is None
    assert shelf.why_gone("none") == "rank 0 published it for no readers"


def test_a_later_value_replaces_an_earlier_one_and_starts_afresh():
    shelf = Shelf(size=2, limit_bytes=100)
    shelf.put("k", b"old", 0, None)
    shelf.put("k", b"new", 0, None)
    assert shelf.take("k", 1) == b"new"
    shelf.put("k", b"newer", 0, None)
    assert shelf.why_gone("k") is None
    assert shelf.take("k", 1) == b"newer"


def test_a_full_shelf_drops_the_oldest_and_says_so():
    shelf = Shelf(size=2, limit_bytes=10)
    for key in ("a", "b", "c"):
        shelf.put(key, b"4444", 0, None)
    assert shelf.take("a", 1) is None
    assert "its 4 bytes were dropped before all ranks had read them" in shelf.why_gone("a")
    assert "Set TFDP_STORE_BYTES higher" in shelf.why_gone("a")
    assert shelf.take("b", 1) == b"4444"
    assert shelf.take("c", 1) == b"4444"


def test_a_value_larger_than_the_shelf_is_gone_at_once():
    shelf = Shelf(size=2, limit_bytes=3)
    shelf.put("k", b"4444", 0, None)
    assert shelf.take("k", 1) is None
    assert "the store was full (3 bytes)" in shelf.why_gone("k")


def test_what_was_never_published_is_not_gone():
    assert Shelf(size=2, limit_bytes=3).why_gone("k") is None
