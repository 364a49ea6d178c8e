"""Losses and gradients that change with the number of the step: weights that grow, temperatures, factors that fall.

With the batch of all workers a pass over the data has fewer steps, so that they would change more slowly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts.flow import reaching
from tfdp.migrate.facts.gradients import Gradient
from tfdp.migrate.facts.index import ITER, Definition
from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.pace import Pace
from tfdp.migrate.facts.parts import nodes
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.slices import backward

_NUMBERS = (cst.Integer, cst.Float)
_CONSUMED = frozenset({"apply_gradients", "apply"})


class Stepwise:
    """Finds what changes from step to step in what is computed from the examples.

    loops: those of which each turn is a step; left: those of which the number says which examples a batch has.
    """

    def __init__(
        self, origins: Origins, loops: Iterable[cst.For | cst.While], left: Collection[cst.CSTNode] = ()
    ) -> None:
        self._origins, self._loops, self._left = origins, frozenset(loops), left
        self._pace = Pace(origins, self._loops)

    def problems(self, gradients: Iterable[Gradient], losses: Collection[cst.CSTNode]) -> list[Problem]:
        """Counters among the nodes that trained losses are computed from, and in what is applied."""
        applied = [a.value for g in gradients for u in g.updates if _applies(u.call) for a in u.call.args[:1]]
        found = dict.fromkeys([*self._counters(losses), *self._counters(backward(self._origins, applied))])
        reason = "what is trained here depends on the number of the step, and steps are fewer here"
        next_step = "let it depend on the epoch, or use --batch global"
        return [Problem("TFDP011", node, reason, next_step) for node in found]

    def _counters(self, computed: Collection[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        for node in computed:
            if self._is_exempt(node):
                continue
            if isinstance(node, cst.Name | cst.Attribute) and self._is_counter(node):
                yield node

    def _is_exempt(self, node: cst.CSTNode) -> bool:
        """A seed, and what only says where examples are."""
        for above in self._origins.index.ancestors(node):
            if isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "seed":
                return True
            if isinstance(above, cst.SubscriptElement | cst.FunctionDef | cst.BaseStatement):
                return isinstance(above, cst.SubscriptElement)
        return False

    # --- counters -----------------------------------------------------------------------------------------------------

    def _is_counter(self, read: cst.Name | cst.Attribute) -> bool:
        above = self._origins.index.parents.get(read)
        if isinstance(above, cst.AugAssign) and above.target is read:
            return False
        if self._counts_up(read):
            return True
        if isinstance(read, cst.Attribute):
            return self._is_stored_counter(read)
        found = reaching(self._origins.index, read)
        return any(self._numbers_turns(d) for d in found) or self._adds_one(read, found)

    def _numbers_turns(self, definition: Definition) -> bool:
        """`for step, batch in enumerate(data)` and `for step in range(n)`, where each turn is a step."""
        loop, value = definition.statement, definition.value
        if definition.kind != "for" or loop not in self._loops or loop in self._left or not isinstance(value, cst.Call):
            return False
        api = self._origins.names.api(value.func)
        return definition.path == {"builtins.enumerate": (ITER, 0), "builtins.range": (ITER,)}.get(api or "")

    def _adds_one(self, read: cst.BaseExpression, found: Iterable[Definition]) -> bool:
        """`step += 1` at each step, where the step does not begin it anew."""
        added = [d for d in found if isinstance(d.value, cst.AugAssign) and self._raises(d.value, read)]
        anew = [d for d in found if not isinstance(d.value, cst.AugAssign)]
        return bool(added) and not any(self._pace.in_step(d.statement) for d in anew)

    def _raises(self, statement: cst.AugAssign, read: cst.BaseExpression) -> bool:
        one = isinstance(statement.operator, cst.AddAssign) and isinstance(statement.value, _NUMBERS)
        return one and statement.target.deep_equals(read) and self._pace.in_step(statement)

    def _counts_up(self, read: cst.BaseExpression) -> bool:
        """A variable: `step.assign_add(1)` at each step."""
        for attribute in self._origins.index.attributes.get("assign_add", ()):
            call = self._origins.index.parents.get(attribute)
            if not isinstance(call, cst.Call) or not call.args or not attribute.value.deep_equals(read):
                continue
            number = any(isinstance(n, _NUMBERS) for n in nodes(call.args[0].value))
            names = any(isinstance(n, cst.Name) for n in nodes(call.args[0].value))
            if number and not names and self._pace.in_step(call) and Kind.VARIABLE in self._origins.kinds(read):
                return True
        return False

    def _is_stored_counter(self, node: cst.Attribute) -> bool:
        if node.attr.value == "iterations":
            return Kind.OPTIMIZER in self._origins.kinds(node.value)
        stores = self._origins.index.attribute_stores.get(node.attr.value, ())
        return any(isinstance(value, cst.AugAssign) and self._raises(value, node) for _, value, _ in stores)


def _applies(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _CONSUMED
