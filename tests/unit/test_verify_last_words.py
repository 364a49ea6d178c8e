"""What is shown of a run that failed: the script's own lines, as a terminal would have left them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tfdp.migrate.verify.record import last_words, one_line

START = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795287337.864987   22258 port.cc:153] oneDNN custom operations are on. You may see slightly different
"""
TRACEBACK = """\
Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/site-packages/tfdp/migrate/verify/traced/child.py", line 193, in _run_as_main
    exec(code, main.__dict__)
    ~~~~^^^^^^
  File "/home/me/train.py", line 21, in <module>
    load(gpus[0])
         ~~~~^^^
  File "/site-packages/tfdp/migrate/verify/traced/keras.py", line 37, in in_order
    return fit(*given.args, **given.kwargs)
IndexError: list index out of range
"""
SHOWN = """\
Traceback (most recent call last):
  File "/home/me/train.py", line 21, in <module>
    load(gpus[0])
         ~~~~^^^
  File "/site-packages/tfdp/migrate/verify/traced/keras.py", line 37, in in_order
    return fit(*given.args, **given.kwargs)
IndexError: list index out of range"""


def of_rank(text: str) -> str:
    return "\n".join(f"[1] {line}" for line in text.splitlines())


def of_launcher(text: str) -> str:
    return "\n".join(f"tfdp: {line}" for line in text.splitlines())


@pytest.mark.parametrize("by", [str.strip, of_rank, of_launcher])
def test_the_script_s_own_lines(by: Callable[[str], str]) -> None:
    assert last_words(by(START + TRACEBACK)) == by(SHOWN)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("\x1b[1m1/12\x1b[0m loss: 1.5\x08\x08\n\x1b[1m2/12\x1b[0m loss: 1.4\n", "1/12 loss: 1.5\n2/12 loss: 1.4"),
        (" 1/12\r 2/12\r 3/12\r", " 3/12"),
        ("one\n\ntwo\r\n", "one\n\ntwo"),
        ("", ""),
    ],
)
def test_lines_that_are_written_over(written: str, shown: str) -> None:
    assert last_words(written) == shown


IN_A_GRAPH = """\
Graph execution error:

Detected at node PyFunc_2 defined at (most recent call last):
  File "/home/me/train.py", line 21, in <module>

2 root error(s) found.
  (0) UNKNOWN:  TfdpError: w differs on rank(s) 1
Traceback (most recent call last):

  File "/site-packages/tensorflow/script_ops.py", line 267, in __call__
    return func(device)
           ^^^^^^^^^^^^
"""
IN_USER_CODE = """\
in user code:

    File "/home/me/train.py", line 10, in step  *
        x = x @ y

    ValueError: Dimensions must be equal
"""
IN_A_LAYER = """\
Exception encountered when calling L.call().

\x1b[1mDimensions must be equal\x1b[0m

Arguments received by L.call():
"""


@pytest.mark.parametrize(
    ("kind", "message", "line"),
    [
        ("UnknownError", IN_A_GRAPH, "TfdpError: w differs on rank(s) 1"),
        (
            "UnknownError",
            IN_A_GRAPH.replace("2 root error(s) found.\n  (0) UNKNOWN:  ", ""),
            "TfdpError: w differs on rank(s) 1",
        ),
        ("StagingError", IN_USER_CODE, "ValueError: Dimensions must be equal"),
        ("ValueError", IN_A_LAYER, "ValueError: Dimensions must be equal"),
        ("RuntimeError", "two\nlines", "RuntimeError: two"),
        ("AssertionError", "", "AssertionError"),
        ("KeyError", "'a.b.ModelError: x'", "KeyError: 'a.b.ModelError: x'"),
    ],
)
def test_an_error_in_one_line(kind: str, message: str, line: str) -> None:
    assert one_line(kind, message) == line


def test_no_more_than_the_end() -> None:
    assert last_words("".join(f"{number}\n" for number in range(100))).splitlines()[:1] == ["76"]
