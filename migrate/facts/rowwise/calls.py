"""What functions of NumPy, TensorFlow and Keras, and methods of their tensors, make of the rows of a batch."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import libcst as cst

from ...catalogue import KINDS, Kind
from ..apis import (
    ALONG_ALL,
    ALONG_FIRST,
    ALONG_LAST,
    ALONG_LAST_TWO,
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
    OF_GROUPS,
    OF_IMAGES,
    OPS,
    OVER_ROWS,
    PARTIAL,
    REDUCES,
    REORDERS,
    SAME_ROWS,
    SETTINGS,
    SHUFFLES_ROWS,
)
from ..program import Frames, Origins, Unknown, argument, ints, is_off
from . import shapes
from . import values as rows
from .arguments import Arguments, Evaluate
from .moves import Move, Moves, flattened, squeezed, swapped
from .values import Of, Value

_LISTS = frozenset(f"builtins.{name}" for name in ("zip", "list", "tuple", "dict", "iter", "reversed", "sorted"))
_ONE_KIND = {
    Kind.ELEMENTWISE: "abs",
    Kind.PASS: "identity",
    Kind.OPERATOR: "add",
    Kind.LOSS_FUNCTION: "one_hot",
    Kind.ROWS: "one_hot",
}


class TensorCalls(Arguments):
    """Answers for calls of functions by their names, and of methods of tensors."""

    def __init__(self, origins: Origins, value: Evaluate) -> None:
        super().__init__(origins, value)
        self._layout = Moves(origins, value)
        self._moves: dict[str, Move] = {
            **self._layout.named,
            "rank": lambda *_: rows.FREE,
            "range": self._range,
            "arange": self._range,
            "cond": self._cond,
            "scan": lambda call, given, frames: self._over_first(call, given[1:], frames),
            "gather_nd": self._picked,
        }

    def of(self, call: cst.Call, api: str, frames: Frames) -> Value:
        """The value of a call of a library's function."""
        name = api.rpartition(".")[2]
        given = [a.value for a in call.args if not a.star and not _is_setting(a)]
        if any(a.star for a in call.args) or not given:
            return self._others(call, frames)
        if api in COUNTS or (name == "shape" and OPS.match(api)):
            return self.counted(call, api, self._value(given[0], frames))
        if api in SHUFFLES_ROWS:
            return self.shuffled(call, self._value(given[0], frames))
        if api in OVER_ROWS:
            found = rows.join(self._all(given[1:], frames))
            inside = self._inside(call, given[0], frames)
            if inside.of in {Of.MIXED, Of.UNKNOWN}:
                return inside
            if not rows.is_free(inside):
                return rows.mixed(call, "looks at the whole batch for each of its rows", inside.why)
            because = Unknown(call, "is taken to give one value for each row")
            return replace(found, unsure=because) if rows.has_rows(found) else found
        if OF_IMAGES.match(api):
            return self._first_axis(call, given, frames)
        if api in _LISTS:
            return self._listed(call, api, given, frames)
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

    def applied(self, handed: cst.BaseExpression) -> Value:
        """What a library's function makes of a batch that it stands for itself, also with some arguments given."""
        some = handed.args if isinstance(handed, cst.Call) and self._origins.called(handed) == PARTIAL else ()
        func = some[0].value if some else handed
        api = self._origins.names.api(func)
        if api is None or not OPS.match(api):
            return rows.NOTHING
        found = self.of(cst.Call(func=func, args=[cst.Arg(handed), *some[1:]]), api, ())
        return replace(found, why=Unknown(handed, found.why.reason)) if found.why is not None else found

    def _listed(self, call: cst.Call, api: str, given: list[cst.BaseExpression], frames: Frames) -> Value:
        """A list of what is given, or of its rows one after another."""
        found = rows.join(self._all(given, frames))
        if rows.has_rows(found) and not found.several and len(given) == 1 and api != "builtins.dict":
            return rows.moved(call, found, call) if api in {"builtins.reversed", "builtins.sorted"} else found
        return replace(found, several=True)

    def _by_kind(
        self, call: cst.Call, kind: Kind | None, api: str, given: list[cst.BaseExpression], f: Frames
    ) -> Value:
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
        if OF_GROUPS.match(name):
            return rows.over(call, value, (0,), kept=False)
        if name in ALONG_LAST_TWO:
            return replace(rows.along(call, value, (-2, -1)), several=True)
        if name in ALONG_ALL:
            return rows.along(call, value, axes)
        if name in REORDERS:
            return rows.reordered(call, value, (0,) if name == "flipud" else axes, self._order(call))
        if name in CHOOSES_ROWS:
            return self._chosen(call, value, axes if axes != () else (0,), frames, shift)
        return None

    def _inside(self, call: cst.Call, function: cst.BaseExpression, frames: Frames) -> Value:
        """What the function that is called with each row makes of all else."""
        made = self._origins.made(function)
        if isinstance(made, cst.Lambda):
            return self._value(made.body, (*frames, (cast("cst.FunctionDef", made), call)))
        if isinstance(made, cst.FunctionDef):
            returned = self._origins.index.returned(made)
            return rows.join([rows.NOTHING, *(self._value(r, (*frames, (made, call))) for r in returned)])
        return rows.NOTHING

    # --- rows and shapes ----------------------------------------------------------------------------------------------

    def counted(self, call: cst.CSTNode, api: str, value: Value) -> Value:
        """`len(x)`, `tf.shape(x)`, `tf.size(x)`."""
        if not rows.has_rows(value):
            return rows.FREE if value.of in {Of.FREE, Of.NOTHING, Of.WHOLE} else replace(value, several=False)
        why = Unknown(call, "counts the examples of the batch")
        if api.endswith(".shape"):
            return replace(value, of=Of.SHAPE, why=why, several=False)
        if value.several:
            return rows.unknown(call, "counts the examples of the batch, or its parts", value.why)
        return replace(rows.SIZE, why=why) if value.axis == 0 else rows.FREE

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
            return replace(
                found, of=Of.PLACES, rank=1, why=Unknown(call, "numbers the examples of the batch", found.why)
            )
        return Value(Of.FREE, rank=1) if rows.is_free(found) else found

    def _chosen(self, call: cst.Call, value: Value, axes: tuple[int, ...] | None, frames: Frames, shift: int) -> Value:
        """Elements by their places: rows where the axis is the batch's."""
        place = argument(call, "indices", shift) or argument(call, "mask", shift)
        by = self._value(place.value, frames) if place is not None else rows.FREE
        masked = self._origins.called(call).endswith(("boolean_mask", "compress"))
        batched = argument(call, "batch_dims")
        if batched is not None and (ints(self._origins, batched.value) or (0,))[0] > 0:
            return rows.elementwise(call, [replace(value, base=rows.UNRANKED, rank=2), replace(by, base=rows.UNRANKED)])
        if not rows.has_rows(value):  # of a table, by what the rows say
            return rows.elementwise(call, [value, replace(by, rank=by.rank + 1) if rows.has_rows(by) else by])
        if axes and place is not None:
            found = [rows.is_batch(value, a) for a in axes]
            if found == [True]:
                if by.of is Of.MIXED or (masked and not rows.is_free(by)):
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
            return self._layout.reshaped(call, value, given, frames)
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
        if name in SAME_ROWS:
            return rows.elementwise(call, [value])
        if name in {"get", "values", "items", "pop"} and value.several:
            return value
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


def _is_setting(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value in SETTINGS
