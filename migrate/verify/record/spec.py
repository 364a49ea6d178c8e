"""What the proof tells its children: a JSON file, and the exit codes they answer with."""

from dataclasses import dataclass

DIVERGED, TRACER_FAILED = 87, 70
TRACER_LOG = "tracer-error.txt"


@dataclass(frozen=True)
class Spec:
    """One run. All paths absolute.

    path: the script's own path. source: file with the text to run instead. out: folder for the traces. root: the tree
    that shows the user's files. scratch: in it, the working directory. reference: the reference's trace folder, empty
    for the reference itself. steps: updates to record; where `fitting`, at most so many, and no more than it takes to
    go past the end of an epoch. keep_randomness: leave draws, shuffles and batch statistics as they are in life.
    float64: compute in float64, and put no step on the reference's state. args: the script's arguments. permuted: this
    is the reference once more, with the rows of each batch in another order: one process, which is given the state of
    `reference` before each step. short: batches after which each
    pass over the data ends, None: where it ends in life. calls: calls are sharded: nothing computes otherwise
    than in life, and all processes draw by one entropy. stands_for: so many workers' batches are one step of the
    reference, by the runtime's own functions. names: the script has the functions of another system, and does what it
    did under that: nothing computes otherwise than in life, and each rank draws by an entropy of its own. Its reference
    runs on as many processes, and `reference` is the folder of all their traces. one_more: `steps` has one more than
    the reference, which came to its end with them.
    """

    path: str
    source: str
    out: str
    root: str
    scratch: str
    reference: str
    steps: int
    seed: int
    keep_randomness: bool
    float64: bool
    args: tuple[str, ...]
    permuted: bool
    fitting: bool
    short: int | None
    calls: bool = False
    stands_for: int = 1
    names: bool = False
    one_more: bool = False

    @property
    def migrated(self) -> bool:
        """Whether this is the migrated script, on ranks."""
        return bool(self.reference) and not self.permuted

    @property
    def compared(self) -> int:
        """How many updates are compared."""
        return self.steps - self.one_more

    @property
    def as_in_life(self) -> bool:
        """Whether nothing is neutralised."""
        return self.calls or self.names

    def trace_of_reference(self, rank: int) -> str:
        """The folder of the trace that a rank is held against."""
        return f"{self.reference}/rank{rank}" if self.names else self.reference
