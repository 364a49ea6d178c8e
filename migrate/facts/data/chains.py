"""A dataset as a chain: its record stream, the stages after it, and what each stage says of the records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import libcst as cst

from ...catalogue import BATCHING, STAGES
from ..program import argument, last_name


@dataclass(frozen=True)
class Link:
    """One dataset on the way.

    The stage that made it (None for the source) and the expressions that stand for it, in order of flow.
    """

    stage: str | None
    call: cst.Call
    nodes: tuple[cst.BaseExpression, ...]


@dataclass(frozen=True)
class Chain:
    """A record stream and its stages.

    `sharded` is the number of links before `dp.shard(…)`, where the script has that already.
    """

    links: tuple[Link, ...]
    sharded: int | None = None
    batched_source: bool = False
    drawn: tuple[cst.Call, ...] = ()  # what draws the order of the source: `list_files(…)`, shuffles of its parts
    endless: bool = False  # the source itself: datasets that repeat for ever, put together
    generated: bool = False  # records come from the user's own Python code, or from another file's
    foreign: bool = False  # made by another file: known to be a dataset only by what is done with it
    through: tuple[cst.Call, ...] = ()  # the calls of the file's own functions that made it
    one_of_several: cst.BaseExpression | None = None  # an attribute of one of several objects, not certain which

    def named(self, node: cst.BaseExpression) -> Chain:
        last = self.links[-1]
        return replace(self, links=(*self.links[:-1], replace(last, nodes=(*last.nodes, node))))

    def made_by(self, calls: Iterable[cst.Call]) -> Chain:
        return replace(self, through=tuple(dict.fromkeys([*self.through, *calls])))

    def staged(self, stage: str, call: cst.Call) -> Chain:
        if self.foreign and len(self.links) == 1 and stage not in STAGES:
            return replace(self, links=(Link(None, call, (call,)),))  # a method of another file's object
        return replace(self, links=(*self.links, Link(stage, call, (call,))))

    @property
    def source(self) -> cst.Call:
        """The call that makes the record stream."""
        return self.links[0].call

    def calls(self, *stages: str) -> list[cst.Call]:
        """The calls of stages, in order of flow."""
        return [link.call for link in self.links if link.stage in stages]

    @property
    def nodes(self) -> list[cst.BaseExpression]:
        """The expressions that stand for the dataset and those before it, in order of flow."""
        return [node for link in self.links for node in link.nodes]

    @property
    def batches(self) -> list[cst.Call]:
        """The call that makes the batches: the last one. Earlier ones make records, such as sequences."""
        return self.calls(*BATCHING)[-1:]

    @property
    def stages(self) -> list[tuple[Link, bool]]:
        """The stages after the source, and whether each makes or handles batches, rather than records."""
        last = max((i for i, link in enumerate(self.links) if link.stage in BATCHING), default=len(self.links))
        return [(link, i >= last) for i, link in enumerate(self.links[1:], 1)]


def drops_remainder(batching: cst.Call) -> bool:
    """Whether every batch of a call that makes them certainly has its full size."""
    position = 3 if last_name(batching.func) == "padded_batch" else 1
    given = argument(batching, "drop_remainder", position)
    return given is not None and isinstance(given.value, cst.Name) and given.value.value == "True"


def draws(chain: Chain) -> list[cst.Call]:
    """The calls that draw the order of a chain's elements."""
    return [*chain.drawn, *chain.calls("shuffle")]


def never_ends(chain: Chain) -> bool:
    """Whether a dataset certainly has no end."""
    forever = chain.endless
    for link in chain.links:
        if link.stage == "repeat":
            value = link.call.args[0].value if link.call.args else None
            negative = isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus)
            forever = forever or value is None or negative or (isinstance(value, cst.Name) and value.value == "None")
        elif link.stage in {"take", "take_while"}:
            forever = False
    return forever
