"""Code of the script's own inside a call: each of its operations is seen, where a graph is built of it.

A look tries such code on one batch, and may miss what it does by the numbers, the length or a flag. In a graph Python
sees no numbers, and of its rows no lengths; so all that the code does with rows are the graph's operations, and of each
it must be known that it keeps rows apart. Layers of Keras' own inside are looked at by themselves.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple

import tensorflow as tf

from ..framework import only_reads
from . import carried, row_operations, sight, sizes
from .containers import holds_more
from .observed import observed, refuse_recorded
from .once import in_a_graph
from .row_operations import FROM_SIZES, Operation
from .sight import Draw
from .sizes import Count, Entry
from .ways import Way, followed


class Guard:
    """Sees what code does with rows of the batch, and with what follows from their number."""

    def __init__(self, refuse: Callable[[str], None], known: bool, eager: int | None) -> None:
        """`refuse` is told what is wrong, and raises an error.

        known: whether one process knows the batch's length. eager: that of the rows, where the code is to run eagerly.
        """
        self._refused, self._reason = refuse, ""
        self.hides, self.eager = known, eager
        self._rows: dict[int, tuple[Any, int]] = {}  # with how many there are for one of the batch
        self._sizes: dict[int, tuple[Any, list[Entry] | None]] = {}
        self._made: dict[int, Any] = {}  # also what is given
        self._paused = 0
        self._compiled = 0
        self._recorded: list[list[int]] = []

    def refuse(self, what: str) -> None:
        """It cannot be divided, whatever becomes of the error in the code that it is raised in."""
        self._reason = self._reason or what
        self._refused(what)

    def ended(self) -> None:
        """The code has ended."""
        if self._reason:
            self._refused(self._reason)

    def mark(self, tensor: Any, factor: int = 1) -> None:
        """It has so many rows for each of the batch, and so has what it carries."""
        for each in carried.all_of(tensor):
            self._rows[id(each)] = each, factor
            self._made[id(each)] = each

    def given(self, leaves: Sequence[Any]) -> None:
        """What the code is given is nothing that it takes from outside."""
        self._made.update((id(each), each) for each in leaves if tf.is_tensor(each))

    def factor(self, tensor: Any) -> int | None:
        """How many rows it has for each of the batch; None where it has none."""
        return self._rows.get(id(tensor), (None, None))[1]

    def is_size(self, tensor: Any) -> bool:
        """Whether it follows from the number of rows."""
        return id(tensor) in self._sizes

    def entries(self, shape: Any) -> list[Entry] | None:
        """The elements of a shape; None where they are not known."""
        parts = list(tf.TensorShape(shape)) if isinstance(shape, tf.TensorShape) else tf.nest.flatten(shape)
        found: list[Entry] = []
        for each in parts:
            known = self._sizes[id(each)][1] if self.is_size(each) else sizes.fixed(each)
            if known is None:
                return None
            found += known
        return found

    def of_layer(self, result: Any, factor: int) -> Any:
        """What a layer has given that was given rows."""
        if not tf.is_tensor(result):
            return result
        with self.paused():
            result = carried.moved(result, _hidden)
        self.mark(result, factor)
        return result

    @property
    def is_paused(self) -> bool:
        """Whether what is executed is known to be right."""
        return self._paused > 0

    def is_watched(self, tensor: Any) -> bool:
        """Whether it has rows that code of the script's own works with."""
        return not self._paused and id(tensor) in self._rows

    @contextlib.contextmanager
    def recorded(self) -> Iterator[list[int]]:
        """The operations that code of the script's own puts into a graph inside, with their settings and constants."""
        found: list[int] = []
        self._recorded.append(found)
        try:
            yield found
        finally:
            self._recorded.pop()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is executed inside is known to be right."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    @contextlib.contextmanager
    def compiled(self) -> Iterator[None]:
        """What is called inside is a `tf.function`, whose Python is in this graph."""
        self._compiled += 1
        try:
            yield
        finally:
            self._compiled -= 1

    def draws(self, draw: Draw) -> None:
        """A draw inside a `tf.function` has the seeds and the state of one there."""
        if self._compiled and draw.has_state:
            self.refuse(f"draws in a tf.function that it calls ({draw.kind})")

    def seen(self, kind: str | bytes, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any) -> None:
        """An operation has been put into a graph, or executed."""
        outside = [each for each in inputs if id(each) not in self._made]
        self._made.update((id(each), each) for each in outputs)
        if self._paused:
            return
        if self._recorded:
            said = hash((kind, *map(_said, attrs or ())))
            for each in self._recorded:
                each.append(said)
        refuse_recorded(outside, self.refuse)
        name = kind.decode() if isinstance(kind, bytes) else kind
        here = sight.now()
        if here is not None:
            here.executes(name, inputs)
        factors = [self.factor(each) for each in inputs]
        held = [self._sizes.get(id(each)) for each in inputs]
        if name == "Rank" or not (any(held) or any(factors)):
            return
        if not only_reads(name):
            self.refuse(f"does more than to compute with rows or their number (operation {name})")
        known = [None if each is None else each[1] or [None] for each in held]
        if name == "IdentityN":
            self._pass_on(inputs, outputs)
        elif name in ("Shape", "Size") and any(factors):
            made = sizes.shape_of if name == "Shape" else sizes.number_of
            self._sizes[id(outputs[0])] = outputs[0], made(inputs[0], factors[0] or 1)
        elif any(factors) or name in FROM_SIZES:
            found = row_operations.factor(Operation(name, list(inputs), _named(attrs), list(outputs), factors, known))
            if found is None:
                self.refuse(f"does what may mix rows (operation {name})")
            for each in outputs:
                self.mark(each, found or 1)
        else:
            self._follow(name, inputs, known, _named(attrs), outputs)

    def _follow(self, name: str, inputs: Any, known: Any, attrs: Any, outputs: Any) -> None:
        entries = sizes.followed(name, inputs, known, attrs) if len(outputs) == 1 else None
        if not sizes.are_fixed(entries):
            self._sizes.update((id(each), (each, entries)) for each in outputs)

    def _pass_on(self, inputs: Any, outputs: Any) -> None:
        for given, found in zip(inputs, outputs, strict=True):
            if id(given) in self._rows:
                self.mark(found, self._rows[id(given)][1])
            elif self.is_size(given):
                self._sizes[id(found)] = found, self._sizes[id(given)][1]


class _Thread(threading.local):
    guard: Guard | None = None


_thread = _Thread()


def now() -> Guard | None:
    """The guard of the code that this thread is in."""
    return _thread.guard


def is_seeing() -> bool:
    """Whether this thread is in code of the script's own, and not in a layer of Keras' own that it calls."""
    guard = now()
    return guard is not None and not guard.is_paused


class Nested(NamedTuple):
    """A call of a layer of Keras' own inside code of the script's own: by what it is known, and what a look needs."""

    key: Any
    layer: Any
    name: str
    call: Callable[..., Any]
    kept: Callable[[], Any]
    structure: Any
    by_rows: tuple[bool, ...]


class Code(NamedTuple):
    """Code of the script's own, or other code that is seen operation by operation.

    owner: whose it is. entry: the layer or function that is called, if there is any of the script's in it. beside:
    functions that may be called besides. codes: of all functions of the script's that it comes to, by what tells them
    apart, once that is known.
    """

    owner: Any
    entry: Any = None
    beside: Sequence[Any] = ()
    codes: Mapping[int, CodeType] = {}


def guarded(code: Code, call: Callable[..., Any], arguments: Any, options: Any) -> Any:
    """`call(*arguments, **options)`, each operation of which is seen. The thread has a sight."""
    eagerly, length = tf.executing_eagerly(), sight.rows()[0].shape[0]
    built = functools.partial(built_of, call, length=length, eagerly=eagerly)
    return in_a_graph(code.owner, built, arguments, options) if eagerly else built(arguments, options)


def built_of(call: Callable[..., Any], arguments: Any, options: Any, *, length: int | None, eagerly: bool) -> Any:
    """The same in a graph.

    length: how many rows there are, where it is known. eagerly: whether what is built is to be called so: then
    AutoGraph changes nothing of it.
    """
    here = sight.now()
    assert here is not None
    guard = Guard(here.refuse, length is not None, length if eagerly else None)
    call = tf.autograph.experimental.do_not_convert(call) if eagerly else call
    hidden = {id(each): carried.moved(each, _hidden) for each in sight.rows()}
    for each in hidden.values():
        guard.mark(each)
    leaves = [hidden.get(id(each), each) for each in tf.nest.flatten((arguments, options))]
    guard.given(leaves)
    arguments, options = tf.nest.pack_sequence_as((arguments, options), leaves)
    before, _thread.guard = _thread.guard, guard
    try:
        with observed(guard.seen), followed() as codes, guard.recorded() as operations:
            results = call(*arguments, **options)
    finally:
        _thread.guard = before
    guard.ended()
    if more := holds_more(results):
        here.refuse(f"gives a {more}")
    flat = tf.nest.flatten(results)
    if any(map(guard.is_size, flat)):
        here.refuse("gives what follows from the number of rows")
    if any(map(carried.is_marked, flat)):
        here.refuse("gives a tensor with an attribute of the script's own")
    factors = [guard.factor(each) or 0 for each in flat]
    here.gives(factors, Way(codes, operations), parts_ways=eagerly and _is_one_made_of_another(flat))
    rows = {id(each): each for each in sight.rows()}
    given = {id(each): rows[key] for key, each in hidden.items()}
    return tf.nest.pack_sequence_as(results, [given.get(id(each), each) for each in flat])


def _is_one_made_of_another(results: Sequence[Any]) -> bool:
    """Whether in the graph one of the results leads to another one."""
    ends = {each.op for each in results if isinstance(each, tf.Tensor)}
    waiting, seen = [each for end in ends for each in end.inputs], set()
    while waiting:
        made_by = waiting.pop().op
        if made_by in ends and made_by.type != "Placeholder":
            return True
        if made_by not in seen:
            seen.add(made_by)
            waiting += made_by.inputs
    return False


def of_layer(nested: Callable[[tuple[bool, ...]], Nested], call: Callable[[], Any], given: Any) -> Any:
    """What a layer of Keras' own gives inside code of the script's own: rows, if it is given any. The thread is in such
    code; layers inside of this one are no others.

    nested: the call, by which leaves of what it is given have rows.
    """
    guard, here = now(), sight.now()
    assert guard is not None
    assert here is not None
    leaves = tf.nest.flatten(given)
    if any(map(guard.is_size, leaves)):
        guard.refuse("gives a layer what follows from the number of rows")
    factors = [guard.factor(each) for each in leaves]
    found = {each for each in factors if each}
    if len(found) > 1:
        guard.refuse("gives a layer rows of several kinds")
    if found:
        here.meets(nested(tuple(each is not None for each in factors)))
    with guard.paused():
        results = call()
    return tf.nest.map_structure(lambda each: guard.of_layer(each, *found), results) if found else results


def looked_up(rows: Any, look_up: Callable[[], Any]) -> Any:
    """What is looked up for each of the rows, by exchanges of the runtime's own."""
    guard = now()
    factor = None if guard is None or guard.is_paused else guard.factor(rows)
    if guard is None or factor is None:
        return look_up()
    with guard.paused():
        found = look_up()
    return guard.of_layer(found, factor)


def drawn(draw: Draw) -> Any:
    """What is drawn inside a call."""
    guard, here = now(), sight.now()
    assert here is not None
    if guard is not None:
        guard.draws(draw)
    if guard is None or guard.is_paused:
        return here.drawn(draw)
    if any(guard.is_size(each) or guard.factor(each) for each in tf.nest.flatten(draw.given)):
        guard.refuse("draws by a bound or seed that follows from the rows or their number")
    entries = guard.entries(draw.shape)
    first = entries[0] if entries else None
    if not sizes.are_fixed(entries) and not isinstance(first, Count):
        guard.refuse("draws by the number of rows, and not for each of them")
    with guard.paused():
        found = _eagerly(here, draw, entries or [], guard.eager) if guard.eager and draw.has_state else here.drawn(draw)
        # Numbers of an eager draw become a graph's constants: here, where those of a look are not compared with them.
        found = tf.identity(found) if sizes.are_fixed(entries) else _hidden(found)
        if entries:
            found.set_shape([None, *(each if isinstance(each, int) else None for each in entries[1:])])
    if isinstance(first, Count):
        guard.mark(found, first.times)
    return found


def _eagerly(here: Any, draw: Draw, entries: list[Entry], length: int) -> Any:
    """What one process draws then: the state of an eager draw is not that of one in a graph."""
    here.spends()
    with tf.init_scope():
        shape = [each.times * length if isinstance(each, Count) else each for each in entries]
        return here.drawn(draw._replace(shape=tf.constant(shape, tf.int32)))


def is_eager() -> bool:
    """Whether a graph is built of code of the script's own that is to run eagerly."""
    guard = now()
    return guard is not None and guard.eager is not None


def _hidden(rows: Any) -> Any:
    """The same rows, of which Python does not know how many there are."""
    if not rows.shape.rank or rows.shape[0] is None:
        return rows
    return tf.raw_ops.PlaceholderWithDefault(input=rows, shape=[None, *rows.shape[1:]])


def _said(attribute: Any) -> Any:
    """As it can be compared; not names of functions, which are numbered."""
    serialized = getattr(attribute, "SerializeToString", None)
    if serialized is None:
        return tuple(attribute) if isinstance(attribute, list) else attribute
    return None if attribute.HasField("func") else serialized(deterministic=True)


def _named(attrs: Any) -> dict[str, Any]:
    flat = list(attrs or ())
    names = [each.decode() if isinstance(each, bytes) else each for each in flat[::2]]
    return {name: _attribute(value) for name, value in zip(names, flat[1::2], strict=True)}


def _attribute(value: Any) -> Any:
    """Of an operation of a graph: flags, integers, texts and lists of integers; others as they are."""
    kind = value.WhichOneof("value") if hasattr(value, "WhichOneof") else None
    if kind == "list":
        return list(value.list.i)
    return getattr(value, kind) if kind in ("b", "i", "s") else value
