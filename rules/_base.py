"""The vocabulary of rules: what a rule is given and what it may yield. Nothing here edits anything."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import libcst as cst

from ..migrate import build

if TYPE_CHECKING:
    from ..migrate.facts.outputs import Written
    from ..migrate.facts.program import Problem
    from ..migrate.facts.script import Script
    from ..migrate.facts.shared_run import Kept
    from ..migrate.facts.training import Entry, Place

Batch = Literal["per-worker", "global"]
Road = Literal["input", "calls", "names"]
"""How a script is made data-parallel: each worker trains on its share of the records; or every worker runs the whole
script and computes its own rows of each model call; or it is distributed already, by another system whose names the
runtime has, and shards by itself."""
Shard = Literal["auto", "input", "calls"]
INPUT_ONLY: frozenset[Road] = frozenset({"input"})
CALLS_ONLY: frozenset[Road] = frozenset({"calls"})
EVERY_ROAD: frozenset[Road] = INPUT_ONLY | CALLS_ONLY
Scale = Literal["linear", "sqrt", "none"]


@dataclass(frozen=True)
class Policy:
    """What is asked of a migration. Raises ValueError, in the words of the command line, for what contradicts itself.

    shard: what is sharded; with `auto` the calls, which are exact whatever a script says, but for a script whose input
    was sharded before. batch: None for `per-worker` where the input is sharded, else `global`. lr_scale: the factor of
    learning rates for N workers: N, its square root, or 1. warmup_steps: over how many of the job's first steps that
    factor rises from 1.
    """

    shard: Shard = "auto"
    batch: Batch | None = None
    lr_scale: Scale = "linear"
    warmup_steps: int = 0

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.batch == "global" and (self.lr_scale != "linear" or self.warmup_steps):
            raise ValueError("--lr-scale and --warmup-steps are for --batch per-worker: global keeps all rates")
        if self.lr_scale == "none" and self.warmup_steps:
            raise ValueError("--warmup-steps needs a factor to rise to: --lr-scale linear or sqrt")

    @property
    def scales_by_workers(self) -> bool:
        """Whether learning rates are multiplied by the number of workers from the first step on."""
        return self.lr_scale == "linear" and not self.warmup_steps


AS_USUAL = Policy()


@dataclass(frozen=True)
class Context:
    """What a rule may ask: the facts, the road, the batch mode, what was asked for, and the name under which the
    runtime is imported.

    early: what the rules would write into the module's own code, so that the workers must be started before it.
    """

    script: Script
    batch: Batch
    dp: str
    policy: Policy = AS_USUAL
    early: cst.CSTNode | None = None
    road: Road = "input"

    @property
    def entry(self) -> Entry:
        """Where the runtime is imported, and where it is initialised."""
        return self.script.entry if self.road == "input" else self.script.on_calls.entry

    @property
    def widens(self) -> bool:
        """Whether each step gets the batches of all workers, and learning rates and numbers of steps follow."""
        script = self.script
        if self.batch == "global":
            return False
        return not script.migrated if self.road == "input" else not (script.calls("init") or script.unwidened)

    @property
    def start(self) -> Place:
        """Where the workers are started."""
        return self.entry.start if self.early is None else self.entry.imports

    @property
    def written(self) -> Written | Kept:
        """What the script writes and shows, and its text has to keep to rank 0."""
        return self.script.written if self.road == "input" else self.script.on_calls.written

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What keeps the script from being migrated."""
        return self.script.problems(self.batch) if self.road == "input" else self.script.on_calls.problems


@dataclass(frozen=True)
class Edit:
    """Replace an expression by a function of its updated self, so that nested edits compose.

    An edit that only puts something `around` the expression comes after another edit of it.
    """

    node: cst.BaseExpression
    change: Callable[[cst.BaseExpression], cst.BaseExpression]
    message: str
    around: bool = False


@dataclass(frozen=True)
class Parameter:
    """Give a function one more parameter, with a default that leaves its other calls as they are."""

    function: cst.FunctionDef
    name: str
    default: str
    message: str


@dataclass(frozen=True)
class SetArg:
    """Set one argument of a call: `change` gets its present value, or None where it is omitted.

    `becomes` is another keyword for an argument that is given by keyword.
    """

    call: cst.Call
    keyword: str
    change: Callable[[cst.BaseExpression | None], cst.BaseExpression]
    message: str
    position: int | None = None
    becomes: str | None = None


@dataclass(frozen=True)
class Insert:
    """Add one line of code before or after a statement; lines at one anchor are ordered by rule code.

    at_each: where a line of several statements is taken apart, it comes to each of them.
    """

    anchor: cst.CSTNode
    where: Literal["before", "after"]
    code: str
    message: str
    at_each: bool = False


@dataclass(frozen=True)
class Guard:
    """Put an expression statement, or a `with` or `if` as a whole, under `if dp.rank() == 0:`; neighbours share one."""

    statement: cst.Expr | cst.With | cst.If
    comment: str
    message: str


@dataclass(frozen=True)
class Drop:
    """Take a statement out of its line; comments above it stay."""

    statement: cst.BaseSmallStatement
    message: str


@dataclass(frozen=True)
class Refuse:
    """Why a place cannot be migrated, and what its author can do."""

    node: cst.CSTNode
    reason: str
    next_step: str


Outcome = Edit | Parameter | SetArg | Insert | Guard | Drop | Refuse


def through(context: Context, call: cst.BaseExpression, function: str, message: str) -> Edit:
    """`f(x)` becomes `dp.function(f, x)`."""
    node = cst.ensure_type(call, cst.Call)
    return Edit(node, lambda n: build.first_argument(f"{context.dp}.{function}", n), message)


def place(outcome: Outcome) -> cst.CSTNode:
    """The node that an outcome is about."""
    if isinstance(outcome, Edit | Refuse):
        return outcome.node
    if isinstance(outcome, SetArg):
        return outcome.call
    if isinstance(outcome, Parameter):
        return outcome.function.name
    return outcome.anchor if isinstance(outcome, Insert) else outcome.statement


@dataclass(frozen=True)
class Rule:
    """One rule: its public code, its name, its documentation (a module's docstring), what it yields for a script, and
    the roads on which it does; on another it says nothing."""

    code: str
    name: str
    doc: str
    outcomes: Callable[[Context], Iterator[Outcome]]
    roads: frozenset[Road] = INPUT_ONLY

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.doc.strip().splitlines()[0]

    def run(self, context: Context) -> Iterator[Outcome]:
        """Refusals for what the facts could not establish under this rule's code, then the rule's own outcomes.

        Nothing where a comment tells the rule to ignore the place, or the rule is for another road.
        """
        if context.road not in self.roads:
            return
        for problem in context.problems:
            if problem.code == self.code:
                yield Refuse(problem.node, problem.reason, problem.next_step)
        for outcome in self.outcomes(context):
            if not context.script.ignored(self.code, place(outcome)):
                yield outcome
