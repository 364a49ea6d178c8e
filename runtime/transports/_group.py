"""TensorFlow's collectives among some of the ranks: those of a group key."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf

from ._protocol import Tensor


@dataclass
class Group:
    """So many ranks; `hint` is `nccl` or `ring`. Only between `enter` and `leave` of the lane."""

    size: int
    key: int
    hint: str

    def reduced(self, vector: Tensor, key: Tensor, merge: str) -> Tensor:
        """The vector combined over the group, by the collective of this instance key."""
        return tf.raw_ops.CollectiveReduceV2(
            input=vector,
            group_size=self.size,
            group_key=self.key,
            instance_key=key,
            ordering_token=[],
            merge_op=merge,
            final_op="Id",  # a division by NCCL would block a thread for the result
            communication_hint=self.hint,  # "auto" would be the ring on GPUs too
        )

    def gathered(self, vector: Tensor, key: Tensor) -> Tensor:
        """All of the group's vectors one after the other, all of one length."""
        return tf.raw_ops.CollectiveGatherV2(
            input=vector,
            group_size=self.size,
            group_key=self.key,
            instance_key=key,
            ordering_token=[],
            communication_hint=self.hint,
        )
