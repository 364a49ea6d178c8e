"""What a rank that fails tells the others: not what is only the echo of their end."""

import itertools
import sys

import pytest

from tfdp.runtime.store import ending


class Store:
    """`reason` is why the job ends, known from the second look on."""

    def __init__(self, reason):
        self._reasons = itertools.chain([None], itertools.repeat(reason))
        self.failed = []

    @property
    def aborted(self):
        return next(self._reasons)

    def fail(self, reason):
        self.failed.append(reason)

    def last_words(self, text):
        pass


def error_of(module, name):
    return type(name, (Exception,), {"__module__": module})("Socket closed")


@pytest.fixture
def told(monkeypatch):
    """What a rank tells of an error in a job that ends, or does not, for a reason."""
    monkeypatch.setattr(ending, "REASON_SECONDS", 0.1)

    def tell(error, reason):
        store = Store(reason)
        monkeypatch.setattr(sys, "excepthook", lambda *_: None)
        ending._LastWords(store, 0).tell(type(error), error, None)
        return store.failed

    return tell


TF_ERRORS = "tensorflow.python.framework.errors_impl"


def test_a_connection_lost_to_a_rank_that_has_ended_is_no_failure_of_ones_own(told):
    lost = error_of(TF_ERRORS, "UnavailableError")
    assert told(lost, "rank 1 ended with signal SIGKILL") == []
    assert told(lost, None) == ["rank 0 ended with UnavailableError: Socket closed (at an unknown place)"]


def test_all_other_errors_are(told):
    for error in (error_of(TF_ERRORS, "InvalidArgumentError"), error_of("train", "UnavailableError"), ValueError("x")):
        assert len(told(error, "rank 1 ended with signal SIGKILL")) == 1
