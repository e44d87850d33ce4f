"""The process that forks commands: started by `forked_commands.py`, with the paths of two sockets.

The first is its own, the second that of the process that forks agents. A connection brings
arguments, folder and environment, as bytes, and the descriptors of stdin, stdout and stderr. Back
go the process id of the command and, when it has ended, its exit code or minus the signal, as
integers of 32 bits. A command is killed where its connection ends before it. The process ends with
its own stdin.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import importlib
import io
import os
import select
import signal
import socket
import sys
from importlib import import_module
from struct import Struct
from typing import Final

from edgeflare.class_registry import InstalledClasses
from edgeflare.devices.transports import child_agent
from edgeflare_agent.runtime import fork_server_process
from forked_agents import fork_agents

NUMBER: Final = Struct("<i")

_MODULES: Final = (
    *(f"edgeflare.cli.{name}" for name in ("bench", "compare", "conditions", "conform", "devices")),
    *(f"edgeflare.cli.{name}" for name in ("explain", "export", "inspect", "merge", "operators")),
    *(f"edgeflare.cli.{name}" for name in ("rank", "repair", "replay", "report", "search")),
    *(f"edgeflare.cli.{name}" for name in ("strategies", "survey", "app")),
    *(f"edgeflare.devices.transports.{name}" for name in ("adb", "emulated", "ssh")),
    *("edgeflare.report.html.run_html", "matplotlib.backends.backend_svg", "scipy.special"),
)
"""What commands import. Nothing of it starts a thread, as JAX would, which no fork would have."""


BRIEF: Final = "EDGEFLARE_TESTS_BRIEF"
"""A variable that has checks ask few inputs, as `brief_commands` does."""

_codes: list[int] = []
"""The exit code of the command that this process has been, once it has ended."""


@atexit.register
def _leave() -> None:
    """End a forked command, once all that was registered later has been called.

    It shares its memory with the process that forked it. To free what hundreds of modules hold
    would copy most of that first, which takes longer than a short command.
    """
    if _codes:
        os._exit(_codes[0])


def import_commands() -> None:
    """Import what commands do; no fork needs to then."""
    for name in _MODULES:
        import_module(name)
    from edgeflare.cli import main  # noqa: PLC0415

    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
        sys.argv[:] = ("edgeflare", "devices", "list", "--help")
        main()  # which imports what reads and shows options
    gc.collect()
    gc.freeze()  # or a collection in a fork would copy all that it shares with this process


def serve(path: str, agents: str) -> None:
    """Fork commands, whose agents are forked too, until nobody can ask for more."""
    import_commands()
    fork_agents(lambda: agents, child_agent, fork_server_process)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.write(1, b"ready\n")
        while listener.fileno() in select.select([listener.fileno(), 0], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    _supervise(connection)
                    return
            _bury(os.WNOHANG)
    _bury(0)


def _bury(options: int) -> None:
    """Wait for supervisors that have ended, so that their time counts as this process's."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def _supervise(connection: socket.socket) -> None:
    """Run the command in a process of its own, and tell what becomes of it."""
    length, descriptors, _, _ = socket.recv_fds(connection, NUMBER.size, 3)
    words = bytearray()
    while len(words) < NUMBER.unpack(length)[0]:
        if not (part := connection.recv(1 << 16)):
            os._exit(0)  # the program was killed as it asked
        words += part
    if (pid := os.fork()) == 0:
        connection.close()
        arguments, folder, environment = ast.literal_eval(words.decode())
        _become(folder, environment, descriptors)
        call(*map(os.fsdecode, arguments))
    with contextlib.suppress(OSError):
        connection.sendall(NUMBER.pack(pid))
        ended = os.pidfd_open(pid)
        ready = select.select([ended, connection.fileno()], [], [])[0]
        if ended not in ready:
            os.kill(pid, signal.SIGKILL)  # as its program was, which sends nothing more
        connection.sendall(NUMBER.pack(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
    os._exit(0)


def call(*arguments: str) -> None:
    """Call the command; never return."""
    from edgeflare.__main__ import start  # noqa: PLC0415

    sys.argv[:] = arguments
    try:
        with _brief(*arguments[1:2]):
            start()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            _codes.append(ended.code)
        raise


def _brief(command: str = "") -> contextlib.AbstractContextManager[None]:
    """Return within what a command is called: checks are brief where the environment says so."""
    if command != "check" or BRIEF not in os.environ:
        return contextlib.nullcontext()
    from brief_commands import brief_checks  # noqa: PLC0415 - which other commands do not need

    return brief_checks()


def _become(folder: bytes, environment: list[bytes], descriptors: list[int]) -> None:
    for own, given in enumerate(descriptors):
        os.dup2(given, own)
        os.close(given)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(zip(environment[::2], environment[1::2], strict=True))
    beside = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]
    if added := [one for one in beside if one not in sys.path]:
        sys.path[1:1] = added
        _forget_installed()


def _forget_installed() -> None:
    """Look anew for installed packages, which this process has beside those of its parent."""
    importlib.invalidate_caches()
    for name, module in list(sys.modules.items()):
        if name.startswith(("edgeflare.", "edgeflare_operators.")):
            for one in vars(module).values():
                if isinstance(one, InstalledClasses):
                    vars(one).pop("_entries", None)
                elif hasattr(one, "cache_clear"):
                    one.cache_clear()


if __name__ == "__main__":
    serve(*sys.argv[1:])
