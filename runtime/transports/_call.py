"""What one rank calls, as it is compared with the other ranks' calls before any data is used."""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ._arena import HEADER_BYTES
from ._protocol import Label

_FIXED = struct.Struct("<16sQQII")
_SHOWN = 4


@dataclass(frozen=True)
class Call:
    """One collective of one rank. `tensors` are (dtype, shape), with -1 for a size that may differ by rank.

    All of it must be equal on all ranks, but of the label only the name.
    """

    what: str
    tensors: tuple[tuple[str, tuple[int, ...]], ...]
    label: Label

    def encode(self) -> bytes:
        """The part of the header that stays the same from step to step."""
        compared = repr((self.what, self.tensors, self.label.name)).encode()
        said = {"what": self.what, "name": self.label.name, "site": self.label.site[-1000:], "count": len(self.tensors)}
        room = HEADER_BYTES - _FIXED.size - len(json.dumps(said)) - 64
        listed: list[str] = []
        for index, (dtype, shape) in enumerate(self.tensors):
            named = f"{self.label.tensors[index]} " if index < len(self.label.tensors) else ""
            entry = f"{named}{dtype}[{','.join('?' if size < 0 else str(size) for size in shape)}]"
            room -= len(json.dumps(entry)) + 2
            if room < 0:
                break
            listed.append(entry)
        text = json.dumps({**said, "tensors": listed}).encode()
        return hashlib.blake2b(compared, digest_size=16).digest() + text

    def __str__(self) -> str:
        return _say(json.loads(self.encode()[16:]))


def announce(header: memoryview, call: bytes, sequence: int, payload: int, rows: int) -> None:
    """Write an encoded call, the number of the publication it goes with, and the bytes and rows that this rank has."""
    header[: _FIXED.size] = _FIXED.pack(call[:16], payload, rows, sequence, len(call) - 16)
    header[_FIXED.size : _FIXED.size + len(call) - 16] = call[16:]


def same(header: memoryview, call: bytes) -> bool:
    """Whether the header announces this encoded call."""
    return header[:16] == call[:16]


def numbers(header: memoryview) -> tuple[int, int]:
    """Bytes and rows of the rank whose header this is."""
    _, payload, rows, _, _ = _FIXED.unpack_from(header, 0)
    return payload, rows


def last(headers: Sequence[memoryview]) -> str | None:
    """The later one of a rank's two announcements, for a message; None before its first."""
    said = [_FIXED.unpack_from(header, 0) for header in headers]
    written = [(sequence, header) for (*_, sequence, length), header in zip(said, headers, strict=True) if length]
    if not written:
        return None
    newest = written[0]
    for other in written[1:]:
        if (other[0] - newest[0]) % 2**32 < 2**31:
            newest = other
    return _say(_text(newest[1]))


def mismatch(headers: Mapping[int, memoryview]) -> str:
    """The message when not all ranks announce the same call."""
    calls = {rank: _text(header) for rank, header in headers.items()}
    groups: dict[bytes, list[int]] = {}
    for rank, header in headers.items():
        groups.setdefault(bytes(header[:16]), []).append(rank)
    said = "; ".join(f"{_ranks(ranks)} called {_say(calls[ranks[0]])}" for ranks in groups.values())
    (first, *_), (second, *_) = list(groups.values())[:2]
    difference = _first_difference(first, calls[first], second, calls[second])
    return (
        f"the ranks met in different collectives: {said}.{difference} "
        "Every rank must make the same calls in the same order with the same shapes and dtypes; a call inside "
        "`if dp.rank() == 0:` is the usual reason"
    )


def _text(header: memoryview) -> dict[str, object]:
    length = _FIXED.unpack_from(header, 0)[-1]
    text = json.loads(bytes(header[_FIXED.size : _FIXED.size + length]))
    assert isinstance(text, dict)
    return text


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"


def _say(call: Mapping[str, object]) -> str:
    tensors, count = call["tensors"], call["count"]
    assert isinstance(tensors, list)
    assert isinstance(count, int)
    more = f" and {count - _SHOWN} more" if count > _SHOWN else ""
    listed = f" of {', '.join(tensors[:_SHOWN])}{more}" if tensors else ""
    name = f" named {call['name']!r}" if call["name"] is not None else ""
    return f"{call['what']}{name}{listed} at {call['site']}"


def _first_difference(first: int, one: Mapping[str, object], second: int, two: Mapping[str, object]) -> str:
    ours, theirs = one["tensors"], two["tensors"]
    assert isinstance(ours, list)
    assert isinstance(theirs, list)
    for index, (left, right) in enumerate(zip(ours, theirs, strict=False)):
        if left != right:
            return f" The first difference is in tensor {index}: {left} on rank {first}, {right} on rank {second}."
    return ""
