"""How the launcher cuts a stream into lines, and how often a redrawn line is shown. The clock is an argument."""

from tfdp.runtime.launch.lines import Lines, Pace


def fed(*events):
    """What is shown after each of (seconds, bytes); with b"" only time has passed."""
    lines = Lines(Pace())
    return [lines.feed(data, at) if data else lines.look(at) for at, data in events] + [lines.end(events[-1][0])]


def test_lines_come_out_when_they_are_whole():
    assert fed((0, b"a\nb"), (0.1, b"c\r"), (0.2, b"\n\nd")) == [[b"a"], [], [b"bc", b""], [b"d"]]


def test_a_redrawn_line_is_shown_once_a_second_and_at_its_end():
    bar = [(n / 20, b"\b" * 9 + b"\r%2d/60" % n) for n in range(61)]
    shown = [line for lines in fed(*bar, (3.01, b"\n")) for line in lines]
    assert shown == [b" 0/60", b"20/60", b"40/60", b"60/60"]


def test_the_last_state_is_shown_where_nothing_more_comes():
    assert fed((0, b"\r1%"), (0.5, b""), (1, b""), (1.1, b"\r2%"), (1.2, b"\r3%"), (2.1, b"")) == [
        *([], [], [b"1%"], [], [], [b"3%"]),
        [],
    ]
    assert fed((0, b"\r1%\r2%"), (0.1, b"\r3%")) == [[b"1%"], [], [b"3%"]]
    assert fed((0, b"\r1%\r2%\r"), (0.1, b"   \r")) == [[b"1%"], [], [b"2%"]]  # and wiped away at the end


def test_both_streams_of_a_rank_share_the_second():
    pace = Pace()
    out, err = Lines(pace), Lines(pace)
    assert out.feed(b"\r1\r2", 0) == [b"1"]
    assert err.feed(b"\r8\r9", 0.5) == []
    assert err.feed(b"\rdone\nnext\n", 0.6) == [b"done", b"next"]
    assert err.feed(b"\r8\r9", 1.6) == [b"8"]
    assert err.end(1.7) == [b"9"]
    assert out.feed(b"\r2\r3", 1.8) == []
