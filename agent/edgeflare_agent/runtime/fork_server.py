"""The process that forks workers: started by `fork_server_process.py`, with FD as its argument.

To start Python and import numpy and a runtime takes far longer than to load a small model. This
process does that once. FD is a stream socket; a byte with the descriptors of a worker's stdin,
stdout, stderr, shared file and *status pipe* asks for a worker. To the status pipe are written its
process id and, when it has ended, its exit code or minus the signal, as integers of 32 bits.

It runs one small model of its own and no other, so what a user's model or delegate does is in the
worker alone. It ends when nobody can ask any more and its last worker has ended.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import threading
import traceback
from base64 import b64decode
from typing import NoReturn

from edgeflare_agent.runtime import worker
from edgeflare_agent.runtime.fork_server_process import STATUS
from edgeflare_agent.runtime.model_runtime import Options
from edgeflare_agent.runtime.tflite.interpreter import LoadedModel
from edgeflare_agent.runtime.worker import warm_up

_DESCRIPTORS = 5
"""Number of descriptors that come with a request."""

MODEL = b64decode(
    "GAAAAFRGTDMAAA4AFAAQAAwACAAAAAQADgAAABAAAAAYAAAA4AAAAAMAAAABAAAABAAAAKj///8BAAAAEAAAAAwA"
    "FAAQAAwACAAEAAwAAAAQAAAAUAAAAFQAAABYAAAAAQAAABQAAAAAAA4AFAAAABAADAALAAQADgAAABQAAAAAAABO"
    "EAAAABQAAAAEAAQABAAAAAEAAAABAAAAAQAAAAAAAAABAAAAAQAAAAEAAAAAAAAAAgAAADAAAAAEAAAA5P///wgA"
    "AAAMAAAAAgAAAHQxAAABAAAAAQAAAAwADAAIAAAAAAAEAAwAAAAIAAAADAAAAAIAAAB0MAAAAQAAAAEAAAABAAAA"
    "EAAAAAwADAALAAAAAAAEAAwAAABlAAAAAAAAZQ=="
)
"""One operator, ABS, of one float32 value."""


def main(socket_fd: int) -> None:
    """Fork workers until nobody asks for more."""
    with contextlib.suppress(Exception):  # each worker tries again, and says what is wrong
        rehearse()
    requests = socket.socket(fileno=socket_fd)
    woken, wakes = _wake_on_deaths()
    status_pipes: dict[int, int] = {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    poll.register(woken, select.POLLIN)
    asked = True
    while asked or status_pipes:
        for ready, _ in poll.poll():
            if ready == woken:
                os.read(woken, 4096)
                _report_ended(status_pipes)
            elif (descriptors := _request(requests)) is None:
                poll.unregister(requests)
                asked = False
            else:
                _fork(descriptors, [socket_fd, woken, wakes, *status_pipes.values()], status_pipes)


def rehearse() -> None:
    """Run the small model as workers run theirs; afterwards no thread is left.

    The workers inherit what that leaves behind, such as what QEMU has translated: it translates
    code when that first runs, which takes longer than anything else before a worker is ready.

    Raises:
        RuntimeMissing: there is no runtime.
        ModelRejected: the runtime refuses the model.

    """
    # When a process starts its first thread, QEMU discards all that it has translated. Each worker
    # starts one; here it is done before there is anything to discard.
    thread = threading.Thread(target=threading.get_ident)
    thread.start()
    thread.join()
    warm_up(LoadedModel(MODEL, Options("xnnpack")), 1)


def _wake_on_deaths() -> tuple[int, int]:
    """Return a descriptor that can be read when a worker has ended, and where that is written."""
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken, wakes


def _request(requests: socket.socket) -> list[int] | None:
    """Return the descriptors of the next request, None if none will come any more."""
    try:
        content, descriptors, _, _ = socket.recv_fds(requests, 1, _DESCRIPTORS)
    except ConnectionError:
        return None
    return descriptors if content else None


def _fork(descriptors: list[int], own: list[int], status_pipes: dict[int, int]) -> None:
    *given, status_pipe = descriptors
    if (pid := os.fork()) == 0:
        for descriptor in (*own, status_pipe):
            os.close(descriptor)
        _work(given)
    for descriptor in given:
        os.close(descriptor)
    _report(status_pipe, pid)
    status_pipes[pid] = status_pipe


def _work(given: list[int]) -> NoReturn:
    """Be a worker, as the one that is started by itself is."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        *streams, shared = given
        for at, stream in enumerate(streams):
            os.dup2(stream, at)
            os.close(stream)
        worker.main(shared)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _report_ended(status_pipes: dict[int, int]) -> None:
    for pid in list(status_pipes):
        ended, wait_status = os.waitpid(pid, os.WNOHANG)
        if ended:
            status_pipe = status_pipes.pop(pid)
            _report(status_pipe, os.waitstatus_to_exitcode(wait_status))
            os.close(status_pipe)


def _report(status_pipe: int, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent is gone; its workers end, too
        os.write(status_pipe, STATUS.pack(number))


if __name__ == "__main__":
    main(int(sys.argv[1]))
