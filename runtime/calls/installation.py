"""What `dp.init(shard_calls=True)` does in a job of several workers."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Sequence

from ..framework import follow_watchers
from ..job import REPORT, current
from ..start import look_at_the_end
from .apart import watch_graphs_without_exchanges, watch_tapes
from .asked import watch_python
from .averages import average_gradients
from .compiled import watch_custom_gradients, watch_functions
from .draws import watch_draws
from .entropy import common_entropy
from .functions import hook_modules
from .gathering import watch_graphs
from .general import watch_reads
from .keras_layers import hook_layers
from .lookups import hook_variables
from .report import said, said_at_the_end
from .swallowed import watch_errors
from .xla import keep_out_of_xla


def install() -> None:
    """From now on calls are divided, and gradients averaged."""
    look_at_the_end()
    watch_errors()
    common_entropy(current().seed)
    watch_draws()
    watch_reads()
    watch_graphs_without_exchanges()
    watch_functions()
    watch_graphs()
    follow_watchers()
    watch_custom_gradients()
    watch_python()
    keep_out_of_xla()
    watch_tapes()
    average_gradients()
    hook_layers()
    hook_modules()
    hook_variables()
    if current().topology.rank == 0:
        atexit.register(_say, said if os.environ.get(REPORT) else said_at_the_end)


def _say(lines: Callable[[], Sequence[str]]) -> None:
    for line in lines():
        print(line, file=sys.stderr, flush=True)
