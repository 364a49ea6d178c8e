"""Hosts that meet over TCP: on loopback, with threads for hosts. Nothing of this needs TensorFlow."""

import contextlib
import json
import os
import queue
import random
import socket
import struct
import threading
from dataclasses import asdict

import pytest
from in_threads import PATIENCE, in_thread

from tfdp.runtime.agent import rendezvous
from tfdp.runtime.agent.link import Kind, Link, LinkError, Message, StrangerError, prove
from tfdp.runtime.agent.rendezvous import Comer, Meeting, address_of, gathered, joined, listen
from tfdp.runtime.foundation import TransportError
from tfdp.runtime.launch import CommandError, cluster_of

SECRET = b"a secret of this test"


class Root:
    """The root of a job, waiting; `said` holds what it has said."""

    def __init__(self, expected=2, by_rank=False, limit=PATIENCE, me=None):
        self.listener = listen(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[:2]
        self.said = queue.Queue()
        self.meeting = Meeting(self.address, SECRET, expected, by_rank, limit, self.said.put)
        self.result = in_thread(gathered, self.meeting, self.listener, me or Comer(2, 0, host="a"))

    def joined(self, comer, secret=SECRET, limit=PATIENCE):
        meeting = self.meeting
        return joined(Meeting(self.address, secret, meeting.expected, meeting.by_rank, limit, self.said.put), comer)

    def connection(self):
        return socket.create_connection(self.address, timeout=PATIENCE)


def test_all_get_one_plan_in_the_order_of_their_numbers():
    root = Root(expected=3)
    last = in_thread(root.joined, Comer(1, 2, host="c"))
    plan, link = root.joined(Comer(3, 1, host="b"))
    ours, links = root.result()
    assert plan.ranks == ours.ranks == ((0, 1), (2, 3, 4), (5,))
    assert (ours.mine, plan.mine, last()[0].mine) == (0, 1, 2)
    assert (plan.job, plan.seed, plan.hosts) == (ours.job, ours.seed, ("a", "b", "c"))
    assert plan.addresses == ("127.0.0.1",) * 3
    place = plan.topology(4)
    assert (place.rank, place.size, place.local_rank, place.local_size) == (4, 6, 2, 3)
    assert (place.cross_rank, place.cross_size) == (0, 1), "no other host has a third rank"
    assert (ours.topology(1).cross_rank, plan.topology(3).cross_rank, plan.topology(3).cross_size) == (0, 1, 2)
    links[0].send(Message(Kind.MET, 1, b"words"))
    assert link.receive(PATIENCE) == Message(Kind.MET, 1, b"words")
    for each in (link, last()[1], *links):
        each.close()


def test_hosts_whose_ranks_an_engine_has_numbered():
    root = Root(expected=4, by_rank=True, me=Comer(2, ranks=(0, 2), host="a"))
    plan, link = root.joined(Comer(2, ranks=(1, 3), host="b"))
    ours, links = root.result()
    assert plan.ranks == ours.ranks == ((0, 2), (1, 3))
    assert plan.topology(3) == plan.topology(3).__class__(3, 4, 1, 2, 1, 2)
    for each in (link, *links):
        each.close()


@pytest.mark.parametrize(
    ("comer", "said"),
    [
        (Comer(1, 1, host="b", tfdp="9.9"), r"b has tfdp 9\.9, a has "),
        (Comer(1, 1, host="b", tensorflow="2.0.0"), r"b has tensorflow 2\.0\.0, a has "),
        (Comer(1, 1, host="b", order=5), "b and a go through a set of texts in different orders"),
        (Comer(1, 0, host="b"), "b and a both say that they are host 0"),
        (Comer(1, 5, host="b"), "b says that it is host 5; there are 2, from 0 on"),
    ],
)
def test_a_host_that_does_not_fit_ends_the_job_on_both_sides(comer, said):
    root = Root()
    with pytest.raises(TransportError, match=said):
        root.joined(comer)
    with pytest.raises(TransportError, match=said):
        root.result()


def test_one_rank_on_two_hosts():
    root = Root(expected=4, by_rank=True, me=Comer(2, ranks=(0, 1), host="a"))
    with pytest.raises(TransportError, match="b and a both say that they have rank 1"):
        root.joined(Comer(2, ranks=(1, 2), host="b"))


def test_a_host_that_comes_again_is_the_one_that_counts():
    root = Root(expected=3)
    _first = in_thread(root.joined, Comer(1, 1, host="b"))
    gone = root.connection()
    prove(gone, SECRET, listening=False)
    early = Link(gone, "b")
    early.send(Message(Kind.HELLO, payload=json.dumps(asdict(Comer(1, 2, host="c"))).encode()))
    early.close()
    assert "is gone again" in root.said.get(timeout=PATIENCE)
    plan, link = root.joined(Comer(1, 2, host="c"))
    assert plan.hosts == ("a", "b", "c")
    root.result()
    link.close()


@pytest.mark.parametrize(
    ("comer", "said"),
    [
        (Comer(1, 1, host="b", expected=3), "b waits for 3 in all, and a for 0: they are of two jobs"),
        (Comer(1, 1, host="b", script="other.py"), "b runs other.py, and a : they are of two jobs"),
    ],
)
def test_a_host_of_another_job_is_sent_away_and_the_job_goes_on(comer, said):
    root = Root()
    with pytest.raises(TransportError, match=said):
        root.joined(comer)
    _, link = root.joined(Comer(1, 1, host="b"))
    _, links = root.result()
    for each in (link, *links):
        each.close()


def test_those_who_say_nothing_do_not_keep_others_out():
    root = Root()
    silent = [root.connection() for _ in range(70)]
    _, link = root.joined(Comer(1, 1, host="b"))
    _, links = root.result()
    for each in (link, *links, *silent):
        each.close()


def test_who_does_not_come_is_named():
    root = Root(expected=3, limit=0.5)
    waiting = in_thread(root.joined, Comer(1, 2, host="c"))
    with pytest.raises(TransportError, match=r"host\(s\) 1 did not come within 0\.5 s"):
        root.result()
    with pytest.raises(TransportError, match=r"host\(s\) 1 did not come"):
        waiting()


def test_a_root_that_is_not_there_says_what_to_look_at():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = free.getsockname()
    with pytest.raises(TransportError, match=r"did not answer at .* is it started, with the same --root"):
        joined(Meeting(nobody, SECRET, 2, False, 0.3, lambda _: None), Comer(1, 1))


def test_a_port_in_use_is_named():
    with listen(("127.0.0.1", 0)) as held, pytest.raises(TransportError, match=r"cannot listen at 127\.0\.0\.1:"):
        listen(held.getsockname()[:2])


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_the_root_has_an_address_that_others_reach(host):
    with pytest.raises(TransportError, match="cannot reach a host by an address of none"):
        listen((host, 0))


def test_a_name_that_leads_to_this_host_alone_is_listened_at_by_all_its_addresses(monkeypatch):
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.1.1", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with listen(("myself", 0)) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"
    with listen(("127.0.1.1", 0)) as listener:
        assert listener.getsockname()[0] == "127.0.1.1"


def test_a_name_that_is_none():
    for attempt in (
        lambda: listen(("a..b", 80)),
        lambda: joined(Meeting(("a..b", 80), SECRET, 2, False, 9.0, print), Comer(1, 1)),
    ):
        with pytest.raises(TransportError, match=r"a\.\.b:80"):
            attempt()


def test_another_secret_is_no_way_in():
    root = Root()
    with pytest.raises(
        TransportError, match="not the first host of this job: it ended the connection: has it the same"
    ):
        root.joined(Comer(1, 1, host="b"), secret=b"another one, as long")
    assert "somebody at 127.0.0.1 is not of this job: it does not know the secret" in root.said.get(timeout=PATIENCE)
    _, link = root.joined(Comer(1, 1, host="b"))
    _, links = root.result()
    for each in (link, *links):
        each.close()


def test_a_host_does_not_tell_its_secret_to_whoever_listens():
    """The other end proves itself, too: here it echoes what it gets."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def echo():
            there, _ = server.accept()
            with there:
                there.sendall(b"tfdp/1\r\n" + bytes(32))
                got = there.recv(64, socket.MSG_WAITALL)
                there.sendall(got[32:])
                return got

        got = in_thread(echo)
        with socket.create_connection(server.getsockname()) as ours, pytest.raises(StrangerError, match="secret"):
            prove(ours, SECRET, listening=False)
        assert SECRET not in got()


def malformed(number, root, recorded):
    """One of 200 who are not of the job; none of them knows the secret."""
    draw, kind = random.Random(number), number % 5
    with root.connection() as there, contextlib.suppress(OSError):  # the root closes without reading the rest
        if kind == 0:  # noise, whatever is asked
            there.sendall(draw.randbytes(draw.randrange(1, 4096)))
        elif kind == 1:  # a frame that announces four exbibytes
            there.sendall(struct.pack("!BiQ", 1, 0, 2**62) + bytes(4096))
        elif kind == 2:  # a proof by another secret
            with pytest.raises(StrangerError):
                prove(there, draw.randbytes(16), listening=False)
        elif kind == 3:  # the beginning of a proof
            there.sendall(bytes(draw.randrange(1, 63)))
        else:  # what a host of the job has said once
            there.recv(40, socket.MSG_WAITALL)
            there.sendall(recorded)
        there.shutdown(socket.SHUT_WR)
        while there.recv(2**16):
            pass


def record():
    """What a host says to prove itself and to introduce itself, as somebody on the way could have kept it."""
    root = Root()
    with socket.create_server(("127.0.0.1", 0)) as between:

        def pass_on():
            host, _ = between.accept()
            kept = bytearray()
            with host, root.connection() as there:
                host.sendall(there.recv(40, socket.MSG_WAITALL))
                kept += host.recv(64, socket.MSG_WAITALL)
                there.sendall(kept)
                host.sendall(there.recv(32, socket.MSG_WAITALL))
                kept += host.recv(2**16)
            return bytes(kept)

        kept = in_thread(pass_on)
        meeting = Meeting(between.getsockname(), SECRET, 2, False, PATIENCE, lambda _: None)
        with pytest.raises(TransportError):
            joined(meeting, Comer(1, 1, host="b"))
    return kept()


def test_two_hundred_who_are_not_of_the_job_do_not_disturb_it():
    recorded = record()
    assert len(recorded) > 64
    root = Root()
    threads = threading.active_count()
    for number in range(200):
        malformed(number, root, recorded)
    assert root.said.qsize() == 1, "one line for an address, not one for each try"
    plan, link = root.joined(Comer(1, 1, host="b"))
    ours, links = root.result()
    assert ours.ranks == plan.ranks == ((0, 1), (2,))
    assert threading.active_count() <= threads + 2, "the two ends of the link, and nobody who still waits"
    for each in (link, *links):
        each.close()


def pair():
    """Two ends of a proven connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    proven = in_thread(lambda: prove(theirs, SECRET, listening=True))
    prove(ours, SECRET, listening=False)
    proven()
    return Link(ours, "there"), theirs


def test_messages_arrive_whole_and_in_order():
    link, there = pair()
    other = Link(there, "here")
    payloads = [os.urandom(size) for size in (0, 1, 2**20 + 3, 5)]
    for number, payload in enumerate(payloads):
        link.send(Message(Kind.STORE, number, payload))
    assert [other.receive(PATIENCE) for _ in payloads] == [
        Message(Kind.STORE, number, payload) for number, payload in enumerate(payloads)
    ]
    link.close()
    other.close()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (struct.pack("!BiQ", 4, 0, 2**40), "there has sent what is no message"),
        (struct.pack("!BiQ", 99, 0, 0), "there has sent what is no message"),
        (struct.pack("!BiQ", 4, 0, 100) + b"part", "there has ended without a word"),
        (b"", "there has ended without a word"),
    ],
)
def test_the_end_of_a_link_has_a_reason(data, said):
    link, there = pair()
    ended = queue.Queue()
    link.serve(lambda *_: None, lambda _, reason: ended.put(reason), lambda _: None, PATIENCE)
    there.sendall(data)
    there.shutdown(socket.SHUT_WR)
    assert ended.get(timeout=PATIENCE) == said
    link.close()
    there.close()


def test_a_goodbye_is_no_loss():
    link, there = pair()
    arrived, ended = queue.Queue(), queue.Queue()
    link.serve(lambda _, message: arrived.put(message.kind), lambda _, reason: ended.put(reason), print, PATIENCE)
    there.sendall(struct.pack("!BiQ", Kind.GOODBYE, -1, 0))
    there.close()
    assert arrived.get(timeout=PATIENCE) is Kind.GOODBYE
    link.close()
    assert ended.empty()


def test_one_that_says_nothing_is_lost():
    link, there = pair()
    with pytest.raises(LinkError, match="nothing has been heard of there for"):
        link.receive(0.5)
    link.close()
    there.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a", ("a", rendezvous.DEFAULT_PORT)),
        ("a:80", ("a", 80)),
        ("[::1]:80", ("::1", 80)),
        ("[::1]", ("::1", rendezvous.DEFAULT_PORT)),
        ("fe80::1", ("fe80::1", rendezvous.DEFAULT_PORT)),
        ("10.0.0.1:5", ("10.0.0.1", 5)),
    ],
)
def test_addresses(text, found):
    assert address_of(text) == found


@pytest.mark.parametrize("text", ["", ":80", "a:", "a:b", "a:0", "a:70000", "[::1]:x"])
def test_what_is_no_address(text):
    with pytest.raises(ValueError, match=r"no address|no port"):
        address_of(text)


@pytest.mark.parametrize(
    ("text", "np", "found"),
    [
        ("a:4,b:2", None, [("a", 4), ("b", 2)]),
        ("a:4, b:2", 5, [("a", 4), ("b", 1)]),
        ("a:4,b:2", 3, [("a", 3)]),
        ("user@a.example:1", None, [("user@a.example", 1)]),
        ("[fe80::1]:3", None, [("fe80::1", 3)]),
        ("a,b:2,[fe80::1]", None, [("a", 1), ("b", 2), ("fe80::1", 1)]),
    ],
)
def test_the_hosts_of_a_command_line(text, np, found):
    assert [(each.host, each.count) for each in cluster_of(text, None, np)] == found


def test_the_hosts_of_a_file(tmp_path):
    (tmp_path / "hosts").write_text(
        "# ours\na slots=4  # the big one\n\nb:2\nc  slots = 1\nd\ne slots=2 max_slots=8\nf max-slots=3\n"
    )
    assert [(each.host, each.count) for each in cluster_of(None, str(tmp_path / "hosts"), None)] == [
        ("a", 4),
        ("b", 2),
        ("c", 1),
        ("d", 1),
        ("e", 2),
        ("f", 1),
    ]


@pytest.mark.parametrize(
    ("text", "np", "said"),
    [
        ("a:", None, "'a:' is no host with its number of ranks"),
        ("a b", None, "'a b' is no host"),
        ("a:0", None, "'a:0' is no host"),
        ("-oProxyCommand=x:1", None, "is no host"),
        ("", None, "-H names no host"),
        ("a:1,b:1,a:2", None, "host a is named twice"),
        ("a:1,b:1", 3, "-np is 3, and the hosts have 2 slots: a:1, b:1"),
    ],
)
def test_hosts_that_cannot_be(text, np, said):
    with pytest.raises(CommandError, match=said):
        cluster_of(text, None, np)


def test_a_file_of_hosts_that_is_not_there():
    with pytest.raises(CommandError, match="--hostfile nowhere: No such file"):
        cluster_of(None, "nowhere", None)
