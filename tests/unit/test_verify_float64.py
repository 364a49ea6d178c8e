"""Texts that compute in float64, and the judgement of runs that nothing holds together."""

import math
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")

from tfdp.migrate.verify.judge import free  # noqa: E402
from tfdp.migrate.verify.record import Call, Header, Lock, Step, Trace  # noqa: E402
from tfdp.migrate.verify.reference import NotWidenedError, widened  # noqa: E402

W, M = "w|3|float64|0", "w_momentum|3|float64|0"


def test_names_and_whole_strings_are_widened() -> None:
    source = """# float32 é
x = tf.cast(np.float32(1), tf.float32).numpy().astype('float32') + "float32"
print("é float32", float32x, f"float32")
"""
    assert (
        widened(source.encode()).decode()
        == """# float32 é
x = tf.cast(np.float64(1), tf.float64).numpy().astype('float64') + "float64"
print("é float32", float32x, f"float32")
"""
    )


def test_other_encodings_and_line_ends_are_kept() -> None:
    source = "# -*- coding: latin-1 -*-\r\nx = 'é', tf.float32\r\n".encode("latin-1")
    assert widened(source) == source.replace(b"float32", b"float64")


def test_numbers_out_of_bytes_stay_as_they_are() -> None:
    with pytest.raises(NotWidenedError, match="line 2: frombuffer"):
        widened(b"a = 1\nb = np.frombuffer(data, np.float32)\n")
    plain = b"b = np.frombuffer(data, np.uint8)\n"
    assert widened(plain) == plain


def recorded(folder: Path, *values: float, key: str = W) -> Trace:
    folder.mkdir()
    trace = Trace(folder)
    for index, value in enumerate(values):
        state = {key: np.full(3, value), M: np.ones(3)}
        trace.write_step(index, Step(state, (Call(1.0, None, False, (key,), {key: np.ones(3)}),), state, True))
    trace.write_header(Header("complete", {key: "weights"}))
    trace.write_lock(Lock((key,), (M,), (1,) * len(values)))
    return trace


def test_variables_must_be_close_after_the_last_step(tmp_path: Path) -> None:
    reference = recorded(tmp_path / "reference", 1, 2, 3)
    near = recorded(tmp_path / "near", 1, 2, 3 + 1e-10)
    astray = recorded(tmp_path / "astray", 1, 2 + 1e-8, 3 + 1e-7)
    back = recorded(tmp_path / "back", 1, 2 + 1e-8, 3)
    nan = recorded(tmp_path / "nan", 1, 2, math.nan)
    found = free.judge_free(reference, [near, reference], 3)
    assert found.failure is None
    assert found.largest == pytest.approx(1e-10 / 3, rel=1e-3)
    assert free.judge_free(reference, [back], 3).failure is None
    failure = free.judge_free(reference, [near, astray], 3).failure
    assert failure is not None
    assert (failure.step, failure.rank, failure.kind, failure.variable) == (1, 1, "weights", "weights (3)")
    assert failure.text == "differs by 5e-09, the limit is 1e-09"
    assert free.judge_free(reference, [nan], 3).failure is not None


def test_variables_that_stay_narrow_are_named(tmp_path: Path) -> None:
    assert free.narrow(recorded(tmp_path / "wide", 1)) == []
    assert free.narrow(recorded(tmp_path / "narrow", 1, key="v|3|float32|0")) == ["weights (3)"]
