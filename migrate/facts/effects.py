"""What a script writes and shows: the places that only one rank may reach."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from tfdp.migrate.catalogue import SAVES, Kind
from tfdp.migrate.facts.conditions import differing
from tfdp.migrate.facts.index import Index
from tfdp.migrate.facts.loops import TrainingLoop
from tfdp.migrate.facts.origins import Origins, argument
from tfdp.migrate.facts.parts import nodes
from tfdp.migrate.facts.problem import Problem

_PRINTS = frozenset({"builtins.print", "tensorflow.print"})
_ACTS = frozenset({"builtins.next", "builtins.iter", "builtins.input"})
_BUFFERS = frozenset({"io.BytesIO", "io.StringIO"})
_READS = frozenset({"restore", "read", "load_weights"})
_READERS = frozenset(
    {
        "keras.models.load_model",
        "keras.saving.load_model",
        "tensorflow.saved_model.load",
        "tensorflow.train.latest_checkpoint",
        "tensorflow.train.load_checkpoint",
        "numpy.load",
    }
)
_DP = "tfdp.runtime."


@dataclass(frozen=True)
class Effect:
    """A call that writes or shows. `statement` is its expression statement, or None where its value is used."""

    call: cst.Call
    statement: cst.Expr | None
    kind: str  # save, show, print, events, progress, folder (of os), path (of pathlib)


class Effects:
    """Finds writers and shows them with what uses their value."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    @property
    def _index(self) -> Index:
        return self._origins.index

    def of(self, loops: tuple[TrainingLoop, ...]) -> tuple[Effect, ...]:
        """Writers and figures anywhere, prints inside training loops; those that are guarded already are left out."""
        found = []
        bodies = [outer for loop in loops for outer in (loop.loop, *loop.outer)]
        for call in self._index.calls:
            kind = self._kind(call, bodies)
            if kind is not None and not self.on_root(call) and not (kind == "print" and self.acts(call, loops)):
                parent = self._index.parents[call]
                found.append(Effect(call, parent if isinstance(parent, cst.Expr) else None, kind))
        return tuple(found)

    def _kind(self, call: cst.Call, loops: list[cst.For | cst.While]) -> str | None:
        if self._origins.names.api(call.func) in _PRINTS:
            return "print" if any(parent in loops for parent in self._index.ancestors(call)) else None
        kind = self._origins.kind(call.func)
        if kind is Kind.EVENTS:
            return "events"
        if kind is Kind.MAKES_FOLDER:
            bare = isinstance(call.func, cst.Name) and self._origins.names.api(call.func) == "os.mkdir"
            return None if bare or argument(call, "exist_ok") else "folder"
        if kind is Kind.PROGRESS:
            return None if argument(call, "disable") else "progress"
        if kind in {Kind.WRITER, Kind.SHOWS} and not self._in_memory(call):
            return "save" if kind is Kind.WRITER else "show"
        if isinstance(call.func, cst.Attribute) and any(call.func.attr.value in methods for methods in SAVES.values()):
            kinds = self._origins.kinds(call.func.value)
            own = self._origins.function(call.func)
            if own is None and any(call.func.attr.value in methods and k in kinds for k, methods in SAVES.items()):
                return "save"
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in {"savefig", "mkdir"}:
            made = [o.node for o in self._origins.of(call.func.value)]
            apis = {self._origins.names.api(m.func) for m in made if isinstance(m, cst.Call)}
            if call.func.attr.value == "mkdir":
                return "path" if "pathlib.Path" in apis and not argument(call, "exist_ok", 2) else None
            figure = apis & {"matplotlib.pyplot.figure", "matplotlib.pyplot.subplots", "matplotlib.pyplot.gcf"}
            return "show" if figure and not self._in_memory(call) else None
        return None

    def _in_memory(self, call: cst.Call) -> bool:
        """Whether the call writes into a buffer, which the same rank reads again."""
        made = [o.node for a in call.args[:1] for o in self._origins.of(a.value)]
        return any(isinstance(m, cst.Call) and self._origins.names.api(m.func) in _BUFFERS for m in made)

    def acts(self, call: cst.Call, loops: tuple[TrainingLoop, ...]) -> bool:
        """Whether the arguments do something that every rank must do: train, take data, bind a name, save."""
        training = self._training(loops)
        for node in (n for child in call.children for n in nodes(child)):
            if isinstance(node, cst.NamedExpr | cst.Await | cst.Yield):
                return True
            if isinstance(node, cst.Call) and (
                node in training or self._origins.names.api(node.func) in _ACTS or self._kind(node, []) == "save"
            ):
                return True
        return False

    def _training(self, loops: tuple[TrainingLoop, ...]) -> set[cst.CSTNode]:
        """Gradient calls and all calls of functions that lead to a training step."""
        found = {step for loop in loops for step in loop.calls}
        todo: list[cst.CSTNode] = [*found, *(loop.loop for loop in loops)]
        while todo:
            function = self._index.enclosing_function(todo.pop())
            calls = self._origins.calls_of(function) if function is not None else []
            todo += [c for c in calls if c not in found]
            found.update(calls)
        return found

    def reads(self, effects: tuple[Effect, ...]) -> tuple[cst.Call, ...]:
        """Calls that read a file and come, in the text, after one that writes: they must wait for rank 0."""
        saves = [self._index.calls.index(e.call) for e in effects if e.kind == "save"]
        if not saves:
            return ()
        later = self._index.calls[min(saves) :]
        return tuple(c for c in later if self._is_read(c) and not self.on_root(c))

    def _is_read(self, call: cst.Call) -> bool:
        if self._origins.names.api(call.func) in _READERS:
            return True
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _READS:
            return False
        return bool(self._origins.kinds(call.func.value) & {Kind.MODEL, Kind.CHECKPOINT})

    def on_root(self, node: cst.CSTNode) -> bool:
        """Whether the node is inside `if dp.rank() == 0:`, `… if dp.rank() == 0 else …` or an argument of
        `dp.on_root(…)`."""
        child = node
        for parent in self._index.ancestors(node):
            if isinstance(parent, cst.If | cst.IfExp) and child is parent.body and self._asks_rank(parent.test):
                return True
            if isinstance(parent, cst.Call) and self._origins.names.api(parent.func) == f"{_DP}on_root":
                return True
            child = parent
        return False

    def _asks_rank(self, test: cst.BaseExpression) -> bool:
        if not isinstance(test, cst.Comparison) or not isinstance(test.left, cst.Call) or len(test.comparisons) != 1:
            return False
        target = test.comparisons[0]
        zero = isinstance(target.comparator, cst.Integer) and target.comparator.value == "0"
        return (
            zero and isinstance(target.operator, cst.Equal) and self._origins.names.api(test.left.func) == f"{_DP}rank"
        )


def unplaced(effect: Effect, origins: Origins, trains: bool) -> Problem | None:
    """A writer whose value is used in a way that cannot be given to all ranks."""
    if effect.kind == "events" and not isinstance(effect.call.func, cst.Attribute):
        return Problem(
            "TFDP051",
            effect.call,
            "the summary writer is made by a function imported by itself",
            "call it as tf.summary.create_file_writer(…)",
        )
    if effect.kind in {"save", "show"} and trains:
        reason = "this call trains while its arguments are made, which every worker must do"
        return Problem("TFDP050", effect.call, reason, "take the training out of the call's arguments")
    if effect.statement is not None or effect.kind != "save":
        return None
    parent = origins.index.parents[effect.call]
    if not isinstance(parent, cst.Assign | cst.AnnAssign | cst.Return | cst.Arg | cst.NamedExpr):
        reason = "the value of this writing call is used where it cannot be given to all workers"
    elif differing(effect.call, origins) is not None:
        reason = "the value of this writing call is used, under a condition that may differ by worker"
    else:
        return None
    return Problem("TFDP050", effect.call, reason, "put the call in a statement of its own, without using its value")
