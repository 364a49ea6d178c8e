"""What compiled functions hold from run to run, besides variables."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from typing import Any

import tensorflow as tf

from .operations import is_seeded, names_in, only_reads

_PYTHON = ("EagerPyFunc", "PyFunc", "PyFuncStateless")
# Operations whose state is that of a variable, or of an iterator that is made anew, and those that have none to lose.
_OF_VARIABLES = re.compile(
    r"Assign\w*VariableOp|Resource(Sparse)?Apply\w+|ResourceScatter\w+|ResourceStridedSliceAssign|DisableCopyOnRead"
    r"|Rng\w+|Stateful(Uniform|StandardNormal|TruncatedNormal|RandomBinomial)\w*|\w*Iterator\w*|\w*Dataset(V\d+)?"
    r"|Collective\w+|Nccl\w+|PrintV2|Print|Optional\w+|_?EagerPyFunc|PyFunc\w*"
)


def when_compiled(seen: Callable[[Any], None]) -> None:
    """From now on `seen(graph)` is called for each graph of a `tf.function` that is complete. Private to TensorFlow."""
    from tensorflow.python.eager.polymorphic_function import atomic_function

    original = atomic_function.from_func_graph

    @functools.wraps(original)
    def from_func_graph(name: Any, graph: Any, *arguments: Any, **options: Any) -> Any:
        found = original(name, graph, *arguments, **options)
        seen(graph)
        return found

    atomic_function.from_func_graph = from_func_graph


def hidden_states(graph: Any, *, draws: bool = True) -> list[str]:
    """The operations of a graph, and of functions in it, that keep something which no variable holds, or may.

    draws: those included that draw random numbers.
    """
    found = (name for name in names_in(graph) if not (only_reads(name) or _OF_VARIABLES.fullmatch(name)))
    return sorted(name for name in found if draws or not is_seeded(name))


def held_besides(graph: Any, variables: Collection[int]) -> bool:
    """Whether a graph captures a resource that is no variable's, or what datasets and iterators are.

    variables: the `id` of each variable's handle.
    """
    return any(
        outside.dtype == tf.variant or (outside.dtype == tf.resource and id(outside) not in variables)
        for outside, _ in graph.captures
    )


def python_in(graph: Any) -> list[str]:
    """The names of the Python functions that a graph runs and that are not this package's; "?" where one is gone."""
    from tensorflow.python.ops import script_ops

    definition = graph.as_graph_def()
    groups = (definition.node, *(each.node_def for each in definition.library.function))
    tokens = {node.attr["token"].s.decode() for nodes in groups for node in nodes if node.op in _PYTHON}
    found = (script_ops._py_funcs.get(token) for token in sorted(tokens))
    plain = [inspect.unwrap(getattr(each, "_func", each)) if each is not None else None for each in found]
    ours = __name__.split(".", maxsplit=1)[0]
    return [
        getattr(each, "__qualname__", "?")
        for each in plain
        if str(getattr(each, "__module__", "")).split(".", maxsplit=1)[0] != ours
    ]
