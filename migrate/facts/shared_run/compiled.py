"""What XLA compiles: it cannot compile a step that waits for the other workers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..program import Problem, argument, is_off
from ..training_file import TrainingFile

_KEYWORDS = ("jit_compile", "experimental_compile")
_SCOPES = ("tensorflow.xla.experimental.compile", "tensorflow.xla.experimental.jit_scope")
_SWITCH = "tensorflow.config.optimizer.set_jit"


class Compiled:
    """Answers for the whole file: any function that XLA compiles may come to a model."""

    def __init__(self, script: TrainingFile) -> None:
        self._script, self._origins = script, script.origins

    @cached_property
    def switches(self) -> tuple[tuple[cst.Call, str, int | None], ...]:
        """Calls that turn XLA on, with the argument that says so and its position."""
        calls = [c for c in self._origins.index.calls if self._takes_switch(c)]
        found: list[tuple[cst.Call, str, int | None]] = [
            (c, k, None) for c in calls for k in _KEYWORDS if self._on(c, k)
        ]
        jits = (c for c in self._origins.calls_to(_SWITCH) if self._on(c, "enabled", 0))
        return (*found, *((c, "enabled", 0) for c in jits))

    def _takes_switch(self, call: cst.Call) -> bool:
        compiles = {c.call for c in self._script.fitted.compiles}
        partial = self._origins.called(call) == "functools.partial" and bool(call.args)
        made = call.args[0].value if partial else call.func
        return call in compiles or self._origins.kind(made) is Kind.COMPILER

    def _on(self, call: cst.Call, keyword: str, position: int | None = None) -> bool:
        given = argument(call, keyword, position)
        if given is None or is_off(self._origins, given.value):
            return False
        said = given.value.evaluated_value if isinstance(given.value, cst.SimpleString) else None
        return said != "auto"

    def problems(self) -> Iterator[Problem]:
        """What turns XLA on and has no switch."""
        for call in self._origins.calls_to(*_SCOPES):
            reason = "XLA compiles this, and it cannot compile a step that waits for the other workers"
            yield Problem("TFDP060", call, reason, "take XLA out here")
        for call in self._origins.index.calls:
            starred = [a.value for a in call.args if a.star == "**"] if self._takes_switch(call) else []
            for value in starred:
                if any(_names_switch(o.node) for o in self._origins.of(value)):
                    reason = "this turns XLA on by arguments out of a dictionary, where tfdp cannot turn it off"
                    yield Problem("TFDP060", call, reason, "write jit_compile=False out")


def _names_switch(made: cst.CSTNode) -> bool:
    elements = made.elements if isinstance(made, cst.Dict) else ()
    keys = [e.key for e in elements if isinstance(e, cst.DictElement)]
    words = [str(k.evaluated_value) for k in keys if isinstance(k, cst.SimpleString)]
    called = made.args if isinstance(made, cst.Call) else ()
    words += [a.keyword.value for a in called if a.keyword is not None]
    return any(word in _KEYWORDS for word in words)
