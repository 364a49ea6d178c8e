"""What a script remembers in Python is found again, and put back, in another process that stands in the same place."""

import functools
import sys
import types

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
from tfdp.runtime.restarts import remembered  # noqa: E402 - it needs TensorFlow

Memory, words = remembered.Memory, remembered.words


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A function that makes a module of a script, under one name each time, as another process has it."""

    def made(text):
        path = tmp_path / "own_script.py"
        path.write_text(text)
        module = types.ModuleType("own_script")
        module.__file__ = str(path)
        # Not the tests' own modules, whichever have been run here before.
        monkeypatch.setattr(remembered, "_is_own_module", lambda each: getattr(each, "__name__", "") == "own_script")
        monkeypatch.setitem(sys.modules, "own_script", module)
        exec(compile(text, str(path), "exec"), vars(module))
        return module

    return made


def moved(own, text, trained):
    """The module of a process that has trained, and that of another one to which was put back what that remembers."""
    before = own(text)
    trained(before)
    known = Memory([], {})
    after = own(text)
    memory = Memory([], {})
    put, others = memory.differences(known.things, known.identities)
    memory.put_back(known.things, put)
    return before, after, [words(place[1:]) for place in others]


STATE = """
import collections, dataclasses, random
import numpy as np, tensorflow as tf

class Slots:
    __slots__ = ("a", "b")
    def __init__(self):
        self.a, self.b = 0, []

@dataclasses.dataclass
class Data:
    best: float = float("inf")
    seen: list = dataclasses.field(default_factory=list)

class Trainer:
    total = 0
    def __init__(self):
        self.history, self.slots, self.data, self.parts = [], Slots(), Data(), [Data(), Data()]
        self.by_name = {"a": Data()}

def counting():
    count, seen = 0, []
    def one():
        nonlocal count
        count += 1
        seen.append(count)
        return count
    return one

def remembering(value, before=[]):
    before.append(value)
    return list(before)

remembering.calls = 0
one = counting()
trainer = Trainer()
alias = trainer.history
number, text, nothing, array, scalar = 1, "a", None, np.zeros(3), np.float32(0)
table, queue, counter, lists = {}, collections.deque(maxlen=3), collections.Counter(), collections.defaultdict(list)
tensor, tensors = tf.zeros(2), []
generator, legacy, own = np.random.default_rng(1), np.random.RandomState(1), random.Random(1)
"""


def trained(module):
    one = module.trainer
    one.history += [1.0, 2.0]
    one.slots.a, one.data.best = 5, 0.25
    one.slots.b.append(3)
    one.parts[1].seen.append("x")
    one.by_name["a"].best = 7.0
    one.made_later = (1, [2])
    module.Trainer.total = 9
    module.one(), module.one()
    module.remembering(4)
    module.remembering.calls = 2
    module.number, module.text, module.nothing, module.later = 2, "b", {"now": [1]}, 3
    module.array[1], module.scalar = 4.0, np.float32(2)
    module.table[3] = {"x": np.ones(2)}
    module.queue.extend([1, 2, 3, 4])
    module.counter.update("aab")
    module.lists["k"].append(1)
    module.tensor, module.tensors = tf.ones(2) * 3, [tf.ones(1)]
    module.generator.normal(), module.legacy.normal(), module.own.random()


def said(module):
    """All of what it remembers, as text."""
    one = module.trainer
    parts = [vars(each) for each in (one.data, *one.parts, one.by_name["a"])]
    names = ("number", "text", "nothing", "later", "scalar", "table", "queue", "counter", "lists")
    return repr(
        [one.history, one.slots.a, one.slots.b, one.made_later, module.Trainer.total, parts]
        + [getattr(module, name) for name in names]
        + [module.array.tolist(), module.tensor.numpy(), [each.numpy() for each in module.tensors]]
        + [module.one(), module.remembering(0), module.remembering.calls]
        + [module.generator.normal(), module.legacy.normal(), module.own.random(), module.queue.maxlen]
    )


def test_all_that_is_plain_comes_back(own):
    before, after, others = moved(own, STATE, trained)
    assert others == []
    assert said(after) == said(before)
    assert after.alias is after.trainer.history  # in place: both names see it
    assert isinstance(after.lists["new"], list)


OTHERS = """
import numpy as np, tensorflow as tf
class Own:
    pass
model, big, models, kind, text = None, np.zeros(300_000), [Own()], Own(), "a"
class Layer(tf.keras.layers.Layer):
    steps = 0
layer = Layer(name="own")
layer.seen, layer._count, layer.built = 0, 0, False
plateau = tf.keras.callbacks.ReduceLROnPlateau()
"""


def test_what_cannot_be_put_back_is_named(own):
    def trained(module):
        module.model = module.Own()
        module.big[7] = 1
        module.models.append(module.Own())
        module.layer.seen, module.layer._count, module.layer.built = 3, 4, True
        module.plateau.wait = 2
        module.text = module.Own()

    _, after, others = moved(own, OTHERS, trained)
    assert sorted(others) == ["big", "model", "models.length", "plateau.wait", "text"]
    assert (after.layer.seen, after.layer._count, after.layer.built) == (3, 4, False)


NAMED = """
import collections, functools, queue
import numpy as np, tensorflow as tf

class Own:
    def __init__(self):
        self.count = 0

class Numbers(list):
    best = None

class Counting(tf.keras.layers.Layer):
    def __init__(self):
        super().__init__(name="counting")
        self.calls = 0

    def call(self, inputs):
        return inputs

def slow(): pass
def fast(): pass
def note(value, tracker=Own(), *, seen=[]):
    tracker.count += value
    seen.append(value)

one, two = Own(), Own()
stage, decay, table, numbers = one, slow, {"a": []}, Numbers()
inside = table["a"]
waiting, partly, user = queue.Queue(), functools.partial(max, []), collections.UserDict()
callbacks = tf.keras.callbacks.CallbackList([tf.keras.callbacks.EarlyStopping()])
model = tf.keras.Sequential([tf.keras.Input((1,)), Counting()])
"""


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("stage = two", ["stage"]),
        ("decay = fast", ["decay"]),
        ("inside.append(1)", ["inside", "table"]),  # they would be two when they are put back
        ("numbers.append(1)", ["numbers.length"]),
        ("numbers.best = 1", []),
        ("waiting.put(1)", ["waiting.queue", "waiting.unfinished_tasks"]),
        ("partly.args[0].append(1)", ["partly.all"]),
        ("user['a'] = 1", ["user.all"]),
        ("callbacks.callbacks[0].patience = 3", ["callbacks.EarlyStopping.patience"]),
        ("model.layers[-1].calls = 3", []),
        ("note(4)", []),
    ],
)
def test_what_is_elsewhere_is_put_back_or_named(change, named, own):
    before, after, others = moved(own, NAMED, lambda module: exec(change, vars(module)))
    assert set(named) <= set(others)
    assert bool(others) == bool(named)
    assert (after.note.__defaults__[0].count, after.note.__kwdefaults__) == (
        before.note.__defaults__[0].count,
        before.note.__kwdefaults__,
    )
    assert named or (after.numbers.best, after.model.layers[-1].calls) == (
        before.numbers.best,
        before.model.layers[-1].calls,
    )


def test_an_array_under_two_names_stays_one(own):
    text = "import numpy as np\nclass Own: pass\ntable = np.zeros(2)\none = Own()\none.table = table\n"
    _, after, others = moved(own, text, lambda module: np.add.at(module.table, 1, 5.0))
    assert others == []
    assert after.table is after.one.table
    assert after.table.tolist() == [0.0, 5.0]


def test_what_cannot_be_looked_into_is_known(own):
    own("class Own: pass\nkeys = {Own(): 1}\nparts = {Own()}\nnumbers = {1: 2}\n")
    assert [each for each in Memory([], {}).unknown if each.startswith("own_script")] == [
        "own_script.keys",
        "own_script.parts",
    ]


def test_names_of_running_functions_come_back_but_not_what_loops_give(own):
    loop = "for epoch in range(2):\n        stop()"
    text = f"def run(stop):\n    best, seen = 9.0, []\n    {loop}\n    return best, seen, epoch\n"
    kept = []

    def first():
        frame = sys._getframe(1)
        space = frame.f_locals
        space["seen"].append(len(kept))
        kept.append(Memory([frame], {frame: {"epoch"}}))

    before = own(text)
    before.run(functools.partial(first))  # into which nobody looks

    def second():
        frame = sys._getframe(1)
        memory = Memory([frame], {frame: {"epoch"}})
        put, others = memory.differences(kept[1].things, kept[1].identities)
        named.append(([words(each) for each in put], [words(each) for each in others]))
        memory.put_back(kept[1].things, put)

    named = []
    best, seen, epoch = own(text).run(functools.partial(second))
    assert named == [(["run().seen"], ["run().epoch"]), ([], [])]
    assert (best, seen, epoch) == (9.0, [0, 1], 1)


def test_iterators_are_known_by_where_they_are(own):
    module = own("numbers = iter([1, 2])\nown = (each for each in [1])\nfile = open(__file__)\n")
    found = Memory([], {}).iterators
    assert {words(place) for place, _ in found.values()} == {"own_script.numbers", "own_script.own"}
    module.file.close()


def test_equal_values_are_alike_whichever_of_their_parts_are_one_object(own):
    module = own("a = 'x' * 3\nshared = [a, a]\n")
    before = Memory([], {}).things["own_script", "shared"]
    module.shared = ["".join(["x"] * 3) for _ in range(2)]
    assert Memory([], {}).things["own_script", "shared"] == before
