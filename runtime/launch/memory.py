"""Whether memory ran out: the kernel's own counts of what it has killed for it, where they can be read."""

import os
from pathlib import Path

_GIB = 2**30


class OutOfMemory:
    """Compares the counts of now with those of when it was made."""

    def __init__(self, proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> None:
        self._proc, self._cgroups = proc, cgroups
        self._before = self._kills()

    def hint(self) -> str:
        """What to make of a rank that was killed by SIGKILL, which nobody in the job has sent."""
        now = self._kills()
        if now is not None and self._before is not None and now > self._before:
            return (
                f"the kernel's out-of-memory killer has ended {now - self._before} process(es) of this container since "
                "the start: use fewer ranks, a smaller batch or shuffle buffer, or give it more memory"
            )
        free = self._free()
        seen = f" ({free} GiB of memory are available now)" if free else ""
        return (
            "no process of this job sent SIGKILL: that is mostly the kernel's out-of-memory killer, or a limit of the "
            f"container or the batch system{seen}; `dmesg` may tell"
        )

    def _kills(self) -> int | None:
        """How many processes of our control group the kernel has killed because its memory was full."""
        for file in self._event_files():
            try:
                words = file.read_text().split()
            except OSError:
                continue
            counts = dict(zip(words[::2], words[1::2], strict=False))
            if "oom_kill" in counts:
                return int(counts["oom_kill"])
        return None

    def _event_files(self) -> list[Path]:
        try:
            lines = (self._proc / "self/cgroup").read_text().splitlines()
        except OSError:
            return []
        found = []
        for line in lines:
            _, controllers, group = line.split(":", 2)
            name = group.lstrip(os.sep)
            if not controllers:
                found += [self._cgroups / name / "memory.events", self._cgroups / "memory.events"]
            elif "memory" in controllers.split(","):
                tree = self._cgroups / "memory"
                found += [tree / name / "memory.oom_control", tree / "memory.oom_control"]
        return found

    def _free(self) -> str:
        try:
            lines = (self._proc / "meminfo").read_text().splitlines()
        except OSError:
            return ""
        kib = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), "")
        return f"{int(kib) * 1024 / _GIB:.1f}" if kib.isdigit() else ""
