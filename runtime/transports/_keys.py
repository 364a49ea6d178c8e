"""The keys by which TensorFlow knows one collective of the ranks from another.

TensorFlow keeps a record of every instance key for good (1.7 KB each, and a request to rank 0 when it is new). So a key
belongs to a kind and a size of exchange and not to a call, and is used again by each call of that kind and size.
"""

# One group: all ranks. Strategies of TensorFlow's own count from 1.
GROUP = 1_952_867_440
_FIRST = 1 << 30
_MOST_EXACT = 1024


class Keys:
    """Keys in the order of first use, which is the same on all ranks: they have agreed on every call."""

    def __init__(self) -> None:
        self._keys: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, kind: str, count: int, *, varies: bool = False) -> tuple[int, int]:
        """The key of an exchange of `count` elements, and the elements that it carries: `count` or some more.

        Sizes that vary from call to call are rounded up, by an eighth at most, so that they cannot take ever more
        keys: those that are said to vary at once, the others when there have been a thousand.
        """
        width = max(count, 1)
        if (kind, width) not in self._keys and (varies or len(self._keys) >= _MOST_EXACT):
            width = _rounded(width)
        return self._keys.setdefault((kind, width), _FIRST + len(self._keys)), width


def _rounded(count: int) -> int:
    """`count` rounded up to four significant bits."""
    grain = 1 << max(0, count.bit_length() - 4)
    return -(-count // grain) * grain
