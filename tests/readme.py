"""Pastes the shell blocks of README.md, in their order, into a fresh copy of what git knows of this checkout.

As a newcomer would: nothing of the checkout's environment is there, and the first line that fails ends it.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
OTHERS = {"diff", "text", "yaml"}  # blocks that nobody pastes into a shell
ACTIVE = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"}  # what an environment that is active here leaves to its children


def blocks(text: str) -> list[str]:
    """The shell blocks. Raises ValueError for a block whose language does not say whether it is one."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    if unknown := {language for language, _ in found} - OTHERS - {"sh"}:
        raise ValueError(f"README.md has blocks in {sorted(unknown)}: `sh` is run here, {sorted(OTHERS)} are not")
    return [block for language, block in found if language == "sh"]


def copy(to: Path) -> None:
    """The files that git knows, as they are now."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)


def main() -> int:
    """The exit status of the blocks, which share one shell."""
    pasted = "".join(blocks((ROOT / "README.md").read_text()))
    print(f"== README.md, pasted into a fresh copy:\n{pasted}", flush=True)
    environ = {name: value for name, value in os.environ.items() if name not in ACTIVE and not name.startswith("TFDP_")}
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(folder, "tfdp"))
        began = time.monotonic()
        shell, where = ["bash", "-eo", "pipefail", "-c", pasted], Path(folder, "tfdp")
        with subprocess.Popen(shell, cwd=where, env=environ, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            proved = False
            for line in running.stdout:
                print(line, end="", flush=True)
                if "PROVED" in line and not proved:
                    proved = True
                    print(f"== proved after {time.monotonic() - began:.0f} s", flush=True)
    if running.returncode == 0 and not proved:
        print("README.md: its commands prove nothing", file=sys.stderr)
        return 1
    return running.returncode


if __name__ == "__main__":
    sys.exit(main())
