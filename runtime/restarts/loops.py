"""Loops of the script's own: where it saves a `tf.train.Checkpoint` of its own, and restores it in a process that was
started again, it goes on there as if it had never stopped.

With each checkpoint all is kept that the script's own does not hold: every variable, the generators, how often data
were shuffled; and with the first step after it what the script remembers, and where it is. When the checkpoint is
restored the first half is put back; at the first step after that the script is to be where it was, with the same
variables and results, and the second half is put back. Where anything else is there than was, the job ends.
"""

from __future__ import annotations

import atexit
import collections
import functools
import gc
import os
import pathlib
import pickle
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any

import tensorflow as tf

from ..foundation import Inside, TfdpError, is_elsewhere, say_once, uncaught
from ..job import current, end_badly
from . import fits, folder, rounds, state
from .folder import FOLDER, LoopBackup
from .iterators import Order, Reads
from .numbered import Key, Numbered
from .remembered import Memory, Place, Thing, is_read, words
from .standing import Kept, Standing, difference, lines_before, own_frames, places, where

_AT_ONCE, _MOST_STEPS = 8, 20_000  # how many variables are noted after each step; after how many since the last backup
_ADVICE = "Start it without --max-restarts, by hand"


class _Thread(threading.local):
    calls: tuple[Any, ...] = ()  # the compiled functions that are being called, the outermost first


class _Loops:
    """What this process knows of its loops. It is made before the script's first line."""

    def __init__(self) -> None:
        self.folder = pathlib.Path(os.environ[FOLDER])
        self.backup = folder.read_loop(self.folder)
        self.saved_before = folder.saves(self.folder)
        self.kept = Kept(Numbered(), Order(), Reads())
        self.unknown = ""  # why nothing is kept from now on
        self.number = 0  # of checkpoints from which it could go on
        self.furthest = self.backup.number if self.backup is not None else 0  # the same, of any process
        self.saved: _Saved | None = None
        self.going_on: LoopBackup | None = None
        self.awaited: dict[Key, Any] = {}  # what variables had that are yet to be made
        self.late: list[Key] = []  # those of them that have been made
        self.things: Mapping[Place, Thing] = {}  # what the script has remembered after the last checkpoint
        self.steps_made = 0  # outside of `fit`
        self.steps_before = folder.steps(self.folder)  # what the variables were after some of them
        self.steps: weakref.WeakSet[Any] = weakref.WeakSet()  # compiled functions that take gradients

    def refuse(self, reason: str) -> None:
        """What was saved last is not kept, which is said."""
        self.saved = None
        say_once(f"after a restart the script's own loop does not go on from this checkpoint: {reason}")


class _Saved:
    """The state when a checkpoint had been saved."""

    def __init__(self, paths: list[str], loops: _Loops, frame: FrameType | None) -> None:
        self.paths = paths
        self.marks = rounds.Marks(frame)
        held = loops.kept.variables.living()
        self.values = dict(enumerate(state.values_of(held).values()))
        self.about = {
            **state.drawn(),
            "keys": list(held),
            "counts": loops.kept.order.living(),
        }
        memory = Memory(own_frames(frame), {}, with_values=False)
        self.about["own draws"] = memory.draws()
        self.iterators = memory.iterators
        self.taken = {key: loops.kept.reads.taken(each) for key, (_, each) in self.iterators.items()}


_known: list[_Loops] = []
_thread = _Thread()
_in_hook = Inside()  # in a hook's own doing


def keep_loops() -> None:
    """From now on."""
    _known.append(_Loops())
    checkpoint, manager = tf.train.Checkpoint, tf.train.CheckpointManager
    for owner, name in ((checkpoint, "save"), (checkpoint, "write"), (manager, "save")):
        setattr(owner, name, _saving(getattr(owner, name)))
    for name in ("read", "restore"):
        setattr(checkpoint, name, _restoring(getattr(checkpoint, name)))
    tf.GradientTape.gradient = _taking(tf.GradientTape.gradient)
    _watch_calls()
    atexit.register(_at_the_end)


def compiled(reason: str) -> None:
    """A function is complete; why what it keeps could not be put back, empty where it could."""
    if not fits.is_inside():
        _known[0].unknown = _known[0].unknown or reason


def made(variable: Any) -> None:
    """A variable is made: with what it had, where it was there when the checkpoint was saved."""
    loops = _known[0]
    key = loops.kept.variables.made(variable)
    if key in loops.awaited:
        state.give(variable, loops.awaited.pop(key))
        loops.late.append(key)


def _is_of_script_now() -> bool:
    return not _in_hook and not is_elsewhere() and tf.executing_eagerly()


def _saving(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def save(self: Any, *arguments: Any, **options: Any) -> Any:
        if not _is_of_script_now() or fits.is_inside():
            return original(self, *arguments, **options)
        with _in_hook.entered():
            found = original(self, *arguments, **options)
            if found is not None:
                _keep_the_first_half(_key(found), options.get("options"), sys._getframe(1))
            return found

    return save


def _keep_the_first_half(path: str, options: Any, frame: FrameType) -> None:
    loops = _known[0]
    loops.saved_before.discard(path)  # what is restored from now on is this process's own
    if loops.going_on is None and loops.awaited:
        raise _other(f"{next(iter(loops.awaited))[0].name} was made before, and was not made again")
    if current().topology.rank > 0:
        return
    folder.note_save(loops.folder, path)
    if loops.going_on is not None:
        return
    earlier = loops.saved.paths if loops.saved is not None else []
    try:
        if getattr(options, "enable_async", False) or getattr(options, "experimental_enable_async_checkpoint", False):
            raise rounds.UnknownRound("it is written while the training goes on")
        gc.collect()  # what is gone and still there would be taken for there
        loops.saved = _Saved([*earlier, path], loops, frame)
    except Exception as error:  # whatever the script's objects do where they are looked at
        loops.refuse(_said(error))


def _restoring(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def restore(self: Any, save_path: Any, *arguments: Any, **options: Any) -> Any:
        found = original(self, save_path, *arguments, **options)
        if save_path is not None and not _in_hook and not is_elsewhere():
            _put_the_first_half_back(_key(save_path), sys._getframe(1))
        return found

    return restore


def _put_the_first_half_back(path: str, frame: FrameType) -> None:
    loops = _known[0]
    if path not in loops.saved_before:
        return
    if loops.backup is None or path not in loops.backup.paths:
        last = "none" if loops.backup is None else loops.backup.paths[-1]
        raise _other(f"it restores {path}, and the last checkpoint that it could go on from is {last}")
    found = loops.going_on = loops.backup
    state.draw_on(found.about)
    Memory(own_frames(frame), {}, with_values=False).draw_on(found.about["own draws"])
    there = loops.kept.variables.living()
    for key, value in zip(found.about["keys"], found.values.values(), strict=True):
        if key in there:
            state.give(there[key], value)
        elif key in found.about["then"]["variables"] and key[1] >= loops.kept.variables.counts.get(key[0], 0):
            loops.awaited[key] = value
    counts = collections.Counter(found.about["counts"])
    for number, stages in found.about["read stages"].items():
        if number >= loops.kept.order.iterators:  # it is yet to be made, and counts by itself then
            counts.subtract(stages)
    loops.kept.order.owe(counts)
    loops.kept.reads.owe(found.about["reads"])
    fits.leave_alone()


def _taking(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def gradient(self: Any, *arguments: Any, **options: Any) -> Any:
        found = original(self, *arguments, **options)
        if not tf.executing_eagerly():
            _known[0].steps.update(_thread.calls[:1])
        elif _is_of_script_now():
            _stepped(found, sys._getframe(1))
        return found

    return gradient


def _watch_calls() -> None:
    """The class of what `tf.function` gives is private."""
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    function = polymorphic_function.Function
    original = function.__call__

    @functools.wraps(original)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        before = _thread.calls
        _thread.calls = (*before, self)
        for each in (*arguments, *options.values()):
            if isinstance(each, tf.data.Iterator):
                _known[0].kept.reads.given_away(each)
        try:
            found = original(self, *arguments, **options)
        finally:
            _thread.calls = before
        if not before and self in _known[0].steps and _is_of_script_now():
            _stepped(found, sys._getframe(1))
        return found

    function.__call__ = called


def _stepped(result: Any, frame: FrameType) -> None:
    """After each step: a gradient that was taken, or a call of a compiled function that takes some."""
    loops = _known[0]
    loops.steps_made += not fits.is_inside()
    if fits.is_inside() and loops.saved is None and loops.going_on is None:
        return
    with _in_hook.entered():
        if loops.going_on is not None:
            _put_the_second_half_back(loops, result, frame)
        elif loops.saved is not None:
            _keep_the_second_half(loops, result, frame)
        elif current().topology.rank == 0:
            _compare_a_step(loops, frame)


def _keep_the_second_half(loops: _Loops, result: Any, frame: FrameType) -> None:
    saved, loops.saved = loops.saved, None
    assert saved is not None
    try:
        gc.collect()
        now = Standing(loops.kept, result, frame, lines_before(frame, saved.marks))
        reads = dict(_taken_until(saved, key) for key in now.memory.iterators if key in saved.iterators)
        unknown = f"{now.memory.unknown[0]} cannot be looked into" if now.memory.unknown else ""
        begun = {f"{n} " for n, line in enumerate(now.about["before"]) if line is None}  # their names are given anew
        changed = [
            place
            for place, thing in now.memory.things.items()
            if thing.anew and loops.things.get(place, thing) != thing and not str(place[0]).startswith(tuple(begun))
        ]
        loops.things = now.memory.things
        if reason := loops.unknown or loops.kept.order.unknown(reads) or unknown or _read_already(changed, frame):
            raise rounds.UnknownRound(reason)
        about = {
            **saved.about,
            "reads": reads,
            "read stages": loops.kept.order.stages_of(reads),
            "then": {**now.about, "steps": loops.steps_made},
        }
        loops.number += 1
        if loops.number > loops.furthest:  # else it has begun anew
            folder.write_loop(loops.folder, LoopBackup(loops.number, saved.paths, saved.values, about))
            loops.furthest = loops.number
            loops.steps_before = {n: each for n, each in loops.steps_before.items() if folder.is_for_good(n)}
    except Exception as error:  # as above, and where there is no room
        loops.refuse(_said(error))
    finally:
        saved.marks.clear(frame)


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, rounds.UnknownRound) else f"{type(error).__name__}: {error}"


def _taken_until(saved: _Saved, key: int) -> tuple[int, int]:
    """Of an iterator that was there then and is still: which one it is, and what was taken of it until then."""
    if (found := saved.taken[key]) is not None:
        return found
    place, one = saved.iterators[key]
    raise rounds.UnknownRound(
        f"{words(place)} is a {type(one).__name__}, which goes on, and there is no knowing where it is"
    )


def _put_the_second_half_back(loops: _Loops, result: Any, frame: FrameType) -> None:
    found, loops.going_on, loops.backup = loops.going_on, None, None
    assert found is not None
    loops.saved_before.clear()
    loops.number = found.number
    loops.steps_made = found.about["then"]["steps"]
    then, stack = found.about["then"], own_frames(frame)
    if places(stack) != then["stack"]:
        raise _other(
            f"the first step after {found.paths[-1]} was made at {where(then['stack'])}, and is at "
            f"{where(places(stack))} now"
        )
    now = Standing(loops.kept, result, frame, then["before"])
    _correct_late_ones(loops, then, now)
    loops.kept.order.settle()
    loops.kept.reads.settle()
    put, others = now.memory.differences(then["things"], then["identities"])
    key = f"what the script remembers/{found.number}"
    if current().topology.rank == 0:
        if differs := difference(then, now.about, set(found.about["keys"]), loops.awaited.keys()):
            raise _other(differs)
        if others:
            raise _other(f"{words(others[0])} is not what it was, and cannot be put back")
        if used := _read_already([each for each in put if then["things"][each].anew], frame):
            raise _other(used)
        current().store.publish(key, pickle.dumps(put))
    elif current().topology.size > 1:  # a rank has names of its own, such as for its number
        put = pickle.loads(current().store.fetch(key, publisher=0))
    now.memory.put_back(then["things"], put)
    if current().topology.rank == 0:
        path = found.paths[-1]
        print(f"tfdp: the script's loop goes on after {path}, as before the restart", file=sys.stderr, flush=True)


def _read_already(places: Iterable[Place], frame: FrameType) -> str:
    """Which of these can be put back no more, in words; empty for none."""
    loaded = [rounds.loaded_in(each) for each in own_frames(frame)]
    used = next((words(each) for each in places if is_read(each, loaded)), "")
    return used and f"{used} is read in the statement that makes the step, before it: make the step in one of its own"


def _correct_late_ones(loops: _Loops, then: dict[str, Any], now: Standing) -> None:
    """Metrics that the step has made: what has emptied them the first time, at the beginning of a `fit`, was before."""
    there = loops.kept.variables.given(loops.late)
    for key, variable in there.items():
        if key in then["small"] and now.about["variables"][key] != then["variables"][key]:
            state.give(variable, then["small"][key])
            now.about["variables"][key] = then["variables"][key]
    loops.late = []


def _compare_a_step(loops: _Loops, frame: FrameType) -> None:
    """Whether it goes or begins anew, what a process does again is to have the same results: a script that loads files
    that it has written itself does something else."""
    number = loops.steps_made
    before = loops.steps_before.get(number)
    if before is None:
        if len(loops.steps_before) < _MOST_STEPS:
            variables = loops.kept.variables
            some = variables.living() if folder.is_for_good(number) else variables.some(number * _AT_ONCE, _AT_ONCE)
            loops.steps_before[number] = state.prints_of(some)
            folder.note_step(loops.folder, loops.furthest, number, loops.steps_before[number])
        return
    there = loops.kept.variables.given(before)
    now = state.prints_of(there)
    if differs := next((key for key in there if now[key] != before[key]), None):
        raise _other(
            f"{differs[0].name} is not what it was after {number} steps ({where(places(own_frames(frame)))}; does it "
            "load a file that it has written itself?)"
        )


def _other(what: str) -> TfdpError:
    return TfdpError(
        f"the script cannot go on after the restart: {what}. What it does must be the same each time, but that it "
        f"restores its last checkpoint and begins its loop there. {_ADVICE}"
    )


def _key(path: Any) -> str:
    return os.path.realpath(str(path))


def _at_the_end() -> None:
    loops = _known[0]
    if uncaught() is not None or current().topology.rank > 0:
        return
    if loops.going_on is not None:
        path = loops.going_on.paths[-1]
        end_badly(f"the script has restored {path}, after which it made steps before the restart, and has made none")
    elif loops.awaited:
        end_badly(f"{next(iter(loops.awaited))[0].name} was made before the restart, and was not made again")
