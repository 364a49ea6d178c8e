"""The values of the job's store: how long each is kept, and what is said of one that is gone."""

import collections
from dataclasses import dataclass, field

_REMEMBERED = 100_000


@dataclass
class _Value:
    data: bytes
    readers: int
    read_by: set[int] = field(default_factory=set)


class Shelf:
    """Values by key, for `size` ranks, of `limit_bytes` together."""

    def __init__(self, size: int, limit_bytes: int) -> None:
        self.size = size
        self._limit = limit_bytes
        self._held = 0
        self._values: dict[str, _Value] = {}
        self._gone: collections.OrderedDict[str, str] = collections.OrderedDict()

    def put(self, key: str, data: bytes, publisher: int, readers: int | None) -> None:
        """Keep a value until `readers` ranks (None: all but one) have taken it. An earlier one is replaced."""
        self._remove(key)
        self._gone.pop(key, None)
        if readers is None:
            readers = self.size - 1
        if readers < 1:
            self._forget(key, f"rank {publisher} published it for no readers")
            return
        self._values[key] = _Value(data, readers)
        self._held += len(data)
        while self._held > self._limit:
            oldest = next(iter(self._values))
            count = len(self._values[oldest].data)
            self._remove(oldest)
            self._forget(
                oldest,
                f"its {count} bytes were dropped before all ranks had read them, because the store was full "
                f"({self._limit} bytes). Set TFDP_STORE_BYTES higher",
            )

    def take(self, key: str, rank: int) -> bytes | None:
        """The value for one of its readers, or None."""
        value = self._values.get(key)
        if value is None:
            return None
        value.read_by.add(rank)
        if len(value.read_by) >= value.readers:
            self._remove(key)
            self._forget(key, f"it was published for {value.readers} readers, and that many ranks have read it")
        return value.data

    def why_gone(self, key: str) -> str | None:
        """Why a key that was published has no value any more; None when it was not published."""
        return self._gone.get(key)

    def _remove(self, key: str) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._held -= len(value.data)

    def _forget(self, key: str, reason: str) -> None:
        self._gone[key] = reason
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)
