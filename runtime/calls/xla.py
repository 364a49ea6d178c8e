"""No function is compiled by XLA, which has no collectives of ours."""

from __future__ import annotations

from typing import Any

from ..foundation import say_once
from ..job import current

_HELD = "_jit_compile"


def keep_out_of_xla() -> None:
    """From now on `jit_compile=True` of a `tf.function` does nothing, also of one that was made before.

    The class of what `tf.function` gives has no public attribute for it.
    """
    from tensorflow.python.eager.polymorphic_function import polymorphic_function

    def asked(self: Any) -> Any:
        wanted = vars(self).get(_HELD)
        if wanted and current().topology.rank == 0:
            say_once(
                f"{self._name} runs without XLA (jit_compile), which cannot compile the exchange between workers; its "
                "random numbers are those of a run without it"
            )
        return None if wanted else wanted

    def ask(self: Any, value: Any) -> None:
        vars(self)[_HELD] = value

    setattr(polymorphic_function.Function, _HELD, property(asked, ask))
