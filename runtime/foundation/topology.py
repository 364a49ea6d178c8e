"""Who this process is among the processes of the job."""

from dataclasses import dataclass, fields

from .errors import TopologyError


@dataclass(frozen=True)
class Topology:
    """Ranks count from 0. `local_*` counts on one host, `cross_*` over the hosts at one local rank.

    Raises:
        TopologyError: a value is not an integer, a rank is outside its size, or a part is larger than the whole.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TopologyError(f"{field.name} is {value!r}: it must be an int")
        for part in ("", "local_", "cross_"):
            rank, size = getattr(self, f"{part}rank"), getattr(self, f"{part}size")
            if size < 1:
                raise TopologyError(f"{part}size is {size}: there is at least one worker")
            if not 0 <= rank < size:
                raise TopologyError(f"{part}rank is {rank}: with {part}size {size} it must be 0 to {size - 1}")
        for part in ("local_size", "cross_size"):
            if getattr(self, part) > self.size:
                raise TopologyError(f"{part} is {getattr(self, part)}, more than the whole job: size is {self.size}")


SOLO = Topology(rank=0, size=1, local_rank=0, local_size=1, cross_rank=0, cross_size=1)
