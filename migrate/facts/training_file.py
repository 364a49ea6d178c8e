"""A program that trains: what stands in it, each fact computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import libcst as cst

from ..catalogue import Kind
from .agreement import Agreement, Metrics
from .batches import ArrayBatches, BatchSizes, ShardPlan, shard_plan
from .data import Chain, Datasets, Seeding, Seedings, ShardPoint, Sharing, seed_place, seeds
from .keras import Fitted, KerasStepping, Xla
from .outputs import Written
from .program import Index, Names, Origins, Problem, Program, argument, backward, is_off
from .rates import Rate, RateChanges, Rates
from .training import (
    Devices,
    Elsewhere,
    Entry,
    Gradient,
    Loops,
    State,
    TrainingLoop,
    entry,
    gradients,
    imported_training,
    reached,
)

DP = "tfdp.runtime."


class TrainingFile:
    """The facts of a program that trains. Everything is computed on first use and never changes."""

    def __init__(self, program: Program, elsewhere: Callable[[], Mapping[str, Elsewhere]] = dict) -> None:
        """`elsewhere`: dotted names that the file imports, and that train."""
        self.program, self._elsewhere = program, elsewhere
        self.index = Index(program)
        self.names = Names(self.index)
        self.origins = Origins(self.index, self.names)
        self.datasets = Datasets(self.origins)
        self._loops = Loops(self.origins, self.datasets)

    # --- training -----------------------------------------------------------------------------------------------------

    @cached_property
    def gradients(self) -> tuple[Gradient, ...]:
        """All gradient calls on tapes."""
        return gradients(self.origins)

    @cached_property
    def fitted(self) -> Fitted:
        """What Keras' own training does."""
        return Fitted(self.origins, self.datasets, self.gradients)

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
    def _found_loops(self) -> tuple[TrainingLoop | Problem, ...]:
        return self._loops.of_all(self.trained)

    @cached_property
    def loops(self) -> tuple[TrainingLoop, ...]:
        """The training loops, one for each way from a gradient to a dataset."""
        return tuple(f for f in self._found_loops if isinstance(f, TrainingLoop))

    @cached_property
    def elsewhere(self) -> dict[cst.CSTNode, Elsewhere]:
        """Where the file trains by functions, or methods of objects, that it imports."""
        known = self._elsewhere()
        return imported_training(self.origins, known) if known else {}

    def state(self, loop: TrainingLoop) -> tuple[cst.CSTNode, list[str] | None]:
        """The statement before which what a loop trains is brought into step on all workers, and the names that models
        and optimizers have there; None where one has none."""
        places = list(State(self.origins, self._loops).places(loop))
        return next((p for p in places[:-1] if self.agreement.certain(p[0])), places[-1])

    # --- data ---------------------------------------------------------------------------------------------------------

    @cached_property
    def chains(self) -> tuple[Chain, ...]:
        """The training datasets' chains, each once."""
        return self.shard_plan.chains

    @cached_property
    def migrated(self) -> bool:
        """Whether the script shards its training data already."""
        sharded = [*(c.sharded is not None for c in self.chains), *(t.sharded for t in self.array_batches.takes)]
        sharded += [f.sharded for f in self.fitted.data]
        done = [*sharded, *(u.given.done for u in self.fitted.averaging.updates)]
        return bool(done) and all(done)

    @cached_property
    def array_batches(self) -> ArrayBatches:
        """The training batches that are taken out of arrays."""
        return ArrayBatches(self.origins, self.loops)

    @cached_property
    def shard_plan(self) -> ShardPlan:
        """Where the training data are sharded, and what stands in the way."""
        return shard_plan(self.sharing, (c for loop in self.loops for c in loop.chains), self.fitted.data)

    @cached_property
    def sharing(self) -> Sharing:
        """Which functions make training data and other data, too."""
        return Sharing(self.origins)

    @property
    def shard_points(self) -> tuple[ShardPoint, ...]:
        """Where each training dataset's records are sharded."""
        return self.shard_plan.shard_points

    @cached_property
    def batches(self) -> tuple[cst.Call, ...]:
        """The `.batch(…)` calls of training chains."""
        return tuple(dict.fromkeys(call for c in self.chains for call in c.batches))

    @cached_property
    def keras_stepping(self) -> KerasStepping:
        """What Keras' own training computes at each step."""
        return KerasStepping(self.origins, self.fitted.by_keras)

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

    @cached_property
    def rate_changes(self) -> tuple[cst.CSTNode, ...]:
        """Where learning rates may be assigned while the script trains."""
        return RateChanges(self.origins).places()

    @cached_property
    def rate_problems(self) -> tuple[Problem, ...]:
        """Learning rates that cannot be scaled."""
        return self._rates[1]

    # --- the rest -----------------------------------------------------------------------------------------------------

    @cached_property
    def written(self) -> Written:
        """What is written and shown, where each worker has its share of the records."""
        return Written(self.origins, self.fitted.by_keras, trains=bool(self.trained or self.fitted.calls))

    @cached_property
    def devices(self) -> Devices:
        """What the script says about its GPU."""
        return Devices(self.origins)

    @cached_property
    def agreement(self) -> Agreement:
        """What all ranks come to alike."""
        fits = [f.call for f in self.fitted.calls]
        sharded = {d.node for d in self.shard_points}
        metrics = Metrics(self.origins, self.datasets, self.loops, self._loops, sharded)
        return Agreement(self.origins, self.loops, fits=fits, metrics=metrics)

    @cached_property
    def starts(self) -> tuple[cst.CSTNode, ...]:
        """The statements before which nothing is trained."""
        fits = [self._loops.before(f.fit.call) for f in self.fitted.data]
        return tuple(dict.fromkeys([*(loop.before for loop in self.loops), *fits]))

    @cached_property
    def common_until_training(self) -> bool:
        """Whether TensorFlow's seed has to stay common until training starts, and can: it orders what fit is given."""
        if self.calls("seed_by_rank"):
            return True
        ordered = [call for point in self.shard_points for call in point.shuffles]
        if not self.fitted.calls or self.loops or not self.seeds or not ordered:
            return False
        return not any(self.written.may_follow(f.call, call) for f in self.fitted.calls for call in ordered)

    @cached_property
    def seedings(self) -> tuple[Seeding, ...]:
        """What seeds NumPy's and Python's generators otherwise than alike on all workers."""
        return self._seedings.all() if self.trained or self.fitted.calls else ()

    @cached_property
    def _seedings(self) -> Seedings:
        return Seedings(self.origins)

    def seeding(self, call: cst.Call, seed: cst.BaseExpression | None) -> Seeding | None:
        """The same of a call that needs a common seed."""
        return self._seedings.of(call, seed)

    @cached_property
    def order_seeds(self) -> tuple[tuple[cst.Call, cst.BaseExpression], ...]:
        """Seeds of draws that all workers need alike: of shuffles, and global ones that Python and NumPy get, too, or
        by which TensorFlow draws the training data."""
        shuffles = dict.fromkeys(c for point in self.shard_points for c in point.shuffles)
        given = [(c, argument(c, *place)) for c in shuffles if (place := seed_place(c)) is not None]
        common = self.common_until_training
        given += [(c, argument(c, "seed", 0)) for c, kind in self.seeds if common or kind is Kind.SEED_ALL]
        return tuple((call, arg.value) for call, arg in given if arg is not None)

    @cached_property
    def unlike_seeds(self) -> tuple[Problem, ...]:
        """Seeds that cannot be made the same on all workers."""
        return tuple(self._seedings.problems())

    @cached_property
    def seeds(self) -> tuple[tuple[cst.Call, Kind], ...]:
        """Calls that set the global seed with a value that is not made per rank yet."""
        return seeds(self.origins)

    @cached_property
    def entry(self) -> Entry:
        """Where the runtime is initialised."""
        return entry(self.program.entry.module, self.origins)

    def calls(self, name: str) -> tuple[cst.Call, ...]:
        """Calls of a function of tfdp.runtime."""
        return tuple(c for c in self.index.calls if self.names.api(c.func) == f"{DP}{name}")

    @property
    def on_input(self) -> bool:
        """Whether an earlier migration has sharded its input."""
        return bool(self.calls("init")) and not self.shards_calls

    @property
    def shards_calls(self) -> bool:
        """Whether the script is migrated to sharded calls: `dp.init(shard_calls=True)`."""
        given = (argument(call, "shard_calls") for call in self.calls("init"))
        return any(each is not None and not is_off(self.origins, each.value) for each in given)

    def ignored(self, code: str, node: cst.CSTNode) -> bool:
        """Whether a `# tfdp: ignore[…]` comment at the node's statement names the code."""
        return self.index.file(node).ignored(code, self.index.statement_of(node))

    @property
    def unread_loops(self) -> list[Problem]:
        """Training loops that are not understood."""
        return [p for p in self._found_loops if isinstance(p, Problem)]

    @cached_property
    def sliced(self) -> frozenset[cst.CSTNode]:
        """Everything that the trained gradients are computed from."""
        gradients = (*self.trained, *self.fitted.stepped)
        targets = [value for g in gradients for value in g.made_of]
        return backward(self.origins, [*targets, *(g.sources for g in gradients if g.sources is not None)])

    @cached_property
    def reached(self) -> frozenset[cst.Call]:
        """The calls by which a training step comes to the functions of the file."""
        return reached(self.origins, self.loops)

    @cached_property
    def batch_sizes(self) -> BatchSizes:
        """The places of the batch size."""
        chains = [*self.chains, *(c for f in self.fitted.data for c in f.chains)]
        return BatchSizes(self.origins, chains, (*self.array_batches.sizes, *self.fitted.sizes))

    def position(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column of a node, both from 1."""
        return self.index.file(node).position(node)
