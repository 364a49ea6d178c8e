import ctypes
import mmap
import sys
import threading

import pytest

from tfdp.runtime.transports import _futex
from tfdp.runtime.transports._futex import Futex, TransportError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is no futex elsewhere")


def test_other_python_threads_run_during_a_wait_and_can_end_it():
    word = ctypes.c_uint32.from_buffer(memory := mmap.mmap(-1, 4096))
    futex, address = Futex(), ctypes.addressof(word)
    woken, about_to_wait = [], threading.Event()

    def wait():
        about_to_wait.set()
        woken.append(futex.wait(address, 0, 20.0))

    thread = threading.Thread(target=wait)
    thread.start()
    about_to_wait.wait()
    word.value = 1
    futex.wake(address)
    thread.join()
    assert woken == [True], "this thread could not run until the time was over"
    del word
    memory.close()


def test_a_word_that_has_changed_already_is_not_waited_for():
    word = ctypes.c_uint32(5)
    assert Futex().wait(ctypes.addressof(word), 4, 1000.0)


def test_a_wait_has_an_end():
    word = ctypes.c_uint32(5)
    assert not Futex().wait(ctypes.addressof(word), 5, 0.01)


def test_an_unknown_machine_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr(_futex.platform, "machine", lambda: "pdp11")
    with pytest.raises(TransportError, match=r"needs Linux on one of x86_64.*; this is linux on pdp11"):
        Futex()
