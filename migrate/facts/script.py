"""Script: every question that a rule may ask, answered once per file."""

from __future__ import annotations

import itertools
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
from tfdp.migrate.facts.datasets import Chain, Datasets
from tfdp.migrate.facts.dealing import Dealing, dealing
from tfdp.migrate.facts.deals import Deal
from tfdp.migrate.facts.devices import Devices
from tfdp.migrate.facts.drift import drifting
from tfdp.migrate.facts.effects import Effect, Effects
from tfdp.migrate.facts.entry import Entry, entry
from tfdp.migrate.facts.fed_rows import fed_otherwise
from tfdp.migrate.facts.fitted import Fitted
from tfdp.migrate.facts.gradients import Gradient, gradients
from tfdp.migrate.facts.ignores import Ignores, lines_of
from tfdp.migrate.facts.index import Index
from tfdp.migrate.facts.keras_losses import KerasLosses
from tfdp.migrate.facts.keras_reductions import KerasReductions
from tfdp.migrate.facts.keras_stepping import KerasStepping
from tfdp.migrate.facts.loops import Loops, TrainingLoop
from tfdp.migrate.facts.losses import Losses
from tfdp.migrate.facts.mixing import Mixing
from tfdp.migrate.facts.names import Names
from tfdp.migrate.facts.noise import Noise
from tfdp.migrate.facts.origins import Origins
from tfdp.migrate.facts.parts import nodes
from tfdp.migrate.facts.problem import Problem
from tfdp.migrate.facts.rate_changes import Changes, RateChanges
from tfdp.migrate.facts.rates import Rate, Rates
from tfdp.migrate.facts.reach import reached
from tfdp.migrate.facts.reductions import Reductions
from tfdp.migrate.facts.refusals import refusals
from tfdp.migrate.facts.replay import replayed
from tfdp.migrate.facts.row_lengths import RowLengths
from tfdp.migrate.facts.seeds import draws_in, seeds
from tfdp.migrate.facts.shared_totals import SharedTotals
from tfdp.migrate.facts.sharing import Sharing, Switches
from tfdp.migrate.facts.slices import backward
from tfdp.migrate.facts.steps import Steps
from tfdp.migrate.facts.stepwise import Stepwise
from tfdp.migrate.facts.xla import Xla

DP = "tfdp.runtime."
_OTHER_SYSTEMS = frozenset({"TFDP070", "TFDP075"})


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
        self.fitted = Fitted(self, self._datasets)
        self.steps = Steps(self, self._datasets)
        self._problems: dict[str, tuple[Problem, ...]] = {}

    # --- training -----------------------------------------------------------------------------------------------------

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """All gradient calls on tapes."""
        return gradients(self.origins)

    @cached_property
    def trained(self) -> tuple[Gradient, ...]:
        """The gradient calls in loops of the file whose result reaches an update."""
        kept = {id(g) for g in self.fitted.stepped}
        return (*(g for g in self.gradients if g.updates and id(g) not in kept), *self.fitted.fed)

    @cached_property
    def compiled_by_xla(self) -> tuple[tuple[cst.Call, str], ...]:
        """Where a training step is compiled by XLA: calls with the keyword that says so."""
        return Xla(self.origins, self.fitted.by_keras, (*self.trained, *self.fitted.stepped)).found()

    @cached_property
    def trains(self) -> bool:
        """Whether the file trains anything, by means understood here or not."""
        return bool(self.trained or self.fitted.calls or hazards.untaught(self) or hazards.escaped(self))

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
        return self.dealt.chains

    @cached_property
    def migrated(self) -> bool:
        """Whether the script deals its training data already."""
        dealt = [*(c.dealt is not None for c in self.chains), *(t.dealt for t in self.array_batches.takes)]
        dealt += [f.dealt for f in self.fitted.data]
        done = [*dealt, *(u.given.done for u in self.fitted.averaging.updates)]
        return bool(done) and all(done)

    @cached_property
    def array_batches(self) -> ArrayBatches:
        """The training batches that are taken out of arrays."""
        return ArrayBatches(self.origins, self.loops)

    @cached_property
    def dealt(self) -> Dealing:
        """Where the training data are dealt, and what stands in the way."""
        return dealing(self._sharing, (c for loop in self.loops for c in loop.chains), self.fitted.data)

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
            changed += () if reference else self.dealt.common_batches
            changed += self.steps.takes if batch == "per-worker" else ()
        name = next(n for n in _switch_names() if n not in self.index.taken)
        return self._sharing.switches(self.chains, changed, name)

    @property
    def deals(self) -> tuple[Deal, ...]:
        """Where each training dataset's records are dealt."""
        return self.dealt.deals

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
        return Rates(self.origins).of(self.trained, [u.given for u in self.fitted.averaging.optimizers])

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

    # --- the rest -----------------------------------------------------------------------------------------------------

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What is written and shown, outside any guard."""
        return self._effects.all(self.agreement.certain) if self.trained or self.fitted.calls else ()

    @property
    def shown(self) -> tuple[tuple[cst.Call, int], ...]:
        """Calls of a Keras model that show their progress on every rank, with the position of `verbose`."""
        shown = fit_calls.shown(self.origins, self.fitted.by_keras)
        guards = {e.guard for e in self.effects if e.guard is not None and not e.shared}
        return tuple(
            (c, p)
            for c, p in shown
            if not self._effects.on_root(c) and not any(above in guards for above in self.index.ancestors(c))
        )

    @cached_property
    def _effects(self) -> Effects:
        return Effects(self.origins, self.loops, self.agreement.collectives, self.fitted.calls)

    @cached_property
    def devices(self) -> Devices:
        """What the script says about its GPU."""
        return Devices(self.origins)

    @cached_property
    def agreement(self) -> Agreement:
        """What makes decisions equal on all ranks."""
        dealt = {d.node for d in self.deals}
        fits = [f.call for f in self.fitted.calls]
        return Agreement(self.origins, self._datasets, self.loops, self._loops, dealt, fits=fits)

    @cached_property
    def waiting_reads(self) -> tuple[cst.CSTNode, ...]:
        """Statements that read files which rank 0 may still be writing."""
        return self._effects.waiting(self.effects, self.agreement.certain)

    @cached_property
    def last_reads(self) -> tuple[cst.CSTNode, ...]:
        """Statements in which rank 0 deletes files that other workers may still be reading."""
        return self._effects.last_reads(self.effects, self.agreement.certain)

    @cached_property
    def data_draws(self) -> tuple[cst.Call, ...]:
        """Draws of TensorFlow's generators that the training data are made of."""
        chains = [*self.chains, *(c for f in self.fitted.data for c in f.chains)]
        made = [link.call for c in chains for link in c.links[:1] if link.call is not None]
        arrays = [*self.array_batches.arrays, *(value for f in self.fitted.data for _, value in f.arrays)]
        return draws_in(self.origins, [*made, *arrays])

    @cached_property
    def starts(self) -> tuple[cst.CSTNode, ...]:
        """The statements before which nothing is trained."""
        fits = [self._loops.before(f.fit.call) for f in self.fitted.data]
        return tuple(dict.fromkeys([*(loop.before for loop in self.loops), *fits]))

    @cached_property
    def common_until_training(self) -> bool:
        """Whether TensorFlow's seed has to stay common until training starts, and can: it draws the training data,
        orders what fit is given, or may order them in another file."""
        if self.data_draws or self.calls("seed_by_rank") or any(c.foreign for c in self.chains):
            return True
        ordered = [call for deal in self.deals for call in deal.shuffles]
        if not self.fitted.calls or self.loops or not self.seeds or not ordered:
            return False
        return not any(self._effects.may_follow(f.call, call) for f in self.fitted.calls for call in ordered)

    @cached_property
    def seeds(self) -> tuple[tuple[cst.Call, Kind], ...]:
        """Calls that set the global seed with a value that is not made per rank yet."""
        return seeds(self.origins)

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
            found = [p for p in refusals(self, batch) if not self.ignored(p.code, p.node)]
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

    @property
    def unread_loops(self) -> list[Problem]:
        """Training loops that are not understood."""
        return [p for p in self._found_loops if isinstance(p, Problem)]

    def data_problems(self, batch: str) -> list[Problem]:
        """What cannot be dealt, scaled or counted, where all loops are understood."""
        found = [*self.fitted.unread, *self.dealt.problems, *self.array_batches.problems(batch)]
        found += [*hazards.in_loops(self), *(self._rate_problems if batch == "per-worker" else ())]
        if not self.migrated:
            found += RowLengths(self.origins).problems(self.chains, self.deals, self.loops, batch)
            found += replayed(self.origins, self.fitted.data)
            found += self._mixing.problems(self.chains, self.deals)
            found += fed_otherwise(self.origins, self.losses, self.loops)
            found += self.dealt.problems_of(batch)
            found += self._stepwise if batch == "per-worker" else []
        return [*found, *self.steps.problems(batch), *self.steps.of_decisions(batch)]

    @property
    def _mixing(self) -> Mixing:
        origins = Origins(self.index, self.names)
        return Mixing(origins, Losses(origins, self._sizes_in(origins)))

    @property
    def _stepwise(self) -> list[Problem]:
        """What is trained that changes with the number of the step."""
        counted = {loop for take in self.array_batches.takes if take.counted for loop in take.loops[:1]}
        keras = KerasStepping(self.origins, self.fitted.by_keras)
        return Stepwise(self.origins, [loop.loop for loop in self.loops], counted, keras).problems(
            (*self.trained, *self.fitted.stepped), self._sliced | keras.computed
        )

    @property
    def drifting(self) -> list[Problem]:
        """What training steps change besides trained variables, and differs by rank."""
        running: set[cst.CSTNode] = {loop.loop for loop in self.loops}
        running |= {f for call in self._reached if (f := self.index.enclosing_function(call)) is not None}
        return drifting(self.origins, self.agreement.sameness, self.trained, running, self._sliced)

    @cached_property
    def _sliced(self) -> frozenset[cst.CSTNode]:
        """Everything that the trained gradients are computed from."""
        gradients = (*self.trained, *self.fitted.stepped)
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
    def keras_losses(self) -> KerasLosses:
        """What the losses are over the batch that Keras computes for fitted models."""
        origins = Origins(self.index, self.names)
        calls = self.fitted.by_keras
        return KerasLosses(origins, calls, lambda: Losses(origins, self._sizes, (), self.keras_losses.of_model))

    @cached_property
    def losses(self) -> Losses:
        """What the losses are over the batch."""
        origins = Origins(self.index, self.names, self._reached)
        return Losses(origins, self._sizes_in(origins), self.array_batches.rows, self.keras_losses.of_model)

    @cached_property
    def _sizes(self) -> BatchSizes:
        return self._sizes_in(self.origins)

    def _sizes_in(self, origins: Origins) -> BatchSizes:
        chains = [*self.chains, *(c for f in self.fitted.data for c in f.chains)]
        return BatchSizes(origins, chains, (*self.array_batches.sizes, *self.fitted.sizes))

    @cached_property
    def batch_uses(self) -> BatchUses:
        """Where a training step uses the batch size as a number."""
        _ = self.reductions, self.keras_reductions.problems  # which look at all losses, and so find what divides them
        divisors = self.losses.divisors | self.keras_losses.divisors
        used = self._sliced | fit_calls.run_by_keras(self.origins, self.fitted.by_keras) | self.keras_losses.made_of
        used -= self.array_batches.counting
        return BatchUses(self.origins, self._sizes, self.losses, used, divisors)

    @cached_property
    def reductions(self) -> Reductions:
        """How the workers' gradients are put together."""
        taped = [g for g in (*self.trained, *self.fitted.stepped) if not g.fed]
        return Reductions(self.origins, self.losses, taped)

    @cached_property
    def shared_totals(self) -> SharedTotals:
        """What of the losses is taken over all ranks."""
        _ = self.reductions, self.keras_reductions.problems  # which look at all losses
        taped = [g for g in (*self.trained, *self.fitted.stepped) if not g.fed]
        others = [g for g in self.gradients if g not in taped]
        return SharedTotals(self.origins, self.losses, self.keras_losses, taped, others)

    @cached_property
    def keras_reductions(self) -> KerasReductions:
        """How the gradients that fitted models' optimizers take are put together."""
        return KerasReductions(self.origins, self.fitted.averaging, self.keras_losses, self.reductions)

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
