"""What changes with the number of the step: the domain of every question about how many steps there were."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from enum import Enum
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..apis import (
    ASSIGNS,
    CHANCE,
    COUNTS,
    COUNTS_STEPS,
    COUNTS_UP,
    DESCRIBES,
    DRAWN,
    MAKES_WEIGHT,
    PURE,
    READS_NUMBER,
    SETS_VARIABLE,
    UNASKED,
)
from .asking import closure
from .evaluator import Evaluator
from .flow import before, reaching
from .grown import Addition
from .index import Definition
from .known_branches import Frames
from .origins import Origins
from .pieces import nodes, parts
from .running import leading
from .spelling import changed_by, last_name, method, receiver

_HOLDS_STATE = frozenset({Kind.MODEL, Kind.OPTIMIZER, Kind.DATASET, Kind.BATCHED_DATASET, Kind.GENERATOR})


class Later(Enum):
    """Why a value may be another one at a later step."""

    COUNT = "it is computed from how many steps there were"
    SUM = "it is computed from what it was at the step before, and from others"
    OTHER = "it is computed from the batch, or from what is not known"


Paced = frozenset[Later]
FIXED: Paced = frozenset()
_COUNTED: Paced = frozenset({Later.COUNT})
_OTHER: Paced = frozenset({Later.OTHER})
_UNSEEN: Paced = frozenset({Later.SUM, Later.OTHER})
_Change = tuple[cst.BaseExpression, cst.BaseExpression, bool]


class StepNumbers(Evaluator[Paced]):
    """Answers about values and places, given the loops of which each turn is a step.

    A value with no reason to change is made of numbers, and of what is set outside the steps; one that has no other
    reason than `COUNT` is a function of the number of the step.
    """

    nothing = FIXED
    unknown = frozenset({Later.COUNT, Later.OTHER})

    def __init__(
        self,
        origins: Origins,
        loops: Iterable[cst.For | cst.While],
        *,
        functions: Collection[cst.CSTNode] = (),
        numbers: Collection[cst.CSTNode] = (),
        unnumbered: Collection[cst.CSTNode] = (),
    ) -> None:
        """functions: what Keras calls at each step; numbers: parameters that number the batches; unnumbered: loops of
        which the number says which examples a batch has."""
        super().__init__(origins)
        self._loops, self._functions = frozenset(loops), frozenset(functions)
        self._numbers, self._unnumbered = numbers, unnumbered
        self._in_step: dict[cst.CSTNode, bool] = {}

    def in_step(self, node: cst.CSTNode) -> bool:
        """Whether a place is reached at every step: in a loop of steps, or in a function called in one or by Keras."""
        if node not in self._in_step:
            ways = leading(self._origins, [node])
            looped = any(loop in self._loops for way in ways for loop in self._index.loops_around(way))
            called = any(above in self._functions for way in ways for above in self._index.ancestors(way))
            self._in_step[node] = looped or called
        return self._in_step[node]

    def begins(self, node: cst.CSTNode) -> bool:
        """Whether a name or an attribute counts steps itself, and does not only follow what does."""
        if not isinstance(node, cst.Name | cst.Attribute) or self.is_in_own_change(node):
            return False
        if any(self._change(each) == _COUNTED for made in self.variables(node) for each in self._changes(made)):
            return True
        if isinstance(node, cst.Attribute):
            steps = node.attr.value in COUNTS_STEPS and self.of(node) == _COUNTED
            return steps or any(self._carries(v) and self._is_counted(v) for v, _ in self._stored_by(node))
        return any(self._begins(d) for d in reaching(self._index, node))

    def _begins(self, definition: Definition) -> bool:
        if definition.kind == "for":
            return definition.statement in self._loops and self.definition(definition) == _COUNTED
        return definition.value in self._numbers or (self._keeps(definition) and self._is_counted(definition.value))

    def _is_counted(self, value: cst.CSTNode | None) -> bool:
        """Whether what is assigned, or added to what is there, is fixed or a function of the number of the step."""
        made = value.value if isinstance(value, cst.AugAssign) else value
        return made is not None and self.of(made) <= _COUNTED

    def variables(self, node: cst.CSTNode) -> set[cst.Call]:
        """The calls that make the variables that an expression can be."""
        made = [o.node for o in self._origins.of(node) if not o.path]
        return {m for m in made if isinstance(m, cst.Call) and self._makes_variable(m)}

    def _makes_variable(self, call: cst.Call) -> bool:
        return self._origins.kind(call.func) is Kind.VARIABLE or last_name(call.func) in {
            *MAKES_WEIGHT,
            "Variable",
            "variable",
        }

    # --- what is carried from step to step ----------------------------------------------------------------------------

    def definition(self, definition: Definition, frames: Frames = ()) -> Paced:
        """What a name is given, and that it is given it of what it was at the step before."""
        found = super().definition(definition, frames)
        return self._carried(found, definition.value, frames) if self._keeps(definition) else found

    def stores(self, node: cst.Attribute, stored: list[tuple[cst.CSTNode, tuple[int, ...]]], frames: Frames) -> Paced:
        """The same for attributes."""
        found = super().stores(node, stored, frames)
        for value, _ in stored:
            found = self._carried(found, value, frames) if self._carries(value) else found
        return found

    def _carried(self, found: Paced, value: cst.CSTNode | None, frames: Frames) -> Paced:
        """What is made of what it was; where that is being asked already, it is no reason of its own."""
        asked = value is not None and self.is_open((value, (), frames))
        return found if asked else _grown(found)

    def _carries(self, value: cst.CSTNode | None) -> bool:
        """Whether what is assigned at each step is made of what was there before."""
        if value is None or not self.in_step(value):
            return False
        if isinstance(value, cst.AugAssign):
            return True
        targets = changed_by(self._index.statement_of(value))
        reads = [n for n in nodes(value) if isinstance(n, cst.Attribute) or self._is_read(n)]
        return any(read.deep_equals(target) for read in reads for target in targets)

    def _is_read(self, node: cst.CSTNode) -> bool:
        """Whether a node is the name of a value, and not of an attribute or an argument."""
        return isinstance(node, cst.Name) and not self._index.is_label(node)

    def _keeps(self, definition: Definition) -> bool:
        """Whether a name that is made of what it was is not begun anew at each step."""
        if definition.kind not in {"assign", "other"} or not self._carries(definition.value):
            return False
        index = self._index
        earlier = closure(before(index, definition), lambda d: before(index, d) if self._carries(d.value) else ())
        return definition in earlier and not any(self._begins_anew(d) for d in earlier)

    def _begins_anew(self, definition: Definition) -> bool:
        """Whether a binding is made at every step, not only at some of them."""
        if self._carries(definition.value) or not self.in_step(definition.statement):
            return False
        kinds = (cst.If, cst.For, cst.While, cst.FunctionDef)
        above = (n for n in self._index.ancestors(definition.statement) if isinstance(n, kinds))
        return not isinstance(next(above, None), cst.If)

    def is_in_own_change(self, read: cst.BaseExpression) -> bool:
        """What `step += 1`, `step = step + 1` and `step.assign(step + 1)` read is of no interest by itself."""
        calls = (n for n in self._index.ancestors(read) if isinstance(n, cst.Call))
        changes = (self._index.statement_of(read), *calls)
        return any(changed.deep_equals(read) for change in changes for changed in changed_by(change))

    # --- variables ----------------------------------------------------------------------------------------------------

    @cached_property
    def _assigned(self) -> list[_Change]:
        """What is assigned to variables at each step, and whether regardless of what they were."""
        found: list[_Change] = []
        for call in self._index.calls:
            given = [a.value for a in call.args if a.keyword is None and not a.star]
            anew = SETS_VARIABLE.get(self._origins.called(call))
            if anew is not None and len(given) > 1:
                found.append((given[0], given[1], anew))
            elif method(call) in ASSIGNS and given:
                found.append((receiver(call), given[0], method(call) == "assign"))
        return [each for each in found if self.in_step(each[1])]

    def _changes(self, made: cst.CSTNode) -> list[_Change]:
        """What may be assigned to the variable that a call makes: also by an unknown object's attribute of its name."""
        found = []
        for each in self._assigned:
            makers, changed = self.variables(each[0]), each[0]
            named = changed.attr.value if isinstance(changed, cst.Attribute) and not makers else ""
            if made in makers or any(value is made for _, value, _ in self._index.attribute_stores.get(named, ())):
                found.append(each)
        return found

    def _change(self, change: _Change) -> Paced:
        changed, value, anew = change
        kept = not anew or any(n.deep_equals(changed) for n in nodes(value))
        return self._carried(self.of(value), value, ()) if kept else self.of(value)

    def _variable(self, made: cst.Call) -> Paced:
        """What is assigned to it at each step; where nothing is, it may be trained, or counted out of sight."""
        changes = self._changes(made)
        asked = any(self.is_open((value, (), ())) for _, value, _ in changes)
        return self.join(map(self._change, changes)) or (FIXED if asked else _UNSEEN)

    # --- the domain ---------------------------------------------------------------------------------------------------

    def join(self, values: Iterable[Paced]) -> Paced:
        """Every reason that one of them has."""
        return FIXED.union(*values)

    def known(self, node: cst.CSTNode, frames: Frames) -> Paced | None:  # noqa: ARG002 - the evaluator's signature
        """The steps that an optimizer counts; what batches have in common."""
        if isinstance(node, cst.Attribute) and node.attr.value in DESCRIBES:
            return FIXED
        if isinstance(node, cst.Attribute) and node.attr.value in COUNTS_STEPS and not self._origins.stored(node):
            return _COUNTED if Kind.OPTIMIZER in self._origins.kinds(node.value) else self.unknown
        named = isinstance(node, cst.Name | cst.Attribute)
        return _OTHER if named and not _HOLDS_STATE.isdisjoint(self._origins.kinds(node)) else None

    def compound(self, node: cst.CSTNode, frames: Frames) -> Paced:
        """What is made of values changes as they do; a sum over steps divided by their number does not count them."""
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            sums, number = self.of(node.left, frames), self.of(node.right, frames)
            return sums | (number - _COUNTED if Later.SUM in sums else number)
        return self.all(node.children, frames)

    def element(self, iterable: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> Paced:
        """In a loop of steps the number of the turn, or what the batch has."""
        loop = self._index.statement_of(iterable)
        if loop not in self._loops:
            return super().element(iterable, path, frames)
        api = self._origins.called(iterable)
        if loop in self._unnumbered:
            return _OTHER
        if isinstance(iterable, cst.Call) and self._origins.kind(iterable.func) is Kind.PROGRESS and iterable.args:
            return self.element(iterable.args[0].value, path, frames)
        if path[:1] == (0,) and (api == "builtins.enumerate" or self._is_numbered(iterable)):
            return _COUNTED
        if api in {"builtins.enumerate", "builtins.zip"} and path:
            return super().element(iterable, path, frames)
        return _COUNTED if api in COUNTS_UP and not path else _OTHER

    def _is_numbered(self, iterable: cst.CSTNode) -> bool:
        """Whether it is a dataset that numbers its batches: `dataset.enumerate()`."""
        return any(method(n) == "enumerate" for n in parts(self._origins, iterable))

    def parameter(self, definition: Definition, frames: Frames) -> Paced | None:  # noqa: ARG002
        """The number of a batch; what is given out of sight, to a function that runs at each step."""
        if definition.value in self._numbers:
            return _COUNTED
        function = definition.scope
        if not isinstance(function, cst.FunctionDef):
            return _OTHER
        if function in self._functions:
            return _OTHER  # the batch, whatever else calls it
        if self._origins.calls_of(function):
            return None
        return _OTHER if self.in_step(function.body) else FIXED

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Paced:
        """What any object of the file is given under that name, or else as its object."""
        if stores := self._stored_by(node):
            return self.stores(node, stores, frames)
        return self.of(node.value, frames)

    def _stored_by(self, node: cst.Attribute) -> list[tuple[cst.CSTNode, tuple[int, ...]]]:
        every = self._index.attribute_stores.get(node.attr.value, ())
        return self._origins.stored(node) or [(value, path) for _, value, path in every]

    def added(self, addition: Addition, frames: Frames) -> Paced:
        """A container that is changed at each step is another one then."""
        found, place = self.all(addition.values, frames), addition.place
        if method(place) == "assign" or not self.in_step(place):
            return found
        return _grown(found) if method(place) in ASSIGNS else found | _OTHER

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Paced:
        """What a function of a library gives, by what it is given."""
        if self._makes_variable(call):
            return self._variable(call)
        given = self.all((a.value for a in call.args), frames)
        if api in COUNTS:
            return given - _OTHER
        pure = PURE.match(api) and not CHANCE.match(api) and not DRAWN.match(api) and api not in UNASKED
        return given if pure else self._made(call, given)

    def object_call(self, call: cst.Call, frames: Frames) -> Paced:
        """A method of an object, or what that is called with."""
        if self._makes_variable(call):
            return self._variable(call)
        func = call.func.value if isinstance(call.func, cst.Attribute) else call.func
        found = self.all([func, *(a.value for a in call.args)], frames)
        return found if method(call) in READS_NUMBER and not call.args else self._made(call, found)

    def _made(self, call: cst.Call, found: Paced) -> Paced:
        """What an unknown call gives at each step; outside them it stays what it is."""
        return found | _OTHER if self.in_step(call) else found - _OTHER


def _grown(found: Paced) -> Paced:
    """What is made of what it was before, and of these."""
    return found | {Later.SUM} if Later.OTHER in found else found | _COUNTED
