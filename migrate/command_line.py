"""Arguments as people type them: numbers of processes, and where a command's options end and the script's begin."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from .report.streams import say

if TYPE_CHECKING:
    from ..rules._base import Policy

PROCESSES = ("-np", "-n", "--np")
_BY_PYTHON = ("-m", "-c")  # `-m package.module` stands where a script may
_ATTACHED = re.compile(r"-n(\d+)")


class Batches(click.Choice[str]):
    """A batch mode; None for `auto`."""

    def __init__(self) -> None:
        super().__init__(["auto", "per-worker", "global"])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The mode."""
        chosen = super().convert(value, param, ctx)
        return None if chosen == "auto" else chosen


_POLICY: tuple[tuple[str, Any, Any, str], ...] = (
    (
        "--shard",
        click.Choice(["auto", "input", "calls"]),
        "auto",
        "calls: every worker runs the whole script, and its own rows of each model call: exact whatever the script "
        "says. input: each worker reads its share of the records and trains on it; for scripts of a closed vocabulary. "
        "auto: calls, but a script whose input was sharded before stays so.",
    ),
    (
        "--batch",
        Batches(),
        "auto",
        "per-worker: a step of N workers covers N of the script's batches, at N times its learning rate. "
        "global: the workers share the script's batch. auto: per-worker where the input is sharded, else global.",
    ),
    (
        "--lr-scale",
        click.Choice(["linear", "sqrt", "none"]),
        "linear",
        "The factor of learning rates for N workers: N, its square root, or 1. For --batch per-worker.",
    ),
    (
        "--warmup-steps",
        click.IntRange(min=0),
        0,
        "Raise the factor of learning rates from 1 over so many of the first steps. For --batch per-worker.",
    ),
)


def policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command that takes the options of a policy, as `tfdp migrate` does."""
    return _with_policy(command, lambda text: {"help": text, "show_default": True})


def same_policy_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same, with a word on where they are described."""
    return _with_policy(command, lambda _: {"help": "As in tfdp migrate."})


def _with_policy(command: Callable[..., Any], told: Callable[[str], dict[str, Any]]) -> Callable[..., Any]:
    for name, kind, default, text in reversed(_POLICY):
        command = click.option(name, type=kind, default=default, **told(text))(command)
    return command


def policy(ctx: click.Context, asked: dict[str, Any]) -> Policy:
    """The policy that these options make, which are taken out of `asked`."""
    from ..rules._base import Policy

    try:
        return Policy(**{field.name: asked.pop(field.name) for field in dataclasses.fields(Policy)})
    except ValueError as error:
        raise click.UsageError(str(error), ctx) from error


class Processes(click.IntRange):
    """A number of processes, or `auto`: as many as there are GPUs."""

    def __init__(self, least: int) -> None:
        super().__init__(min=least)
        self._least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number; what `auto` means here is said."""
        if value != "auto":
            return super().convert(value, param, ctx)
        from . import gpus

        number, reason = gpus.processes(self._least)
        say(f"tfdp: -np auto: {reason}: {number} process{'' if number == 1 else 'es'}")
        return number


class ScriptCommand(click.Command):
    """A command whose options end where the script begins: what comes after it is the script's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Of the command line: `-m` and `-c` begin what is run, and options of ours behind it are an error."""
        begins = self._script_at(args)
        own, script = args[:begins], args[begins:]
        if script[:1] != ["--"] and not any(_number_in([arg, ""]) is not None for arg in own):
            _check_order(ctx, own, script)
        if script[:1] and script[0] in _BY_PYTHON:
            script = ["--", *script]
        return super().parse_args(ctx, [*own, *script])

    def _script_at(self, args: list[str]) -> int:
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] not in ("-", "--", *_BY_PYTHON):
            at += 2 if self._takes_the_next(args[at]) else 1
        return min(at, len(args))

    def _takes_the_next(self, arg: str) -> bool:
        options = (param for param in self.params if isinstance(param, click.Option) and arg in param.opts)
        return any(not option.is_flag for option in options)


def _number_in(args: list[str]) -> str | None:
    """The number of processes that the first of the arguments gives, by itself or with the next one."""
    name, is_there, value = args[0].partition("=")
    if name in PROCESSES:
        return value if is_there else args[1]
    attached = _ATTACHED.fullmatch(args[0])
    return attached[1] if attached else None


def _check_order(ctx: click.Context, own: list[str], script: list[str]) -> None:
    """`tfdp run train.py -np 2`: without a number of processes the script would not start, and here is one."""
    for at in range(1, len(script)):
        number = _number_in([*script[at : at + 2], ""])
        if script[at] == "--":
            return
        if number is not None and (number.isdigit() or number == "auto"):
            rest = script[at + 1 :] if "=" in script[at] or _ATTACHED.fullmatch(script[at]) else script[at + 2 :]
            line = shlex.join(["tfdp", str(ctx.info_name), *own, "-np", number, *script[:at], *rest])
            raise click.UsageError(f"options for tfdp come before the script: {line}", ctx)
