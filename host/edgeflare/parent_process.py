"""A process and its parent: one that ends with it, and a command that is watched by it."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, NoReturn

_PR_SET_PDEATHSIG = 1
"""Option of Linux: the signal that a process gets when the thread that began it ends."""

_KILLED = 137
"""The exit code that shells give a process that SIGKILL ended."""

_HEARD: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGCHLD})


def end_with_parent(parent: int) -> None:
    """Have the kernel kill this process once its parent is gone, and end it if that is so already.

    Args:
        parent: process id of the parent, as it was when that began this process.

    """
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before it could be asked for
        os._exit(_KILLED)


def watch_this_process() -> Callable[[], None]:
    """Go on in a child process, whose exit code this one takes, since a library may end it.

    Ray ends a process whose host's daemon is gone without a word, with exit code 1, which would
    say that something deviates.

    Called before there is a thread. A child that ends without saying so beforehand ends with exit
    code 3 and a line on stderr.

    Returns:
        What the child calls once it ends by itself.

    """
    reader, writer = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HEARD)
    parent = os.getpid()
    child = os.fork()
    if child:
        os.close(writer)
        _exit_with(child, reader)
    end_with_parent(parent)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(reader)

    def say_that_it_ends() -> None:
        os.write(writer, b"!")

    return say_that_it_ends


def _exit_with(child: int, reader: int) -> NoReturn:
    """Wait for a child, hand on what this process is asked, and exit as the child did."""
    while True:
        heard = signal.sigwaitinfo(_HEARD)
        if heard.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                break
        elif heard.si_signo == signal.SIGTERM or heard.si_pid:
            os.kill(child, heard.si_signo)  # Ctrl-C on a terminal reaches both by itself
    if os.WIFSIGNALED(status):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HEARD)
        os.kill(os.getpid(), os.WTERMSIG(status))
    if os.read(reader, 1):
        os._exit(os.WEXITSTATUS(status))
    sys.stderr.write(
        "edgeflare: the Ray daemon of this host is gone, and has ended this command: start it again"
        " (docs/fleet.md), and the same command with --resume goes on\n"
    )
    sys.stderr.flush()
    os._exit(3)
