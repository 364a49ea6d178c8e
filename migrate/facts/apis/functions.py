"""What functions of libraries give back of what they are given."""

from __future__ import annotations

import re

RANGES = frozenset({"builtins.range", "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange"})
"""The numbers up to one."""

SPANS = RANGES | {"numpy.arange", "tensorflow.range"}
"""The numbers up to one, also as an array."""

COUNTS_UP = SPANS | {"itertools.count"}
"""Whole numbers, one after another."""

SAME_ELEMENTS = frozenset({"builtins.list", "builtins.tuple", "builtins.reversed", "builtins.iter", "builtins.sorted"})
"""The elements of their argument."""

NEW_AXIS = frozenset({"builtins.None", "tensorflow.newaxis", "numpy.newaxis"})
"""In a subscript: one more axis."""

SAME_NUMBER = frozenset(
    {
        *("builtins.float", "numpy.float32", "numpy.float64", "tensorflow.cast", "tensorflow.constant"),
        *("tensorflow.identity", "tensorflow.convert_to_tensor", "keras.backend.get_value", "keras.backend.eval"),
    }
)
"""A number, in another type."""

COUNTS = frozenset({"builtins.len", "numpy.shape", "numpy.size", "tensorflow.shape", "tensorflow.size"})
"""Functions that say how many there are."""

SAME_COUNT = SAME_NUMBER | {"builtins.int", "numpy.int32", "numpy.int64"}
"""A whole number, in another type."""

CHOOSES_ONE = frozenset(
    {
        *("builtins.max", "builtins.min", "numpy.maximum", "numpy.minimum", "numpy.clip"),
        *(f"tensorflow.{module}{name}" for module in ("", "math.") for name in ("maximum", "minimum")),
    }
)
"""One of the numbers among their arguments."""

POWERS = frozenset({"tensorflow.pow", "tensorflow.math.pow", "builtins.pow", "numpy.power", "math.pow"})
"""The power of a number."""

LOADS = frozenset(
    {
        *("json.load", "json.loads", "yaml.load", "yaml.safe_load", "yaml.full_load", "toml.load", "toml.loads"),
        *("tomllib.load", "tomllib.loads", "os.getenv", "os.environ", "absl.flags.FLAGS", "builtins.input"),
        *("configparser.ConfigParser", "keras.optimizers.serialize"),
    }
)
"""Settings: texts, numbers and tables of them."""

ON_ROOT = frozenset({"tfdp.runtime.on_root", "tfdp.runtime.root_first", "tfdp.runtime.report"})
"""Run what they are given on rank 0."""

SETS = re.compile(r"(keras\.backend\.(batch_set_value|set_value|update\w*)|tensorflow\.(compat\.v1\.)?assign\w*)$")
"""Give a variable a value."""

MAKES_ARRAY = frozenset({"numpy.array", "numpy.asarray", "numpy.ascontiguousarray", "numpy.float32", "numpy.stack"})
"""An array of the rows that they are given."""

GATHERS = {"tensorflow.gather": 1, "numpy.take": 1}
"""Take rows by indices, and where those stand."""

NEW_ARRAYS = frozenset({"numpy.zeros", "numpy.ones", "numpy.empty", "numpy.full"})
"""New arrays, which are filled later."""

UPDATES_NOTHING = re.compile(r"(tensorflow|keras|numpy|builtins|matplotlib)\.")
"""Change no variable by what they are given, but by methods."""

SETS_VARIABLE = {
    "keras.backend.set_value": True,
    "keras.backend.update": True,
    "keras.backend.update_add": False,
    "keras.backend.update_sub": False,
}
"""Give a variable a value: the second argument, or what it was and that."""

CALLS_IT = frozenset({"tensorflow.function", "absl.app.run", "tensorflow.compat.v1.app.run", "fire.Fire"})
"""Call the function that they are given, or give back one that does, on every worker alike."""

RANKS = frozenset({"tfdp.runtime.rank", "tfdp.runtime.local_rank"})
"""Which worker this is."""

OWN = RANKS | {"tfdp.runtime.rank_seed"}
"""Numbers that each worker has for itself."""

MINIMA = frozenset({"builtins.min", "numpy.minimum"})
"""The smallest of their arguments."""

ONE_NUMBER = re.compile(r"builtins\.(abs|bool|float|int|len|max|min|round|str|sum)$|numpy\.(mean|sum|median)$|time\.")
"""A number or a text, into which nothing can be put."""

ARRAYS = re.compile(r"(numpy|keras\.datasets|pandas|sklearn|scipy|glob)\.|os\.listdir$")
"""Arrays, tables, and lists of files."""

LISTS = re.compile(r"builtins\.(open|range|str)$")
"""What can be gone over, whatever their arguments are."""

OF_LISTS = re.compile(r"builtins\.(enumerate|filter|list|map|reversed|set|sorted|tuple|zip)$|tqdm\.")
"""The elements of the lists that they are given."""


HOLDS_GIVEN = re.compile(
    r"(collections|contextlib|copy|dataclasses|functools|itertools|operator|queue|threading|types|weakref)\."
    r"|builtins\.(dict|enumerate|filter|getattr|iter|list|map|max|min|next|reversed|set|sorted|tuple|zip)$"
    r"|numpy\.(asanyarray|asarray|ascontiguousarray|atleast_\dd|broadcast_to|expand_dims|moveaxis|nditer|ravel"
    r"|reshape|squeeze|swapaxes|transpose)$"
)
"""Give, or hold, the very objects that they are given: a change of the one is a change of the other."""

NAMESPACES = frozenset({"builtins.globals", "builtins.locals", "builtins.exec", "builtins.eval"})
"""The names of a module, or what may bind any of them."""

CHANGES_NOTHING = re.compile(
    r"(tensorflow|keras|matplotlib|seaborn|plotly|logging|absl|json|pickle|csv|yaml|os|shutil|sys|pathlib|warnings|gc"
    r"|time|pprint|traceback|wandb|mlflow|tqdm|joblib|h5py|cv2|PIL|imageio|tfdp)\."
    r"|builtins\.(print|input|exit|quit|help|open|isinstance|len|super|id|type)$"
    r"|numpy\.(save\w*|set\w*|random\.(seed|set_state)|testing\.\w+)$"
)
"""Called for what they do, change nothing that they are given: they write, draw, wait, or set what is elsewhere."""

MUTABLE = re.compile(r"(numpy|collections|array)\.|builtins\.(list|dict|set|bytearray)$")
"""Make something that `+=` changes in place."""
