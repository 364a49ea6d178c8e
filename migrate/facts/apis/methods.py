"""What methods do, by the names that Python, NumPy, TensorFlow and Keras give them."""

from __future__ import annotations

CALLED = ("__call__", "call")
"""What runs where an object is called."""

ASSIGNS = frozenset({"assign", "assign_add", "assign_sub"})
"""Give a variable a value."""

CHANGES_VARIABLE = ASSIGNS | {
    *("scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_min", "scatter_max", "scatter_update"),
    *("scatter_nd_add", "scatter_nd_sub", "scatter_nd_update", "batch_scatter_update"),
}
"""Change a variable, or rows of it."""

MAKES_WEIGHT = frozenset({"add_weight", "add_variable"})
"""Make a variable of a layer, or a slot of an optimizer."""

COUNTS_STEPS = frozenset({"iterations", "global_step"})
"""Attributes of optimizers: how many steps there were."""

DESCRIBES = frozenset({"shape", "ndim", "dtype"})
"""Attributes of tensors and arrays that are alike for all batches."""

READS_NUMBER = frozenset({"numpy", "value", "read_value", "item"})
"""Give the number that a tensor or variable holds."""

FILLS_LISTS = frozenset({"append", "extend", "insert"})
"""Put something into a list."""

NEW_KEYS = frozenset({"add", "setdefault", "update"})
"""Put something into a set or a dictionary, which is longer only if it was not there."""

PUTS_IN = FILLS_LISTS | NEW_KEYS | {"appendleft"}
"""Put something into a container."""

COMPUTES_EXAMPLES = (".Layer", ".Loss", ".Model", ".RNN", ".Sequential")
"""How the names of Keras' classes end of which the methods are given examples."""

KERAS_COMPUTES = (*COMPUTES_EXAMPLES, ".Regularizer", "Cell")
"""Those, and the others of which an object is called at each step."""


OF_TEXTS = frozenset({"lower", "upper", "strip", "get", "format", "capitalize", "title"})
"""Give a text where their object is one, or a table of texts."""

LISTS_ELEMENTS = frozenset(
    {
        *("glob", "iterdir", "rglob", "items", "keys", "values", "iterrows", "itertuples", "tolist"),
        *("read", "read_text", "readlines", "split", "splitlines"),
    }
)
"""Give what a list, a table, a folder or a file holds."""


TAKES_OUT = frozenset(
    {
        *("clear", "difference_update", "discard", "extendleft", "fill", "intersection_update", "itemset", "pop"),
        *("popitem", "popleft", "put", "put_nowait", "remove", "reverse", "rotate", "send", "setfield", "setflags"),
        *("sort", "subtract", "symmetric_difference_update", "partition", "resize", "__delitem__", "__iadd__"),
        *("__setattr__", "__setitem__"),
    }
)
"""Change a container, an array or a generator in other ways."""

GIVES_ITS_OWN = frozenset(
    {
        *("__getitem__", "flatten", "get", "items", "popitem", "ravel", "reshape", "setdefault", "squeeze", "swapaxes"),
        *("transpose", "values", "view"),
    }
)
"""Give what their object holds, or another view of it."""
