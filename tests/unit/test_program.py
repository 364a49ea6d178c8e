"""A program is a set of modules: names, flow and values are each module's own, and so are places and ignores."""

from __future__ import annotations

import libcst as cst

from tfdp.migrate.facts.program import Index, Names, Origins, Program, SourceFile, entered, leading, reaching

_RUN = """\
import numpy as np
rate = 0.1
def scaled(value):
    return value * rate
used = scaled(3)
"""
_OTHER = """\
import tensorflow as np

rate = 0.5
rate = rate + 1  # tfdp: ignore[TFDP020]
def scaled(value):
    return np.square(value)
used = scaled(rate)
"""


def program() -> tuple[Program, Index]:
    made = Program(SourceFile(cst.parse_module(_RUN), "train.py"), SourceFile(cst.parse_module(_OTHER), "lib/data.py"))
    return made, Index(made)


def reads(index: Index, name: str, path: str) -> list[cst.Name]:
    return [use for use in index.names[name] if index.file(use).path == path]


def test_names_are_looked_up_in_their_own_module() -> None:
    made, index = program()
    names = Names(index)
    (square,) = [c for c in index.calls if isinstance(c.func, cst.Attribute)]
    assert names.api(square.func) == "tensorflow.square"
    (rate,) = reads(index, "rate", "train.py")
    assert [index.code(d.value) for d in reaching(index, rate) if d.value is not None] == ["0.1"]
    assert {index.root(d.statement) for d in reaching(index, rate)} == {made.entry.module}


def test_what_is_asked_of_an_index_leaves_it_as_it_is() -> None:
    _, index = program()
    for filed in (index.names, index.attributes, index.attribute_stores, index.properties):
        for _ in filed:
            assert filed["absent"] == []
        assert "absent" not in filed


def test_calls_and_values_are_followed_in_their_own_module() -> None:
    _, index = program()
    origins = Origins(index, Names(index))
    for function in index.functions:
        (call,) = origins.calls_of(function)
        assert index.file(call) is index.file(function)
    last = reads(index, "rate", "lib/data.py")[-1]
    assert [index.code(o.node) for o in origins.of(last)] == ["rate + 1"]


def test_places_and_ignores_are_each_files_own() -> None:
    made, index = program()
    run, other = made.files
    (first, *_), (*_, last) = reads(index, "rate", "train.py"), reads(index, "rate", "lib/data.py")
    assert index.file(first).position(first) == (4, 20)
    assert index.file(last).position(last) == (7, 15)
    changed = next(d.statement for d in reaching(index, last))
    assert other.ignored("TFDP020", changed)
    assert not other.ignored("TFDP010", changed)
    assert not run.ignored("TFDP020", changed)


def test_the_order_of_nodes_goes_on_from_one_module_to_the_next() -> None:
    made, index = program()
    run, other = (file.module for file in made.files)
    assert index.order[run] == 0
    assert index.order[run.body[-1]] < index.order[other] < index.order[other.body[0]]


def test_what_leads_to_a_place_and_what_it_runs() -> None:
    source = "def inner():\n    work()\ndef outer():\n    inner()\n    inner()\nouter()\nother()\n"
    index = Index(Program(SourceFile(cst.parse_module(source), "train.py")))
    origins = Origins(index, Names(index))
    work, *between, called, _ = index.calls
    assert set(leading(origins, [work])) == {work, *between, called}
    assert set(entered(origins, [called])) == {called, *index.functions}
