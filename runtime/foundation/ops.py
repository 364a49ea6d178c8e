"""The reductions of `allreduce` and `grouped_allreduce`."""

import enum


class ReduceOp(enum.Enum):
    """How the ranks' values become one.

    Floating point: sums and products of float16 and bfloat16 are formed in float32 and rounded once. Integers wrap
    around as in NumPy; their `AVERAGE` is truncated toward zero.
    """

    AVERAGE = "Average"
    SUM = "Sum"
    MIN = "Min"
    MAX = "Max"
    PRODUCT = "Product"

    def __str__(self) -> str:
        return self.value


Average = ReduceOp.AVERAGE
Sum = ReduceOp.SUM
Min = ReduceOp.MIN
Max = ReduceOp.MAX
Product = ReduceOp.PRODUCT
