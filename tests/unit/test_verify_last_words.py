"""What is shown of a run that failed: the script's own lines, as a terminal would have left them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tfdp.migrate.verify.record import last_words

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


def test_no_more_than_the_end() -> None:
    assert last_words("".join(f"{number}\n" for number in range(100))).splitlines()[:1] == ["76"]
