"""The command as a process of its own that need not import what all of them import.

A start of `edgeflare` takes more than a second of CPU, nearly all of it for imports. The program
here asks a process that has imported them for a fork, which has the arguments, folder, environment
and descriptors of the program, and ends by its signals. It finds packages that are installed in
folders of PYTHONPATH. Where such a folder has modules that no package says to be its own, which may
take the place of others, the program starts the command itself.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from forked_agents import agents_socket

_BESIDE = os.environ.get("PYTHONPATH", "")
"""Packages that all tests have beside EdgeFlare."""

_PROGRAM = """#!{python} -IS
import os, signal, socket, sys

beside = os.environ.get("PYTHONPATH", "")
folders = [one for one in beside.split(os.pathsep) if one and os.path.isdir(one)]
if beside != {beside!r} and not all(
    any(name.endswith(".dist-info") for name in os.listdir(one)) for one in folders
):
    os.execv({command!r}, sys.argv)
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
words = [sys.argv[0], *sys.argv[{begin} :]]
environment = [part for pair in os.environb.items() for part in pair]
asked = [*map(os.fsencode, words)], os.getcwdb(), environment
words = repr(asked).encode()
socket.send_fds(server, [len(words).to_bytes(4, "little")], [0, 1, 2])
server.sendall(words)

def number():
    told = server.recv(4, socket.MSG_WAITALL)
    return int.from_bytes(told, "little", signed=True) if len(told) == 4 else 3

pid = number()
for name in ("SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), lambda number, _: os.kill(pid, number))
code = number()
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@functools.cache
def forked_edgeflare(**environment: str) -> Path:
    """Return a program `edgeflare`, in a folder of its own; it works as long as this process.

    Args:
        environment: what Python heeds as it starts, for the process that forks commands.

    """
    folder = tempfile.TemporaryDirectory(prefix="edgeflare-forked-")
    socket = Path(folder.name, "socket")
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("command_server.py"), socket, agents_socket()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": _BESIDE, **environment},
    )
    atexit.register(_end, server, folder)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    program = Path(folder.name, "bin", "edgeflare")
    program.parent.mkdir()
    _write(program, socket, "edgeflare", 1)
    _write(program.with_name("bound"), socket, "python", 4)
    return program


def forked_bound_command() -> Path:
    """Return a program to start units with in the place of Python: `bound -m MODULE PARENT ...`.

    The module is `edgeflare.fleet.work.bound_command`. The command ends with this program in the
    place of its parent.
    """
    return forked_edgeflare().with_name("bound")


def _write(program: Path, socket: Path, started: str, begin: int) -> None:
    command = Path(sys.executable).with_name(started)
    text = _PROGRAM.format(
        python=sys.executable, command=str(command), path=str(socket), begin=begin, beside=_BESIDE
    )
    program.write_text(text, encoding="utf-8")
    program.chmod(0o755)


def _end(server: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]) -> None:
    server.communicate(timeout=60)
    folder.cleanup()
