"""A line that the tool writes reads only names that certainly have a value there; else the place is refused."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import libcst as cst
import pytest

from tfdp.migrate import engine
from tfdp.migrate.facts import Script, read
from tfdp.migrate.facts.program import certainly_bound
from tfdp.rules._base import Edit, Insert, Outcome, Rule

_BOUND = {
    "straight": "model = 1\nhere()",
    "a parameter": "def f(model):\n    here()",
    "imported": "from a import model\nhere()",
    "a function": "def model(): pass\nhere()",
    "both branches": "if a:\n    model = 1\nelif b:\n    model = 2\nelse:\n    model = 3\nhere()",
    "the other branch ends": "def f():\n    if a:\n        model = 1\n    else:\n        return\n    here()",
    "a with": "with a as model:\n    here()",
    "inside a with": "with a:\n    model = 1\nhere()",
    "a loop's target": "for model in models:\n    here()",
    "before the loop": "model = 1\nwhile a:\n    here()",
    "tried and handled": "try:\n    model = 1\nexcept E:\n    model = 2\nhere()",
    "tried, or raised again": "try:\n    model = 1\nexcept E:\n    raise\nhere()",
    "finally": "try:\n    a()\nfinally:\n    model = 1\nhere()",
    "global, before the call": "def f():\n    here()\nmodel = 1\nf()",
    "global, before the call of the caller": "def f():\n    here()\ndef g():\n    f()\nmodel = 1\ng()",
    "global, called from elsewhere": "def f():\n    here()\nmodel = 1",
    "outside, in a method": "model = 1\nclass A:\n    def f(self):\n        here()\nA().f()",
    "a built-in": "here()  # print",
    "several in one line": "a = 1; model = 2; here()",
}
_UNBOUND = {
    "nowhere": "here()",
    "later": "here()\nmodel = 1",
    "in the loop": "for a in b:\n    model = 1\nhere()",
    "at the loop that makes it": "for a in b:\n    here()\n    model = 1",
    "one branch": "if a:\n    model = 1\nhere()",
    "no else": "if a:\n    model = 1\nelif b:\n    model = 2\nhere()",
    "tried": "try:\n    model = 1\nexcept E:\n    pass\nhere()",
    "in the handler of its own try": "try:\n    model = 1\nexcept E:\n    here()",
    "deleted": "model = 1\ndel model\nhere()",
    "another function's": "def f():\n    model = 1\ndef g():\n    here()\ng()",
    "a comprehension's": "a = [model for model in b]\nhere()",
    "global, after the call": "def f():\n    here()\nf()\nmodel = 1",
    "global, after one of two calls": "def f():\n    here()\nf()\nmodel = 1\nf()",
    "a class's own": "class A:\n    model = 1\n    def f(self):\n        here()\nA().f()",
    "after a match": "match a:\n    case 1:\n        model = 1\nhere()",
}


def bound(text: str) -> bool:
    script = read(text)
    (call,) = [c for c in script.index.calls if isinstance(c.func, cst.Name) and c.func.value == "here"]
    name = "print" if "# print" in text else "model"
    return certainly_bound(script.origins, name, script.index.statement_of(call))


@pytest.mark.parametrize("case", _BOUND)
def test_what_has_a_value_on_every_way(case: str) -> None:
    assert bound(_BOUND[case])


@pytest.mark.parametrize("case", _UNBOUND)
def test_what_may_have_none(case: str) -> None:
    assert not bound(_UNBOUND[case])


_SCRIPT = textwrap.dedent("""\
    import tensorflow as tf
    STEP = 0.3
    import numpy as np
    RATE = 0.1
    def main():
        for name in ("a", "b"):
            model = tf.keras.Sequential()
            model.compile(tf.keras.optimizers.SGD(0.5), "mse")
            model.fit(x, y)
    if __name__ == "__main__":
        main()
""")


def refused(outcomes: Callable[[Script], Outcome]) -> list[str]:
    """What a plan of one outcome is refused for."""
    script = read(_SCRIPT)
    rule = Rule("TFDP999", "test", "", lambda _: iter([outcomes(script)]))
    return [f.message for f in engine.in_order(engine.make_plan(script, "per-worker", [rule])).findings if f.refusal]


def line(script: Script, code: str, before: str) -> Insert:
    nodes = script.index.order
    anchor = next(n for n in nodes if isinstance(n, cst.For)) if before == "loop" else script.index.methods("fit")[0]
    return Insert(script.index.statement_of(anchor), "before", code, "")


@pytest.mark.parametrize(
    "code", ["dp.broadcast_state(model)  # why", "kept = [n for n in (model,)]", "with open('a') as a: print(a, model)"]
)
def test_an_added_line_that_reads_what_is_made_later_is_refused(code: str) -> None:
    (message,) = refused(lambda script: line(script, code, "loop"))
    assert message == f"`{code.partition('  # ')[0]}` belongs here, and model may have no value yet"
    assert refused(lambda script: line(script, code, "fit")) == []


def edit(script: Script, number: str, code: str) -> Edit:
    node = next(n for n in script.index.order if isinstance(n, cst.Float) and n.value == number)
    return Edit(node, lambda _: cst.parse_expression(code), "")


def test_an_edit_that_calls_the_runtime_before_it_starts_is_refused() -> None:
    (message,) = refused(lambda script: edit(script, "0.3", "dp.scale_lr(0.3)"))
    assert "before the place where the workers can be started" in message
    assert refused(lambda script: edit(script, "0.3", "0.2")) == []
    assert refused(lambda script: edit(script, "0.1", "dp.scale_lr(0.1)")) == []  # it starts above the guard then
    assert refused(lambda script: edit(script, "0.5", "dp.scale_lr(0.5)")) == []


def test_an_edit_that_reads_what_is_made_later_is_refused() -> None:
    (message,) = refused(lambda script: edit(script, "0.5", "[optimizer for optimizer in (late,)]"))
    assert message == "`[optimizer for optimizer in (late,)]` belongs here, and late may have no value yet"
    assert refused(lambda script: edit(script, "0.5", "(lambda late: RATE * late + name)(0.5)")) == []
