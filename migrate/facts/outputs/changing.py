"""What an expression changes while it is computed: where rank 0 alone computes it, the other ranks do not go along.

`print(options.pop())`, `os.remove(kept.popleft())`, `tf.print(step.assign_add(1))`, functions of the file that do so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from collections.abc import Set as AbstractSet
from enum import IntEnum

import libcst as cst

from ...catalogue import Kind
from ...outputs import EffectKind
from ..apis import (
    CHANGES_GIVEN,
    CHANGES_OBJECT,
    GIVES_ITERATOR,
    GIVES_VALUE,
    LEAVES_OBJECT,
    LEAVES_STATE,
    METRICS,
    MODEL_ONLY_READS,
    OF_MANAGERS,
    OF_QUEUES,
    READS_NO_FILE,
    SETS,
    TAKES_OUT,
    TRAINS_MODEL,
    UNASKED,
)
from ..program import Origins, argument, changed_by, is_off, method, nodes, reaching, receiver, within_itself
from .local import Local
from .presence import Presence
from .writers import Writers

_CHANGES = CHANGES_OBJECT | TAKES_OUT | TRAINS_MODEL
_LEAVES_ITS_VALUES = ("numpy.", "pandas.", "datetime.", "time.", "pathlib.", "collections.", "re.", "json.", "os.")
_ELSEWHERE = (cst.Global, cst.Nonlocal, cst.NamedExpr, cst.Await)
_TOGETHER = frozenset({EffectKind.FETCH, EffectKind.ONCE})  # all ranks come to these together


class Leaves(IntEnum):
    """What the computing of an expression leaves behind, besides its value."""

    NOTHING = 0
    UNKNOWN = 1
    CHANGE = 2


class Changing:
    """Asks expressions and blocks of a program. `for_all` names nodes that every rank must come to."""

    def __init__(
        self, origins: Origins, writers: Writers, presence: Presence, for_all: Callable[[cst.CSTNode], bool]
    ) -> None:
        self._origins, self._index, self._writers, self._presence = origins, origins.index, writers, presence
        self._for_all, self._local = for_all, Local(origins, writers)

    def of(self, parts: Iterable[cst.CSTNode], inside: AbstractSet[cst.CSTNode]) -> Leaves:
        """What computing some parts leaves behind; objects that are made `inside` are not used elsewhere."""
        found = Leaves.NOTHING
        for part in parts:
            for node in nodes(part):
                found = max(found, self.of_node(node, inside))
                if found is Leaves.CHANGE:
                    return found
        return found

    def of_node(self, node: cst.CSTNode, inside: AbstractSet[cst.CSTNode]) -> Leaves:
        """The same of one node alone, and of the functions of the file that it runs."""
        if isinstance(node, _ELSEWHERE) or self._for_all(node):
            return Leaves.CHANGE
        if isinstance(node, cst.Call):
            return self._called(node, inside)
        if isinstance(node, cst.Name | cst.Attribute) and self._goes_on(node, inside):
            return Leaves.CHANGE
        places = _stored_in(node)
        held = [p.value for p in places if isinstance(p, cst.Attribute | cst.Subscript)]
        return Leaves.CHANGE if any(not self._local.holds(h, inside) for h in held) else Leaves.NOTHING

    def looks_up(self, values: Collection[cst.BaseExpression]) -> bool:
        """Whether something is looked up and made a text, and no file is asked for it, which rank 0 alone may have.

        That may do anything: a defaultdict, a property, `__str__`.
        """
        asks_file = any(self._may_ask_file(node) for value in values for node in nodes(value))
        return not asks_file and not all(isinstance(each, cst.SimpleString) for each in values)

    def _may_ask_file(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Attribute):
            return node.attr.value in OF_MANAGERS
        known = method(node) in GIVES_VALUE or not isinstance(node, cst.Call)
        return not known and READS_NO_FILE.match(self._origins.called(node)) is None

    def _goes_on(self, node: cst.Name | cst.Attribute, inside: AbstractSet[cst.CSTNode]) -> bool:
        """Whether it is an iterator that is used up where it is used: a file, a `zip`, a generator."""
        above = self._index.parents.get(node)
        if isinstance(above, cst.Attribute | cst.AsName | cst.Comparison | cst.FormattedStringExpression):
            return False
        if isinstance(node, cst.Name) and any(d.kind == "param" for d in reaching(self._index, node)):
            return False  # asked where it is given
        made = [o.node for o in self._origins.of(node) if not o.path]
        return any(m is not node and m not in inside and self._is_iterator(m) for m in made)

    def _is_iterator(self, made: cst.CSTNode) -> bool:
        if isinstance(made, cst.GeneratorExp):
            return True
        if not isinstance(made, cst.Call):
            return False
        function = self._origins.function(made.func)
        if GIVES_ITERATOR.match(self._origins.called(made)):
            return self._writers.kind(made) is None  # a file that is written is given to be written to
        return function is not None and function in self._index.generators

    # --- calls --------------------------------------------------------------------------------------------------------

    def _called(self, call: cst.Call, inside: AbstractSet[cst.CSTNode]) -> Leaves:
        api = self._origins.called(call)
        if api in UNASKED or self._presence.draws(call, inside):
            return Leaves.CHANGE
        if (kind := self._writers.kind(call)) is not None:
            given = kind is EffectKind.SAVE and not isinstance(self._index.parents[call], cst.Expr)
            return Leaves.CHANGE if given or kind in _TOGETHER else Leaves.NOTHING
        if api:
            return self._named(call, api, inside)
        if (function := self._origins.function(call.func)) is not None:
            return self._function(function)
        if (held := self._origins.lambda_of(call.func)) is not None:
            return self._function(held)
        if (owner := self._origins.constructed(call)) is not None:
            made = self._origins.method(owner, "__init__")
            return self._function(made) if made is not None else Leaves.NOTHING
        func = call.func
        of_method = isinstance(func, cst.Attribute) and not self._origins.stored(func)
        return self._of_method(call, inside) if of_method else self._of_object(call, inside)

    def _named(self, call: cst.Call, api: str, inside: AbstractSet[cst.CSTNode]) -> Leaves:
        if SETS.match(api) or CHANGES_GIVEN.match(api):
            given = call.args[0].value if call.args else None
            return Leaves.NOTHING if given is not None and self._local.holds(given, inside) else Leaves.CHANGE
        return Leaves.NOTHING if LEAVES_STATE.match(api) else Leaves.UNKNOWN

    def _of_method(self, call: cst.Call, inside: AbstractSet[cst.CSTNode]) -> Leaves:
        name, holder = method(call), receiver(call)
        if self._local.holds(holder, inside):
            return Leaves.NOTHING
        makers = {self._origins.called(o.node) for o in self._origins.of(holder)}
        if name in _CHANGES or any(m.startswith(OF_QUEUES) for m in makers):
            return Leaves.CHANGE
        kinds = self._origins.kinds(holder)
        reads_model = Kind.MODEL in kinds and name in MODEL_ONLY_READS
        if name in LEAVES_OBJECT or reads_model or isinstance(holder, cst.BaseString):
            return Leaves.NOTHING
        known = bool(makers) and all(m.startswith(_LEAVES_ITS_VALUES) for m in makers)
        return Leaves.NOTHING if known and Kind.GENERATOR not in kinds else Leaves.UNKNOWN

    def _of_object(self, call: cst.Call, inside: AbstractSet[cst.CSTNode]) -> Leaves:
        """`model(x)`, `loss(y, p)`, `metric(y, p)`."""
        func = call.func
        makers = {self._origins.called(o.node) for o in self._origins.of(func)}
        if any(m.startswith(METRICS) for m in makers):
            return Leaves.NOTHING if self._local.holds(func, inside) else Leaves.CHANGE
        training = argument(call, "training")
        if training is not None and not is_off(self._origins, training.value):
            return Leaves.UNKNOWN  # moving statistics, and draws
        owner = self._origins.class_of(func)
        run = next((m for name in ("__call__", "call") if owner and (m := self._origins.method(owner, name))), None)
        if run is not None:
            return self._function(run)
        known = bool(makers) and all(m.startswith(("keras.", "tensorflow.", "numpy.")) for m in makers)
        return Leaves.NOTHING if known or Kind.MODEL in self._origins.kinds(func) else Leaves.UNKNOWN

    @within_itself(Leaves.NOTHING)
    def _function(self, function: cst.FunctionDef | cst.Lambda) -> Leaves:
        """What a function of the file leaves behind; `self` in `__init__` is an object that is made there."""
        inside = set(nodes(function.body))
        own = isinstance(function, cst.FunctionDef) and function.name.value == "__init__"
        if own and (owner := self._index.enclosing_class(function)) is not None:
            inside.add(owner)
        return self.of([function.body], inside)


def _stored_in(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What an assignment, or `del`, changes."""
    if isinstance(node, cst.Del):
        deleted = node.target
        return [e.value for e in deleted.elements] if isinstance(deleted, cst.Tuple) else [deleted]
    return changed_by(node) if isinstance(node, cst.Assign | cst.AugAssign | cst.AnnAssign) else []
