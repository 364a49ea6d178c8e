"""What a training loop takes beside each batch of a dataset, one after another: of weights, targets or numbers.

The dataset's records are sharded, so a worker's k-th batch is not the one that stands at place k in one process; what
is taken at place k, is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..apis import COUNTS_UP, DRAW_SIZES, DRAWN
from ..data import Datasets
from ..program import ITER, Origins, Problem, Unknown, method, nodes, reaching, within
from ..training import TrainingLoop

_REASON = (
    "this is taken step by step alongside the batches of a dataset; once those are sharded, a worker's batches hold "
    "other examples than the ones that this belongs to"
)
_NEXT = "put it into the dataset, as in tf.data.Dataset.from_tensor_slices((x, y, weights)), and batch them together"


class Paired:
    """Answers for the training loops of a file that go over datasets."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        self._origins, self._index, self._datasets = origins, origins.index, datasets

    def problems(self, loops: Iterable[TrainingLoop], read: Collection[cst.CSTNode]) -> list[Problem]:
        """read: everything that a trained loss is computed from. Each place once."""
        found: dict[cst.CSTNode, Problem] = {}
        for loop in loops:
            if not loop.chains:
                continue
            for source, name in (*self._zipped(loop, read), *self._next(loop, read), *self._numbered(loop, read)):
                why = Unknown(name, "is read by the training step", Unknown(source, "is no part of a dataset"))
                found.setdefault(source, Problem.since(self._index, "TFDP010", source, _REASON, why, _NEXT))
        return list(found.values())

    # --- zip ----------------------------------------------------------------------------------------------------------

    def _zipped(
        self, loop: TrainingLoop, read: Collection[cst.CSTNode]
    ) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
        """What stands beside a dataset in what a loop goes over, with a place where it is read."""
        head = loop.loop
        if not isinstance(head, cst.For):
            return
        for definition in self._index.bound[head]:
            names = (n for n in read if isinstance(n, cst.Name) and n.value == definition.name)
            name = next((n for n in names if definition in reaching(self._index, n)), None)
            if name is None:
                continue
            yield from ((source, name) for source in self._sources(head.iter, definition.path[1:]))

    def _sources(self, node: cst.BaseExpression, path: tuple[int, ...]) -> list[cst.BaseExpression]:
        """What a place in an element of an iterable is taken of, where that stands beside a dataset."""
        made = self._origins.made(node)
        called = self._origins.called(made)
        if not isinstance(made, cst.Call) or any(a.star for a in made.args):
            return []
        if called == "builtins.enumerate" and made.args and (not path or path[0] == 1):
            return self._sources(made.args[0].value, path[1:])
        inside = self._datasets.iterated(made)
        if inside is not None and called != "builtins.enumerate":
            return self._sources(inside, path)
        if called != "builtins.zip" or not any(map(self._is_data, (a.value for a in made.args))):
            return []
        places = range(len(made.args)) if not path else [path[0]]
        given = [made.args[p].value for p in places if 0 <= p < len(made.args)]
        return [g for g in given if not self._is_data(g) and not self._counts(g)]

    def _is_data(self, node: cst.BaseExpression) -> bool:
        return bool(self._datasets.read(self._datasets.unwrap(node)))

    def _counts(self, node: cst.BaseExpression) -> bool:
        return self._origins.called(self._origins.made(node)) in COUNTS_UP

    # --- next ---------------------------------------------------------------------------------------------------------

    def _next(
        self, loop: TrainingLoop, read: Collection[cst.CSTNode]
    ) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
        """What is taken by `next(…)` in a loop of an iterator over something that is no dataset."""
        for call in self._origins.calls_to("builtins.next"):
            if call not in read or not call.args or not within(self._index, call, loop.loop.body):
                continue
            made = self._origins.made(call.args[0].value)
            if isinstance(made, cst.Call) and made not in loop.taking and self._goes_on(made):
                yield call.args[0].value, call

    def _goes_on(self, made: cst.Call) -> bool:
        """Whether an iterator goes over something that is no dataset: a list, or what a function of the file yields."""
        if self._origins.called(made) == "builtins.iter" and made.args:
            return not self._is_data(made.args[0].value) and not self._counts(made.args[0].value)
        function = self._origins.function(made.func)
        if function is None or function not in self._index.generators:
            return False
        return not all(self._draws(value) for value in self._index.given_back(function))

    def _draws(self, value: cst.BaseExpression) -> bool:
        """Whether a value is drawn, so that any will do."""
        made = self._origins.made(value)
        return DRAWN.match(self._origins.called(made)) is not None or method(made) in DRAW_SIZES

    # --- numbers ------------------------------------------------------------------------------------------------------

    def _numbered(
        self, loop: TrainingLoop, read: Collection[cst.CSTNode]
    ) -> Iterator[tuple[cst.BaseExpression, cst.CSTNode]]:
        """What is taken at the place of the batch's number: `weights[k]` in `for k, batch in enumerate(dataset)`."""
        head = loop.loop
        if not isinstance(head, cst.For) or self._origins.called(head.iter) != "builtins.enumerate":
            return
        numbers = [d for d in self._index.bound[head] if d.path == (ITER, 0)]
        for node in read:
            if isinstance(node, cst.Subscript) and within(self._index, node, head.body):
                names = [n for e in node.slice for n in nodes(e) if isinstance(n, cst.Name)]
                if any(
                    d in numbers
                    for n in names
                    if n.value in {d.name for d in numbers}
                    for d in reaching(self._index, n)
                ):
                    yield node.value, node
