"""Ways in which a number of one step reaches a later one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sketch import Sketch

_CLASS = """\
class {owner}:
    def __init__(self):
        self.{name} = 2.0

    def keep(self, v):
        self.{name} = v

    {decorated}def now(self):
        return self.{name}"""


def carried(s: Sketch, number: str, where: list[str], forms: Sequence[str] = ("itself", "name", "list")) -> str:
    """An expression that, once the statements added to `where` have run, gives the last `number`; 2.0 before."""
    return CARRIERS[s.pen.pick(forms)](s, number, where)


def _itself(s: Sketch, number: str, where: list[str]) -> str:
    if number != s.value:
        return _name(s, number, where)
    if f"{number} = 2.0" not in s.before:
        s.before.append(f"{number} = 2.0")
    return number


def _name(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f"{name} = 2.0")
    where.append(
        s.pen.pick((f"{name} = {number}", f"{name} = 0.9 * {name} + 0.1 * float({number})", f"{name}, _ = {number}, 0"))
    )
    return name


def _list(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f"{name} = [2.0]")
    where.append(
        s.pen.pick(
            (f"{name}.append(float({number}))", f"{name} += [float({number})]", f"{name}.insert(0, float({number}))")
        )
    )
    return s.pen.pick(
        (f"{name}[-1]", f"min({name})", f"(sum({name}) / len({name}))", f"sorted({name})[0]", f"max({name}[-3:])")
    )


def _dict(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f'{name} = {{"last": 2.0}}')
    where.append(
        s.pen.pick((f'{name}["last"] = {number}', f"{name}.update(last={number})", f'{name} |= {{"last": {number}}}'))
    )
    return s.pen.pick((f'{name}["last"]', f'{name}.get("last", 2.0)', f"list({name}.values())[0]"))


def _array(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f"{name} = np.full(3, 2.0)")
    where.append(
        s.pen.pick(
            (f"{name}[0] = {number}", f"{name}[:] = float({number})", f"{name} *= 0.0\n{name} += float({number})")
        )
    )
    return s.pen.pick((f"float({name}[0])", f"float({name}.min())", f"float(np.mean({name}))"))


def _object(s: Sketch, number: str, where: list[str], decorated: str = "") -> str:
    owner, name = s.pen.name("class"), s.pen.pick(("last", "seen", "value_now"))
    s.pen.tops.append(_CLASS.format(owner=owner, name=name, decorated=decorated))
    kept = f"{owner.lower()}_kept"
    s.before.append(f"{kept} = {owner}()")
    where.append(s.pen.pick((f"{kept}.keep({number})", f"{kept}.{name} = {number}")))
    if decorated:
        return f"{kept}.now"
    return s.pen.pick((f"{kept}.now()", f"{kept}.{name}", f'getattr({kept}, "{name}")'))


def _property(s: Sketch, number: str, where: list[str]) -> str:
    return _object(s, number, where, "@property\n    ")


def _variable(s: Sketch, number: str, where: list[str]) -> str:
    name = f"kept_{s.value}"
    s.pen.tops.append(f"{name} = tf.Variable(2.0, trainable=False)")
    where.append(f"{name}.assign({number})")
    return s.pen.pick((f"float({name})", f"float({name}.numpy())", f"float({name}.value())"))


def _global(s: Sketch, number: str, where: list[str]) -> str:
    name, keep = f"last_{s.value}", s.pen.name("helper")
    s.pen.tops.append(f"{name} = 2.0\n\n\ndef {keep}(v):\n    global {name}\n    {name} = float(v)")
    where.append(f"{keep}({number})")
    if s.pen.maybe():
        return name
    read = s.pen.name("helper")
    s.pen.tops.append(f"def {read}():\n    return {name}")
    return f"{read}()"


def _closure(s: Sketch, number: str, where: list[str]) -> str:
    make, keep, read = s.pen.name("helper"), s.pen.name("helper"), s.pen.name("helper")
    s.pen.tops.append(
        f"def {make}():\n    last = 2.0\n\n    def keep(v):\n        nonlocal last\n        last = float(v)\n\n"
        "    def read():\n        return last\n\n    return keep, read"
    )
    s.before.append(f"{keep}, {read} = {make}()")
    where.append(f"{keep}({number})")
    return f"{read}()"


def _deque(s: Sketch, number: str, where: list[str]) -> str:
    s.pen.imports.add("import collections")
    name = s.pen.name("local")
    s.before.append(f"{name} = collections.deque([2.0], maxlen=3)")
    where.append(f"{name}.append(float({number}))")
    return s.pen.pick((f"{name}[-1]", f"max({name})", f"float(np.mean({name}))"))


def _mean(s: Sketch, number: str, where: list[str]) -> str:
    total, count = s.pen.name("local"), s.pen.name("local")
    s.before.append(f"{total}, {count} = 2.0, 1")
    where.append(f"{total} += float({number})\n{count} += 1")
    return f"({total} / {count})"


def _text(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f"{name} = '2.0'")
    where.append(
        s.pen.pick(
            (
                f"{name} = str(float({number}))",
                f"{name} = f'{{float({number}):.6f}}'",
                f"{name} = '%.6f' % float({number})",
            )
        )
    )
    return f"float({name})"


def _metric(s: Sketch, number: str, where: list[str]) -> str:
    name = s.pen.name("local")
    s.before.append(f"{name} = keras.metrics.Mean()\n{name}.update_state(2.0)")
    where.append(s.pen.pick((f"{name}.update_state({number})", f"{name}({number})")))
    return f"float({name}.result())"


def _made(
    start: str, kept: tuple[str, ...], read: tuple[str, ...], imported: str = "", top: str = ""
) -> Callable[..., str]:
    """A carrier of one statement before the loop, one in it, and one expression; {0} is its name, {1} the number."""

    def carry(s: Sketch, number: str, where: list[str]) -> str:
        name, owner = s.pen.name("local"), s.pen.name("class")
        if imported:
            s.pen.imports.add(imported)
        if top:
            s.pen.tops.append(top.format(name, owner=owner))
        if start:
            s.before.append(start.format(name, owner=owner))
        where.append(s.pen.pick(kept).format(name, number, owner=owner))
        return s.pen.pick(read).format(name, owner=owner)

    return carry


_EMA = """\
class {owner}:
    def __init__(self):
        self.mean = 2.0

    def __call__(self, v=None):
        if v is not None:
            self.mean = 0.5 * self.mean + 0.5 * float(v)
        return self.mean"""
_ITEMS = """\
class {owner}:
    def __init__(self):
        self.kept = {{}}

    def __setitem__(self, key, v):
        self.kept[key] = v

    def __getitem__(self, key):
        return self.kept.get(key, 2.0)"""
_BASE = """\
class {owner}Base:
    last = 2.0

    def keep(self, v):
        self.last = v


class {owner}({owner}Base):
    def read(self):
        return self.last"""
_COROUTINE = """\
def {owner}():
    last = 2.0
    while True:
        v = yield last
        if v is not None:
            last = float(v)"""

_MORE = {
    "setattr": _made(
        "{0} = {owner}()",
        ('setattr({0}, "last", {1})',),
        ("{0}.last", 'getattr({0}, "last")'),
        top="class {owner}:\n    last = 2.0",
    ),
    "into an array": _made(
        "{0} = np.full(3, 2.0)",
        (
            "np.copyto({0}, float({1}))",
            "np.multiply(float({1}), 1.0, out={0})",
            "np.put({0}, [0, 1, 2], float({1}))",
            "{0}.fill(float({1}))",
        ),
        ("float({0}[0])", "float(np.mean({0}))"),
    ),
    "heap": _made(
        "{0} = [2.0]",
        ("heapq.heappush({0}, float({1}))", "bisect.insort({0}, float({1}))"),
        ("{0}[0]",),
        "import bisect, heapq",
    ),
    "callable": _made("{0} = {owner}()", ("{0}({1})",), ("{0}()", "{0}.mean"), top=_EMA),
    "namespace": _made("{0} = types.SimpleNamespace(last=2.0)", ("{0}.last = {1}",), ("{0}.last",), "import types"),
    "mutable default": _made(
        "",
        ("{0}({1})",),
        ("{0}()", "{0}(None)"),
        top="def {0}(v=None, kept=[2.0]):\n    if v is not None:\n        kept.append(float(v))\n    return kept[-1]",
    ),
    "class attribute": _made(
        "",
        ("{owner}.last = {1}", "{owner}.keep({1})"),
        ("{owner}.last", "{owner}().last"),
        top="class {owner}:\n    last = 2.0\n\n    @classmethod\n    def keep(cls, v):\n        cls.last = v",
    ),
    "coroutine": _made("{0} = {owner}()\nnext({0})", ("{0}.send({1})",), ("next({0})",), top=_COROUTINE),
    "nested": _made(
        '{0} = {{"a": {{"b": [2.0]}}}}',
        ('{0}["a"]["b"][0] = {1}', '{0}["a"]["b"].append(float({1}))', '{0}["a"] = {{"b": [{1}]}}'),
        ('{0}["a"]["b"][-1]',),
    ),
    "items": _made("{0} = {owner}()", ('{0}["last"] = {1}',), ('{0}["last"]',), top=_ITEMS),
    "base class": _made("{0} = {owner}()", ("{0}.keep({1})", "{0}.last = {1}"), ("{0}.read()", "{0}.last"), top=_BASE),
    "globals": _made(
        "",
        ('globals()["{0}_of_all"] = float({1})',),
        ('globals().get("{0}_of_all", 2.0)', "{0}_of_all"),
        top="{0}_of_all = 2.0",
    ),
    "vars": _made(
        "{0} = {owner}()",
        ('vars({0})["last"] = {1}', '{0}.__dict__["last"] = {1}', "{0}.__dict__.update(last={1})"),
        ("{0}.last",),
        top="class {owner}:\n    last = 2.0",
    ),
    "alias": _made("{0} = [2.0]\n{0}_too = {0}", ("{0}_too[0] = {1}", "{0}_too.append(float({1}))"), ("{0}[-1]",)),
    "bound method": _made("{0} = [2.0]\nkeep_{0} = {0}.append", ("keep_{0}(float({1}))",), ("{0}[-1]", "max({0})")),
    "zipped lists": _made(
        "{0} = [[2.0], [0]]", ("for kept, v in zip({0}, (float({1}), 1)):\n    kept.append(v)",), ("{0}[0][-1]",)
    ),
    "slot of a function": _made(
        "", ("{0}.last = float({1})",), ("{0}.last", "{0}()"), top="def {0}():\n    return {0}.last\n\n\n{0}.last = 2.0"
    ),
}

CARRIERS = {
    "itself": _itself,
    "name": _name,
    "list": _list,
    "dict": _dict,
    "array": _array,
    "object": _object,
    "property": _property,
    "variable": _variable,
    "global": _global,
    "closure": _closure,
    "deque": _deque,
    "mean": _mean,
    "text": _text,
    "metric": _metric,
    **_MORE,
}
