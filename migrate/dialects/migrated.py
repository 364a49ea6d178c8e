"""tfdp itself: a migrated script, or one written for the runtime, becomes what one process runs without it.

Each name of the runtime that a migration writes has a meaning for one process: nothing, its first argument, or a call
of it. So the script's own text comes back. Any other name is refused.
"""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from ..facts.program import argument
from .horovod import Moved
from .runtime_uses import LeftError, RuntimeUses
from .texts import Span, Taken, lifted, spliced

_GONE = frozenset({"broadcast_state", "init", "pin_gpu", "seed_by_rank"})
_FIRST = frozenset(
    {
        "DistributedGradientTape",
        "DistributedOptimizer",
        "by_rows",
        "fit_callbacks",
        "global_batch_size",
        "local_batch_size",
        "local_schedule",
        "local_steps",
        "rank_path",
        "rank_seed",
        "scale_lr",
        "scale_optimizer",
        "shard",
        "shuffle_seed",
    }
)
_CALLED = frozenset({"on_root", "report", "root_first"})
_ADDED = {"fit_callbacks": "[]", "shuffle_seed": "None"}  # without an argument; what is said where that must be one
_NUMBERS = {"rank": "0", "local_rank": "0", "cross_rank": "0", "size": "1", "local_size": "1", "cross_size": "1"}
_FOR_MORE = frozenset({"down", "order_check", "remainder", "scale", "warmup_steps", "whole"})  # than one worker
_SPLIT, _HELD_OUT = "validation_split", "validation_data"
_SAID = "tfdp's runtime is taken out: one process trains by itself, with the batch, rate and steps that are written"
_FOR_RANK_0 = m.Comparison(
    left=m.Call(args=[]), comparisons=[m.ComparisonTarget(operator=m.Equal(), comparator=m.Integer("0"))]
)


def without_runtime(module: cst.Module) -> Moved | None:
    """The script without the runtime; None where it does not import it."""
    script = _Script.taken_out(module)
    if script is None:
        return None
    after = module if script.refused else cst.parse_module(spliced(module.code, script.spans()))
    taken = tuple(Taken(*script.file.position(node), _SAID) for node in script.imported[:1])
    return Moved(after, taken, tuple(script.refused))


class _Script(RuntimeUses):
    """What becomes of each place of one text."""

    by_hand = "write what one process does there"

    def _use(self, name: str, node: cst.Attribute) -> None:
        call = self._index.parents[node]
        if isinstance(call, cst.Decorator) and name == "by_rows":
            self._remove(call)
            return
        if not isinstance(call, cst.Call) or call.func is not node:
            raise LeftError(node, f"`{self.file.code(node)}` is no call: what becomes of it is not seen")
        if name in _GONE and isinstance(self._index.parents[call], cst.Expr):
            self._remove(self._index.parents[call])
        elif name in _NUMBERS and not call.args:
            self._number(call, _NUMBERS[name])
        elif name == "held_out":
            self._held_out(call)
        elif name == "set_random_seed":
            self._seed(node)
        elif name == "matmul" and len(call.args) == 2:
            self._product(call)
        elif name in _ADDED and not call.args:
            self._added(call, _ADDED[name])
        elif name in _FIRST | _CALLED | {"metric_result"} and call.args and call.args[0].keyword is None:
            self._unwrapped(name, call)
        else:
            raise LeftError(call, f"what `{self.file.code(call)}` is for one process is not known")

    # --- calls --------------------------------------------------------------------------------------------------------

    def _unwrapped(self, name: str, call: cst.Call) -> None:
        """The first argument, or a call of it."""
        first, *others = call.args
        for other in others if name not in _CALLED else ():
            keyword = other.keyword.value if other.keyword is not None else ""
            if keyword not in _FOR_MORE and not (keyword == _SPLIT and self._splits(call)):
                option = self.file.code(other.with_changes(comma=cst.MaybeSentinel.DEFAULT))
                raise LeftError(call, f"`{self.file.code(call)}` goes by `{option}`")
        needs_brackets = name in _CALLED or name == "metric_result" or not self._is_closed(call)
        before, after = ("(", ")") if self._is_open(first.value, needs_brackets) else ("", "")
        (start, end), (begins, stops) = self.file.span(call), self.file.span(first.value)
        self._parts.append(Span(start, begins, before))
        if name in _CALLED and others:
            self._parts.append(Span(stops, self.file.span(others[0])[0], f"{after}("))
        else:
            call_of_it = "()" if name in _CALLED else ".result()" if name == "metric_result" else ""
            self._parts.append(Span(stops, end, after + call_of_it))

    def _product(self, call: cst.Call) -> None:
        """`x @ w` of `dp.matmul(x, w)`."""
        (start, end), (left, right) = self.file.span(call), [a.value for a in call.args]
        around = "" if self._is_closed(call) else "("
        brackets = [("(", ")") if self._is_open(each, may_be_cut=True) else ("", "") for each in (left, right)]
        (begins, stops), (begins_2, stops_2) = self.file.span(left), self.file.span(right)
        self._parts.append(Span(start, begins, around + brackets[0][0]))
        self._parts.append(Span(stops, begins_2, f"{brackets[0][1]} @ {brackets[1][0]}"))
        self._parts.append(Span(stops_2, end, brackets[1][1] + (")" if around else "")))

    def _added(self, call: cst.Call, otherwise: str) -> None:
        """What a migration adds goes with its argument."""
        given = self._index.parents[call]
        around = self._index.parents[given]
        if isinstance(given, cst.Arg) and isinstance(around, cst.Call):
            self._arguments[around].add(given)
        else:
            self._parts.append(Span(*self.file.span(call), otherwise))

    def _number(self, call: cst.Call, number: str) -> None:
        """What is asked of rank 0 is done; `x * dp.size()` is x."""
        around = self._index.parents[call]
        if m.matches(around, _FOR_RANK_0) and number == "0":
            above = self._index.parents[around]
            if isinstance(above, cst.If) and self._guard(above):
                return
            if isinstance(above, cst.IfExp) and above.test is around:
                self._shown(above)
                return
        product = around if isinstance(around, cst.BinaryOperation) else None
        times = product is not None and isinstance(product.operator, cst.Multiply) and product.right is call
        if product is not None and times and not product.left.lpar and number == "1":
            self._parts.append(Span(self.file.span(product.left)[1], self.file.span(call)[1], ""))
            return
        self._parts.append(Span(*self.file.span(call), number))

    def _guard(self, node: cst.If) -> bool:
        """Whether the block of an `if` takes its place."""
        block, other = node.body, node.orelse.body if isinstance(node.orelse, cst.Else) else None
        if not isinstance(block, cst.IndentedBlock) or isinstance(node.orelse, cst.If) or self._is_elif(node):
            return False
        if other is not None and not isinstance(other, cst.IndentedBlock):
            return False
        first, begins = self.file.span(node)[0], self.file.span(block.body[0])[0]
        end = self._end(block)
        last = self._end(other) if other is not None else end
        header = self.file.span(node.test)[1][0]
        change = lifted(self._module.code, first, header, begins, end=end, last=last)
        if change is None:
            return False
        self._lines |= change.removed
        for line, dedent in change.dedented.items():
            self._dedents[line].append(dedent)
        return True

    def _is_elif(self, node: cst.If) -> bool:
        above = self._index.parents[node]
        return isinstance(above, cst.If) and above.orelse is node

    def _end(self, block: cst.IndentedBlock) -> int:
        """The last line of its last statement."""
        return self.file.span(block.body[-1])[1][0]

    def _shown(self, node: cst.IfExp) -> None:
        """`verbose="auto" if dp.rank() == 0 else 0`, which a migration adds."""
        given = self._index.parents[node]
        around = self._index.parents[given]
        is_added = m.matches(given, m.Arg(value=m.IfExp(body=m.SimpleString()), keyword=m.Name("verbose")))
        if is_added and isinstance(given, cst.Arg) and isinstance(around, cst.Call):
            self._arguments[around].add(given)
            return
        (start, end), (begins, stops) = self.file.span(node), self.file.span(node.body)
        self._parts += [Span(start, begins, ""), Span(stops, end, "")]

    def _seed(self, node: cst.Attribute) -> None:
        """`keras.utils.set_random_seed`, by what the script calls Keras."""
        for name, found in self._index.definitions[self._module].items():
            apis = {d.api for d in found if d.kind == "import"}
            if len(found) == 1 and apis & {"keras", "tensorflow.keras", "tensorflow"}:
                keras = f"{name}.keras" if apis == {"tensorflow"} else name
                self._parts.append(Span(*self.file.span(node), f"{keras}.utils.set_random_seed"))
                return
        raise LeftError(node, f"`{self.file.code(node)}` is Keras', which is not imported here")

    # --- what validation_split holds out ------------------------------------------------------------------------------

    def _splits(self, call: cst.Call) -> bool:
        """Whether what a share leaves out is held out by the same call of `fit`."""
        fit = next((a for a in self._index.ancestors(call) if isinstance(a, cst.Call)), None)
        given = argument(fit, _HELD_OUT) if fit is not None else None
        return given is not None and bool(self._held(given.value))

    def _held(self, value: cst.BaseExpression) -> list[cst.Call]:
        """The calls of `dp.held_out` of which a value consists."""
        parts = [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]
        held = [p for p in parts if isinstance(p, cst.Call) and self._of_runtime(p.func) == "held_out"]
        return held if len(held) == len(parts) else []

    def _held_out(self, call: cst.Call) -> None:
        """`validation_split=0.1` in place of what it makes Keras hold out."""
        given = next((a for a in self._index.ancestors(call) if isinstance(a, cst.Arg) and a.keyword is not None), None)
        held = self._held(given.value) if given is not None else []
        splits = {self.file.code(each.args[1].value) for each in held if len(each.args) == 2}
        if given is None or len(splits) != 1 or given.keyword is None or given.keyword.value != _HELD_OUT:
            raise LeftError(call, f"what `{self.file.code(call)}` holds out is not held out for `fit` alone")
        self._done |= {each.func for each in held}
        self._parts.append(Span(*self.file.span(given), f"{_SPLIT}={splits.pop()}"))
