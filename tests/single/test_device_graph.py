"""The graph for GPUs, op by op, on a machine without one: what is traced with the hint `nccl` and never run."""

import itertools

import pytest

tf = pytest.importorskip("tensorflow")

from tfdp.runtime.foundation import (  # noqa: E402
    Average,
    Max,
    Min,
    Product,
    Sum,
    Topology,
)
from tfdp.runtime.transports import Label  # noqa: E402
from tfdp.runtime.transports.device import Device  # noqa: E402

PLACE = Topology(rank=1, size=4, local_rank=1, local_size=4, cross_rank=0, cross_size=1)
LABEL = Label("step", "train.py:8")
# What the kernels take (TensorFlow 2.15 to 2.21): NCCL has no bool, no 8- and 16-bit integers, and the reduction
# refuses bfloat16 and int32 on a GPU.
REDUCED_BY_NCCL = (tf.float16, tf.float32, tf.float64, tf.int64)
GATHERED_BY_NCCL = (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
SENT = (tf.bool, tf.uint8, tf.int8, tf.int16, tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)


def traced(call, *specs, hint="nccl"):
    transport = Device(None, PLACE, hint)
    concrete = tf.function(lambda *tensors: call(transport, tensors)).get_concrete_function(*specs)
    assert not concrete.variables
    assert not concrete.captured_inputs, "nothing that would have to be saved with the user's function"
    return concrete.graph.get_operations()


def named(operations, kind):
    return [each for each in operations if each.type == kind]


def ancestors(operation):
    """All that runs before an operation."""
    found, waiting = set(), [operation]
    while waiting:
        each = waiting.pop()
        for before in [*(tensor.op for tensor in each.inputs), *each.control_inputs]:
            if before not in found:
                found.add(before)
                waiting.append(before)
    return found


def constant(tensor):
    return tf.get_static_value(tensor)


def on(operation, kind):
    return tf.DeviceSpec.from_string(operation.device).device_type == kind


def check_collective(operation, allowed):
    assert operation.get_attr("communication_hint") == b"nccl"
    assert operation.get_attr("T") in allowed
    assert operation.get_attr("timeout_seconds") == 0, "a timer for each call would stay for its whole time"
    assert operation.get_attr("is_stateless") is False, "or TensorFlow would not keep it in order"
    assert on(operation, "GPU")
    _, size, group, key = operation.inputs
    assert constant(size) == 4
    assert constant(group) == 1_952_867_440
    assert constant(key) is None, "the key comes from the agreement, so that it is the same on all ranks"
    agreement = [each for each in ancestors(operation) if each.type == "PyFunc"]
    assert agreement, "the data do not go out before all ranks have come to the same call"
    assert all(on(each, "CPU") for each in agreement)


@pytest.mark.parametrize(
    ("op", "merge"), [(Average, b"Add"), (Sum, b"Add"), (Min, b"Min"), (Max, b"Max"), (Product, b"Mul")]
)
def test_an_allreduce_is_one_collective_for_each_type_that_nccl_takes(op, merge):
    dtypes = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)
    specs = [tf.TensorSpec(shape, dtype) for dtype in dtypes for shape in ([3, 2], [None])]
    operations = traced(lambda transport, tensors: transport.allreduce(tensors, op, LABEL), *specs)
    collectives = named(operations, "CollectiveReduceV2")
    assert {each.get_attr("T") for each in collectives} == {tf.float32, tf.float64, tf.int64}
    assert len(collectives) == 3
    for each in collectives:
        check_collective(each, REDUCED_BY_NCCL)
        assert each.get_attr("merge_op") == merge
        assert each.get_attr("final_op") == b"Id", "a division by NCCL blocks a thread for the result"
        assert named([each.inputs[0].op], "ConcatV2"), "one vector, made on the GPU"
        assert on(each.inputs[0].op, "GPU")
    divisions = named(operations, "RealDiv") + named(operations, "TruncateDiv")
    assert len(divisions) == (len(specs) if op is Average else 0)
    assert all(constant(each.inputs[1]) is None for each in divisions), "a constant would become a multiplication"
    assert not [each for each in operations if each.type.startswith("Nccl")]


@pytest.mark.parametrize("dtype", SENT)
def test_rows_are_gathered_as_words(dtype):
    operations = traced(
        lambda transport, tensors: transport.allgather(tensors[0], LABEL), tf.TensorSpec([None, 3], dtype)
    )
    (collective,) = named(operations, "CollectiveGatherV2")
    check_collective(collective, GATHERED_BY_NCCL)
    assert collective.get_attr("T") == tf.int64


@pytest.mark.parametrize("dtype", SENT)
def test_a_broadcast_is_a_sum_of_words_and_zeros(dtype):
    operations = traced(lambda transport, tensors: transport.broadcast(tensors, 0, LABEL), tf.TensorSpec([5], dtype))
    (collective,) = named(operations, "CollectiveReduceV2")
    check_collective(collective, REDUCED_BY_NCCL)
    assert collective.get_attr("T") == tf.int64
    assert collective.get_attr("merge_op") == b"Add"
    assert not named(operations, "CollectiveBcastSendV2") + named(operations, "CollectiveBcastRecvV2")


def test_calls_come_one_after_the_other_in_the_order_of_the_program():
    def series(transport, tensors):
        first = transport.allreduce(tensors, Sum, LABEL)
        rows, _ = transport.allgather(tensors[0], LABEL)
        transport.barrier(LABEL)
        return first, rows, transport.broadcast(tensors, 2, LABEL)

    operations = traced(series, tf.TensorSpec([8]), tf.TensorSpec([3], tf.int64))
    stateful = [each for each in operations if each.type in ("PyFunc", "CollectiveReduceV2", "CollectiveGatherV2")]
    kinds = [each.type.removeprefix("Collective") for each in stateful]
    agree, leave = "PyFunc", "PyFunc"
    assert kinds == [
        *(agree, "ReduceV2", "ReduceV2", leave),
        *(agree, "GatherV2", leave),
        agree,
        *(agree, "ReduceV2", leave),
    ]
    for before, after in itertools.pairwise(stateful):
        assert before in ancestors(after)


def test_large_gradients_go_in_several_buckets():
    mebi = 2**20
    specs = [tf.TensorSpec([size * mebi // 4]) for size in (20, 30, 200, 1, 2)]
    sizes = {
        hint: [
            each.inputs[0].op.get_attr("N") - 1
            for each in named(
                traced(lambda transport, tensors: transport.allreduce(tensors, Sum, LABEL), *specs, hint=hint),
                "CollectiveReduceV2",
            )
        ]
        for hint in ("nccl", "ring")
    }
    assert sizes == {"nccl": [2, 1, 2], "ring": [1, 1, 1, 2]}


def test_the_ring_has_the_same_graph_but_for_the_place_and_the_hint():
    def kinds(hint):
        call = lambda transport, tensors: transport.allreduce(tensors, Average, LABEL)  # noqa: E731
        return [each.type for each in traced(call, tf.TensorSpec([4, None]), tf.TensorSpec([2], tf.int32), hint=hint)]

    assert kinds("nccl") == kinds("ring")
