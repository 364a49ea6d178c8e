"""What can be seen of this host without TensorFlow."""

import fcntl
import os
import platform
import socket
import struct
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

from ..clusters import engines, local
from ..foundation import TfdpError

_SIOCGIFADDR = 0x8915
_PACKAGES = ("tfdp", "tensorflow", "tensorflow-cpu", "keras", "tf-keras", "mpi4py")
_GIB = 2**30


class Line(NamedTuple):
    """One thing that was looked at, and whether it stands in the way of a job."""

    name: str
    said: str
    wrong: bool = False


def seen(environ: Mapping[str, str]) -> Iterator[Line]:
    """What is here, in the order in which it is told."""
    yield Line("versions", ", ".join([f"Python {platform.python_version()}", *_versions()]))
    yield _engine(environ)
    yield _cores()
    yield Line("memory", _memory())
    yield Line(
        "interfaces", ", ".join(f"{name} {address}" for name, address in _interfaces()) or "none with an address"
    )


def _versions() -> Iterator[str]:
    for name in _PACKAGES:
        try:
            yield f"{name} {version(name)}"
        except PackageNotFoundError:
            continue


def _engine(environ: Mapping[str, str]) -> Line:
    if local.RANK in environ:
        return Line("engine", f"tfdp run: rank {environ[local.RANK]} of {environ.get(local.SIZE)}")
    try:
        found = engines.recognise(environ)
    except TfdpError as error:
        return Line("engine", str(error), wrong=True)
    if found is None:
        return Line("engine", "none has started this process as a rank: `tfdp run` starts the ranks")
    here = f"local rank {found.local_rank} of {found.local_size}"
    return Line("engine", f"{found.engine}: rank {found.rank} of {found.size}, {here}, job {found.job or 'of one'}")


def _cores() -> Line:
    bound, every = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    said = f"{bound} of {every}"
    if bound == 1 < every:
        said += (
            ": this process is bound to one core, as Open MPI and Intel MPI do with small jobs: `mpirun --bind-to none`"
        )
    return Line("cores", said, wrong=bound == 1 < every)


def _memory() -> str:
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            told = dict(line.split(":", 1) for line in file)
        return f"{int(told['MemAvailable'].split()[0]) * 1024 / _GIB:.1f} GiB available"
    except (OSError, KeyError, ValueError):
        return "not known"


def _interfaces() -> Iterator[tuple[str, str]]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            try:
                asked = struct.pack("256s", name.encode()[:15])
                address = fcntl.ioctl(any_socket, _SIOCGIFADDR, asked)[20:24]
            except OSError:  # it has none
                continue
            yield name, socket.inet_ntoa(address)
