"""What operations make of the rows of a batch that put elements at other places, or multiply matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ..apis import AXIS_PLACES
from ..program import Frames, Origins, Unknown, argument, ints, is_off
from . import shapes
from . import values as rows
from .arguments import Arguments, Evaluate
from .values import Of, Value

Move = Callable[[cst.Call, list[cst.BaseExpression], Frames], Value]


class Moves(Arguments):
    """Answers for calls of such operations, by their names."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        super().__init__(origins, value)
        self.named: dict[str, Move] = {
            "reshape": self._reshape,
            "transpose": self._transpose,
            "permute_dimensions": self._transpose,
            "permute": self._transpose,
            "matrix_transpose": lambda call, given, frames: self._swap(call, given[:1], frames, (-1, -2)),
            "swapaxes": self._swap,
            "moveaxis": self._moveaxis,
            "expand_dims": self._expand_dims,
            "squeeze": self._squeeze,
            "flatten": self._flat,
            "ravel": self._flat,
            "batch_flatten": self._flat,
            "concat": self._concat,
            "concatenate": self._concat,
            "hstack": lambda call, given, frames: self._beside(call, given, frames, 1),
            "vstack": lambda call, given, frames: self._beside(call, given, frames, 0),
            "stack": self._stack,
            "split": self._split,
            "array_split": self._split,
            "unstack": self._split,
            "tile": self._tile,
            "repeat": self._repeat,
            "broadcast_to": self._broadcast,
            "pad": self._same,
            "matmul": self._matmul,
            "dot": self._matmul,
            "einsum": self._einsum,
            "tensordot": self._tensordot,
        }

    def reshaped(self, call: cst.Call, value: Value, shape: list[cst.BaseExpression], frames: Frames) -> Value:
        """`tf.reshape(x, shape)`: rows stay together where their number stays in front."""
        found = shapes.read_all(self._origins, self._value, shape, frames)
        if not rows.has_rows(value):
            if value.of in {Of.FREE, Of.WHOLE}:
                return replace(value, rank=found.rank, base=found.base, several=False)
            return value
        ranked = replace(value, rank=found.rank or 1, base=found.base, several=False)
        if value.axis == 0 and found.axis == 0:
            return ranked
        if found.axis is not None and found.axis == value.axis:
            return ranked
        if value.axis == 0 and found.axis is not None and found.ones >= found.axis:
            return replace(ranked, axis=found.axis)
        if value.axis == 0 and found.axis is None and found.open_front:
            because = Unknown(call, "may put several examples into one row")
            return ranked if found.flat else replace(ranked, unsure=value.unsure or because)
        return rows.unknown(call, "gives the batch another shape, in which its examples may not stay apart", value.why)

    def _reshape(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        return self.reshaped(call, self._value(given[0], frames), given[1:2], frames)

    def _flat(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        batches = isinstance(call.func, cst.Attribute) and call.func.attr.value == "batch_flatten"
        return flattened(self._value(given[0], frames), 2 if batches else 1)

    def _same(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        return rows.elementwise(call, [self._value(given[0], frames)])

    def _transpose(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        order = argument(call, "perm", 1) or argument(call, "axes", 1) or argument(call, "pattern", 1)
        written = ints(self._origins, order.value) if order is not None else ()
        return rows.transposed(call, self._value(given[0], frames), written)

    def _swap(
        self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames, axes: tuple[int, int] | None = None
    ) -> Value:
        found = [ints(self._origins, g) for g in given[1:3]]
        pair = (
            axes or ((found[0] or (0,))[0], (found[1] or (0,))[0]) if axes or (len(found) == 2 and all(found)) else None
        )
        return swapped(call, self._value(given[0], frames), pair)

    def _moveaxis(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        places = [ints(self._origins, g) for g in given[1:3]]
        if not rows.has_rows(value) or (all(p and min(p) > value.axis >= 0 for p in places)):
            return value
        if len(places) == 2 and all(p and len(p) == 1 for p in places) and value.base is None:
            order = list(range(value.rank))
            source, target = ((places[i] or (0,))[0] % value.rank for i in (0, 1))
            order.remove(source)
            order.insert(target, source)
            return rows.transposed(call, value, tuple(order))
        return rows.unknown(call, "moves axes, of which one may be the batch's")

    def _expand_dims(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        axes = self._axes(call, 1)
        return rows.widened(self._value(given[0], frames), axes[0] if axes else None)

    def _squeeze(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        return squeezed(self._value(given[0], frames), self._axes(call, 1))

    def _concat(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        axes = self._axes(call, 1)
        axis = axes[0] if axes else (0 if axes == () else None)
        return self.beside(call, self._members(given[:1], frames), axis)

    def _beside(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames, axis: int) -> Value:
        return self.beside(call, self._members(given[:1], frames), axis)

    def beside(self, call: cst.CSTNode, members: list[Value], axis: int | None) -> Value:
        """Values put side by side along an axis."""
        found = [v for v in members if rows.has_rows(v)]
        if not found or axis is None:
            return rows.elementwise(call, members)
        along = rows.is_batch(found[0], axis)
        if along is False:
            return rows.elementwise(call, members)
        if any(v.of is Of.MOVED for v in found):
            order = frozenset({call})
            return replace(found[0], of=Of.MOVED, order=order, why=Unknown(call, "puts rows in another order"))
        if along is None or len(found) < len(members):
            return rows.unknown(call, "puts other rows behind those of the batch")
        because = Unknown(call, "puts several batches behind one another")
        return replace(rows.join(found), several=False, unsure=because)

    def _stack(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        axes = self._axes(call, 1)
        found = rows.elementwise(call, self._members(given[:1], frames))
        value = self._value(given[0], frames)
        if rows.has_rows(value) and not value.several:  # a list of the rows
            return value if axes in {(), (0,)} else rows.unknown(call, "puts the rows of the batch along another axis")
        return rows.widened(found, axes[0] if axes else (0 if axes == () else None))

    def _split(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        unstacks = not isinstance(call.func, cst.Attribute) or call.func.attr.value == "unstack"
        axes = self._axes(call, None if unstacks else AXIS_PLACES["split"])
        if value.of is Of.SHAPE or not rows.has_rows(value):
            return replace(value, several=value.of is not Of.SHAPE)
        batch = rows.is_batch(value, axes[0] if axes else 0) if axes is not None else None
        if batch and value.unsure is None:
            return replace(rows.moved(call, value, call, "splits the batch into parts"), several=True)
        if batch is not False:
            return rows.unknown(call, "splits the batch into parts")
        return replace(value, several=True, rank=value.rank - unstacks)

    def _tile(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        read = shapes.read(self._origins, self._value, given[1], frames) if len(given) > 1 else shapes.Shape()
        if rows.is_free(value) or value.of is Of.WHOLE:
            if read.axis is None:
                return replace(value, several=False)
            made = rows.made(read.axis, read.rank, read.base)
            return made if rows.is_free(value) else replace(value, several=False)
        if rows.has_rows(value) and read.axis is not None:
            return rows.unknown(call, "repeats the batch as often as it has examples")
        return replace(value, several=False)

    def _repeat(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        by = self._value(given[1], frames) if len(given) > 1 else rows.FREE
        axes = self._axes(call, 2)
        if rows.is_free(value) and by.of is Of.SIZE:
            axis = axes[0] if axes else 0
            return rows.made(axis, value.rank if value.base is None else 1, value.base)
        if rows.has_rows(value) and not (axes and rows.is_batch(value, axes[0]) is False):
            return rows.unknown(call, "repeats rows of the batch")
        return replace(value, several=False)

    def _broadcast(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        read = shapes.read(self._origins, self._value, given[1], frames) if len(given) > 1 else shapes.Shape()
        if rows.is_free(value) and read.axis is not None:
            return rows.made(read.axis, read.rank, read.base)
        return rows.elementwise(call, [value])

    # --- products -----------------------------------------------------------------------------------------------------

    def _matmul(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        if len(given) < 2:
            return self._others(call, frames)
        turned = [
            (a := argument(call, key, place)) is not None and not is_off(self._origins, a.value)
            for key, place in (("transpose_a", 2), ("transpose_b", 3))
        ]
        left, right = self._all(given[:2], frames)
        return rows.product(call, left, right, (turned[0], turned[1]))

    def _einsum(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        text = self._origins.made(given[0])
        if not isinstance(text, cst.SimpleString) or not isinstance(text.evaluated_value, str):
            return self._others(call, frames)
        return shapes.einsum(call, text.evaluated_value, self._all(given[1:], frames))

    def _tensordot(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        left, right = self._all(given[:2], frames)
        axes = self._axes(call, 2)
        last = axes in {(1,), (-1, 0)} or (axes is not None and len(axes) == 2 and axes[0] > 0 and axes[1] == 0)
        if rows.has_rows(left) and rows.is_free(right) and left.axis == 0 and last:
            return replace(left, several=False)
        if rows.has_rows(left) and rows.has_rows(right):
            return rows.mixed(call, "pairs each example with every other one of its batch")
        return self._others(call, frames) if not rows.is_free(rows.join((left, right))) else rows.FREE


def flattened(value: Value, rank: int) -> Value:
    """All axes put into one, or all but the batch's."""
    if not rows.has_rows(value) or value.axis != 0:
        return replace(rows.UNKNOWN, why=value.why) if rows.has_rows(value) else value
    return replace(value, rank=rank, base=None, several=False)


def squeezed(value: Value, axes: tuple[int, ...] | None) -> Value:
    """Without its axes of length one."""
    if not rows.has_rows(value):
        return value
    if not axes:
        return replace(value, several=False, rank=1, base=rows.UNRANKED)
    before = sum(1 for a in axes if 0 <= a < value.axis)
    return replace(value, several=False, axis=value.axis - before, rank=max(value.rank - len(axes), 1))


def swapped(node: cst.CSTNode, value: Value, pair: tuple[int, int] | None) -> Value:
    """Two axes in one another's places."""
    if not rows.has_rows(value):
        return value
    if pair is None:
        return rows.unknown(node, "swaps axes, of which one may be the batch's")
    found = [rows.is_batch(value, a) for a in pair]
    if True in found:
        return replace(value, several=False, axis=pair[1 - found.index(True)])
    return replace(value, several=False) if None not in found else rows.unknown(node, "may swap the batch's axis")
