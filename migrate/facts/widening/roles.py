"""Whether the numbers that are the batch's size and the learning rates are nothing else in the file.

A widened script has another batch and another rate where these are known to stand; a number with a second role would
be changed there and not here. All that a script does with such a number is held against a list of what is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ...catalogue import BATCHING
from ..batches import BatchSizes
from ..program import Origins, argument, closure, fold, method
from ..rates import Rate
from ..steps import Steps
from ..training_file import TrainingFile
from .reads import is_own, reads

_SHOWN = frozenset({"builtins.print", "builtins.str", "builtins.repr", "builtins.format"})
_METHODS = BATCHING | {"shuffle", "prefetch", "build", "evaluate", "predict"}
_SAYS = frozenset({"format", "info", "debug", "warning", "add_argument"})
_ARITHMETIC = re.compile(
    r"builtins\.(int|float|round|max|min|abs)$|math\.|numpy\.(ceil|floor|trunc|rint|round|u?int\d*|float\d*|maximum|minimum"
    r"|abs|prod|sqrt|exp|log\w*|power)$"
)
_VALIDATES = frozenset({"validation_batch_size", "validation_freq", "validation_steps"})
_COMPUTES = (cst.BinaryOperation, cst.UnaryOperation, cst.IfExp)
_HOLDS = (cst.Arg, cst.Element, cst.DictElement, cst.List, cst.Tuple, cst.Dict)
_ENDS = (cst.Assign, cst.AnnAssign, cst.NamedExpr, cst.Param, cst.Return, cst.Expr)
_BY_STEP = 3  # arguments of a range
_ROUNDS = 5  # of numbers that follow from others, which follow from others


def other_roles(script: TrainingFile, steps: Steps) -> tuple[list[cst.CSTNode], list[cst.CSTNode]]:
    """Where the batch's size, and where a learning rate, or what follows from them, is used for what is not known."""
    known = frozenset(_changed(script, steps))
    uses = _Uses(script.origins, known, script.sliced)
    rates = [value for rate in script.rates if not rate.hidden for value in _values(rate)]
    return uses.odd(script.batch_sizes.given), uses.odd(rates)


def _values(rate: Rate) -> Iterator[cst.BaseExpression]:
    """The number, and what a schedule is made of."""
    if (value := rate.factor or rate.value) is not None:
        yield value
    yield from (a.value for schedule in rate.schedules for a in schedule.args)


def _changed(script: TrainingFile, steps: Steps) -> Iterator[cst.CSTNode]:
    """Where a widened script has another batch, rate or number of steps."""
    sizes = (argument(call, "batch_size", 0) for call in script.batches)
    takes = (argument(call, "count", 0) for call in steps.takes)
    yield from (each.value for each in (*sizes, *takes) if each is not None)
    arrays = script.array_batches
    yield from (*script.fitted.sizes, *arrays.sizes, *arrays.divisors, *arrays.steps)
    yield from (bound.node for bound in steps.bounds)
    yield from (count.value for count in (*steps.of_fits, *steps.of_schedules))
    yield from (value for rate in script.rates for value in _values(rate))
    # What a class of the file's own does with the rate that it is given, or makes, it does with a scaled one.
    yield from own_classes(script)


def own_classes(script: TrainingFile) -> Iterable[cst.CSTNode]:
    """Classes of the file's own that are optimizers or schedules."""
    made = [call for rate in script.rates for call in (rate.call, *rate.schedules)]
    owners = [owner for call in made if (owner := script.origins.constructed(call)) is not None]
    return closure(owners, script.origins.own_bases)


class _Uses:
    """What a file does with numbers."""

    def __init__(self, origins: Origins, known: Collection[cst.CSTNode], sliced: Collection[cst.CSTNode]) -> None:
        """known: places where such numbers stand. sliced: what losses are computed from."""
        self._origins, self._known, self._sliced = origins, known, sliced
        self._index = origins.index
        self._reads = list(reads(origins))

    def odd(self, starts: Iterable[cst.BaseExpression]) -> list[cst.CSTNode]:
        """The places where one of these numbers is used for something else."""
        given = list(dict.fromkeys(starts))
        found: list[cst.CSTNode] = []
        for _ in range(_ROUNDS):
            numbers = BatchSizes(self._origins, (), given)
            ends = {node: self._end(node) for node in self._reads if numbers.may_stand(node)}
            found = [node for node, end in ends.items() if end is None]
            follows = [end for node, end in ends.items() if end is not None and end is not node]
            more = [each for each in dict.fromkeys(follows) if each not in given]
            if not more:
                return found
            given += more
        return [*found, *given[-1:]]  # no end to what follows

    def _end(self, read: cst.BaseExpression) -> cst.BaseExpression | None:
        """What has the number, or one that follows from it, in the end, where that is by a name: the read itself where
        nothing was computed. None where it is used for something else."""
        node: cst.CSTNode = read
        top = read
        if read in self._known or any(above in self._known for above in self._index.ancestors(read)):
            return read
        for above in self._index.ancestors(read):
            if isinstance(above, cst.Call):
                if not isinstance(node, cst.Arg):
                    return None  # it is called
                if not self._computes(above):
                    return top if self._takes(above, node) else None
                top = above
            elif isinstance(above, _COMPUTES):
                top = above
            elif isinstance(above, _ENDS):
                return top if _is_named(above) else None
            elif isinstance(above, cst.FormattedStringExpression) or self._picks(above, read):
                return read
            elif not isinstance(above, _HOLDS):
                return None
            node = above
        return None

    def _computes(self, call: cst.Call) -> bool:
        return _ARITHMETIC.match(fold(self._origins.called(call))) is not None

    def _takes(self, call: cst.Call, arg: cst.Arg) -> bool:
        """Whether what a call does with the number is known: it is a function of the file, or only shows it."""
        origins = self._origins
        if is_own(origins, call):
            return True
        if method(call) == "fit":
            return arg.keyword is not None and arg.keyword.value in _VALIDATES
        if origins.called(call) == "builtins.range":
            return len(call.args) == _BY_STEP and arg is call.args[2]  # from batch to batch
        return fold(origins.called(call)) in _SHOWN | {"builtins.dict"} or method(call) in _METHODS | _SAYS

    def _picks(self, above: cst.CSTNode, read: cst.CSTNode) -> bool:
        """Whether it says which examples are read in a loop from batch to batch, where no loss is computed from them:
        `for start in range(0, n, size): predict(x[start : start + size])`."""
        if not isinstance(above, cst.Slice) or read in self._sliced:
            return False
        around = list(self._index.ancestors(above))
        taken = next(each for each in around if isinstance(each, cst.Subscript))
        loops = [each.iter for each in around if isinstance(each, cst.For | cst.CompFor)]
        ranges = [each for each in loops if self._origins.called(each) == "builtins.range"]
        return not self._index.is_target(taken) and any(len(each.args) == _BY_STEP for each in ranges)  # type: ignore[attr-defined]


def _is_named(end: cst.CSTNode) -> bool:
    """Whether what is assigned gets a name, and is not put into something that there is."""
    targets = [each.target for each in end.targets] if isinstance(end, cst.Assign) else []
    return not any(isinstance(each, cst.Subscript) for each in targets)
