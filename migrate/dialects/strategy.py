"""`tf.distribute`: a strategy's scope is left out, and there is one replica, which has the whole batch.

A strategy's batch is that of all replicas, as the one of every worker that runs the whole script is. A loss that is
divided by it, as `tf.nn.compute_average_loss` does, and what is summed over replicas are those of the whole batch then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..catalogue import STRATEGIES
from ..facts.program import Index, Names, Origins, Program, SourceFile, argument
from .machines import asks_for_cluster, left_out
from .one_replica import MAKERS, RUNS, SUMMED, without_statement
from .texts import Change, NotReadError, Span, Taken, lifted

_MAKERS = MAKERS | {f"{STRATEGIES}.get_strategy"}
_GONE = "{} is left out: each worker is a process of its own"
_OF_ONE_REPLICA = "{} is left out: there is one replica, with the whole batch"
_ONE = "1 in place of the number of replicas: the batch is that of one, and kept (--batch per-worker: of each worker)"


class Strategies:
    """The strategies of one text, and what is left to be changed for them."""

    def __init__(self, module: cst.Module) -> None:
        self.file = SourceFile(module)
        self._text = module.code
        self._index = Index(Program(self.file))
        self._names = Names(self._index)
        self._origins = Origins(self._index, self._names)

    def next_change(self) -> tuple[Change, Taken] | None:
        """The next one to be made, None where nothing of the system is left.

        Raises NotReadError where something of it is not understood.
        """
        makers = [c for c in self._index.calls if self._origins.called(c) in _MAKERS]
        for gone in left_out(self.file, self._index, self._origins, has_strategy=bool(makers)):
            return gone
        uses = list(self._uses(makers))
        known = [*makers, *(call for use in uses if (call := self._call_of(use)) is not None)]
        others = [c for c in self._named() if not any(self._is_in(c, call) for call in known)]
        imported = (d.api for held in self._index.definitions.values() for ds in held.values() for d in ds)
        if others or any(api.startswith(STRATEGIES) for api in imported) or (makers and asks_for_cluster(self.file)):
            raise NotReadError
        for node in uses:
            return self._used(node)
        return next((self._made(maker) for maker in makers), None)

    def _call_of(self, use: cst.CSTNode) -> cst.Call | None:
        """`strategy.reduce(…)`, whose first argument names what it does."""
        part = self._index.parents[use]
        call = self._index.parents[part]
        reduces = isinstance(part, cst.Attribute) and part.attr.value == "reduce"
        return call if reduces and isinstance(call, cst.Call) and call.func is part else None

    def _named(self) -> Iterator[cst.CSTNode]:
        """Whatever is called by a name of the module."""
        for held in (self._index.names, self._index.attributes):
            every = (node for nodes in held.values() for node in nodes)
            yield from (node for node in every if (self._names.api(node) or "").startswith(STRATEGIES))

    def _is_in(self, node: cst.CSTNode, whole: cst.CSTNode) -> bool:
        return any(above is whole for above in self._index.ancestors(node))

    # --- uses ---------------------------------------------------------------------------------------------------------

    def _uses(self, makers: list[cst.Call]) -> Iterator[cst.BaseExpression]:
        """Names that mean a strategy where they are read, and strategies that have no name."""
        every = (name for names in self._index.names.values() for name in names)
        for name in every:
            of_makers = [origin.node in makers for origin in self._origins.of(name)]
            if any(of_makers) and not all(of_makers):
                raise NotReadError  # a strategy or something else
            if any(of_makers):
                yield name
        yield from (maker for maker in makers if isinstance(self._index.parents[maker], cst.Attribute))

    def _used(self, node: cst.BaseExpression) -> tuple[Change, Taken]:
        part = self._index.parents[node]
        if not isinstance(part, cst.Attribute) or part.value is not node:
            raise NotReadError
        if part.attr.value == "num_replicas_in_sync":
            gone, text = self._factor(part)
            return self._changed(gone, text), Taken(*self.file.position(part), _ONE)
        call = self._index.parents[part]
        if not isinstance(call, cst.Call) or call.func is not part:
            raise NotReadError
        if part.attr.value == "scope":
            return self._without_scope(call)
        of_one = _OF_ONE.get(part.attr.value)
        if of_one is None or any(a.star for a in call.args):
            raise NotReadError
        said = _OF_ONE_REPLICA.format(f"{self.file.code(node)}.{part.attr.value}")
        said += SUMMED if part.attr.value in RUNS else ""
        return self._changed(call, of_one(self, call)), Taken(*self.file.position(call), said)

    def _changed(self, node: cst.BaseExpression, text: str) -> Change:
        return Change(span=Span(*self.file.span(node), text))

    def _factor(self, part: cst.Attribute) -> tuple[cst.BaseExpression, str]:
        """What becomes of the number of replicas; a product with it is the other factor."""
        parent = self._index.parents[part]
        if isinstance(parent, cst.BinaryOperation) and not part.lpar and not parent.lpar:
            other = parent.right if parent.left is part else parent.left
            alone = isinstance(other, cst.Name | cst.Integer | cst.Attribute)
            if alone and isinstance(parent.operator, cst.Multiply):
                return parent, self.file.code(other)
        return part, "1"

    def _run(self, call: cst.Call) -> str:
        """`step(*args, **kwargs)` for `strategy.run(step, args, kwargs)`."""
        function, args, kwargs = (argument(call, name, place) for place, name in enumerate(("fn", "args", "kwargs")))
        if function is None or not isinstance(function.value, cst.Name | cst.Attribute):
            raise NotReadError
        given = []
        if args is not None and _is_none(args):
            args = None
        if args is not None and isinstance(args.value, cst.Tuple | cst.List):
            given = [self.file.code(each.value) for each in args.value.elements if isinstance(each, cst.Element)]
            if len(given) < len(args.value.elements):
                raise NotReadError
        elif args is not None:
            given = [f"*{self._text_of(args)}"]
        given += [f"**{self._text_of(kwargs)}"] if kwargs is not None and not _is_none(kwargs) else []
        return f"{self.file.code(function.value)}({', '.join(given)})"

    def _reduced(self, call: cst.Call) -> str:
        """What each replica has given, of which there is one."""
        axis, value = argument(call, "axis", 2), argument(call, "value", 1)
        if value is None or axis is None or not isinstance(axis.value, cst.Name) or axis.value.value != "None":
            raise NotReadError
        return self._text_of(value)

    def _first(self, call: cst.Call) -> str:
        if not call.args:
            raise NotReadError
        return self._text_of(call.args[0])

    def _text_of(self, given: cst.Arg) -> str:
        text = self.file.code(given.value)
        return text if isinstance(given.value, _ALONE) else f"({text})"

    def _without_scope(self, call: cst.Call) -> tuple[Change, Taken]:
        """The statements of `with strategy.scope():`, without it."""
        item = self._index.parents[call]
        block = self._index.parents[item]
        if not isinstance(item, cst.WithItem) or not isinstance(block, cst.With):
            raise NotReadError
        if len(block.items) > 1 or item.asname is not None or block.asynchronous:
            raise NotReadError
        first, last = self.file.span(block)
        header = self.file.span(block.items[0])[1][0]
        taken = Taken(*self.file.position(block), _GONE.format(self.file.code(call)))
        if isinstance(block.body, cst.SimpleStatementSuite):
            start = self.file.span(block.body.body[0])[0]
            if start[0] != first[0]:
                raise NotReadError
            return Change(span=Span(first, start, "")), taken
        body = self.file.span(block.body.body[0])[0]
        change = lifted(self._text, first, header, body, end=last[0], last=last[0])
        if change is None:
            raise NotReadError
        return change, taken

    # --- makers -------------------------------------------------------------------------------------------------------

    def _made(self, maker: cst.Call) -> tuple[Change, Taken]:
        """The statement that makes a strategy, which nothing reads any more, with the comments right above it."""
        assigned = self._index.parents[maker]
        if isinstance(assigned, cst.IfExp):  # one of two
            made = [each for each in (assigned.body, assigned.orelse) if isinstance(each, cst.Call)]
            if len(made) < 2 or any(self._origins.called(each) not in _MAKERS for each in made):
                raise NotReadError
            assigned = self._index.parents[assigned]
        said = _GONE.format(self._origins.called(maker).replace("tensorflow.", "tf.", 1))
        return without_statement(self.file, self._index, self._origins, assigned, said)


def _is_none(given: cst.Arg) -> bool:
    return isinstance(given.value, cst.Name) and given.value.value == "None"


_ALONE = (cst.Name, cst.Attribute, cst.Call, cst.Subscript, cst.Integer)
_OF_ONE: dict[str, Callable[[Strategies, cst.Call], str]] = {
    "experimental_distribute_dataset": Strategies._first,
    "experimental_run_v2": Strategies._run,
    "reduce": Strategies._reduced,
    "run": Strategies._run,
}
"""What a method of a strategy is with one replica."""
