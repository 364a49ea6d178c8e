"""Script: every question that a rule may ask, answered once per file."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import libcst as cst

from .data import Switches
from .program import Problem, Program, SourceFile
from .refusals import refusals
from .shared_run import SharedRun
from .steps import Steps
from .training import Elsewhere, Gradient
from .training_file import TrainingFile
from .untaught import escaped, of_variables, untaught
from .vocabulary import first_outside
from .widening import unwidened

_OTHER_SYSTEMS = frozenset({"TFDP070", "TFDP075"})


def _switch_names() -> Iterator[str]:
    yield "shard_records"
    yield from (f"shard_records_{number}" for number in itertools.count(2))


class Script(TrainingFile):
    """The facts of one file, and what keeps it from being migrated."""

    def __init__(
        self,
        program: Program,
        elsewhere: Callable[[], Mapping[str, Elsewhere]] = dict,
        taken: tuple[tuple[int, int, str], ...] = (),
    ) -> None:
        """`taken`: what of another system was taken out of the text before: line, column, and what is said of it."""
        super().__init__(program, elsewhere)
        self.taken = taken
        self._problems: dict[str, tuple[Problem, ...]] = {}

    @cached_property
    def steps(self) -> Steps:
        """All that counts optimizer steps."""
        return Steps(self)

    @cached_property
    def on_calls(self) -> SharedRun:
        """What differs where every worker runs the whole script, and its own rows of each model call."""
        return SharedRun(self)

    @cached_property
    def outside_vocabulary(self) -> Problem | None:
        """The first thing for which the input cannot be sharded; None where there is none."""
        return first_outside(self.program.entry, self)

    def is_written(self, call: cst.Call) -> bool:
        """Whether rank 0 alone is to make a call, of the effects of sharded input, or each worker has a file for it."""
        return call in {*(effect.call for effect in self.written.effects), *self.cache_files}

    def is_of_all(self, call: cst.Call) -> bool:
        """Whether a call updates a known metric, or gives its result over all examples."""
        return self.agreement.is_of_all(call)

    @cached_property
    def unwidened(self) -> Problem | None:
        """Why a step may not be given the batches of all workers, with the rate and steps for it: None where it may."""
        return unwidened(self, self.steps, self.problems("per-worker"))

    @cached_property
    def trains(self) -> bool:
        """Whether the file trains anything, by means understood here or not."""
        known = self.trained or self.fitted.calls or untaught(self) or escaped(self)
        return bool(known) or any(map(self._is_handed_on, self.gradients))

    def _is_handed_on(self, gradient: Gradient) -> bool:
        """Whether a function takes it by all that a model trains, and is given to others, as to an optimizer."""
        function = self.index.enclosing_function(gradient.call)
        if function is None or not of_variables(gradient):
            return False
        name = function.name.value
        uses = (*self.index.names.get(name, ()), *self.index.attributes.get(name, ()))
        return any(isinstance(self.index.parents.get(use), cst.Arg) for use in uses)

    def switches(self, batch: str, road: str = "input", reference: bool = False) -> Switches:
        """The parameters by which functions that make training data and others are told to change the former alone.

        For what a migration changes in the data in a batch mode, or what its reference does; on sharded calls only the
        batch and the number of steps.
        """
        changed: list[cst.CSTNode] = [d.node for d in self.shard_points] if road == "input" else [*self.batches]
        if not self.migrated:
            changed += self.batches if (batch == "global") != reference else ()
            changed += self.steps.takes if batch == "per-worker" else ()
        name = next(n for n in _switch_names() if n not in self.index.taken)
        return self.sharing.switches(self.chains, changed, name)

    def problems(self, batch: str) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated in a batch mode, but what the author ignores."""
        if batch not in self._problems:
            found = [p for p in refusals(self, self.steps, batch) if not self.ignored(p.code, p.node)]
            others = [p for p in found if p.code in _OTHER_SYSTEMS]  # whose scripts have all else in their own way
            self._problems[batch] = tuple(others or found)
        return self._problems[batch]


def read(source: str) -> Script:
    """The facts of a source text. Raises libcst.ParserSyntaxError."""
    return Script(Program(SourceFile(cst.parse_module(source))))
