"""Script: every question that a rule may ask, answered once per file."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from tfdp.migrate.catalogue import Kind
from tfdp.migrate.facts import fit_calls, hazards
from tfdp.migrate.facts.agreement import Agreement
from tfdp.migrate.facts.array_batches import ArrayBatches
from tfdp.migrate.facts.batch_sizes import BatchSizes
from tfdp.migrate.facts.batch_uses import BatchUses
from tfdp.migrate.facts.callbacks import open_callbacks
from tfdp.migrate.facts.datasets import Chain, Datasets
from tfdp.migrate.facts.dealing import Dealing, dealing
from tfdp.migrate.facts.deals import Deal
from tfdp.migrate.facts.devices import Devices
from tfdp.migrate.facts.drift import drifting
from tfdp.migrate.facts.effects import Effect, Effects, unplaced
from tfdp.migrate.facts.entry import Entry, entry
from tfdp.migrate.facts.fit_data import FitCalls, FitData, given_to
from tfdp.migrate.facts.gradients import Gradient, gradients
from tfdp.migrate.facts.ignores import Ignores, lines_of
from tfdp.migrate.facts.index import Index
from tfdp.migrate.facts.keras_averaging import KerasAveraging
from tfdp.migrate.facts.keras_losses import KerasLosses
from tfdp.migrate.facts.keras_reductions import KerasReductions
from tfdp.migrate.facts.keras_steps import KerasSteps
from tfdp.migrate.facts.keras_training import Compile, Fit, KerasTraining, fed
from tfdp.migrate.facts.loops import Loops, TrainingLoop
from tfdp.migrate.facts.losses import Losses
from tfdp.migrate.facts.names import Names
from tfdp.migrate.facts.noise import Noise
from tfdp.migrate.facts.origins import Origins, argument
from tfdp.migrate.facts.parts import nodes, parts
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.rate_changes import Changes, RateChanges
from tfdp.migrate.facts.rates import Rate, Rates
from tfdp.migrate.facts.reach import reached
from tfdp.migrate.facts.reductions import Reductions
from tfdp.migrate.facts.schedules import OwnSchedule, Schedules
from tfdp.migrate.facts.sharing import Sharing, Switches
from tfdp.migrate.facts.slices import backward
from tfdp.migrate.facts.step_bounds import StepBound, StepBounds, Uncounted
from tfdp.migrate.facts.step_counts import PerStep, StepCount, StepCounts
from tfdp.migrate.facts.xla import Xla

DP = "tfdp.runtime."
_OTHER_SYSTEMS = frozenset({"TFDP070", "TFDP075"})
_DRAWS = re.compile(r"(tensorflow|keras)\.random\.(?!set_seed|Generator|experimental|stateless_)")


def _switch_names() -> Iterator[str]:
    yield "shard_records"
    yield from (f"shard_records_{number}" for number in itertools.count(2))


class Script:
    """The facts of one file. Everything is computed on first use and never changes."""

    def __init__(self, module: cst.Module) -> None:
        self.module = module
        self.index = Index(module)
        self.names = Names(self.index)
        self.origins = Origins(self.index, self.names)
        self._datasets = Datasets(self.origins)
        self._loops = Loops(self.origins, self._datasets)
        self._keras = KerasTraining(self.origins)
        self._problems: dict[str, tuple[Problem, ...]] = {}

    # --- training -----------------------------------------------------------------------------------------------------

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """All gradient calls on tapes."""
        return gradients(self.origins)

    @cached_property
    def trained(self) -> tuple[Gradient, ...]:
        """The gradient calls in loops of the file whose result reaches an update."""
        kept = {id(g) for g in self._keras_steps.gradients}
        return (*(g for g in self.gradients if g.updates and id(g) not in kept), *self._fed)

    @cached_property
    def _fed(self) -> tuple[Gradient, ...]:
        return tuple(fed(f, self.origins) for f in self.on_batches)

    @property
    def _by_keras(self) -> tuple[Fit, ...]:
        return (*self.fits, *self.on_batches)

    @cached_property
    def _keras_steps(self) -> KerasSteps:
        return KerasSteps(self.origins, self._by_keras, self.gradients)

    @property
    def stepped(self) -> tuple[Gradient, ...]:
        """The gradient calls in models' own `train_step`, which `fit` runs, whose result reaches an update."""
        return self._keras_steps.gradients

    @cached_property
    def averaging(self) -> KerasAveraging:
        """How the gradients of fitted models are averaged."""
        minimized = tuple(g for g in self.trained if g.minimized)
        return KerasAveraging(self.origins, self._by_keras, self._keras_steps, minimized)

    @cached_property
    def compiled_by_xla(self) -> tuple[tuple[cst.Call, str], ...]:
        """Where a training step is compiled by XLA: calls with the keyword that says so."""
        return Xla(self.origins, self._by_keras, (*self.trained, *self.stepped)).found()

    @property
    def compiles(self) -> tuple[Compile, ...]:
        """Calls of Keras' `compile`."""
        return self._keras.compiles

    @property
    def fits(self) -> tuple[Fit, ...]:
        """Calls of Keras' `fit`, or what looks like it, each with the compiles of its model."""
        return self._keras.fits

    @property
    def on_batches(self) -> tuple[Fit, ...]:
        """Calls of Keras' train_on_batch, each with the compiles of its model."""
        return self._keras.on_batches

    @property
    def handed_models(self) -> tuple[cst.CSTNode, ...]:
        """Functions that make compiled models, where something outside the file is given them."""
        return self._keras.handed

    @cached_property
    def trains(self) -> bool:
        """Whether the file trains anything, by means understood here or not."""
        return bool(self.trained or self.fits or hazards.untaught(self) or hazards.escaped(self))

    @cached_property
    def _found_loops(self) -> tuple[TrainingLoop | Problem, ...]:
        return self._loops.of_all(self.trained)

    @cached_property
    def loops(self) -> tuple[TrainingLoop, ...]:
        """The training loops, one for each way from a gradient to a dataset."""
        return tuple(f for f in self._found_loops if isinstance(f, TrainingLoop))

    def state_names(self, loop: TrainingLoop) -> list[str] | None:
        """Names of models and optimizers at the place before the loop; None where they have none there."""
        return self._loops.state_names(loop)

    # --- data ---------------------------------------------------------------------------------------------------------

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The training datasets' chains, each once."""
        return self._dealing.chains

    @cached_property
    def migrated(self) -> bool:
        """Whether the script deals its training data already."""
        dealt = [*(c.dealt is not None for c in self.chains), *(t.dealt for t in self.array_batches.takes)]
        dealt += [f.dealt for f in self.fit_data]
        done = [*dealt, *(u.given.done for u in self.averaging.updates)]
        return bool(done) and all(done)

    @cached_property
    def array_batches(self) -> ArrayBatches:
        """The training batches that are taken out of arrays."""
        return ArrayBatches(self.origins, self.loops)

    @cached_property
    def _fit_data(self) -> tuple[FitData | Problem, ...]:
        calls = FitCalls(self.origins, self._datasets)
        return tuple(calls.of(f) for f in self.fits)

    @property
    def fit_data(self) -> tuple[FitData, ...]:
        """What each call of Keras' fit trains on."""
        return tuple(f for f in self._fit_data if isinstance(f, FitData))

    @cached_property
    def _fit_steps(self) -> tuple[StepCount | Problem, ...]:
        found = [] if self.migrated else [fit_calls.steps_of(f, self.deals, self._steps) for f in self.fit_data]
        return tuple(f for f in found if f is not None)

    @property
    def fit_steps(self) -> tuple[StepCount, ...]:
        """Numbers of steps in an epoch of Keras' fit that have to be divided."""
        return tuple(f for f in self._fit_steps if isinstance(f, StepCount))

    @property
    def shown(self) -> tuple[tuple[cst.Call, int], ...]:
        """Calls of a Keras model that show their progress on every rank, with the position of `verbose`."""
        return tuple((c, p) for c, p in fit_calls.shown(self.origins, self._by_keras) if not self._effects.on_root(c))

    @property
    def open_callbacks(self) -> tuple[cst.Call, ...]:
        """Calls of Keras' fit whose callbacks are not put in order for several ranks yet."""
        return tuple(f.fit.call for f in self.fit_data if open_callbacks(self.origins, f))

    @cached_property
    def _dealing(self) -> Dealing:
        return dealing(self._sharing, (c for loop in self.loops for c in loop.chains), self.fit_data)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self.origins)

    def switches(self, batch: str, reference: bool = False) -> Switches:
        """The parameters by which functions that make training data and others are told to change the former alone.

        For what a migration changes in the data in a batch mode, or what its reference does.
        """
        changed: list[cst.CSTNode] = [d.node for d in self.deals]
        if not self.migrated:
            changed += self.batches if (batch == "global") != reference else ()
            changed += self.step_takes if batch == "per-worker" else ()
        name = next(n for n in _switch_names() if n not in self.index.taken)
        return self._sharing.switches(self.chains, changed, name)

    @property
    def deals(self) -> tuple[Deal, ...]:
        """Where each training dataset's records are dealt."""
        return self._dealing.deals

    @cached_property
    def _steps(self) -> StepCounts:
        return StepCounts(self.origins, self._datasets, self.deals, self.fit_data, bool(self.loops))

    @cached_property
    def _step_takes(self) -> tuple[StepCount | Problem, ...]:
        return () if self.migrated else self._steps.of_takes(self.chains)

    @property
    def step_takes(self) -> tuple[cst.Call, ...]:
        """`.take(k)` calls of training chains that count batches, hence optimizer steps, and have to be divided."""
        return tuple(f.call for f in self._step_takes if isinstance(f, StepCount))

    @cached_property
    def _step_bounds(self) -> tuple[StepBound | Problem, ...]:
        found = StepBounds(self.origins, self._datasets, self.loops)
        if self.migrated:
            return ()
        agreed = {e for loop in self.loops for e in self.agreement.equal_ends(loop)}
        return tuple(f for f in found.find() if type(f) is not Problem or f.node not in agreed)

    @cached_property
    def _bound_problems(self) -> tuple[Problem, ...]:
        bounds = [b for b in self._step_bounds if isinstance(b, StepBound)]
        unknown = [p for b in bounds if (p := self._steps.uncertain(b)) is not None]
        return (*(p for p in self._step_bounds if isinstance(p, Uncounted)), *unknown)

    @cached_property
    def step_bounds(self) -> tuple[StepBound, ...]:
        """Numbers of steps in the headers and exits of training loops that have to be divided."""
        bounds = [b for b in self._step_bounds if isinstance(b, StepBound)]
        return tuple(b for b in bounds if self._steps.to_divide(b))

    @cached_property
    def batches(self) -> tuple[cst.Call, ...]:
        """The `.batch(…)` calls of training chains."""
        return tuple(dict.fromkeys(call for c in self.chains for call in c.batches))

    @cached_property
    def cache_files(self) -> tuple[cst.Call, ...]:
        """`.cache(file)` calls of training chains, which need a file for each rank."""
        stages = [link for c in self.chains for link in c.links if link.stage == "cache"]
        calls = [link.call for link in stages if link.call is not None and link.call.args]
        return () if self.migrated else tuple(dict.fromkeys(calls))

    # --- optimizers ---------------------------------------------------------------------------------------------------

    @cached_property
    def _rates(self) -> tuple[tuple[Rate, ...], tuple[Problem, ...]]:
        return Rates(self.origins).of(self.trained, [u.given for u in self.averaging.optimizers])

    @property
    def rates(self) -> tuple[Rate, ...]:
        """The learning rates of all trained optimizers."""
        return self._rates[0]

    def keeps(self, rate: Rate) -> bool:
        """Whether a rate stays what it is: the gradients of a sum grow with the batch themselves."""
        return self.reductions.keeps(rate) or self.keras_reductions.keeps(rate)

    @cached_property
    def rate_changes(self) -> Changes:
        """What is assigned to learning rates while the script trains."""
        _ = self.agreement  # before anything asks which values are the same on all ranks
        found = RateChanges(self.origins, [loop.loop for loop in self.loops]).found()
        kept = [self.keeps(rate) for rate in self.rates]
        if not found.scale or not any(kept):
            return found
        if all(kept):
            return replace(found, scale=())
        reason = "some optimizers' rates are scaled and some are not, and which of them this is, is not followed"
        mixed = [Problem("TFDP020", node, reason, "reduce all losses in one way") for node in found.scale]
        return replace(found, unscaled=(*found.unscaled, *mixed))

    @cached_property
    def _rate_problems(self) -> tuple[Problem, ...]:
        return (*self._rates[1], *(() if self.migrated else self.rate_changes.unscaled))

    @cached_property
    def _step_counts(self) -> tuple[StepCount | OwnSchedule | PerStep | Problem, ...]:
        if self.migrated:
            return ()
        decays = [found for rate in self.rates if (found := self._steps.decay(rate)) is not None]
        return (*Schedules(self.origins, self._steps).of(s for r in self.rates for s in r.schedules), *decays)

    @property
    def step_counts(self) -> tuple[StepCount, ...]:
        """Arguments of learning-rate schedules that count steps, and have to be divided."""
        return tuple(f for f in self._step_counts if isinstance(f, StepCount))

    @property
    def own_schedules(self) -> tuple[OwnSchedule, ...]:
        """Learning-rate schedules of the file's own classes, which have to see the one-process script's steps."""
        return tuple(f for f in self._step_counts if isinstance(f, OwnSchedule))

    @property
    def decays(self) -> tuple[PerStep, ...]:
        """Arguments by which a learning rate falls at each step."""
        return tuple(f for f in self._step_counts if isinstance(f, PerStep))

    # --- the rest -----------------------------------------------------------------------------------------------------

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What is written and shown, outside any guard."""
        return self._effects.all(self.agreement.certain) if self.trained or self.fits else ()

    @cached_property
    def _effects(self) -> Effects:
        return Effects(self.origins, self.loops, self.agreement.collectives, self.fits)

    @cached_property
    def devices(self) -> Devices:
        """What the script says about its GPU."""
        return Devices(self.origins)

    @cached_property
    def agreement(self) -> Agreement:
        """What makes decisions equal on all ranks."""
        dealt = {d.node for d in self.deals}
        fits = [f.call for f in self.fits]
        return Agreement(self.origins, self._datasets, self.loops, self._loops, dealt, fits=fits)

    @cached_property
    def waiting_reads(self) -> tuple[cst.CSTNode, ...]:
        """Statements that read files which rank 0 may still be writing."""
        return self._effects.waiting(self.effects, self.agreement.certain)

    @cached_property
    def data_draws(self) -> tuple[cst.Call, ...]:
        """Draws of TensorFlow's generators that the training data are made of."""
        sources: list[cst.CSTNode] = [
            link.call for chain in self.chains for link in chain.links[:1] if link.call is not None
        ]
        sources += self.array_batches.arrays
        sources += [value for f in self.fit_data for _, value in f.arrays]
        sources += [link.call for f in self.fit_data for c in f.chains for link in c.links[:1] if link.call is not None]
        drawn = [n for s in sources if s is not None for n in parts(self.origins, s) if isinstance(n, cst.Call)]
        return tuple(dict.fromkeys(c for c in drawn if _DRAWS.match(self.names.api(c.func) or "")))

    @cached_property
    def starts(self) -> tuple[cst.CSTNode, ...]:
        """The statements before which nothing is trained."""
        fits = [self._loops.before(f.fit.call) for f in self.fit_data]
        return tuple(dict.fromkeys([*(loop.before for loop in self.loops), *fits]))

    @cached_property
    def common_until_training(self) -> bool:
        """Whether TensorFlow's seed has to stay common until training starts, and can: it draws the training data, or
        orders what fit is given."""
        if self.data_draws or self.calls("seed_by_rank"):
            return True
        ordered = [call for deal in self.deals for call in deal.shuffles]
        if not self.fits or self.loops or not self.seeds or not ordered:
            return False
        return not any(self._effects.may_follow(f.call, call) for f in self.fits for call in ordered)

    @cached_property
    def seeds(self) -> tuple[tuple[cst.Call, Kind], ...]:
        """Calls that set the global seed with a value that is not made per rank yet."""
        found = []
        for call in self.index.calls:
            kind = self.origins.kind(call.func)
            first = argument(call, "seed", 0)
            done = (
                first is not None
                and isinstance(first.value, cst.Call)
                and self.names.api(first.value.func) == f"{DP}rank_seed"
            )
            if kind in {Kind.SEED, Kind.SEED_ALL} and first is not None and not done:
                found.append((call, kind))
        return tuple(found)

    @cached_property
    def unseeded(self) -> tuple[cst.Call, ...]:
        """NumPy's and Python's generators that are made without a seed, hence different on each rank."""
        return tuple(c for c in self.index.calls if not c.args and self.origins.kind(c.func) is Kind.GENERATOR)

    @cached_property
    def entry(self) -> Entry:
        """Where the runtime is initialised."""
        return entry(self.module, self.origins)

    def calls(self, name: str) -> tuple[cst.Call, ...]:
        """Calls of a function of tfdp.runtime."""
        return tuple(c for c in self.index.calls if self.names.api(c.func) == f"{DP}{name}")

    def problems(self, batch: str) -> tuple[Problem, ...]:
        """Everything that keeps the script from being migrated in a batch mode, but what the author ignores."""
        if batch not in self._problems:
            found = [p for p in self._find_problems(batch) if not self.ignored(p.code, p.node)]
            others = [p for p in found if p.code in _OTHER_SYSTEMS]  # whose scripts have all else in their own way
            self._problems[batch] = tuple(others or found)
        return self._problems[batch]

    def ignored(self, code: str, node: cst.CSTNode) -> bool:
        """Whether a `# tfdp: ignore[…]` comment at the node's statement names the code."""
        if not self._ignores:
            return False
        statement = self.index.statement_of(node)
        place = self._positions.get(statement)
        return place is not None and self._ignores.cover(code, lines_of(statement, place))

    @cached_property
    def _ignores(self) -> Ignores:
        return Ignores(self.module.code)

    def _find_problems(self, batch: str) -> tuple[Problem, ...]:
        found = [p for p in self._found_loops if isinstance(p, Problem)]
        settled = self.agreement  # before anything asks which conditions are the same on all ranks
        if not found and settled is not None:
            found = [p for p in self._fit_data if isinstance(p, Problem)]
            found += [*self._dealing.problems, *self.array_batches.problems(batch), *hazards.in_loops(self)]
            found += self._rate_problems if batch == "per-worker" else ()
            found += [p for p in self._step_bounds if type(p) is Problem]
            counted = (*self._step_takes, *self._step_counts, *self._bound_problems, *self._fit_steps)
            steps = [f for f in counted if isinstance(f, Problem)]
            found += [p for p in steps if batch == "per-worker" or self._steps.counts_records(p.node)]
        unknown = any(isinstance(p, Problem) and not self.ignored(p.code, p.node) for p in self._found_loops)
        found += [*hazards.untaught(self), *hazards.escaped(self), *hazards.unwrapped(self)]
        found += [*self.averaging.problems, *self.keras_reductions.problems]
        found += () if unknown else [*self.reductions.problems(), *self._drifting()]  # not known without the batches
        found += [*(() if self.migrated else self.noise.problems), *hazards.general(self, batch)]
        found += [] if self.migrated else fit_calls.uncertain(self.fit_data, self.agreement.certain)
        named = {p.node for p in found}
        decisions = [p for p in self.agreement.problems(self.effects) if p.node not in named]
        found = [*(p for p in found if not self._follows(p, decisions)), *decisions]
        for effect in self.effects:
            problem = unplaced(effect, self.origins, self.agreement.certain)
            found += [problem] if problem is not None else []
        for statement in self.waiting_reads:
            if not self.agreement.certain(statement):
                reason = "this reads what rank 0 writes, under a condition that may differ by worker"
                found.append(Problem("TFDP050", statement, reason, "read the file outside the condition"))
        return tuple(dict.fromkeys(found))

    def _follows(self, problem: Problem, decisions: list[Problem]) -> bool:
        """Whether an exit is a problem only because its test is one."""
        tests = {d.node for d in decisions}
        around = self.index.ancestors(problem.node) if isinstance(problem.node, cst.Break | cst.Return) else ()
        return any(isinstance(n, cst.If | cst.While) and n.test in tests for n in around)

    def _drifting(self) -> list[Problem]:
        running: set[cst.CSTNode] = {loop.loop for loop in self.loops}
        running |= {f for call in self._reached if (f := self.index.enclosing_function(call)) is not None}
        return drifting(self.origins, self.agreement.sameness, self.trained, running, self._sliced)

    @cached_property
    def _sliced(self) -> frozenset[cst.CSTNode]:
        """Everything that the trained gradients are computed from."""
        gradients = (*self.trained, *self.stepped)
        targets = [value for g in gradients for value in g.made_of]
        return backward(self.origins, [*targets, *(g.sources for g in gradients if g.sources is not None)])

    @cached_property
    def _reached(self) -> frozenset[cst.Call]:
        return reached(self.origins, self.loops)

    @cached_property
    def noise(self) -> Noise:
        """What NumPy draws for the examples of a training step."""
        taken = {n for take in self.array_batches.takes for n in nodes(take.node)}
        return Noise(self.origins, self._sizes, self.losses, self._reached, taken)

    @cached_property
    def losses(self) -> Losses:
        """What the losses are over the batch."""
        origins = Origins(self.index, self.names, self._reached)
        sizes = BatchSizes(origins, self.batches, (*self.array_batches.sizes, *self._fit_sizes))
        return Losses(origins, sizes, self.array_batches.rows, self._of_keras.of_model)

    @cached_property
    def _of_keras(self) -> KerasLosses:
        origins = Origins(self.index, self.names)
        return KerasLosses(origins, self._by_keras, lambda: Losses(origins, self._sizes, (), self._of_keras.of_model))

    @cached_property
    def _sizes(self) -> BatchSizes:
        return BatchSizes(self.origins, self.batches, (*self.array_batches.sizes, *self._fit_sizes))

    @property
    def _fit_sizes(self) -> list[cst.BaseExpression]:
        """The sizes of batches that `fit` takes out of arrays."""
        given = [given_to(f.fit.call, "batch_size") for f in self.fit_data if f.arrays]
        return [g for g in given if g is not None]

    @cached_property
    def batch_uses(self) -> BatchUses:
        """Where a training step uses the batch size as a number."""
        self.reductions  # noqa: B018 - looks at all losses, and so finds what divides them
        used = (self._sliced | fit_calls.run_by_keras(self.origins, self._by_keras)) - self.array_batches.counting
        return BatchUses(self.origins, self._sizes, self.losses, used)

    @cached_property
    def reductions(self) -> Reductions:
        """How the workers' gradients are put together."""
        taped = [g for g in (*self.trained, *self.stepped) if not g.fed]
        return Reductions(self.origins, self.losses, taped)

    @cached_property
    def keras_reductions(self) -> KerasReductions:
        """How the gradients that fitted models' optimizers take are put together."""
        return KerasReductions(self.origins, self.averaging, self._of_keras, self.reductions)

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)

    def position(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column of a node, both from 1."""
        place = self._positions.get(node)
        return (place.start.line, place.start.column + 1) if place is not None else (1, 1)


def read(source: str) -> Script:
    """The facts of a source text. Raises libcst.ParserSyntaxError."""
    return Script(cst.parse_module(source))
