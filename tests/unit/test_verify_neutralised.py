"""What was neutralised, with the lines of the script as its author has them."""

import pytest

pytest.importorskip("numpy")

from tfdp.migrate.verify.record import Note, described

ORIGINAL = "import a\n\ndata = load()\ndata = data.shuffle(9)\nmodel = make()\nopt = Adam(0.1)\ntrain(model)\n"
REFERENCE = ORIGINAL.replace("import a\n", "import a\nimport b\n\n\ndef c():\n    pass\n").replace("0.1", "0.1 * 2")


def texts(*notes: Note) -> tuple[str, ...]:
    return described(notes, REFERENCE.encode(), ORIGINAL.encode())


def test_lines_are_those_of_the_original() -> None:
    lines = REFERENCE.splitlines()
    shuffle, adam = lines.index("data = data.shuffle(9)") + 1, lines.index("opt = Adam(0.1 * 2)") + 1
    assert texts(Note("order: kept", str(shuffle))) == ("order: kept: line 4",)
    assert texts(Note("x", f"{shuffle} dropout"), Note("x", f"{adam} noise")) == (
        "x: dropout (line 4), noise (line 6)",
    )


def test_names_of_one_line_are_told_together_and_not_all() -> None:
    notes = [Note("x", f"4 bn_{number}") for number in range(50)]
    assert texts(*notes[:4]) == ("x: bn_0, bn_1, bn_2, bn_3 (line 2)",)
    assert texts(*notes) == ("x: bn_0, bn_1, bn_2, bn_3 and 46 more (line 2)",)


def test_each_kind_once_and_places_without_a_line() -> None:
    notes = (Note("x", "1"), Note("y", ""), Note("x", " dropout"), Note("x", "1"))
    assert texts(*notes) == ("x: dropout, line 1", "y")
