"""The memory in which the ranks meet, on several hosts: what a rank publishes is written into that of every host.

A rank tells its host's server in one message what it has written about itself: how often it has published, its state,
how many of TensorFlow's collectives it is through with, and the header of a new call. The server hands it on, and each
of the others writes it as the rank would. Messages of one rank stay in order, and a rank publishes for the second next
time only when it has seen the next publication of all others: so what is overwritten has been read on every host, too.
"""

import struct

from ._arena import FINISHED, HEADER_BYTES, Arena, make_fence
from ._futex import Futex

_WORDS = struct.Struct("!IIIB")


def words_of(arena: Arena, rank: int, *, header: bool) -> bytes:
    """What a rank has written about itself; with the header that goes with its last publication, or without."""
    sequence = arena.sequence(rank)
    words = _WORDS.pack(sequence, arena.state(rank), arena.over(rank), header)
    return words + bytes(arena.header(rank, sequence % 2)).rstrip(b"\0") if header else words


class Mirror:
    """Writes what ranks of other hosts have published into this host's memory."""

    def __init__(self, arena: Arena) -> None:
        self._arena, self._futex, self._fence = arena, Futex(), make_fence()

    def write(self, rank: int, words: bytes) -> None:
        """Take over what `words_of` gave there."""
        arena = self._arena
        sequence, state, over, has_header = _WORDS.unpack_from(words)
        if has_header:
            header = words[_WORDS.size :]
            arena.header(rank, sequence % 2)[:] = header + bytes(HEADER_BYTES - len(header))
        self._fence()
        if arena.state(rank) != FINISHED:  # which this host's server writes, and which is the last
            arena.set_state(rank, state)
        arena.set_over(rank, over)
        if arena.sequence(rank) != sequence:
            arena.set_sequence(rank, sequence)
            self._fence()
            self._futex.wake(arena.sequence_address(rank))
