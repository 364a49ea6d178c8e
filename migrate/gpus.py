"""How many GPUs a script would see here, found out without TensorFlow."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

_DEVICE = re.compile(r"nvidia\d+")
_WITHOUT_GPU = 2  # the smallest job that is data-parallel; the cores are shared out whatever the number is
_PATIENCE_SECONDS = 20.0


def processes(least: int) -> tuple[int, str]:
    """What `-np auto` means, at least `least`, and why: one process for each GPU, or two without any."""
    count = visible(os.environ)
    reason = "1 GPU is visible" if count == 1 else f"{count or 'no'} GPU{'s are' if count else ' is'} visible"
    return count if count >= least else max(_WITHOUT_GPU, least), reason


def visible(environ: Mapping[str, str]) -> int:
    """The GPUs of this machine, or those of them that CUDA_VISIBLE_DEVICES names: CUDA stops at the first it lacks."""
    count = _installed()
    asked = environ.get("CUDA_VISIBLE_DEVICES")
    if asked is None:
        return count
    named = 0
    for name in (each.strip() for each in asked.split(",")):
        if not name or name.startswith("-") or (name.isdigit() and int(name) >= count):
            break
        named += 1
    return min(named, count)


def _installed() -> int:
    try:
        listed = subprocess.run(
            ["nvidia-smi", "-L"], capture_output=True, text=True, timeout=_PATIENCE_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return _devices()
    found = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    return found if listed.returncode == 0 else _devices()


def _devices() -> int:
    """By their device files, where the driver's own program is missing, as in small containers."""
    return sum(_DEVICE.fullmatch(name) is not None for name in os.listdir("/dev"))
