"""A script that was migrated to sharded input, in Horovod's own names: for those who stay on TensorFlow up to 2.15.

Each name of the runtime that such a migration writes becomes what Horovod's documentation writes there, or a few lines
of the script's own. What Horovod has nothing for, such as sharded calls, or metrics of all records, is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst
import libcst.matchers as m

from . import horovod_texts as texts
from .horovod import Moved
from .runtime_uses import LeftError, RuntimeUses
from .texts import Span, lines_of, spliced

_AS_IT_IS = frozenset({"rank", "size", "local_rank", "local_size"})
_HELPERS = {
    "broadcast": texts.BROADCAST,
    "at_start": texts.AT_START,
    "held_out": texts.HELD_OUT,
    "local_steps": texts.LOCAL_STEPS,
    "report": texts.REPORT,
    "root_first": texts.ROOT_FIRST,
    "shard": texts.SHARD,
}
_NAMES = {
    "broadcast": "start_from_rank_0",
    "at_start": "StartFromRank0",
    "held_out": "held_out",
    "local_steps": "local_steps",
    "report": "on_rank_0",
    "root_first": "rank_0_first",
    "shard": "shard",
    "gpus": "gpus",
}
_OF_HELPER = frozenset({"held_out", "local_steps", "root_first", "shard"})
_WRAPPED = {"DistributedGradientTape": "hvd", "DistributedOptimizer": "hvd_keras"}
_OF_ALL = frozenset({"EarlyStopping", "History", "LearningRateScheduler", "ReduceLROnPlateau"})
_WRITE = frozenset({"CSVLogger", "ModelCheckpoint", "TensorBoard"})
_PURE = frozenset({"float", "int", "len", "round", "str"})
_NUMBERS = (cst.Integer, cst.Float)
_PRODUCT = m.BinaryOperation(operator=m.Multiply() | m.Divide())


def to_horovod(module: cst.Module) -> Moved | None:
    """A script that uses the runtime, in Horovod's names; None where it does not import it.

    What is refused has its place in the migrated text.
    """
    script = _Script.taken_out(module)
    if script is None:
        return None
    if script.refused:
        return Moved(module, (), tuple(script.refused))
    spans = (*script.spans(), *script.head())
    lines = (span._replace(text=span.text.replace("\n", module.default_newline)) for span in spans)
    return Moved(cst.parse_module(spliced(module.code, lines)), (), ())


class _Script(RuntimeUses):
    """What becomes of each place of one text."""

    by_hand = "use tfdp's runtime, which does that, or write by hand what Horovod has"

    def __init__(self, module: cst.Module) -> None:
        super().__init__(module)
        self._called = {"hvd": self._free("hvd"), "hvd_keras": self._free("hvd_keras")}
        self._called |= {role: self._free(name) for role, name in _NAMES.items()}
        found = self._imported_as("tensorflow")
        self._called["tf"] = found or self._free("tf")
        self._imports_tensorflow = found is not None
        self._helpers: set[str] = set()
        self._uses_keras = False

    def head(self) -> Iterator[Span]:
        """The imports, and what is written for this script, in place of the runtime's import; the marks go."""
        lines = [f"import horovod.tensorflow as {self._called['hvd']}"]
        if self._uses_keras:
            lines.append(f"import horovod.tensorflow.keras as {self._called['hvd_keras']}")
        if not self._imports_tensorflow:
            lines.append(f"import tensorflow as {self._called['tf']}")
        helpers = [_HELPERS[name].format(**self._called) for name in _HELPERS if name in self._helpers]
        whole = "\n\n\n".join(["\n".join(lines), *(each.strip("\n") for each in helpers)]) + "\n" * bool(helpers)
        yield Span(*self.file.span(self.imported[0]), whole)
        for comment in set(m.findall(self._module, m.Comment(m.MatchRegex(r"# tfdp: .*")))) - self._done:
            (line, start), _ = self.file.span(comment)
            yield Span((line, start), (line, start + len("# tfdp: ")), "# ")

    def _free(self, name: str) -> str:
        taken = self._index.taken
        return next(n for n in (name, *(f"{name}_{i}" for i in range(2, len(taken) + 3))) if n not in taken)

    def _imported_as(self, api: str) -> str | None:
        for name, found in self._index.definitions[self._module].items():
            if len(found) == 1 and found[0].kind == "import" and found[0].api == api:
                return name
        return None

    def _imported(self, node: cst.CSTNode) -> None:
        line = self._index.parents[node]
        if not isinstance(line, cst.SimpleStatementLine) or self._index.parents[line] is not self._module:
            raise LeftError(node, f"`{self.file.code(node)}` does not stand in a line of its own outside of functions")

    # --- one use ------------------------------------------------------------------------------------------------------

    def _use(self, name: str, node: cst.Attribute) -> None:
        call = self._index.parents[node]
        if not isinstance(call, cst.Call) or call.func is not node:
            raise LeftError(node, f"`{self.file.code(node)}` is no call: what becomes of it is not seen")
        above = self._index.parents[call]
        if name in _AS_IT_IS and not call.args:
            self._named(node, f"{self._called['hvd']}.{name}")
        elif name == "init" and not call.args:
            self._named(node, f"{self._called['hvd']}.init")
        elif name == "pin_gpu" and not call.args and isinstance(above, cst.Expr):
            self._pinned(above)
        elif name in _WRAPPED and len(call.args) == 1:
            self._refuse_inside(call)
            self._uses_keras |= name == "DistributedOptimizer"
            self._named(node, f"{self._called[_WRAPPED[name]]}.{name}")
        elif name in _OF_HELPER and self._takes(name, call):
            self._named(node, self._helper(name))
        elif name == "broadcast_state" and call.args:
            self._named(node, self._helper("broadcast"))
        elif name == "scale_lr" and len(call.args) == 1:
            self._scaled(call)
        elif name == "set_random_seed" and len(call.args) == 1:
            self._named(node, f"{self._called['tf']}.keras.utils.set_random_seed")
        elif name == "report" and call.args and isinstance(above, cst.Expr):
            self._reported(call, above)
        elif name == "fit_callbacks":
            self._callbacks(call)
        else:
            whose = self.file.code(call.args[0].value) if name == "scale_optimizer" and call.args else ""
            rate = f"the rate of `{whose}` is not written here, and Horovod scales numbers"
            raise LeftError(
                call, rate if whose else f"Horovod has nothing for `{self.file.code(call)}`, which is needed"
            )

    def _refuse_inside(self, call: cst.Call) -> None:
        """Horovod's tape is entered anew, which TensorFlow does not let it be inside of itself."""
        tape = self.file.code(call.args[0].value)
        for around in self._index.ancestors(call):
            names = (
                [i.asname.name for i in around.items if i.asname is not None] if isinstance(around, cst.With) else []
            )
            if tape in map(self.file.code, names):
                raise LeftError(
                    call, f"Horovod takes no gradient inside of the `with` of `{tape}`: take it behind that"
                )

    def _pinned(self, statement: cst.Expr) -> None:
        """One GPU for each worker, before anything of TensorFlow's runs; and one seed for all, which starts nothing of
        it: folds, splits and weights are the same on all workers, whatever the script seeds, and when."""
        line = self._index.parents[statement]
        start, end = self.file.span(statement)
        comment = line.trailing_whitespace.comment if isinstance(line, cst.SimpleStatementLine) else None
        if comment is not None:
            end = self.file.span(comment)[1]
            self._done.add(comment)
        self._parts.append(Span(start, end, self._indented(statement, texts.PIN.format(**self._called))))

    def _takes(self, name: str, call: cst.Call) -> bool:
        """Whether what is written for the script takes these arguments."""
        options = {"shard": {"validation_split"}, "local_steps": {"down", "whole"}, "held_out": set()}
        if name == "root_first":
            return bool(call.args)
        return all(a.star == "" and (a.keyword is None or a.keyword.value in options[name]) for a in call.args)

    def _helper(self, name: str) -> str:
        self._helpers.add(name)
        return self._called[name]

    def _named(self, node: cst.Attribute, name: str) -> None:
        self._parts.append(Span(*self.file.span(node), name))

    def _scaled(self, call: cst.Call) -> None:
        """`LR * hvd.size()`. What makes a schedule has its rates inside."""
        value = call.args[0].value
        for part in self._rates(value):
            if not isinstance(part, (*_NUMBERS, cst.Name, cst.Attribute, cst.Subscript)) or self._may_be_schedule(part):
                message = (
                    f"Horovod scales numbers: `{self.file.code(value)}` may be a schedule; give a number, or its name"
                )
                raise LeftError(call, message)
        is_cut = isinstance(value, (cst.BinaryOperation, cst.UnaryOperation)) and not m.matches(value, _PRODUCT)
        inner = ("(", ")") if is_cut and not value.lpar else ("", "")
        outer = ("", "") if self._is_closed(call) else ("(", ")")
        (start, end), (begins, stops) = self.file.span(call), self.file.span(value)
        self._parts.append(Span(start, begins, outer[0] + inner[0]))
        self._parts.append(Span(stops, end, f"{inner[1]} * {self._called['hvd']}.size(){outer[1]}"))

    def _may_be_schedule(self, rate: cst.BaseExpression) -> bool:
        """Whether a name is given a schedule anywhere."""
        if not isinstance(rate, cst.Name):
            return False
        given = m.Assign(targets=[m.AtLeastN(n=0), m.AssignTarget(m.Name(rate.value)), m.AtLeastN(n=0)], value=m.Call())
        calls = [found.value for found in m.findall(self._module, given) if isinstance(found, cst.Assign)]
        return any(".schedules." in (self._names.api(c.func) or "") for c in calls if isinstance(c, cst.Call))

    def _rates(self, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        if isinstance(value, cst.BinaryOperation):
            yield from self._rates(value.left)
            yield from self._rates(value.right)
        elif isinstance(value, cst.UnaryOperation):
            yield from self._rates(value.expression)
        else:
            yield value

    def _reported(self, call: cst.Call, statement: cst.Expr) -> None:
        """`if hvd.rank() == 0:` before a statement; where its arguments call something, all workers go on to do so."""
        line, (first, *others) = self._index.parents[statement], call.args
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or not self._is_pure(others):
            self._named(cst.ensure_type(call.func, cst.Attribute), self._helper("report"))
            return
        (start, _), (begins, stops) = self.file.span(call), self.file.span(first.value)
        step = self._module.default_indent
        guard = self._indented(statement, f"if {self._called['hvd']}.rank() == 0:\n{step}")
        self._parts.append(Span(start, begins, guard))
        if others:
            self._parts.append(Span(stops, self.file.span(others[0])[0], "("))
        else:
            self._parts.append(Span(stops, stops, "("))

    def _is_pure(self, given: Sequence[cst.Arg]) -> bool:
        """Whether nothing happens when these are computed."""
        calls = [call for each in given for call in m.findall(each, m.Call())]
        return all(isinstance(c, cst.Call) and self._names.api(c.func) in _PURE for c in calls)

    def _callbacks(self, call: cst.Call) -> None:
        """Those of Horovod first; what writes files on rank 0 only."""
        hvd, keras = self._called["hvd"], self._called["hvd_keras"]
        self._uses_keras = True
        self._helpers |= {"at_start", "broadcast"}
        first = f"{self._called['at_start']}(), {keras}.callbacks.MetricAverageCallback()"
        given = call.args[0].value if call.args else None
        if len(call.args) > 1 or not (given is None or isinstance(given, cst.List)):
            raise LeftError(call, "which callbacks write files is not seen: make them in a list in the call of `fit`")
        if given is None or not given.elements:
            self._parts.append(Span(*self.file.span(call), f"[{first}]"))
            return
        (start, end), ((line, column), _) = self.file.span(call), self.file.span(given)
        spans = [self.file.span(element.value) for element in given.elements]
        self._parts.append(Span(start, (line, column + 1), f"[{first}, "))
        for element, (begins, stops) in zip(given.elements, spans, strict=True):
            kind = self._kind(element)
            if kind in _WRITE:
                self._parts.append(Span(begins, begins, "*(["))
                self._parts.append(Span(stops, stops, f"] if {hvd}.rank() == 0 else [])"))
            elif kind not in _OF_ALL:
                raise LeftError(element, f"what `{self.file.code(element.value)}` does on several workers is not known")
        self._parts.append(Span(self.file.span(given)[1], end, ""))

    def _kind(self, element: cst.BaseElement) -> str:
        """The class of a callback of Keras that is made in its place; empty for others."""
        made = element.value.func if isinstance(element, cst.Element) and isinstance(element.value, cst.Call) else None
        api = (self._names.api(made) if made is not None else None) or ""
        return api.rpartition(".")[2] if ".callbacks." in f".{api}" else ""

    def _indented(self, node: cst.CSTNode, text: str) -> str:
        """A text of several lines in the place of a statement."""
        line, column = self.file.span(node)[0]
        indent = lines_of(self._module.code)[line - 1][:column]
        return "\n".join(f"{indent}{each}" if n and each else each for n, each in enumerate(text.split("\n")))
