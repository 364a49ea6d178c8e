"""What keeps a script from running here, told from the end of its output; and whether a proof's traces find room."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

_OFFLINE = re.compile(
    r"URL fetch failure|urlopen error|URLError|Max retries exceeded|ConnectionError|gaierror|name resolution"
    r"|ConnectTimeout|Failed to establish a new connection|Couldn't connect to server|Could not resolve host"
)
_DOWNLOAD = re.compile(r"Downloading (?:data )?from (\S+)")
_MISSING_FILE = re.compile(
    r"No such file or directory: b?['\"](?P<python>[^'\"]+)"
    r"|NotFoundError: .*?(?P<tensorflow>[\w./~-]+); No such file or directory"
)
_NO_GPU = re.compile(
    r"Could not satisfy (?:explicit )?device specification.*GPU|unknown device.*GPU|CUDA_ERROR_NO_DEVICE"
    r"|no CUDA-capable device|(?:Error|Exception): .*(?i:no GPU|GPU (?:device )?not found|enough GPU)"
    r"|(?i:gpus?\w*\[0\]).*\n(?:.*\n)?.*IndexError"
)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_USAGE = re.compile(r"^usage: .*(?:\n.*)*error: (.*)", re.MULTILINE)


def hint(output: str, scratch: str = "") -> str:
    """What to do about the failure that `output` ends with, one sentence; empty where nothing is known.

    scratch: the run's working directory, which stands for the one that the command was started in.
    """
    if found := _NO_MODULE.search(output):
        return f"the script needs the module {found[1]}: install it into this environment"
    if found := _USAGE.search(output):
        return f"the script wants other arguments ({found[1]}): give them after --"
    if _OFFLINE.search(output) or (_DOWNLOAD.search(output) and "Error" not in output):
        found = _DOWNLOAD.search(output)
        what = f"downloads {found[1]}" if found else "fetches something over the network"
        return f"the script {what}, which does not come through here: put the data in place first, then verify"
    if found := _MISSING_FILE.search(output):
        name = (found["python"] or found["tensorflow"]).removeprefix(f"{scratch}/")
        where = "" if name.startswith("/") else f" in {Path.cwd()}, from where its paths are taken"
        folder = Path(name).parent
        missing = "which is" if folder.is_dir() else f"whose folder {folder} is"
        return f"the script needs {name}, {missing} not there{where}: put it in place, or start tfdp verify elsewhere"
    if _NO_GPU.search(output):
        return "the script asks for a GPU, and TensorFlow sees none here: verify it where there is one"
    return ""


def no_room(trace: Path, steps: int, processes: int) -> str:
    """Whether the traces of all runs find room, judged by the first step's; empty, or what is short.

    trace: the reference's folder, in which the first step lies. processes: of the migrated run.
    """
    one = next((file.stat().st_size for file in trace.glob("step-00000.npz")), 0)
    room = shutil.disk_usage(trace).free + one
    needed = one * steps * (processes + 1)
    if needed <= room:
        return ""
    most = room // (one * (processes + 1))
    fewer = f"ask for at most {most} steps, or " if most else ""
    return (
        f"the traces of {steps} steps on {processes} processes take {needed / 1e9:.1f} GB, and {trace.parent} has room "
        f"for {room / 1e9:.1f} GB: {fewer}name a larger folder in TMPDIR"
    )
