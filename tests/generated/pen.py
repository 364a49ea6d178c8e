"""What generated scripts are written with: choices, free names, and ways in which an expression hides."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_ALIASES = {
    "tf": (("import tensorflow as tf", "tf"), ("import tensorflow", "tensorflow"), ("import tensorflow as T", "T")),
    "np": (("import numpy as np", "np"), ("import numpy", "numpy")),
    "keras": (
        ("from tensorflow import keras", "keras"),
        ("import tensorflow as tf", "tf.keras"),
        ("import keras", "keras"),
        ("import tensorflow.keras as K", "K"),
    ),
}
_WORDS = {
    "x": ("x", "features", "x_train", "inputs"),
    "y": ("y", "targets", "y_train", "labels"),
    "dataset": ("ds", "dataset", "train_ds", "loader", "batches"),
    "model": ("model", "net", "network", "m"),
    "optimizer": ("opt", "optimizer", "sgd"),
    "loss": ("loss", "value", "l", "cost"),
    "xb": ("xb", "x_batch", "images", "a"),
    "yb": ("yb", "y_batch", "wanted", "b"),
    "epoch": ("epoch", "e", "_epoch"),
    "step": ("step", "train_step", "update", "one_step"),
    "helper": ("helper", "prepare", "apply", "compute", "process", "make", "run", "get"),
    "class": ("Helper", "Tools", "Config", "Part", "State"),
    "number": ("SIZE", "HOW", "amount", "setting", "FACTOR"),
    "parameter": ("h", "t", "z", "values", "arg"),
    "local": ("out", "res", "tmp", "r"),
}


class Pen:
    """Writes one script; whatever is not said by the caller is chosen by `choose`."""

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self._choose = choose
        self._used: set[str] = set()
        self.tops: list[str] = []
        self.imports: set[str] = set()
        self.without: set[str] = set()  # forms in which this script hides nothing

    def pick(self, options: Sequence[T]) -> T:
        chosen: T = self._choose(options)
        return chosen

    def maybe(self) -> bool:
        return self.pick((False, True))

    def name(self, role: str) -> str:
        """A name that the script does not use yet."""
        stem = name = self.pick(_WORDS[role])
        number = 2
        while name in self._used:
            name, number = f"{stem}_{number}", number + 1
        self._used.add(name)
        return name

    def called(self, body: str, *arguments: str, top: list[str] | None = None) -> str:
        """A call that gives `body`, an expression with {0}, {1} … for the arguments, itself or from where it hides."""
        expression = body
        for _ in range(self.pick((0, 1, 1, 2))):
            expression = self._hidden(expression, len(arguments), self.tops if top is None else top)
        return expression.format(*arguments)

    def function(self, body: str, count: int = 1) -> str:
        """The name of a function that returns `body`."""
        name, parameters = self.name("helper"), self._parameters(count)
        inner = self.called(body, *parameters)
        if self.maybe():
            self.tops.append(f"{name} = lambda {', '.join(parameters)}: {inner}")
        else:
            self.tops.append(f"def {name}({', '.join(parameters)}):\n    return {inner}")
        return name

    def number(self, literal: str, *forms: str) -> str:
        """An expression whose value is `literal`, in one of these forms."""
        form = self.pick(
            forms or ("inline", "inline", "constant", "attribute", "dict", "unpacked", "function", "given")
        )
        if form == "inline":
            return literal
        name = self.name("number")
        if form == "constant":
            self.tops.append(f"{name} = {literal}")
            return name
        if form == "attribute":
            owner = self.name("class")
            self.tops.append(f"class {owner}:\n    {name} = {literal}")
            return f"{owner}.{name}"
        if form == "dict":
            self.tops.append(f'{name} = {{"value": {literal}, "other": 3}}')
            return f'{name}["value"]'
        if form == "unpacked":
            self.tops.append(f"{name}, {self.name('number')} = {literal}, 3")
            return name
        if form == "given":
            owner = self.name("class")
            self.tops.append(f"class {owner}:\n    def __init__(self, {name}={literal}):\n        self.{name} = {name}")
            self.tops.append(f"{owner.lower()}_object = {owner}()")
            return f"{owner.lower()}_object.{name}"
        helper = self.name("helper")
        self.tops.append(f"def {helper}({name}={literal}):\n    return {name}")
        return f"{helper}()"

    def _parameters(self, count: int) -> list[str]:
        first = self.pick(_WORDS["parameter"])
        return [first, *(f"{first}{i}" for i in range(2, count + 1))]

    def _hidden(self, body: str, count: int, top: list[str]) -> str:
        """Another expression with the same arguments, and what it needs, at the top of the script."""
        name, parameters = self.name("helper"), self._parameters(count)
        given, inner = ", ".join(parameters), body.format(*parameters)
        holes = ", ".join(f"{{{i}}}" for i in range(count))
        form = self.pick([form for form in _FORMS if form not in self.without])
        if form in ("static", "method", "callable"):
            owner = self.name("class")
            top.append(_FORMS[form].format(owner=owner, f=name, given=given, inner=inner))
            return {"static": f"{owner}.{name}", "method": f"{owner}().{name}", "callable": f"{owner}()"}[
                form
            ] + f"({holes})"
        local = self.pick(_WORDS["local"])
        top.append(_FORMS[form].format(f=name, given=given, inner=inner, local=local))
        if form == "dict":
            return f'{name}s["it"]({holes})'
        return f"{name}({holes})" + ("[0]" if form == "tuple" else "")


_FORMS = {
    "function": "def {f}({given}):\n    return {inner}",
    "lambda": "{f} = lambda {given}: {inner}",
    "statements": "def {f}({given}):\n    {local} = {inner}\n    return {local}",
    "static": "class {owner}:\n    @staticmethod\n    def {f}({given}):\n        return {inner}",
    "method": "class {owner}:\n    def {f}(self, {given}):\n        return {inner}",
    "callable": "class {owner}:\n    def __call__(self, {given}):\n        return {inner}",
    "closure": ("def make_{f}():\n    def inner({given}):\n        return {inner}\n    return inner\n{f} = make_{f}()"),
    "dict": 'def {f}({given}):\n    return {inner}\n{f}s = {{"it": {f}}}',
    "tuple": "def {f}({given}):\n    return {inner}, 0",
    "default": "def {f}_of({given}):\n    return {inner}\ndef {f}({given}, by={f}_of):\n    return by({given})",
}


def spelled(text: str, pen: Pen) -> str:
    """The script with its imports, where `tf.`, `np.` and `keras.` stand for what is imported under a drawn name."""
    imports = set(pen.imports)
    for alias in ("keras", "tf", "np"):
        mark = re.compile(rf"(?<![\w.]){alias}\.")
        if mark.search(text):
            line, name = pen.pick(_ALIASES[alias])
            if line == "import tensorflow as tf" and alias == "keras":
                text = mark.sub("tf.keras.", text)
                continue
            imports.add(line)
            text = mark.sub(f"{name}.", text)
    return "\n".join(sorted(imports)) + "\n\n" + text
