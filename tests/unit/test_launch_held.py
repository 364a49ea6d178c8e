"""Lines that may be a rank's last words are held only while they take little memory."""

from tfdp.runtime.launch.held import Held

HEADER = b"Traceback (most recent call last):"


def test_what_is_held_is_bounded_by_its_bytes():
    held = Held(lambda: True)
    assert held.feed([b"own", HEADER], 0.0) == [b"own"]
    line = b"x" * 2**20
    assert held.feed([line], 0.1) == []
    assert held.feed([line], 0.2) == [HEADER, line, line]
    assert held.due is None
    assert held.feed([HEADER, *[b""] * 10_000], 0.3) == []
    assert held.look(5.0) == []  # the job is ending
