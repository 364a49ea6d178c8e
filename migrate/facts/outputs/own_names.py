"""Names of files and folders that each worker would make for itself: of its clock, its number or chance.

A clock that only measures how long something takes reaches no path, and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ... import outputs
from ...catalogue import Kind
from ...outputs import EffectKind
from ..apis import JOINS_PATH, OWN_FOLDER, OWN_NAME
from ..program import Origins, Problem, backward, method, receiver, within
from ..sameness import flag_default
from .writers import Writers

# Clocks, unless they are given a time: how many arguments they have else.
_FORMATS = {"time.strftime": 1, "time.ctime": 0, "time.asctime": 0, "time.localtime": 0, "time.gmtime": 0}
_GENERATOR = "random.SystemRandom"
_BY_ALL = outputs.FOLDERS | {EffectKind.FETCH}
_NEXT = "make it once, where all workers come together, as dp.agree(value) does, and give it a name"
_NEXT_FOLDER = (
    "make the folder by tempfile.mkdtemp(), which tfdp lets rank 0 do for all, and delete it at the end by "
    "shutil.rmtree"
)


@dataclass(frozen=True)
class _Use:
    """A call that takes a path; `by_all` where a worker other than rank 0 goes by it, too."""

    call: cst.CSTNode
    values: tuple[cst.BaseExpression, ...]
    by_all: bool


class OwnNames:
    """Finds what makes such names, and tells which can be rank 0's on all workers."""

    def __init__(self, origins: Origins, joint: Callable[[cst.CSTNode], bool]) -> None:
        """`joint`: whether all workers come to a place together, outside any graph."""
        self._origins, self._index, self._joint = origins, origins.index, joint
        self._writers = Writers(origins)

    @cached_property
    def _reached(self) -> dict[cst.Call, bool]:
        """Every maker of a name that reaches a path, and whether all workers go by one of its paths."""
        if not any(self._is_maker(call) for call in self._index.calls):
            return {}
        found: dict[cst.Call, bool] = {}
        for use in self._uses():
            for call in self._makers(use.values):
                if use.by_all or not self._here(call, use):
                    found[call] = found.get(call, False) or use.by_all
        return found

    @cached_property
    def agreed(self) -> tuple[cst.Call, ...]:
        """Calls whose value is to be rank 0's."""
        makers = (call for call in self._reached if not OWN_FOLDER.match(self._origins.called(call)))
        return tuple(call for call in makers if self._joint(call))

    def problems(self) -> list[Problem]:
        """Names that all workers go by, and that cannot be rank 0's."""
        apart = [call for call, by_all in self._reached.items() if by_all and call not in self.agreed]
        return [self._problem(call) for call in apart]

    def _problem(self, call: cst.Call) -> Problem:
        api = self._origins.called(call) or self._index.code(call.func)
        if OWN_FOLDER.match(api):
            reason = (
                f"{api} makes a folder or file of its own on each worker, and what rank 0 writes there is not found"
            )
            return Problem("TFDP050", call, reason, _NEXT_FOLDER)
        reason = f"a path is made of {api}(), which gives each worker another value, and not all certainly come here"
        return Problem("TFDP050", call, f"{reason} together", _NEXT)

    def _here(self, call: cst.Call, use: _Use) -> bool:
        """Whether a name is made in the very statement, or for the summary writer, that is rank 0's alone."""
        around = (n for n in self._index.ancestors(call) if isinstance(n, cst.Call))
        if any(self._writers.kind(n) is EffectKind.EVENTS for n in around):
            return True
        statement = self._index.statement_of(use.call)
        return isinstance(statement, cst.Expr | cst.With) and within(self._index, call, statement)

    # --- what makes them ----------------------------------------------------------------------------------------------

    def _is_maker(self, node: cst.CSTNode) -> bool:
        api = self._origins.called(node)
        drawn_by = self._origins.of(receiver(node)) if isinstance(node, cst.Call) and method(node) else ()
        if any(self._origins.called(o.node) == _GENERATOR for o in drawn_by):
            return True
        if not OWN_NAME.match(api) and not OWN_FOLDER.match(api):
            return False
        given = node.args if isinstance(node, cst.Call) else ()
        return api not in outputs.ONCE and not (api in _FORMATS and len(given) > _FORMATS[api])

    def _makers(self, values: Iterable[cst.BaseExpression]) -> Iterator[cst.Call]:
        made_of = set(backward(self._origins, values))
        defaults = [d for n in made_of if isinstance(n, cst.Attribute) and (d := flag_default(self._origins, n))]
        made_of |= backward(self._origins, defaults)
        rank_0s = {n for n in made_of if self._origins.called(n).startswith("tfdp.runtime.")}
        for node in made_of:
            if not isinstance(node, cst.Call) or not self._is_maker(node):
                continue
            if rank_0s.isdisjoint(self._index.ancestors(node)):
                yield node

    def _asks(self, call: cst.Call, of_path: bool) -> bool:
        """Whether a call makes a folder, or asks whether there is a file."""
        api, name = self._origins.called(call), method(call)
        named = api in outputs.PRESENCE or outputs.FUNCTIONS.get(api) is EffectKind.FOLDER
        return named or (of_path and (name in outputs.PATH_PRESENCE or name == "mkdir"))

    # --- what takes a path --------------------------------------------------------------------------------------------

    def _uses(self) -> Iterator[_Use]:
        for call in self._index.calls:
            api, kind = self._origins.called(call), self._writers.kind(call)
            values = tuple(a.value for a in call.args)
            if kind in {EffectKind.PRINT, EffectKind.SHOW, EffectKind.PROGRESS, EffectKind.ONCE}:
                values = values[:1] if method(call) == "savefig" else ()
            held = (receiver(call),) if method(call) and self._writers.is_path(receiver(call)) else ()
            if kind is not None and values:
                yield _Use(call, (*held, *values), kind in _BY_ALL)
            elif self._writers.reads(call) or self._asks(call, bool(held)):
                yield _Use(call, (*held, *values), True)
            elif api.startswith("keras.callbacks.") or self._origins.kind(call.func) is Kind.CHECKPOINT:
                yield _Use(call, values, True)
            elif JOINS_PATH.match(api):
                yield _Use(call, values, False)
        for node in self._index.order:
            if isinstance(node, cst.BinaryOperation) and self._writers.is_path(node):
                yield _Use(node, (node.left, node.right), False)
