"""Exchanges in graphs run one after the other, in the order in which they were built: on all ranks the same.

TensorFlow keeps operations with a state in the order of a function's text, but not the calls of functions in which they
are, nor those of the gradients of a function that a tape outside has recorded, nor the turns of a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

_LAST = "_tfdp_exchanged_last"  # of a graph: the operation by which its last exchange is made
_INSIDE = "_tfdp_exchanges_inside"  # of a graph: how many operations make some, functions that it calls included
_APART = "_noinline"
_PLAIN_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_EXCHANGES = ("PyFunc", "EagerPyFunc", "CollectiveReduceV2", "CollectiveGatherV2")
# Operations that call functions, and the attributes in which these are.
_CALLS = {
    **dict.fromkeys(_PLAIN_CALLS, ("f",)),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
    **dict.fromkeys(("Case", "StatelessCase"), ("branches",)),
    **dict.fromkeys(("While", "StatelessWhile"), ("cond", "body")),
}


@functools.cache
def keep_in_order() -> None:
    """From now on all exchanges that are built into graphs are kept in order. TensorFlow has nothing public for it."""
    _chain_operations()
    _keep_functions_apart()
    _take_turns()


def _chain_operations() -> None:
    """Each operation that makes exchanges waits for the one before it in the same graph."""
    graph = tf.Graph
    original = graph._create_op_internal

    @functools.wraps(original)
    def create(self: Any, op_type: str, *arguments: Any, **options: Any) -> Any:
        made = original(self, op_type, *arguments, **options)
        if op_type in _EXCHANGES or any(getattr(each, _INSIDE, False) for each in _called(made)):
            last = getattr(self, _LAST, None)
            if last is not None:
                made._add_control_input(last)
            setattr(self, _LAST, made)
            setattr(self, _INSIDE, getattr(self, _INSIDE, 0) + 1)
        return made

    graph._create_op_internal = create


def _called(operation: Any) -> Iterator[Any]:
    """The graphs of the functions that an operation calls, of those that were built here."""
    for attribute in _CALLS.get(operation.type, ()):
        given = operation.get_attr(attribute)
        for each in given if isinstance(given, list) else [given]:
            function = operation.graph._get_function(each.name)
            yield getattr(function, "graph", None)


def _keep_functions_apart() -> None:
    """A function with exchanges is not put in the place of its calls: what is in it would not wait as these do.

    But where it is called once, and nothing else there makes exchanges, as Keras 3 calls a step: at the end of data of
    unknown length what needs no data, such as the count of steps, goes on in a function that is put in that place.

    A branch or a loop's body that is kept apart would run on one device, that of the variables that it is given: on a
    GPU, which has no kernel for exchanges by Python. So it does nothing but call the function that is.
    """
    from tensorflow.core.framework import attr_value_pb2
    from tensorflow.python.eager.polymorphic_function import atomic_function
    from tensorflow.python.ops import control_flow_v2_func_graphs as control_flow

    original = atomic_function.from_func_graph
    parts = control_flow.CondBranchFuncGraph, control_flow.WhileBodyFuncGraph

    @functools.wraps(original)
    def from_func_graph(name: Any, graph: Any, attrs: Any, *arguments: Any, **options: Any) -> Any:
        count = getattr(graph, _INSIDE, 0)
        if count:
            attrs = {**(attrs or {}), _APART: attr_value_pb2.AttrValue(b=True)}
        if count == 1 and (last := getattr(graph, _LAST)).type in _PLAIN_CALLS:
            _let_in(last, atomic_function.AtomicFunction)
        if count and isinstance(graph, parts):
            apart = original(f"{name}_apart", graph, attrs, *arguments, **options)
            return _calling(name, apart, atomic_function.AtomicFunction)
        return original(name, graph, attrs, *arguments, **options)

    atomic_function.from_func_graph = from_func_graph


def _calling(name: str, apart: Any, made: Any) -> Any:
    """A function of this name that calls another one, of the same arguments and results, and does no more. What that
    one has in it is given devices one by one."""
    from tensorflow.core.framework import function_pb2

    inner = apart.cached_definition
    definition = function_pb2.FunctionDef()
    signature = definition.signature
    signature.CopyFrom(inner.signature)
    signature.name, signature.is_stateful = name, True
    del signature.control_output[:]
    signature.control_output.append("call")
    definition.control_ret["call"] = "call"
    for index, each in inner.arg_attr.items():
        definition.arg_attr[index].CopyFrom(each)
    call = definition.node_def.add(name="call", op="StatefulPartitionedCall")
    call.input.extend(each.name for each in inner.signature.input_arg)
    call.attr["f"].func.name = inner.signature.name
    call.attr["Tin"].list.type.extend(each.type for each in inner.signature.input_arg)
    call.attr["Tout"].list.type.extend(each.type for each in inner.signature.output_arg)
    for attribute in ("config", "config_proto", "executor_type"):
        call.attr[attribute].s = b""
    for index, each in enumerate(inner.signature.output_arg):
        definition.ret[each.name] = f"call:output:{index}"
    return _made_of(definition, apart, [apart], made)


def _let_in(call: Any, made: Any) -> None:
    """Give a call the same function without the mark that keeps it apart."""
    from tensorflow.core.framework import function_pb2

    function = call.graph._get_function(call.get_attr("f").name)
    definition = function_pb2.FunctionDef()
    definition.CopyFrom(function.cached_definition)
    definition.attr.pop(_APART, None)
    definition.signature.name += "_let_in"
    call.graph._add_function_recursive(_made_of(definition, function, function.children, made))
    call._set_func_attr("f", definition.signature.name)


def _made_of(definition: Any, like: Any, children: Any, made: Any) -> Any:
    """The function of a definition that is called as another one is."""
    from tensorflow.python.eager import context

    name = definition.signature.name
    if not context.context().has_function(name.encode()):
        context.context().add_function_def(definition)
    return made(
        name,
        context.context(),
        like.function_type,
        children=children,
        call_options=like.call_options,
        cached_graph=like.graph,
    )


def _take_turns() -> None:
    """A loop with exchanges takes one turn after the other, of which TensorFlow may otherwise take ten at a time."""
    from tensorflow.python.ops import while_v2

    original = while_v2._build_while_op

    @functools.wraps(original)
    def build(loop_vars: Any, cond_graph: Any, body_graph: Any, *arguments: Any, **options: Any) -> Any:
        if any(getattr(each, _INSIDE, False) for each in (cond_graph, body_graph)):
            options["parallel_iterations"] = 1
        return original(loop_vars, cond_graph, body_graph, *arguments, **options)

    while_v2._build_while_op = build
