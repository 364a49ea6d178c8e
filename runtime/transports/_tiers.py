"""Two tiers of ranks: those of a host, over the memory that they share, and each with its peers on the other hosts.

A vector is combined inside each host first, where each rank gets a share of the sum; each rank exchanges its own share
with its peers, those of the same local rank; and inside each host the shares are put together. So over the network goes
each element once for each host, and not for each rank, from all ranks of a host at once. Only between hosts that have
equally many ranks.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import ReduceOp, Topology
from ._group import Group
from ._keys import GROUP
from ._protocol import Label, Tensor
from ._reduce import Array
from .shared_memory import SharedMemory

_OPERATIONS = {"Add": ReduceOp.SUM, "Min": ReduceOp.MIN, "Max": ReduceOp.MAX, "Mul": ReduceOp.PRODUCT}


class Tiers:
    """The collectives of one rank, by way of its host. Only between `enter` and `leave` of the lane."""

    def __init__(self, memory: SharedMemory, topology: Topology, places: Sequence[tuple[int, int]]) -> None:
        """`memory` is that of this host's ranks; `places` are (local rank, host) of all ranks, in their order."""
        self._memory = memory
        self._here = topology.local_size
        self._peers = Group(topology.cross_size, GROUP + 1 + topology.local_rank, "ring")
        found = {place: number for number, place in enumerate(_by_local_rank(places))}
        self._order = [found[place] for place in places]

    def reduced(self, vector: Tensor, key: Tensor, merge: str) -> Tensor:
        """The vector combined over all ranks."""
        length = tf.size(vector)
        filled = tf.concat([vector, tf.zeros([tf.math.floormod(-length, self._here)], vector.dtype)], 0)

        def share(array: Array) -> Array:
            return self._memory.reduce_scatter(array, _OPERATIONS[merge], _label("a host's sum"))

        own = _in_memory(share, filled)
        with tf.device("CPU:0"):
            total = self._peers.reduced(own, key, merge)
        whole = _in_memory(self._together, total)[:length]
        whole.set_shape(vector.shape)
        return whole

    def gathered(self, vector: Tensor, key: Tensor) -> Tensor:
        """All ranks' vectors one after the other, all of one length."""
        with tf.device("CPU:0"):
            peers = self._peers.gathered(vector, key)
        rows = tf.reshape(_in_memory(self._together, peers), [self._here * self._peers.size, -1])
        return tf.reshape(tf.gather(rows, self._order), [-1])

    def _together(self, array: Array) -> Array:
        every, _ = self._memory.allgather(array, _label("a host's shares"))
        return every


def possible(said: Sequence[Mapping[str, Any]]) -> str:
    """Why there are no two tiers among ranks that have said where they are, empty where there are."""
    sizes = {each["local_size"] for each in said}
    if len(sizes) > 1:
        return f"the hosts have {' and '.join(map(str, sorted(sizes)))} ranks, and it needs equally many on each"
    if sizes == {1}:
        return "each host has one rank"
    return "all ranks are on one host" if sizes == {len(said)} else ""


def _by_local_rank(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In the order in which the hosts' gathers come together: peers are in the order of their ranks."""
    return [place for local in range(max(p[0] for p in places) + 1) for place in places if place[0] == local]


def _label(name: str) -> Label:
    return Label(name, "tfdp itself")


def _in_memory(function: Callable[[Array], Array], tensor: Tensor) -> Tensor:
    """`function` of the tensor's numbers: now, or where the graph comes to it, in the order of the program."""
    with tf.device("CPU:0"):
        if tf.executing_eagerly():
            return tf.convert_to_tensor(function(np.ascontiguousarray(tensor)))

        def on_array(array: Array) -> Array:
            return function(np.ascontiguousarray(array))

        found = tf.numpy_function(on_array, [tensor], tensor.dtype, stateful=True)
        found.set_shape([None])
        return found
