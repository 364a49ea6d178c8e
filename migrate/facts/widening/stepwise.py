"""Losses and gradients that change with the number of the step: weights that grow, temperatures, factors that fall.

With the batch of all workers a pass over the data has fewer steps, so that they would change more slowly.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..apis import ASSIGNS
from ..keras import KerasStepping
from ..program import (
    Later,
    Origins,
    Problem,
    StepNumbers,
    backward,
    changed_by,
    leading,
    method,
    nodes,
    reaching,
    receiver,
    tests_around,
)
from ..rates import RATES
from ..training import Gradient

_ORDER = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.Equal, cst.NotEqual)


class Stepwise:
    """Finds what changes from step to step in what is computed from the examples.

    loops: those of which each turn is a step; left: those of which the number says which examples a batch has; keras:
    what Keras runs at each step.
    """

    def __init__(
        self,
        origins: Origins,
        loops: Iterable[cst.For | cst.While],
        left: Collection[cst.CSTNode],
        keras: KerasStepping,
    ) -> None:
        self._origins, self._index = origins, origins.index
        self._steps = StepNumbers(origins, loops, functions=keras.functions, numbers=keras.numbers, unnumbered=left)

    def problems(self, gradients: Iterable[Gradient], losses: Collection[cst.CSTNode]) -> list[Problem]:
        """Counters among the nodes that trained losses are computed from, and in what is applied."""
        calls = [u.call for g in gradients for u in g.updates]
        applied = [a.value for call in calls if method(call) in {"apply_gradients", "apply"} for a in call.args[:1]]
        computed = dict.fromkeys([*losses, *backward(self._origins, applied)])
        counters = (node for node in computed if not self._is_exempt(node) and self._steps.begins(node))
        ways = list(leading(self._origins, calls))
        found = dict.fromkeys([*counters, *self._turning(computed, ways), *self._deeds(set(losses), ways)])
        reason = "what is trained here depends on the number of the step, and steps are fewer here"
        next_step = "let it depend on the epoch, or use --batch global"
        return [Problem("TFDP011", node, reason, next_step) for node in found]

    def _is_exempt(self, node: cst.CSTNode) -> bool:
        """A seed, and what only says where examples are."""
        for above in self._index.ancestors(node):
            if isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "seed":
                return True
            if isinstance(above, cst.SubscriptElement | cst.FunctionDef | cst.BaseStatement):
                return isinstance(above, cst.SubscriptElement)
        return False

    def _turning(self, computed: Iterable[cst.CSTNode], ways: Iterable[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Steps from which on something else is computed: `if step > 1000: weight = 0.1`; or applied, or no more."""
        names = (node for node in computed if isinstance(node, cst.Name))
        places = [*(d.statement for name in names for d in reaching(self._index, name)), *ways]
        for condition in self._conditions(places):
            if not _begins_anew(condition):
                yield from self._thresholds(condition.test)

    def _conditions(self, places: Iterable[cst.CSTNode]) -> list[cst.If]:
        """What is asked at each step before places are reached."""
        tests = (test for place in dict.fromkeys(places) for test in tests_around(place, self._origins))
        asked = dict.fromkeys(self._index.parents[test] for test in tests)
        return [each for each in asked if isinstance(each, cst.If) and self._steps.in_step(each)]

    def _thresholds(self, test: cst.BaseExpression) -> Iterator[cst.Comparison]:
        """Comparisons of a counter, saying how many steps there were; not whose turn it is, or which is the first."""
        if any(isinstance(n, cst.Modulo) for n in nodes(test)):
            return
        for comparison in (n for n in nodes(test) if isinstance(n, cst.Comparison)):
            sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
            ordered = all(isinstance(c.operator, _ORDER) for c in comparison.comparisons)
            if ordered and not any(map(is_first, sides)) and Later.COUNT in self._steps.all(sides):
                yield comparison

    def _deeds(self, computed: Collection[cst.CSTNode], ways: Iterable[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Steps at which weights are set, or after which training ends: `if step % 10 == 0: target.set_weights(…)`.

        Not where the update itself is made: what is gathered until then begins anew with it.
        """
        of_updates = self._conditions(ways)
        for condition in self._conditions(self._setting(computed)):
            asked = list(nodes(condition.test))
            turn = any(isinstance(n, cst.Modulo) for n in asked)
            if condition not in of_updates and (turn or not any(map(is_first, asked))):
                yield from (n for n in asked if self._steps.begins(n))

    def _setting(self, computed: Collection[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Places that set weights, or end what Keras' fit runs."""
        yield from self._index.methods("set_weights", "load_weights")
        yield from (call for call in self._index.methods(*ASSIGNS) if self._weighs(receiver(call), computed))
        yield from (target for target, _, _ in self._index.attribute_stores.get("stop_training", ()))

    def _weighs(self, variable: cst.BaseExpression, computed: Collection[cst.CSTNode]) -> bool:
        """Whether a variable that is assigned may be a weight: no rate, nor a number kept for a report."""
        if isinstance(variable, cst.Attribute) and variable.attr.value in RATES:
            return False
        makers = [m for m in self._steps.variables(variable) if m.args]
        plain = bool(makers) and all(isinstance(m.args[0].value, cst.BaseNumber) for m in makers)
        return not plain or any(m in computed for m in makers)


def is_first(node: cst.CSTNode) -> bool:
    """Whether a comparison with it asks for the first step."""
    return isinstance(node, cst.Integer) and node.evaluated_value <= 1


def _begins_anew(condition: cst.If) -> bool:
    """Whether what a condition asks about is set back where it holds: it says whose turn it is."""
    asked = [n for n in nodes(condition.test) if isinstance(n, cst.Name | cst.Attribute)]
    sets = (n for n in nodes(condition.body) if isinstance(n, cst.Assign) or method(n) == "assign")
    return any(one.deep_equals(other) for each in sets for other in changed_by(each) for one in asked)
