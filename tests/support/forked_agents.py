"""Agents and fork servers that need not import what all of them import.

The start of either takes more than a tenth of a second of processor time, nearly all of it for
imports, and a command starts an agent and two fork servers. Here a process that has imported what
they do is asked for a fork. What a fork would not be the same as is started as always, such as
another Python.
"""

from __future__ import annotations

import atexit
import functools
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import IO, Any

from agent_server import StartRequest, standing
from edgeflare_agent.runtime.fork_server_process import STATUS, ForkedProcess
from edgeflare_agent.runtime.launcher import python_command

_AGENT = [sys.executable, "-m", "edgeflare_agent"]

_FORK_SERVER = python_command([sys.executable], "edgeflare_agent.runtime.fork_server")


class ForkedAgent(ForkedProcess):
    """A forked agent, with what is used of `subprocess.Popen`."""

    def __init__(self, pid: int, status_pipe: int, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        super().__init__(pid, status_pipe)
        self.stdin, self.stdout = stdin, stdout


def fork_agents(
    place: Callable[[], str], *starters: ModuleType, wanted: Callable[[], bool] = lambda: True
) -> None:
    """Have this process, and its forks, ask for agents and fork servers.

    Args:
        place: returns what `agents_socket` does, here or in another process; called when needed.
        starters: the modules that start them.
        wanted: returns whether to ask; otherwise each is started by itself.

    """

    def popen(command: Sequence[str], **options: Any) -> object:
        forked = None
        if wanted() and list(command[:-1]) == _FORK_SERVER:
            forked = _fork_server(place(), **options)
        elif wanted() and list(command[:3]) == _AGENT:
            forked = _agent(place(), command[3:], **options)
        return forked or subprocess.Popen(command, **options)

    for module in starters:
        replaced = SimpleNamespace(**{**vars(subprocess), "Popen": popen})
        module.subprocess = replaced  # type: ignore[attr-defined]


@functools.cache
def agents_socket() -> str:
    """Start the process that forks, which ends with this one; return where it listens."""
    import_module("cv2")  # which sets LD_LIBRARY_PATH, and so for all that hosts start
    folder = tempfile.TemporaryDirectory(prefix="edgeflare-agents-")
    path = str(Path(folder.name, "socket"))
    server = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("agent_server.py"), path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    atexit.register(_end, os.getpid(), server, folder)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    return path


def _end(
    process: int, server: subprocess.Popen[bytes], folder: tempfile.TemporaryDirectory[str]
) -> None:
    if os.getpid() == process:
        server.communicate(timeout=60)
        folder.cleanup()


def _agent(
    path: str,
    arguments: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stderr: IO[bytes],
    pass_fds: Sequence[int],
    **_: object,
) -> ForkedAgent | None:
    """Return a forked agent, None if it has to be started by itself."""
    (stdin, commands), (words, stdout) = os.pipe(), os.pipe()
    request = StartRequest(list(arguments), str(cwd), dict(env), standing())
    forked = _forked(path, request, [stdin, stdout, stderr.fileno(), *pass_fds])
    os.close(stdin)
    os.close(stdout)
    ours = os.fdopen(commands, "wb", 0), os.fdopen(words, "rb")
    if forked is not None:
        return ForkedAgent(*forked, *ours)
    for stream in ours:
        stream.close()
    return None


def _fork_server(
    path: str, *, env: Mapping[str, str], pass_fds: Sequence[int], **_: object
) -> ForkedProcess | None:
    """Return a forked fork server, None if it has to be started by itself."""
    try:
        folder = os.getcwd()
    except OSError:  # it is no more
        return None
    nowhere = os.open(os.devnull, os.O_RDWR)
    request = StartRequest([], folder, dict(env), standing())
    forked = _forked(path, request, [nowhere, nowhere, nowhere, *pass_fds])
    os.close(nowhere)
    return None if forked is None else ForkedProcess(*forked)


def _forked(path: str, request: StartRequest, descriptors: Sequence[int]) -> tuple[int, int] | None:
    """Return process id and status pipe of a fork, None if there is none."""
    told, status_pipe = os.pipe()
    written = request.written()
    with socket.socket(socket.AF_UNIX) as server:
        try:
            server.connect(path)
            socket.send_fds(server, [STATUS.pack(len(written))], [*descriptors, status_pipe])
            server.sendall(written)
        except OSError:
            os.close(told)
            return None
        finally:
            os.close(status_pipe)
        if answer := os.read(told, STATUS.size):
            return STATUS.unpack(answer)[0], told
    os.close(told)
    return None
