"""What was understood of a script, for a person: `tfdp facts PATH`."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from .program import quoted
from .script import Script


def describe(script: Script) -> str:
    """One line for each fact, with its place; ends with what was not understood."""
    return "\n".join(_lines(script)) + "\n"


def _lines(script: Script) -> Iterator[str]:
    def at(node: cst.CSTNode) -> str:
        return f"line {script.position(node)[0]}"

    def text(node: cst.CSTNode | None) -> str:
        code = script.index.code(node) if node is not None else "?"
        line = " ".join(code.split())
        return line if len(line) <= 72 else line[:69] + "..."

    if not script.trains:
        yield "not a training script: no gradient of a tape reaches an update, and no model is fitted"
        return
    yield from _of_gradients(script, at, text)
    yield from _of_keras(script, at, text)
    for rate in script.rates:
        value = text(rate.value) if rate.value is not None else f"{rate.default} (default)"
        done = " (scaled)" if rate.scaled else ""
        yield f"rate      {at(rate.call)}: {rate.keyword} = {value}{done} in {text(rate.call)}"
    for chain in script.chains:
        source = chain.links[0].call
        assert source is not None
        stages = "".join(f".{link.stage}()" for link in chain.links[1:])
        yield f"data      {at(source)}: {text(source)}{stages}{' (sharded)' if chain.sharded is not None else ''}"
    for point in script.shard_points:
        yield f"  shard    {at(point.node)}: around {text(point.node)}"
    for loop in script.loops:
        head = loop.loop
        runs = (
            f"for {text(head.target)} in {text(head.iter)}" if isinstance(head, cst.For) else f"while {text(head.test)}"
        )
        yield f"loop      {at(head)}: {runs}"
        place, names = script.state(loop)
        yield f"  state   {at(place)}: {', '.join(names) if names else 'all variables'} before this"
    outside = script.outside_vocabulary
    on_input = script.on_input
    for effect in (script if on_input else script.on_calls).written.effects:
        yield f"effect    {at(effect.call)}: {text(effect.call)} ({effect.kind.value})"
    yield f"road      sharded {'input' if on_input else 'calls'}"
    if not on_input and not script.shards_calls:
        why = "all its words are in the vocabulary" if outside is None else f"no: {at(outside.node)}: {outside.reason}"
        yield f"  --shard input: {why}"
    if (kept := script.unwidened) is not None:
        yield f"batch     the script's own: {at(kept.node)}: {kept.code} {kept.reason}"
    elif not on_input:
        yield "batch     the script's own, or with --batch per-worker that of all workers"
    for problem in script.problems("per-worker") if on_input else script.on_calls.problems:
        yield f"problem   {at(problem.node)}: {problem.code} {problem.headline or problem.reason}"
        for depth, because in enumerate(problem.because.links if problem.because is not None else (), 1):
            yield f"{'  ' * depth}because {at(because.node)}: {quoted(script.index, because.node)} {because.reason}"


def _of_gradients(
    script: Script, at: Callable[[cst.CSTNode], str], text: Callable[[cst.CSTNode | None], str]
) -> Iterator[str]:
    for gradient in script.gradients:
        role = "averaged" if gradient.wrapped else "trained" if gradient.updates else "local"
        yield f"gradient  {at(gradient.call)}: {text(gradient.call)} ({role})"
        for update in gradient.updates:
            yield f"  update  {at(update.call)}: {text(update.call)} ({update.kind})"


def _of_keras(
    script: Script, at: Callable[[cst.CSTNode], str], text: Callable[[cst.CSTNode | None], str]
) -> Iterator[str]:
    for fit in script.fitted.by_keras:
        yield f"fit       {at(fit.call)}: {text(fit.call)}"
        yield from (f"  compile {at(c.call)}: {text(c.call)}" for c in fit.compiles)
    for given in [u.given for u in script.fitted.averaging.updates]:
        if (place := given.value or given.call) is not None:
            shown = text(given.value) if given.value is not None else given.default
            yield f"optimizer {at(place)}: {shown} ({'averaged' if given.done else 'trained'})"
