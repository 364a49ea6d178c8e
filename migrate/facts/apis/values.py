"""What decides the value that a function gives: its arguments, chance, a generator of random numbers."""

from __future__ import annotations

import re

PURE = re.compile(
    r"(builtins|numpy|tensorflow|keras|math|cmath|statistics|collections|itertools|functools|operator|copy|string|re"
    r"|json|yaml|decimal|fractions|textwrap|argparse|os\.path\.(join|basename|dirname|splitext|split|normpath|commonpath)"
    r"|os\.fspath|pathlib\.PurePath)(\.|$)"
)
"""Functions of their arguments alone, where no other table says otherwise."""

CHANCE = re.compile(
    r"(time|datetime|random|numpy\.random|glob|pathlib(?!\.PurePath)|tensorflow\.(train|io)|uuid|secrets|socket|tempfile"
    r"|threading|os(?!\.(fspath$|path\.(join|basename|dirname|splitext|split|normpath|commonpath)$)))\."
    r"|tensorflow\.timestamp$|builtins\.(id|open)$"
)
"""Clocks, processes, files, and draws of generators with one seed on all workers: a worker may be a moment late."""

PROCESS = re.compile(
    r"time\.|datetime\.(datetime|date)\.(now|utcnow|today)$|uuid\.uuid[14]$|secrets\.|random\.SystemRandom$"
    r"|os\.(getpid|getppid|urandom|getrandom|times)$|tensorflow\.(timestamp|random\.(Generator|get_global_generator))"
    r"|builtins\.id$"
)
"""Of those, clocks, numbers of processes, and chance that no seed decides: each process has its own for sure."""

DRAWN = re.compile(r"tensorflow\.random\.(?!stateless_)|keras\.random\.|keras\.backend\.random")
"""Draws of generators that differ by worker."""

SEEDED = re.compile(
    r"((numpy|keras|tensorflow)\.)?random\.(?!stateless_)(?!.*(RandomState|default_rng|Generator|SeedSequence|Random)$)"
)
"""Draw from the generator of a module, or seed it."""

OF_KIND = frozenset({"builtins.isinstance", "builtins.hasattr", "builtins.type", "builtins.callable"})
"""What a thing is, whatever it holds."""

UNASKED = frozenset(
    {"builtins.input", "builtins.next", "builtins.iter", "builtins.globals", "builtins.locals", "builtins.eval"}
)
"""What they give is no function of what they are given."""
