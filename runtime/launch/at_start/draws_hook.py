"""Lets Python's and NumPy's generators begin alike in all ranks, before the script's first line.

What a script, or a module that it imports, draws without a seed before it calls `dp.init` (a learning rate, a split) is
one number in one process; it is to be one number in a job, too. A process that a rank starts begins as it would:
several that prepare data are not to draw alike. Scripts of other systems mean their ranks to draw apart: `apart`.
"""

import functools
import os
import random
import secrets
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

DRAWS = "TFDP_DRAWS"
_own: dict[str, Callable[[], Any]] = {}
"""By generator: how it is seeded by the system's chance. Those that the script has seeded are not in it."""


def variable(seed: int) -> dict[str, str]:
    """For the environment of a process that this one starts as a rank."""
    return {DRAWS: f"parent {os.getpid()} {seed}"}


def install(told: str) -> None:
    """Seed, if this process is the one that is meant; NumPy's generators when NumPy is imported.

    told: whose process identifier follows, this one's own or its parent's, that identifier, and the seed.
    """
    whose, pid, seed = told.split()
    if int(pid) != (os.getppid() if whose == "parent" else os.getpid()):
        return
    random.seed(int(seed))
    _note(random, "seed", "setstate")
    finder = sys.modules["_tfdp_training_hook"].Finder
    sys.meta_path.insert(0, finder({"numpy.random": functools.partial(_numpy, int(seed))}))


def apart() -> None:
    """From now on draw by the system's chance where the script has not seeded."""
    for seed in _own.values():
        seed()
    _own.clear()


def _numpy(seed: int, module: ModuleType) -> None:
    module.seed(seed % 2**32)
    source = module.bit_generator  # from which the seeds come of all generators that are made without one
    _own[source.__name__] = functools.partial(setattr, source, "randbits", secrets.randbits)
    source.randbits = random.Random(seed).getrandbits
    _note(module, "seed", "set_state")  # behind its source: it asks there when it is seeded by chance


def _note(module: ModuleType, *names: str) -> None:
    _own[module.__name__] = module.seed
    for name in names:
        setattr(module, name, _noting(module.__name__, getattr(module, name)))


def _noting(generator: str, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        _own.pop(generator, None)
        return original(*args, **kwargs)

    return seed
