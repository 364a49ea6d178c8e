"""What functions of NumPy, TensorFlow and Keras, and methods of their tensors, make of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...catalogue import KINDS, Kind
from ..apis import (
    ALONG_ALL,
    ALONG_FIRST,
    ALONG_LAST,
    AXES_BESIDE_AXIS,
    AXIS_PLACES,
    BY_ELEMENTS,
    BY_EXAMPLES,
    CHOOSES_ROWS,
    COUNTS,
    DRAW_SIZES,
    GIVES_SEVERAL,
    KEEPS_AXES,
    LOOKS_UP,
    NEW_TENSORS,
    OF_IMAGES,
    OPERANDS,
    OPS,
    OVER_ROWS,
    REDUCES,
    REORDERS,
    SAME_ROWS,
    SETTINGS,
    SHUFFLES_ROWS,
)
from ..program import Frames, Origins, Unknown, argument, ints, is_off
from . import shapes
from . import values as rows
from .values import Of, Value

Evaluate = Callable[[cst.CSTNode, Frames], Value]

_ONE_KIND = {
    Kind.ELEMENTWISE: "abs",
    Kind.PASS: "identity",
    Kind.OPERATOR: "add",
    Kind.LOSS_FUNCTION: "one_hot",
    Kind.ROWS: "one_hot",
}


class TensorCalls:
    """Answers for calls of functions by their names, and of methods of tensors."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        self._origins, self._value = origins, value
        self._moves: dict[str, Callable[[cst.Call, list[cst.BaseExpression], Frames], Value]] = {
            "reshape": self._reshape,
            "transpose": self._transpose,
            "permute_dimensions": self._transpose,
            "permute": self._transpose,
            "matrix_transpose": lambda call, given, frames: self._swap(call, given[:1], frames, (-1, -2)),
            "swapaxes": lambda call, given, frames: self._swap(call, given, frames),
            "moveaxis": self._moveaxis,
            "expand_dims": self._expand_dims,
            "squeeze": self._squeeze,
            "flatten": lambda call, given, frames: self._flat(given, frames, 1),
            "ravel": lambda call, given, frames: self._flat(given, frames, 1),
            "batch_flatten": lambda call, given, frames: self._flat(given, frames, 2),
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
            "pad": lambda call, given, frames: self._value(given[0], frames),
            "matmul": self._matmul,
            "dot": self._matmul,
            "einsum": self._einsum,
            "tensordot": self._tensordot,
            "range": self._range,
            "arange": self._range,
            "cond": self._cond,
            "scan": lambda call, given, frames: self._over_first(call, given[1:], frames),
            "gather_nd": lambda call, given, frames: self._picked(call, given, frames),
        }

    def of(self, call: cst.Call, api: str, frames: Frames) -> Value:
        """The value of a call of a library's function."""
        name = api.rpartition(".")[2]
        given = [a.value for a in call.args if not a.star and not _is_setting(a)]
        if any(a.star for a in call.args) or not given:
            return self._others(call, frames)
        if api in COUNTS:
            return self.counted(call, api, self._value(given[0], frames))
        if api in SHUFFLES_ROWS:
            return self.shuffled(call, self._value(given[0], frames))
        if api in OVER_ROWS:
            found = rows.join(self._all(given[1:], frames))
            because = Unknown(call, "is taken to give one value for each row")
            return replace(found, unsure=because) if rows.has_rows(found) else found
        if OF_IMAGES.match(api):
            return self._first_axis(call, given, frames)
        if api in {"builtins.zip", "builtins.list", "builtins.tuple", "builtins.dict", "builtins.iter"}:
            return replace(rows.join(self._all(given, frames)), several=True)
        if api in {"builtins.float", "builtins.int", "builtins.abs", "builtins.round"}:
            return rows.elementwise(call, self._all(given, frames))
        if api in {"builtins.max", "builtins.min", "builtins.sum"}:
            return self._builtin(call, given, frames)
        if not OPS.match(api):
            return self._others(call, frames)
        kind = KINDS.get(api)
        bare = name.removeprefix("reduce_")
        operand = self._first(call, given)
        return self._known(call, bare, operand, given, frames) or self._by_kind(call, kind, api, given, frames)

    def _by_kind(self, call: cst.Call, kind: Kind | None, api: str, given: list[cst.BaseExpression], f: Frames) -> Value:
        if kind is Kind.DRAW or api.startswith(("numpy.random.", "tensorflow.random.", "keras.random.")):
            return self._made(call, given, f)
        known = self._known(call, _ONE_KIND.get(kind, "") if kind else "", given[0], given, f)
        return known or self._others(call, f)

    def _known(
        self, call: cst.Call, name: str, operand: cst.BaseExpression, given: list[cst.BaseExpression], frames: Frames
    ) -> Value | None:
        """The value of an operation by its bare name; None where no table has it."""
        if name in self._moves:
            return self._moves[name](call, given, frames)
        if name in NEW_TENSORS:
            return self._made(call, given, frames)
        if name in BY_ELEMENTS:
            return rows.elementwise(call, self._members(given, frames))
        if name in LOOKS_UP:
            return rows.elementwise(call, self._all(given, frames))
        if name in BY_EXAMPLES:
            return self._first_axis(call, given, frames)
        return self.along(call, name, self._value(operand, frames), frames, 1)

    def along(self, call: cst.Call, name: str, value: Value, frames: Frames, shift: int) -> Value | None:
        """Operations along axes; `shift` is where the arguments after the tensor begin."""
        found = self._along(call, name, value, frames, shift)
        return replace(found, several=True) if found is not None and name in GIVES_SEVERAL else found

    def _along(self, call: cst.Call, name: str, value: Value, frames: Frames, shift: int) -> Value | None:
        place = AXIS_PLACES.get(name, 1)
        axes = self._axes(call, place - 1 + shift if place is not None else None)
        if name in REDUCES:
            kept = [a for a in call.args if a.keyword is not None and a.keyword.value in KEEPS_AXES]
            return rows.over(call, value, axes, any(not is_off(self._origins, a.value) for a in kept))
        if name in ALONG_LAST:
            return rows.along(call, value, axes if axes != () else (-1,))
        if name in ALONG_FIRST:
            return rows.along(call, value, axes if axes != () else (0,))
        if name in ALONG_ALL:
            return rows.along(call, value, axes)
        if name in REORDERS:
            return rows.reordered(call, value, (0,) if name == "flipud" else axes, self._order(call))
        if name in CHOOSES_ROWS:
            return self._chosen(call, value, axes if axes != () else (0,), frames, shift)
        return None

    # --- arguments ----------------------------------------------------------------------------------------------------

    def _all(self, given: list[cst.BaseExpression], frames: Frames) -> list[Value]:
        return [self._value(g, frames) for g in given]

    def _members(self, given: list[cst.BaseExpression], frames: Frames) -> list[Value]:
        """The values of arguments, those of written lists one by one."""
        found: list[Value] = []
        for each in given:
            made = self._origins.made(each)
            if isinstance(made, cst.List | cst.Tuple) and made.elements:
                found += self._all([e.value for e in made.elements], frames)
            else:
                found.append(self._value(each, frames))
        return found

    def _first(self, call: cst.Call, given: list[cst.BaseExpression]) -> cst.BaseExpression:
        named = (a.value for a in call.args if a.keyword is None or a.keyword.value in OPERANDS)
        return next(named, given[0])

    def _axes(self, call: cst.Call, place: int | None) -> tuple[int, ...] | None:
        """The axes that a call names; () where it names none, None where they are not known."""
        found = next((g for key in AXES_BESIDE_AXIS if (g := argument(call, key)) is not None), None)
        found = found or (argument(call, "axis", place) if place is not None else None)
        return () if found is None else ints(self._origins, found.value)

    def _order(self, call: cst.Call) -> object:
        """What tells one new order of rows from another: the text of a call, but for what it is done to."""
        told = [self._origins.index.code(a.value) for a in call.args[1:]]
        return (self._origins.index.code(call.func), *told)

    def _others(self, call: cst.Call, frames: Frames) -> Value:
        """A function of which no table says anything."""
        given = self._members([a.value for a in call.args], frames)
        odd = rows.join(given)
        if rows.is_free(odd):
            return rows.FREE
        if odd.of in {Of.MIXED, Of.UNKNOWN}:
            return replace(odd, several=True)
        return rows.unknown(call, "is not known to keep the examples of the batch apart", odd.why)

    # --- rows and shapes ----------------------------------------------------------------------------------------------

    def counted(self, call: cst.CSTNode, api: str, value: Value) -> Value:
        """`len(x)`, `tf.shape(x)`, `tf.size(x)`."""
        if not rows.has_rows(value):
            return rows.FREE if value.of in {Of.FREE, Of.NOTHING, Of.WHOLE} else replace(value, several=False)
        why = Unknown(call, "counts the examples of the batch")
        if api.endswith(".shape"):
            return replace(value, of=Of.SHAPE, why=why, several=False)
        return replace(rows.SIZE, why=why) if value.axis == 0 and not value.several else rows.FREE

    def shuffled(self, call: cst.Call, value: Value) -> Value:
        """Rows in an order that is drawn."""
        if value.of in {Of.SIZE, Of.PLACES}:
            return replace(value, of=Of.PLACES)
        return rows.reordered(call, value, (0,), call)

    def _first_axis(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        """Functions that take the batch's axis as the first, and keep it there."""
        found = rows.elementwise(call, self._members(given, frames))
        if rows.has_rows(found) and found.axis != 0:
            return rows.unknown(call, "takes the first axis for the batch's, which it may not be here")
        return replace(found, base=rows.UNRANKED) if rows.has_rows(found) else found

    def _made(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        """New tensors: with an axis of examples where their shape has the batch's size."""
        shape = argument(call, "shape", 0) or argument(call, "size") or argument(call, "dims")
        sized = [a.value for a in call.args if a.keyword is None or a.keyword.value in {"shape", "size", "dims"}]
        others = self._all([g for g in given if shape is None or g is not shape.value], frames)
        for each in [*([shape.value] if shape is not None else []), *sized]:
            read = shapes.read(self._origins, self._value, each, frames)
            if read.axis is not None:
                made = rows.made(read.axis, read.rank, read.base)
                return rows.elementwise(call, [made, *(o for o in others if o.of not in {Of.SHAPE, Of.SIZE})])
            if read.rank and read.base is None:
                return rows.elementwise(call, [Value(Of.FREE, rank=read.rank), *others])
        return rows.join([rows.FREE, *(o for o in others if not rows.has_rows(o))])

    def _range(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        found = rows.join(self._all(given, frames))
        if found.of is Of.SIZE:
            return replace(found, of=Of.PLACES, rank=1, why=Unknown(call, "numbers the examples of the batch", found.why))
        return Value(Of.FREE, rank=1) if rows.is_free(found) else found

    def _chosen(self, call: cst.Call, value: Value, axes: tuple[int, ...] | None, frames: Frames, shift: int) -> Value:
        """Elements by their places: rows where the axis is the batch's."""
        place = argument(call, "indices", shift) or argument(call, "mask", shift)
        by = self._value(place.value, frames) if place is not None else rows.FREE
        batched = argument(call, "batch_dims")
        if batched is not None and (ints(self._origins, batched.value) or (0,))[0] > 0:
            return rows.elementwise(call, [replace(value, base=rows.UNRANKED, rank=2), replace(by, base=rows.UNRANKED)])
        if not rows.has_rows(value):  # of a table, by what the rows say
            return rows.elementwise(call, [value, replace(by, rank=by.rank + 1) if rows.has_rows(by) else by])
        if axes and place is not None:
            found = [rows.is_batch(value, a) for a in axes]
            if found == [True]:
                if by.of in {Of.MIXED, Of.UNKNOWN} or rows.has_rows(by):
                    return self._by_itself(call, value, by)
                return rows.moved(call, value, self._origins.made(place.value))
            if found == [False]:
                return rows.join([replace(value, several=False), by]) if not rows.is_free(by) else value
        return rows.unknown(call, "may take rows of the batch by their places")

    def _by_itself(self, call: cst.CSTNode, value: Value, by: Value) -> Value:
        """Rows chosen by what is made of the batch itself."""
        if by.of is Of.MIXED:
            return rows.mixed(call, "takes rows by what is made of all of them", by.why)
        return rows.unknown(call, "takes rows of the batch by what is made of it", value.why)

    def _picked(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        found = rows.join(self._all(given, frames))
        return found if rows.is_free(found) or found.of is Of.MIXED else self._others(call, frames)

    # --- elements at other places -------------------------------------------------------------------------------------

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

    def _flat(self, given: list[cst.BaseExpression], frames: Frames, rank: int) -> Value:
        return flattened(self._value(given[0], frames), rank)

    def _transpose(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        order = argument(call, "perm", 1) or argument(call, "axes", 1) or argument(call, "pattern", 1)
        written = ints(self._origins, order.value) if order is not None else ()
        return rows.transposed(call, self._value(given[0], frames), written)

    def _swap(
        self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames, axes: tuple[int, int] | None = None
    ) -> Value:
        found = [ints(self._origins, g) for g in given[1:3]]
        pair = axes or ((found[0] or (0,))[0], (found[1] or (0,))[0]) if axes or (len(found) == 2 and all(found)) else None
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
        return replace(rows.join(found), several=False)

    def _stack(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        axes = self._axes(call, 1)
        found = rows.elementwise(call, self._members(given[:1], frames))
        return rows.widened(found, axes[0] if axes else (0 if axes == () else None))

    def _split(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        value = self._value(given[0], frames)
        unstacks = not isinstance(call.func, cst.Attribute) or call.func.attr.value == "unstack"
        axes = self._axes(call, None if unstacks else AXIS_PLACES["split"])
        if value.of is Of.SHAPE or not rows.has_rows(value):
            return replace(value, several=value.of is not Of.SHAPE)
        batch = rows.is_batch(value, axes[0] if axes else 0) if axes is not None else None
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
        return replace(value, several=False)

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
        return self._others(call, frames) if not rows.is_free(rows.join((left, right))) else rows.FREE

    # --- functions of functions ---------------------------------------------------------------------------------------

    def _cond(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        test = self._value(given[0], frames)
        made = [self._origins.made(g) for g in given[1:3]]
        bodies = [m.body for m in made if isinstance(m, cst.Lambda)]
        bodies += [r for m in made if isinstance(m, cst.FunctionDef) for r in self._origins.index.returned(m)]
        found = rows.join(self._all(bodies, frames))
        if test.of is Of.WHOLE and not rows.is_free(found):
            return rows.mixed(call, "decides by all examples of the batch what becomes of each", test.why)
        return found

    def _over_first(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        found = rows.join(self._all(given, frames))
        return rows.along(call, found, (0,)) if rows.has_rows(found) else found

    def _builtin(self, call: cst.Call, given: list[cst.BaseExpression], frames: Frames) -> Value:
        if len(given) > 1:
            return rows.elementwise(call, self._all(given, frames))
        members = self._members(given, frames)
        if len(members) > 1 or members[0].several:
            return rows.elementwise(call, members)
        return rows.over(call, members[0], (0,), kept=False)

    # --- methods ------------------------------------------------------------------------------------------------------

    def drawn(self, call: cst.Call, name: str, frames: Frames) -> Value | None:
        """What a generator draws, by the axes of its size; None where it draws no such thing."""
        given = argument(call, "size", DRAW_SIZES[name]) if name in DRAW_SIZES else None
        if given is None:
            return None
        read = shapes.read(self._origins, self._value, given.value, frames)
        if read.axis is not None:
            return rows.made(read.axis, read.rank, read.base)
        return Value(Of.FREE, rank=read.rank, base=read.base)

    def method(self, call: cst.Call, name: str, value: Value, frames: Frames) -> Value:
        """A method of a tensor or array."""
        given = [a.value for a in call.args]
        if name in {"reshape"}:
            return self.reshaped(call, value, given, frames)
        if name in {"flatten", "ravel"}:
            return flattened(value, 1)
        if name == "transpose":
            order = ints(self._origins, given[0]) if len(given) == 1 else self._written(given)
            return rows.transposed(call, value, order)
        if name == "swapaxes" and len(given) == 2:
            pair = [ints(self._origins, g) for g in given]
            return swapped(call, value, ((pair[0] or (0,))[0], (pair[1] or (0,))[0]) if all(pair) else None)
        if name == "squeeze":
            return squeezed(value, self._axes(call, 0))
        if name in {"get_shape", "as_list"}:
            return value if value.of is Of.SHAPE else self.counted(call, "x.shape", value)
        if name == "dot" and given:
            return rows.product(call, value, self._value(given[0], frames))
        if name in SAME_ROWS or name in {"get", "values", "items"}:
            return rows.elementwise(call, [value]) if name in SAME_ROWS else replace(value, several=True)
        if name == "stack":  # of a TensorArray
            return rows.widened(value, 0)
        found = self.along(call, name, value, frames, 0)
        if found is not None:
            return found
        odd = rows.join([value, *self._all(given, frames)])
        if odd.of in {Of.MIXED, Of.UNKNOWN}:
            return odd
        return rows.unknown(call, "is not known to keep the examples of the batch apart", odd.why)

    def _written(self, given: list[cst.BaseExpression]) -> tuple[int, ...] | None:
        found = [ints(self._origins, g) for g in given]
        return None if any(f is None or len(f) != 1 for f in found) else tuple(f[0] for f in found if f)


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


def _is_setting(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in SETTINGS
