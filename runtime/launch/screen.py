"""What of the ranks' output is shown, and what is kept in files."""

from dataclasses import dataclass

TF_LOG = ("quiet", "all")
TRACEBACKS = ("cause", "full")


@dataclass(frozen=True)
class Screen:
    """What `tfdp run` is asked to show and to keep.

    tf_log: "all" shows what TensorFlow's C++ code says at its start too, "quiet" does not; None is "all" where the
    user has set TF_CPP_MIN_LOG_LEVEL to 0, and "quiet" otherwise.
    traceback: "cause" shows the traceback of the rank that failed first, with the frames of libraries folded; "full"
    shows all of every rank, as it comes.
    log_dir: a folder for the output of each rank as it is, or None.
    verbose: whether rank 0 says at its end what sharded calls have divided, and why not the rest.
    """

    tf_log: str | None = None
    traceback: str = "cause"
    log_dir: str | None = None
    verbose: bool = False
