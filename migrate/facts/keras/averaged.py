"""The optimizers by which Keras' own training updates: where each is given to a model, or made."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..program import Origin, Origins, Problem, argument, bound_once, is_none, params_of, reaching, receiver
from ..training import is_averaged
from .fits import Compile, Fit
from .named_optimizers import unmade_optimizer

_NEXT = "give compile an optimizer that is made in this file, as optimizer="
_KEY = "optimizer"


@dataclass(frozen=True)
class Given:
    """One place at which an optimizer takes the averaging: an argument of `compile`, or the call that makes it.

    `keyword` and `position` are the argument's of `call`; without a keyword `value` itself is averaged. `value` is the
    optimizer there; None where it is omitted, and `default`, as source text, is taken. `done`: it is averaged already.
    """

    call: cst.Call | None
    keyword: str | None
    position: int | None
    value: cst.BaseExpression | None
    default: str = '"rmsprop"'
    done: bool = False


class Optimizers:
    """Answers for the fitted models of a file."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    def base(self, compiled: Compile) -> list[Given | Problem]:
        """The optimizers with which Keras' own `train_step` updates the model."""
        if compiled.own is None:
            found = self._of_call(compiled.call)
        else:
            found = self._of_own(compiled, compiled.own, _KEY) or self._inside(compiled, compiled.own)
        return [found] if isinstance(found, Problem) else self._where_made(found)

    def of(self, receiver: cst.BaseExpression, fit: Fit) -> list[Given | Problem]:
        """The optimizers that an update's receiver, in a model's own `train_step`, may be where `fit` runs that."""
        if not isinstance(receiver, cst.Attribute):
            return self.made(receiver)
        if stored := self._origins.stored(receiver):
            return [g for value, path in stored for g in self._of_stored(value, fit.compiles, path)]
        if receiver.attr.value == _KEY and self._origins.class_of(receiver.value) is not None:
            return [g for c in fit.compiles for g in self.base(c)]
        return self.made(receiver)

    # --- one compile --------------------------------------------------------------------------------------------------

    def _given(self, call: cst.Call, position: int | None, value: cst.BaseExpression | None, name: str = _KEY) -> Given:
        return Given(call, name, position, value, done=value is not None and is_averaged(self._origins, value))

    def _of_call(self, call: cst.Call) -> Given | Problem:
        """What a call of Keras' own `compile` gives it."""
        given = argument(call, _KEY, 0)
        return self._starred(call) or self._given(call, 0, given.value if given is not None else None)

    def _of_own(self, compiled: Compile, own: cst.FunctionDef, parameter: str) -> Given | None:
        """A parameter of the file's own `compile`, as this call of it passes one; of its `**` one that it passes on."""
        positional = [p.name.value for p in params_of(own)[1:]]
        defaults = {p.name.value: p.default for p in (*params_of(own)[1:], *own.params.kwonly_params)}
        hidden = parameter not in defaults and (own.params.star_kwarg is None or parameter != _KEY)
        if hidden or any(a.star for a in compiled.call.args):
            return None
        position = positional.index(parameter) if parameter in positional else None
        given, default = argument(compiled.call, parameter, position), defaults.get(parameter)
        if given is None and default is not None:
            text = default.value if isinstance(default, cst.SimpleString) else None
            return Given(compiled.call, parameter, position, None, text) if text is not None else None
        return self._given(compiled.call, position, given.value if given is not None else None, parameter)

    def _inside(self, compiled: Compile, own: cst.FunctionDef) -> Given | Problem:
        """What the file's own `compile` gives to Keras' by itself: `super().compile(optimizer=…)`."""
        index = self._origins.index
        inside = (c for c in index.methods("compile") if index.enclosing_function(c) is own)
        call = next((c for c in inside if isinstance(receiver(c), cst.Call)), None)
        if call is not None:
            return self._of_call(call)
        reason = "cannot tell which optimizer this model's own compile() uses"
        return Problem("TFDP031", compiled.call, reason, _NEXT)

    def _starred(self, call: cst.Call) -> Given | Problem | None:
        """`compile(**settings)`: the entry of a dict that is written out; None where nothing is starred."""
        starred = [a for a in call.args if a.star]
        if not starred or argument(call, _KEY) is not None:
            return None
        tables = [o.node for a in starred for o in self._origins.of(a.value)]
        table = tables[0] if len(starred) == len(tables) == 1 else None
        if isinstance(table, cst.Dict) and all(isinstance(e, cst.DictElement) for e in table.elements):
            entries = [e.value for e in table.elements if isinstance(e, cst.DictElement) and _key(e.key) == _KEY]
            if not entries:
                return self._given(call, None, None)
            return Given(call, None, None, entries[0], done=is_averaged(self._origins, entries[0]))
        given = argument(table, _KEY) if isinstance(table, cst.Call) else None
        if given is not None and isinstance(table, cst.Call) and self._origins.called(table) == "builtins.dict":
            return self._given(table, None, given.value)
        reason = "with which optimizer this model is compiled is hidden by a starred argument"
        return Problem("TFDP031", call, reason, _NEXT)

    # --- other optimizers ---------------------------------------------------------------------------------------------

    def _of_stored(
        self, value: cst.CSTNode, compiles: Iterable[Compile], path: tuple[int, ...]
    ) -> list[Given | Problem]:
        """What an attribute of the model holds: a parameter of its own `compile`, or an optimizer made elsewhere."""
        if path:
            return [self._unknown(value)]
        passed = bound_once(self._origins.index, value)
        if passed is not None and isinstance(passed.scope, cst.FunctionDef) and passed.kind == "param":
            mine = [(c, c.own) for c in dict.fromkeys(compiles) if c.own is passed.scope]
            found = [self._of_own(c, own, passed.name) for c, own in mine if own is not None]
            if found and all(f is not None and f.value is not None for f in found):
                return [g for f in found if f is not None for g in self._where_made(f)]
        return self.made(value)

    def made(self, value: cst.CSTNode) -> list[Given | Problem]:
        """The calls that make an optimizer."""
        if is_averaged(self._origins, value):
            return [Given(None, None, None, None, done=True)]
        named = reaching(self._origins.index, value) if isinstance(value, cst.Name) else []
        values = [d.value if d.kind == "assign" and not d.path else None for d in named]
        if isinstance(value, cst.Attribute):
            values = [v if not path else None for v, path in self._origins.stored(value)]
        calls = [v for v in values if isinstance(v, cst.Call) and self._all_made(v)]
        if calls and len(calls) == len(values):
            return [Given(call, None, None, call) for call in dict.fromkeys(calls)]
        made = [o for o in self._origins.of(value) if not is_none(self._origins, o.node)]
        return list(dict.fromkeys(self._made(o) or self._unknown(value) for o in made))

    def _made(self, origin: Origin) -> Given | None:
        call = origin.node if isinstance(origin.node, cst.Call) and not origin.path else None
        optimizer = call is not None and self._origins.kind(call.func) is Kind.OPTIMIZER
        if call is None or not optimizer:
            return None
        parents = self._origins.index.parents
        return Given(call, None, None, call, done=is_averaged(self._origins, parents[parents[call]]))

    def _unknown(self, value: cst.CSTNode) -> Problem:
        next_step = "make the optimizer in this file, so that it can be averaged"
        return unmade_optimizer(self._origins, "TFDP031", value, value, next_step)

    def _where_made(self, given: Given) -> list[Given | Problem]:
        """The same, where the optimizer is made if it has a name: several models, or calls, may share it."""
        if not given.done and isinstance(given.value, cst.Name | cst.Attribute) and self._all_made(given.value):
            return self.made(given.value)
        return [given]

    def _all_made(self, value: cst.BaseExpression) -> bool:
        """Whether an expression is nothing but optimizers that calls of this file make."""
        made = all(isinstance(o.node, cst.Call) and not o.path for o in self._origins.of(value))
        return made and self._origins.kinds(value) == {Kind.OPTIMIZER}


def _key(node: cst.BaseExpression) -> object:
    return node.evaluated_value if isinstance(node, cst.SimpleString) else None
