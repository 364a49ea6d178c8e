"""What seeds NumPy's and Python's generators: a number, or perhaps None."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import Kind
from ..apis import DEFINES_FLAG, OF_KIND, RESEEDS, SEED_KEYWORDS
from ..program import Evaluator, Frames, Origins, Problem, argument, is_none, method, receiver

_NEVER_NONE = (
    *("builtins.int", "builtins.abs", "builtins.hash", "builtins.len", "builtins.sum", "builtins.round"),
    *("numpy.random.", "random.", "time.", "tfdp.runtime."),
)
_RUNTIME = "tfdp.runtime."


@dataclass(frozen=True)
class Seeding:
    """A call that seeds a generator, with what it is given, which may be None; None where it is given nothing."""

    call: cst.Call
    seed: cst.BaseExpression | None


class _Absence(Evaluator[bool]):
    """The domain of whether a value may be None."""

    nothing = False
    unknown = True

    def join(self, values: Iterable[bool]) -> bool:
        return any(list(values))

    def known(self, node: cst.CSTNode, frames: Frames) -> bool | None:  # noqa: ARG002 - the evaluator's signature
        if is_none(self._origins, node):
            return True
        written = isinstance(node, cst.BaseNumber | cst.BaseString | cst.BinaryOperation | cst.UnaryOperation)
        return False if written or isinstance(node, cst.Tuple | cst.List) else None

    def compound(self, node: cst.CSTNode, frames: Frames) -> bool:
        if isinstance(node, cst.IfExp):
            return self.all((node.body, node.orelse), frames)
        if isinstance(node, cst.BooleanOperation):
            falls = isinstance(node.operator, cst.Or)
            return self.of(node.right, frames) or (not falls and self.of(node.left, frames))
        return True

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> bool:  # noqa: ARG002
        return False

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> bool:  # noqa: ARG002
        made = self._origins.kind(call.func) is Kind.GENERATOR
        return not (made or api.startswith(_NEVER_NONE))

    def object_call(self, call: cst.Call, frames: Frames) -> bool:  # noqa: ARG002
        drawn = method(call) and self._origins.kinds(receiver(call)) == {Kind.GENERATOR}
        return not drawn

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> bool:  # noqa: ARG002
        flag = _flag_default(self._origins, node)
        return self.of(flag) if flag is not None else True

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> bool:
        """Elements that are written out are asked one by one; `range` counts."""
        if isinstance(iterable, cst.List | cst.Tuple) and not path:
            return self.all((e.value for e in iterable.elements), frames)
        return self._origins.called(iterable) != "builtins.range"


def _flag_default(origins: Origins, node: cst.Attribute) -> cst.BaseExpression | None:
    """What `args.seed`, or `FLAGS.seed`, is where nobody says, by the one definition of the flag in the file."""
    name = node.attr.value
    parsed = [(c, argument(c, "default")) for c in origins.index.methods("add_argument") if _destination(c) == name]
    defined = [(c, argument(c, "default", 1)) for c in origins.calls_to(*DEFINES_FLAG) if _destination(c) == name]
    given = [given for _, given in (*parsed, *defined)]
    return given[0].value if len(given) == 1 and given[0] is not None else None


def _destination(call: cst.Call) -> str:
    """The attribute in which a flag is stored."""
    named = argument(call, "dest") or argument(call, "name")
    values = [named.value] if named is not None else [a.value for a in call.args if a.keyword is None]
    texts = [str(v.evaluated_value) for v in values if isinstance(v, cst.SimpleString)]
    long = [t for t in texts if t.startswith("--")] or texts
    return long[0].lstrip("-").replace("-", "_") if long else ""


class Seedings:
    """Finds what seeds the generators of a program, and what of it has to be made one on all workers."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._absence = origins, _Absence(origins)

    def of(self, call: cst.Call, seed: cst.BaseExpression | None) -> Seeding | None:
        """What has to be done about a seed; None where it is certainly given."""
        if seed is not None and self._origins.called(seed).startswith(_RUNTIME):
            return None
        return Seeding(call, seed) if seed is None or self._absence.of(seed) else None

    def all(self) -> tuple[Seeding, ...]:
        """Of NumPy's and Python's generators, those that may have no seed."""
        found = (self.of(c, s.value if s is not None else None) for c, s in self._calls())
        return tuple(f for f in found if f is not None)

    def _calls(self) -> Iterator[tuple[cst.Call, cst.Arg | None]]:
        for call in self._origins.index.calls:
            if self._seeds(call) and not any(a.star for a in call.args):
                first = next((a for a in call.args if a.keyword is None), None)
                yield call, first or next(filter(None, (argument(call, k) for k in SEED_KEYWORDS)), None)

    def _seeds(self, call: cst.Call) -> bool:
        if self._origins.kind(call.func) is Kind.GENERATOR or self._origins.called(call) in RESEEDS:
            return True
        return method(call) == "seed" and self._origins.kinds(receiver(call)) == {Kind.GENERATOR}

    def problems(self) -> list[Problem]:
        """Generators whose seeds are not seen."""
        reason = "this is handed on to code that may make generators without a seed, other ones on each worker"
        next_step = "make the generators in this file, with a seed"
        return [Problem("TFDP012", n, reason, next_step) for n in self._unseen()]

    def _unseen(self) -> Iterator[cst.CSTNode]:
        """Makers of generators that are given to functions out of sight, which call them."""
        for call in self._origins.index.calls:
            starred = self._seeds(call) and any(a.star for a in call.args)
            if starred:
                yield call
            if self._origins.called(call) in OF_KIND or self._origins.called(call) == "builtins.issubclass":
                continue
            for arg in call.args:
                named = isinstance(arg.value, cst.Name | cst.Attribute)
                if named and self._origins.names.api(arg.value) and self._makes(arg.value):
                    yield arg.value

    def _makes(self, node: cst.BaseExpression) -> bool:
        return self._origins.kind(node) is Kind.GENERATOR
