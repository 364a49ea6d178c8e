"""The closed vocabulary: what a script may consist of whose input is sharded unless another road is asked for."""

from .statements import first_outside

__all__ = ["first_outside"]
