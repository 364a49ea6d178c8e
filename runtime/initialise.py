"""The first call of a migrated script."""

from .job import Options, join


def init(*, same_start: bool = True, row_check: bool = True) -> None:
    """Join the job that `tfdp run` has started, or be a job of one where it has not.

    Call it before the first TensorFlow operation; calling it again does nothing. With several workers it seeds Python's
    `random` and NumPy's legacy generator with the job's common seed, so that decisions about data are the same on all
    ranks, and, with `same_start`, sees to it that every variable starts with rank 0's value. One worker is left as it
    is: it computes what the script would without tfdp.

    With `row_check`, too, each Keras model is looked at before its first call on a batch: it is compiled once more and
    run on a few rows. If the result for one row changes with the others, training the model is an error. False is for
    models of which axis 0 of what they take is not the batch.

    Raises:
        LaunchEnvironmentError: the TFDP_* variables are incomplete, or lead nowhere.
        TransportError: TFDP_TRANSPORT asks for what there is not.
        TfdpError: a second call with another `same_start` or `row_check`, or a call after `shutdown`.
    """

    def follow() -> None:
        from .start import follow_root  # imports TensorFlow, which a job of one need not wait for

        follow_root(row_check)

    join(Options(same_start, row_check), follow)
