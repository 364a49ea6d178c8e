"""The process that has imported TensorFlow, has run nothing of it, and forks. Started and asked by client.py."""

import gc
import json
import os
import socket
import sys
from typing import Any

from forking.program import Origin, Program, become

HEAD = 8


def main(fd: int, given: dict[str, str]) -> None:
    """Fork whenever `fd`, a socket, asks for it, until its other end is closed. given: the variables of its start."""
    before = dict(os.environ)
    started = {name: value for name, value in before.items() if given.get(name) != value}
    import tensorflow as tf

    _ = tf.keras.Model  # Keras is imported at its first use
    imported = {name: value for name, value in os.environ.items() if before.get(name) != value}
    origin = Origin(given, started, imported, frozenset(sys.modules))
    threads = len(os.listdir("/proc/self/task"))
    assert threads == 1, f"importing TensorFlow has started {threads - 1} threads: set TFDP_TESTS_EXEC=1"
    gc.collect()
    gc.freeze()  # no fork copies pages only to look for garbage in them
    with socket.socket(fileno=fd) as asked:
        while request := receive(asked):
            message, fds = request
            pid = _fork(Program(**message), origin, fds)
            for each in fds:
                os.close(each)
            send(asked, {"pid": pid})


def _fork(program: Program, origin: Origin, fds: list[int]) -> int:
    """A grandchild: the process of pytest, which has declared itself its reaper, becomes its parent."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        if os.fork() == 0:
            if program.new_session:
                os.setsid()  # before anybody knows the process, and signals its group
            os.write(writer, str(os.getpid()).encode())
            become(program, origin, fds)
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with open(reader) as said:
        return int(said.read(32))


def send(end: socket.socket, message: dict[str, Any], fds: list[int] | None = None) -> None:
    """A message, with file descriptors."""
    data = json.dumps(message).encode()
    socket.send_fds(end, [len(data).to_bytes(HEAD, "little")], fds or [])
    end.sendall(data)


def receive(end: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """A message and its file descriptors, None when the other end has been closed."""
    head, fds, _, _ = socket.recv_fds(end, HEAD, 3)
    if not head:
        return None
    length, data = int.from_bytes(head, "little"), b""
    while len(data) < length:
        data += end.recv(length - len(data))
    return json.loads(data), fds
