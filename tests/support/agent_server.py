"""The process that forks agents and fork servers: started by `forked_agents.py`, with a socket.

A connection brings a request, and the descriptors of stdin, stdout and stderr, of the socket of a
fork server, which the process is or which it may ask, and of the *status pipe*, to which are
written the process id and, when the process has ended, its exit code or minus the signal, as
integers of 32 bits; nothing where a fork would be another process than one that is started by
itself. The process ends with its own stdin; what it has forked goes on.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import NoReturn

from edgeflare_agent import __main__ as agent
from edgeflare_agent.runtime import fork_server, fork_server_process
from edgeflare_agent.runtime.fork_server_process import STATUS

_DESCRIPTORS = 5
"""That come with a request, at most."""


_HEEDED = ("GLIBC_", "GRPC_", "LANG", "LC_", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "PYTHON", "TF_")
"""How variables begin that Python and libraries heed as they start."""

_UNLIKE = ("PYTHONPATH", "PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS")
"""Of these, variables that may have another value; what the first names is looked at."""

_PACKAGES = frozenset({"edgeflare_agent", "edgeflare_protos"})
"""What a folder may have that Python finds modules in."""


@dataclass(frozen=True)
class StartRequest:
    """A process that is asked for.

    Attributes:
        arguments: of the agent; none for a fork server.
        folder: to run in.
        environment: all variables.
        standing: of who asks, as `standing` returns it.

    """

    arguments: list[str]
    folder: str
    environment: dict[str, str]
    standing: tuple[object, ...]

    def written(self) -> bytes:
        """Return the request as it is sent."""
        return repr(astuple(self)).encode("utf-8", "surrogateescape")


def standing() -> tuple[object, ...]:
    """Return what a process has from its parent beside its environment."""
    limits = [resource.getrlimit(getattr(resource, f"RLIMIT_{kind}")) for kind in _LIMITS]
    return (limits, os.getresuid(), *(os.readlink(f"/proc/self/{name}") for name in _PLACES))


_LIMITS = ("AS", "FSIZE", "NOFILE")

_PLACES = ("ns/mnt", "ns/net", "ns/user", "root")


def serve(path: str) -> None:
    """Fork until nobody can ask for more."""
    _prepare(path)
    requests = socket.socket(socket.AF_UNIX)
    requests.bind(path)
    requests.listen()
    os.write(1, b"ready\n")
    woken, wakes = fork_server._wake_on_deaths()
    status_pipes: dict[int, int] = {}
    poll = select.poll()
    for descriptor in (0, woken, requests.fileno()):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if 0 in ready:
            return
        if woken in ready:
            os.read(woken, 4096)
            fork_server._report_ended(status_pipes)
        if requests.fileno() in ready:
            own = [requests.fileno(), woken, wakes, *status_pipes.values()]
            _fork(requests.accept()[0], own, status_pipes)


def _prepare(path: str) -> None:
    """Do once what each fork server does first, and let agents ask here for theirs."""
    # Which imports this module, as another one than the main one.
    from forked_agents import fork_agents  # noqa: PLC0415

    with contextlib.suppress(Exception):  # each worker tries again, and says what is wrong
        fork_server.rehearse()
    fork_server.rehearse = lambda: None
    fork_agents(lambda: path, fork_server_process)
    gc.collect()
    gc.freeze()


def _fork(connection: socket.socket, own: list[int], status_pipes: dict[int, int]) -> None:
    with connection:
        length, descriptors, _, _ = socket.recv_fds(connection, STATUS.size, _DESCRIPTORS)
        request = _received(connection, length)
    if request is not None and _same_start(request):
        *given, status_pipe = descriptors
        if (pid := os.fork()) == 0:
            _become(request, given, status_pipe, own)
        status_pipes[pid] = status_pipe
        descriptors = given
    for one in descriptors:
        os.close(one)


def _received(connection: socket.socket, length: bytes) -> StartRequest | None:
    """Return a request, None where who sent it was killed meanwhile."""
    written = b""
    while not length or len(written) < STATUS.unpack(length)[0]:
        if not (part := connection.recv(1 << 16)):
            return None
        written += part
    return StartRequest(*ast.literal_eval(written.decode("utf-8", "surrogateescape")))


def _same_start(request: StartRequest) -> bool:
    """Return whether a process that is started by itself would be as this one is."""
    if request.standing != standing() or _heeded(request.environment) != _heeded(os.environ):
        return False
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    theirs = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    beside = filter(os.path.isdir, set(theirs) - set(ours))
    return all(_of_no_concern(os.listdir(folder)) for folder in beside)


def _of_no_concern(names: list[str]) -> bool:
    """Return whether a folder has our packages, or others that were installed, and nothing else."""
    return _PACKAGES.issuperset(names) or any(name.endswith(".dist-info") for name in names)


def _heeded(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_HEEDED) and name not in _UNLIKE
    }


def _become(request: StartRequest, given: list[int], status_pipe: int, own: list[int]) -> NoReturn:
    """Be an agent or a fork server, as one that is started by itself is."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.write(status_pipe, STATUS.pack(os.getpid()))
        os.chdir(request.folder)
        os.environ.clear()
        os.environ.update(request.environment)
        for number, descriptor in enumerate(given[:3]):
            os.dup2(descriptor, number)
        for descriptor in (*own, *given[:3], status_pipe):
            os.close(descriptor)
        code = _run(request, given[3:])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _run(request: StartRequest, sockets: list[int]) -> int:
    if not request.arguments:
        fork_server.main(sockets[0])
        return 0
    if sockets:  # it has another number here
        request.arguments[request.arguments.index("--fork-server") + 1] = str(sockets[0])
    sys.argv[:] = ["edgeflare-agent", *request.arguments]
    return agent.main(request.arguments)


if __name__ == "__main__":
    serve(sys.argv[1])
