"""What a script writes and shows: the places that only one rank may reach."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import libcst as cst

from ... import outputs
from ...outputs import EffectKind
from ..apis import OF_MANAGERS, ON_ROOT
from ..counting import around
from ..keras import Fit, callback_functions, has_callbacks
from ..program import (
    Definition,
    Origins,
    entered,
    last_name,
    leading,
    method,
    nodes,
    number,
    reaching,
    receiver,
    within,
)
from ..training import TrainingLoop
from .changing import Changing, Leaves
from .failing import Failing
from .paths import Paths
from .presence import Presence
from .trackers import Ask, Trackers
from .writers import Writers

_LEAVES = (cst.Return, cst.Break, cst.Continue, cst.Yield, cst.Await, cst.Global, cst.Nonlocal, cst.Raise, cst.Del)
_DP = "tfdp.runtime."
_TRAINED = ("trainable_variables", "trainable_weights")
_OPENS = frozenset({EffectKind.OPEN, EffectKind.OPEN_FORMAT})
_CALLS = frozenset({EffectKind.PRINT, EffectKind.SAVE, EffectKind.SHOW})  # for which a statement can be guarded
_ALL_RANKS = frozenset({EffectKind.SAVE, EffectKind.FETCH, EffectKind.ONCE})  # come together for such a call

Certain = Callable[[cst.CSTNode], bool]


@dataclass(frozen=True)
class Effect:
    """A call that writes or shows.

    `guard` is the statement that rank 0 alone can run in its stead, None where all ranks need its value; with `shared`
    its arguments are what every rank must do, so that only the call itself is rank 0's. With `decides` the script goes
    on in another way where the call fails, so that all ranks must know.
    """

    call: cst.Call | cst.Attribute | cst.Name
    guard: cst.Expr | cst.With | cst.If | None
    kind: EffectKind
    shared: bool = False
    decides: bool = False


class Effects:
    """Finds writers and shows them with what uses their value."""

    def __init__(
        self,
        origins: Origins,
        loops: tuple[TrainingLoop, ...],
        collectives: Collection[cst.CSTNode],
        fits: tuple[Fit, ...] = (),
        steps: tuple[cst.CSTNode, ...] = (),
    ) -> None:
        """`collectives` are nodes that become collective calls, `fits` calls of Keras' fit, `steps` more calls that
        train or that every rank has to make."""
        self._origins, self._index = origins, origins.index
        self._loops, self._collectives, self._fits = loops, collectives, fits
        self._steps = steps
        # What has trainable variables is a model, whatever class out of sight has made it.
        trained = (node.value for name in _TRAINED for node in self._index.attributes.get(name, ()))
        models = (*(f.model for f in fits), *trained)
        self._writers = Writers(origins, {o.node for model in models for o in origins.of(model)})
        self._paths = Paths(origins)
        self._presence = Presence(origins, self._writers)
        self._changing = Changing(origins, self._writers, self._presence, self._is_for_all)
        self._failing = Failing(origins, self._writers, self._changing)

    # --- finding ------------------------------------------------------------------------------------------------------

    def all(self, certain: Certain, kept: Callable[[Effect], bool] | None = None) -> tuple[Effect, ...]:
        """Writers and figures anywhere, prints where training repeats; those that are guarded already are left out.

        `certain` tells whether all ranks reach a node alike. kept: which single calls are meant, and no statements that
        ask for files; all that there is by default.
        """
        found = list(self._asking(certain)) if kept is None else []
        guarded: set[cst.CSTNode] = {e.guard for e in found if e.guard is not None}
        for call in self._index.calls:
            effect = self._effect(call, certain) if not self._is_guarded(call, guarded) else None
            if effect is not None and (kept is None or kept(effect)):
                found.append(effect)
                guarded |= {effect.guard} if effect.guard is not None and not effect.shared else set()
        stale = self._stale(found, guarded) if kept is None else []
        return (*found, *stale, *self._of_runs(guarded, certain))

    def _is_guarded(self, node: cst.CSTNode, guarded: set[cst.CSTNode]) -> bool:
        """Whether only rank 0 comes to a node, by the script itself or by what becomes of the statements around."""
        return any(p in guarded for p in self._index.ancestors(node)) or self.on_root(node)

    def _of_runs(self, guarded: set[cst.CSTNode], certain: Certain) -> Iterator[Effect]:
        for node, ask in Trackers(self._origins).uses:
            if self._is_guarded(node, guarded):
                continue
            parent = self._index.parents[node]
            statement = parent if isinstance(parent, cst.Expr) and ask is not Ask.READS else None
            shared = statement is not None and self._shared(node, certain)
            if ask is not Ask.TELLS and (statement is None or shared):
                yield Effect(node, None, EffectKind.READ_RUN)
                continue
            guarded |= {statement} if statement is not None and not shared else set()
            yield Effect(node, statement, EffectKind.RUN, shared)

    def _asking(self, certain: Certain) -> Iterator[Effect]:
        """Statements that ask which files there are and change them, of which the other ranks need nothing else."""
        guarded: set[cst.CSTNode] = set()
        for statement in self._presence.statements:
            root = self._outermost_branch(statement)
            if not isinstance(root, cst.If) or root in guarded or self._is_guarded(root, guarded) or not certain(root):
                continue
            alone = self._presence.alone(root) and not self._presence.out_of_step(root)
            if alone and self._separable(root) and not self._failing.decides(root):
                guarded.add(root)
                calls = [n for part in (statement.test, root) for n in nodes(part) if isinstance(n, cst.Call)]
                yield Effect(calls[0], root, EffectKind.FILES)

    def _effect(self, call: cst.Call, certain: Certain) -> Effect | None:
        kind = self._writers.kind(call)
        if kind is None or (kind is EffectKind.PRINT and not self._repeats(call)) or self._done(call):
            return None
        parent = self._index.parents[call]
        if kind in _OPENS:
            return Effect(call, self._opening(call), kind)
        if kind in _CALLS:
            if not isinstance(parent, cst.Expr):
                return Effect(call, None, kind)
            return self._stated(call, kind, parent, certain)
        if kind is EffectKind.EVENTS:
            return Effect(call, None, kind, self._shared(call, certain))
        if kind in outputs.FOLDERS:
            return Effect(call, None, kind, decides=certain(call))  # a folder may be there, by this or another rank
        alone = kind is EffectKind.ONCE and not self._failing.decides(call)
        whole = self._whole(call, certain) if alone else None
        apart = whole is None and kind in _ALL_RANKS and not certain(call)
        return Effect(call, whole, kind) if not apart else None

    def _stated(self, call: cst.Call, kind: EffectKind, statement: cst.Expr, certain: Certain) -> Effect:
        """What is written, or shown, by a statement of its own."""
        decides = self._failing.decides(call)
        counted = method(call) == "save" and "save_counter" in self._index.attributes
        if kind is EffectKind.SAVE and (decides or (counted and certain(call))):
            return Effect(call, None, kind, decides=True)
        looks_up = kind is EffectKind.PRINT and self._changing.looks_up([given.value for given in call.args])
        of_model = kind is EffectKind.SHOW and method(call) == "summary"  # may go to a stream of the script's own
        shared = decides or looks_up or of_model or self._shared(call, certain)
        return Effect(call, statement, kind, shared)

    def _done(self, call: cst.Call) -> bool:
        """Whether the path that is opened is the null device elsewhere, by `dp.root_path(…)`."""
        paths = [n for arg in call.args[:1] for n in (arg.value, *(o.node for o in self._origins.of(arg.value)))]
        return any(self._origins.called(path) == f"{_DP}root_path" for path in paths)

    def _opening(self, call: cst.Call) -> cst.Expr | cst.With | None:
        """The statement for which a file is opened, where rank 0 alone can run it."""
        statement = self._index.statement_of(call)
        if isinstance(statement, cst.Expr | cst.With) and self._separable(statement):
            return statement
        return None

    def _whole(self, call: cst.Call, certain: Certain) -> cst.Expr | cst.With | cst.If | None:
        """The statement around, with its conditions, for rank 0 alone, where all ranks reach it."""
        found: cst.Expr | cst.With | cst.If | None = None
        for parent in self._index.ancestors(call):
            if isinstance(parent, cst.FunctionDef | cst.For | cst.While | cst.Try):
                break
            if isinstance(parent, cst.Expr | cst.With | cst.If) and certain(parent):
                found = parent if self._separable(parent) else found
        return found

    def _stale(self, effects: list[Effect], guarded: set[cst.CSTNode]) -> list[Effect]:
        """`manager.latest_checkpoint` after a save: the managers of the other ranks know nothing of it."""
        saves = [e.call for e in effects if e.kind is EffectKind.SAVE and isinstance(e.call, cst.Call)]
        saves = [s for s in saves if method(s) and self._is_manager(receiver(s))]
        asked = (n for name in OF_MANAGERS for n in self._index.attributes.get(name, ()))
        stale = (n for n in asked if self._is_manager(n.value) and not self._is_guarded(n, guarded))
        return [Effect(n, None, EffectKind.LATEST) for n in stale if any(self.may_follow(s, n) for s in saves)]

    def _is_manager(self, node: cst.CSTNode) -> bool:
        made = self._origins.of(node)
        return any(self._origins.called(o.node) == "tensorflow.train.CheckpointManager" for o in made)

    # --- what every rank must do --------------------------------------------------------------------------------------

    @cached_property
    def _repeated(self) -> set[cst.CSTNode]:
        """Where training repeats; what Keras' fit calls, and the loops around a fit, too."""
        called = callback_functions(self._origins) if self._fits else []
        calls = (*(f.call for f in self._fits), *self._steps)
        fitted = (loop for call in calls for loop in around(self._origins, call))
        return repeated(self._origins, self._loops, [*called, *fitted])

    def _repeats(self, node: cst.CSTNode) -> bool:
        """Whether a node is where training repeats, or after a fit."""
        inside = any(parent in self._repeated for parent in self._index.ancestors(node))
        return inside or any(self.may_follow(f.call, node) for f in self._fits)

    def _shared(self, node: cst.CSTNode, certain: Certain) -> bool:
        """Whether all ranks compute what a call is given: what is not known to change nothing, where all come to it."""
        inside = set(nodes(node))
        left = self._changing.of(node.children, inside)
        return left is Leaves.CHANGE or (left is Leaves.UNKNOWN and certain(node))

    def _is_for_all(self, node: cst.CSTNode) -> bool:
        """Whether a node is for every rank: training, a collective, what all ranks ask together."""
        if not isinstance(node, cst.Call):
            return node in self._collectives
        api = self._origins.called(node)
        joint = api.startswith(_DP) and api not in {f"{_DP}rank", f"{_DP}size"}
        return joint or node in self._collectives or node in self._training

    @cached_property
    def _training(self) -> set[cst.CSTNode]:
        """Gradient calls and collectives, what all ranks ask together, and all calls of functions that lead to one."""
        steps = [*(step for loop in self._loops for step in loop.calls), *(f.call for f in self._fits)]
        loops = (loop.loop for loop in self._loops)
        together = (*self._collectives, *self._steps)
        return set(leading(self._origins, [*steps, *loops, *together, *self._presence.statements]))

    def _separable(self, block: cst.Expr | cst.With | cst.If) -> bool:
        """Whether rank 0 can run the statement alone: nothing in it is used later or takes part in training."""
        inside = set(nodes(block))
        if any(self._matters(node, inside) for node in inside):
            return False
        uses = ((d, use) for d in self._bound(block) for use in self._index.names.get(d.name, ()))
        return not any(use not in inside and d in reaching(self._index, use) for d, use in uses)

    def _matters(self, node: cst.CSTNode, inside: set[cst.CSTNode]) -> bool:
        """Whether a node of a block leaves something behind that other ranks need, or leads out of the block."""
        if isinstance(node, cst.FunctionDef | cst.ClassDef) or self._index.is_target(node):
            return True
        if isinstance(node, _LEAVES):
            loop = next((n for n in self._index.ancestors(node) if isinstance(n, cst.For | cst.While)), None)
            return not isinstance(node, cst.Break | cst.Continue) or loop not in inside
        writes = isinstance(node, cst.Call) and self._writers.kind(node) is not None
        return not writes and self._changing.of_node(node, inside) is not Leaves.NOTHING

    def _bound(self, block: cst.CSTNode) -> list[Definition]:
        scoped = self._index.definitions[self._index.scope_of(block)]
        return [d for found in scoped.values() for d in found if within(self._index, d.statement, block)]

    # --- guards -------------------------------------------------------------------------------------------------------

    def on_root(self, node: cst.CSTNode) -> bool:
        """Whether the node is inside `if dp.rank() == 0:`, `… if dp.rank() == 0 else …` or an argument of
        `dp.on_root(…)` and the like."""
        child = node
        for parent in self._index.ancestors(node):
            if isinstance(parent, cst.If | cst.IfExp) and child is parent.body and self._asks_rank(parent.test):
                return True
            if self._origins.called(parent) in ON_ROOT:
                return True
            child = parent
        return False

    def _asks_rank(self, test: cst.BaseExpression) -> bool:
        """`dp.rank() == 0`."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return False
        target = test.comparisons[0]
        is_zero = isinstance(target.operator, cst.Equal) and number(target.comparator) == 0
        return is_zero and self._origins.called(test.left) == f"{_DP}rank"

    # --- reading what was written -------------------------------------------------------------------------------------

    def waiting(self, effects: tuple[Effect, ...], certain: Certain) -> tuple[cst.CSTNode, ...]:
        """Statements that read files which rank 0 may still be writing, with the conditions around them.

        One whose surroundings all ranks do not reach alike is given as it is: it cannot wait.
        """
        guarded: set[cst.CSTNode] = {e.guard for e in effects if e.guard is not None and not e.shared}
        latest = {self._index.statement_of(e.call) for e in effects if e.kind is EffectKind.LATEST}
        writes = [e.call for e in effects if self._leaves_a_file(e)]
        fits = [f.call for f in self._fits if has_callbacks(self._origins, f)]
        words = {write: self._paths.written(write) for write in writes}
        found: dict[cst.CSTNode, None] = {}
        for call in self._index.calls if writes or fits else ():
            statement = self._index.statement_of(call)
            if statement in latest or self._is_guarded(call, guarded):
                continue
            if self._writers.reads(call):
                written = [write for write in writes if self._writers.may_read(call, write)]
            else:
                written = [write for write in writes if self._paths.may_read(call, words[write])]
            earlier = [*written, *(fits if self._writers.reads_model(call) else ())]
            if followed := [write for write in earlier if self.may_follow(write, call)]:
                places = self._run_by(call, followed, certain) if not certain(statement) else None
                found.update({self._anchor(p, certain): None for p in ([statement] if places is None else places)})
        return tuple(s for s in found if self._index.previous(s) not in found)

    def _leaves_a_file(self, effect: Effect) -> bool:
        drawn = isinstance(effect.call, cst.Call) and last_name(effect.call.func) == "savefig"
        guarded = effect.kind in {EffectKind.SAVE, EffectKind.OPEN_FORMAT} or drawn
        return effect.kind is EffectKind.OPEN or (effect.guard is not None and guarded)

    def _run_by(
        self, node: cst.CSTNode, writes: list[cst.CSTNode], certain: Certain, around: tuple[cst.FunctionDef, ...] = ()
    ) -> list[cst.CSTNode] | None:
        """The statements, reached by all ranks alike, from which a function that reads is run after something is
        written: that call it, or hand it on, such as to `dataset.map(read)`. None where that is not known."""
        function = self._index.enclosing_function(node)
        named = self._index.names[function.name.value] if function is not None else []
        uses = [use for use in named if self._origins.function(use) is function]
        if function is None or function in around or not uses:
            return None
        found: list[cst.CSTNode] = []
        for use in uses:
            called = isinstance(parent := self._index.parents[use], cst.Call) and parent.func is use
            statement = self._index.statement_of(use)
            if not called and not isinstance(parent, cst.Arg):
                return None
            if not certain(statement):
                if (more := self._run_by(use, writes, certain, (*around, function))) is None:
                    return None
                found += more
            elif any(self.may_follow(write, use) for write in writes):
                found.append(statement)
            elif not called and self._trained_after(writes):
                return None  # what it is handed to runs it in the course of training
        return found

    def _trained_after(self, writes: list[cst.CSTNode]) -> bool:
        trains = [*(loop.loop for loop in self._loops), *(f.call for f in self._fits), *self._steps]
        return any(self.may_follow(write, train) for write in writes for train in trains)

    def last_reads(self, effects: Iterable[Effect], certain: Certain) -> tuple[cst.CSTNode, ...]:
        """Statements in which rank 0 deletes what the others may still read: a loop reads files and deletes some."""
        reads = [c for c in self._index.calls if self._writers.reads(c)]
        found: dict[cst.CSTNode, None] = {}
        for effect in effects:
            alone = effect.guard is not None or effect.decides
            if alone and self._origins.called(effect.call) in outputs.DELETES:
                inside = set(self._index.loops_around(effect.call))
                repeats = any(inside & set(self._index.loops_around(read)) for read in reads)
                anchor = self._anchor(self._index.statement_of(effect.call), certain)
                found.update({anchor: None} if repeats and certain(anchor) else {})
        return tuple(found)

    def _anchor(self, statement: cst.CSTNode, certain: Certain) -> cst.CSTNode:
        if certain(statement):
            return statement
        for parent in self._index.ancestors(statement):
            if isinstance(parent, cst.FunctionDef | cst.For | cst.While):
                break
            if isinstance(parent, cst.If | cst.Try) and certain(parent):
                return self._outermost_branch(parent)
        return statement

    def _outermost_branch(self, branch: cst.CSTNode) -> cst.CSTNode:
        """The `if` to which an `elif` belongs."""
        parent = self._index.parents[branch]
        while isinstance(parent, cst.If) and parent.orelse is branch:
            branch, parent = parent, self._index.parents[parent]
        return branch

    def may_follow(self, first: cst.CSTNode, second: cst.CSTNode) -> bool:
        """Whether `second` can run after `first`: by the text, or by a loop around both, where their ways part."""
        return any(self._follows(a, b) for a in self._ways(first) for b in self._ways(second))

    def _follows(self, first: tuple[cst.CSTNode, ...], second: tuple[cst.CSTNode, ...]) -> bool:
        a, b = next(((a, b) for a, b in zip(first, second, strict=False) if a is not b), (first[-1], second[-1]))
        common = set(self._index.loops_around(a)) & set(self._index.loops_around(b))
        return bool(common) or self._index.order[a] < self._index.order[b]

    def _ways(self, node: cst.CSTNode, depth: int = 0) -> list[tuple[cst.CSTNode, ...]]:
        """The calls that lead to a node, the outermost first, for each way through the script's own functions."""
        function = self._index.enclosing_function(node)
        callers = self._origins.calls_of(function) if function is not None and depth < 8 else []
        ways = ((*way, node) for caller in callers[:8] for way in self._ways(caller, depth + 1))
        return list(islice(ways, 64)) or [(node,)]


def repeated(origins: Origins, loops: tuple[TrainingLoop, ...], others: Iterable[cst.CSTNode] = ()) -> set[cst.CSTNode]:
    """The training loops, those around them and around the calls of their functions, other places of that kind, and the
    functions called from there."""
    outer = (n for loop in loops for n in (loop.loop, *loop.outer, *around(origins, loop.loop)))
    return set(entered(origins, [*others, *outer]))
