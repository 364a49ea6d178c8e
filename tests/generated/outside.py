"""Fragments whose fault lies outside the step: seeds, weights of one's own beside a dataset, files."""

from __future__ import annotations

from fragments import arrays, data, data_of_tensors
from sketch import Sketch

_SEEDS = (
    ("", "None"),
    ("", "None"),
    ("import time", "int(time.time())"),
    ("import time", "time.time_ns() % 1000"),
    ("import os", "os.getpid()"),
    ("import uuid", "uuid.uuid4().int % 1000"),
    ("import secrets", "secrets.randbelow(1000)"),
    ("import random", "random.SystemRandom().randrange(1000)"),
    ("import os", "int.from_bytes(os.urandom(2), 'big')"),
    ("", "id(object()) % 1000"),
    ("import datetime", "datetime.datetime.now().microsecond"),
    ("import threading", "threading.get_native_id()"),
)
_HASHES = (("", "hash('a name') % 1000"), ("", "hash(('a', 'b')) % 1000"), ("", "abs(hash('SEED')) % 1000"))
_OWN_ORDERS = (
    ("", "[int(v) for v in set(str(i) for i in range({n}))]"),
    ("", "sorted(range({n}), key=lambda i: hash(str(i)))"),
    ("import secrets", "sorted(range({n}), key=lambda i: secrets.randbelow(1000))"),
    ("import random", "random.SystemRandom().sample(range({n}), {n})"),
    ("import uuid", "sorted(range({n}), key=lambda i: uuid.uuid4().int)"),
    ("import random", "random.Random().sample(range({n}), {n})"),
    ("import random", "random.Random(None).sample(range({n}), {n})"),
    ("import os", "np.argsort(np.frombuffer(os.urandom({n}), dtype='uint8'))"),
)
_PLAIN = ("inline", "constant", "dict", "unpacked", "function")  # where a seed stands; classes are a kind of their own
_GENERATORS = (
    "np.random.default_rng({seed})",
    "np.random.RandomState({seed})",
    "np.random.Generator(np.random.PCG64({seed}))",
)


def seed(s: Sketch) -> None:
    """Data chosen or changed by a generator that each process seeds for itself."""
    _seeded(s, s.pen.pick(_SEEDS))


def seed_of_a_hash(s: Sketch) -> None:
    """The same with the hash of a text, which is another one in each process."""
    _seeded(s, s.pen.pick(_HASHES))


def seed_of_a_class(s: Sketch) -> None:
    """The same with a number of this process that is an attribute of a class."""
    _seeded(s, s.pen.pick(_SEEDS[2:]), "attribute")


def _seeded(s: Sketch, made: tuple[str, str], *forms: str) -> None:
    pen, forms = s.pen, forms or _PLAIN
    x, y = arrays(s)
    imported, literal = made
    if imported:
        pen.imports.add(imported)
    chosen, n = pen.name("local"), s.batch * s.steps
    generator = "chance"
    if pen.pick((False, False, True)):
        s.data.append(f"np.random.seed({pen.number(literal, *forms)})")
        draw, normal = "np.random.permutation", "np.random.normal"
    else:
        s.data.append(
            f"{generator} = {pen.called(pen.pick(_GENERATORS).format(seed='{0}'), pen.number(literal, *forms))}"
        )
        draw, normal = f"{generator}.permutation", f"{generator}.normal"
    form = pen.pick(("order", "subset", "noise"))
    if form == "noise":
        s.data.append(f"{x} = ({x} + {normal}(size={x}.shape)).astype('float32')")
    else:
        rows = f"{draw}({n})" if form == "order" else f"np.sort({draw}(2 * {n})[:{n}])"
        if form == "subset":
            s.data.append(
                f"{x}, {y} = np.repeat({x}, 2, axis=0), np.repeat({y}, 2, axis=0)\n"
                f"{x} += np.arange(len({x}), dtype='float32')[:, None] * 0.001"
            )
        s.data += [f"{chosen} = {rows}", f"{x}, {y} = {x}[{chosen}], {y}[{chosen}]"]
    data_of_tensors(s, x, y, "tensors", "")


def own_order(s: Sketch) -> None:
    """An order of the data that each process has for itself."""
    x, y = arrays(s)
    imported, order = s.pen.pick(_OWN_ORDERS)
    if imported:
        s.pen.imports.add(imported)
    rows = s.pen.name("local")
    made = s.pen.called(order.format(n="{0}"), str(s.batch * s.steps))
    s.data += [f"{rows} = {made}", f"{x}, {y} = {x}[{rows}], {y}[{rows}]"]
    data_of_tensors(s, x, y, "tensors", "")


def order_of_each_epoch(s: Sketch) -> None:
    """Batches of the arrays in an order drawn in each epoch, by a generator that each process seeds for itself."""
    pen = s.pen
    x, y = arrays(s)
    imported, literal = pen.pick(_SEEDS)
    if imported:
        pen.imports.add(imported)
    s.shared = [x, y]
    n, rows, chance = str(s.batch), pen.name("local"), "chance"
    s.before.append(f"{chance} = {pen.called(pen.pick(_GENERATORS).format(seed='{0}'), pen.number(literal, *_PLAIN))}")
    s.before_epoch.append(
        pen.pick(
            (f"{rows} = {chance}.permutation(len({x}))", f"{rows} = np.arange(len({x}))\n{chance}.shuffle({rows})")
        )
    )
    taken = f"    {s.xb}, {s.yb} = {x}[{rows}[i:i + {n}]], {y}[{rows}[i:i + {n}]]"
    s.header = f"for i in range(0, len({x}), {n}):\n{taken}"


def zipped(s: Sketch) -> None:
    """Weights of examples, taken from an array in batches of one's own, beside a dataset's batches."""
    pen = s.pen
    data(s, forms=("tensors", "generator"))
    w, wb = pen.name("local"), pen.name("local")
    s.data.append(f"{w} = np.linspace(0.5, 1.5, {s.batch * s.steps}, dtype='float32')[:, None]")
    s.shared.append(w)
    n = s.batch_text if s.nesting in ("flat",) else str(s.batch)
    parts = pen.called(
        pen.pick(
            (
                "[{0}[i:i + " + n + "] for i in range(0, len({0}), " + n + ")]",
                f"np.array_split({{0}}, {s.steps})",
                f"{{0}}.reshape({s.steps}, {n}, 1)",
                f"np.split({{0}}, {s.steps})",
            )
        ),
        w,
    )
    pair, ds = f"{s.xb}, {s.yb}", s.source
    form = pen.pick(("zip", "next", "index", "pop"))
    if form == "zip":
        s.header = f"for ({pair}), {wb} in zip({ds}, {parts}):"
    elif form == "index":
        s.header = f"for i, ({pair}) in enumerate({ds}):\n    {wb} = {w}[i * {n}:(i + 1) * {n}]"
    elif form == "next":
        s.before_epoch.append(f"weights_of = iter({parts})")
        s.header = f"for {pair} in {ds}:\n    {wb} = next(weights_of)"
    else:
        s.before_epoch.append(f"weights_of = list({parts})")
        s.header = f"for {pair} in {ds}:\n    {wb} = weights_of.pop(0)"
    s.step_given.append(("row_weights", wb))
    s.loss = "tf.reduce_mean(row_weights * tf.square({0} - {1}))"


# What writes, its imports, and the statement; {0} is a number to keep, {1} the name of a file.
_KNOWN = (
    ("", "np.save({1}, np.array([{0}]))"),
    ("", "np.savetxt({1}, np.array([{0}]))"),
    ("import json", "json.dump([{0}], open({1}, 'w'))"),
    ("import pickle", "with open({1}, 'wb') as file:\n    pickle.dump({0}, file)"),
    ("import csv", "with open({1}, 'a', newline='') as file:\n    csv.writer(file).writerow([{0}])"),
    ("import pathlib", "pathlib.Path({1}).write_text(str({0}))"),
)
_UNKNOWN = (
    (
        "import sqlite3",
        "with sqlite3.connect({1}) as db:\n    db.execute('create table if not exists t (v real)')\n"
        "    db.execute('insert into t values (?)', ({0},))",
    ),
    ("", "kept = np.memmap({1}, dtype='float32', mode='w+', shape=(4,))\nkept[0] = {0}\nkept.flush()"),
    ("", "kept = np.lib.format.open_memmap({1}, mode='w+', dtype='float32', shape=(4,))\nkept[0] = {0}"),
    ("import shelve", "with shelve.open({1}) as db:\n    db['value'] = {0}"),
    ("import dbm.dumb", "with dbm.dumb.open({1}, 'c') as db:\n    db['value'] = str({0})"),
    ("import zipfile", "with zipfile.ZipFile({1}, 'w') as file:\n    file.writestr('value', str({0}))"),
    ("import gzip", "with gzip.open({1}, 'wt') as file:\n    file.write(str({0}))"),
    (
        "import os",
        "number = os.open({1}, os.O_CREAT | os.O_WRONLY)\nos.write(number, str({0}).encode())\nos.close(number)",
    ),
    ("import io", "file = io.FileIO({1}, 'w')\nfile.write(str({0}).encode())\nfile.close()"),
    ("import codecs", "with codecs.open({1}, 'w') as file:\n    file.write(str({0}))"),
    ("import mmap", "with open({1}, 'wb') as file:\n    file.truncate(64)"),
)


def known_writer(s: Sketch) -> None:
    """A file by a function that many scripts use."""
    _written(s, s.pen.pick(_KNOWN))


def unknown_writer(s: Sketch) -> None:
    """A file by a function that few scripts use."""
    _written(s, s.pen.pick(_UNKNOWN))


def _written(s: Sketch, what: tuple[str, str]) -> None:
    pen = s.pen
    imported, statement = what
    if imported:
        pen.imports.add(imported)
    file = pen.number(pen.pick(("'result.out'", "'values.bin'")))
    loop = bool(s.road not in ("fit", "train_step"))
    number = f"float({s.value})" if loop else f"float({s.m}.trainable_variables[0][0, 0])"
    if pen.maybe():
        name = pen.name("helper")
        lines = "\n".join(f"    {line}" for line in statement.format("v", "path").splitlines())
        pen.tops.append(f"def {name}(v, path={file}):\n{lines}")
        call = f"{name}({number})"
    else:
        call = statement.format(number, file)
    (pen.pick((s.after_epoch, s.after)) if loop else s.after).append(call)
