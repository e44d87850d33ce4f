"""A worker process as seen from its parent: start, load a model, exchange messages, end."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import hashlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgeflare_agent.runtime.fork_server_process import (
    ForkedProcess,
    ForkServer,
    ForkServerProcess,
    surroundings,
)
from edgeflare_agent.runtime.launcher import default_launcher, python_command
from edgeflare_agent.runtime.model_runtime import (
    ModelChanged,
    ModelRejected,
    ModelRuntime,
    Options,
    WorkerLost,
    runtime_with,
)
from edgeflare_agent.runtime.worker_messages import Channel, LoadingOrder, ReadyModel

_servers: dict[tuple[str, ...], ForkServer] = {}
_without: set[tuple[str, ...]] = set()
"""Launchers whose server has never forked a worker: they start each by itself."""

_lock = threading.Lock()


# A worker that was told to end, or killed, is gone at once; longer means that it hangs.
_END_SECONDS = 5.0


@dataclass(frozen=True)
class Death:
    """How a worker ended.

    Attributes:
        returncode: exit code, or minus the signal.
        last_words: the last lines that it printed.

    """

    returncode: int
    last_words: tuple[str, ...]

    @property
    def by_another_hand(self) -> bool:
        """True for the signals that others send: a user, a supervisor, a system out of memory."""
        return -self.returncode in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def __str__(self) -> str:
        if self.returncode < 0:
            try:
                cause = signal.Signals(-self.returncode).name
            except ValueError:
                cause = f"signal {-self.returncode}"
        else:
            cause = f"exit code {self.returncode}"
        words = [line.strip() for line in self.last_words]
        telling = [line for line in words if line and not line.startswith(("INFO:", "WARNING:"))]
        return f"{cause}; it last said: {telling[-1][:200]}" if telling else cause


_living: set[WorkerProcess] = set()
_ending = threading.Event()


def end_all_workers(seconds: float) -> None:
    """Kill every worker that this process has started, and let no more be started.

    Whatever a worker does, and whether it is open, loading or running a batch: SIGKILL ends it,
    and whoever waits for it is told so.

    Args:
        seconds: how long to wait until they are gone.

    """
    _ending.set()
    workers = list(_living)
    for worker in workers:
        worker.kill()
    deadline = time.monotonic() + seconds
    for worker in workers:
        worker.wait(max(0.0, deadline - time.monotonic()))
    end_fork_servers()  # which reap the workers


class WorkerProcess:
    """A running worker.

    Attributes:
        pid: process id.

    """

    def __init__(self, launcher: Sequence[str], shared_fd: int) -> None:
        theirs, ours = _pipes()
        try:
            self._process = _started(launcher, theirs, shared_fd)
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)
        self.pid = self._process.pid
        _living.add(self)
        if _ending.is_set():
            self.kill()
        *self._pipes, words = ours
        commands, answers = self._pipes
        self._channel = Channel(answers, commands)
        self._last_words: deque[str] = deque(maxlen=20)
        self._listener = threading.Thread(target=self._listen, args=(words,), daemon=True)
        self._listener.start()

    def _listen(self, words: int) -> None:
        """Keep the last lines that the runtime printed, away from the user's terminal.

        What the worker has started may go on printing after its end. So the pipe is closed here:
        its number would be that of another one, whose bytes would be read.
        """
        unfinished = b""
        while arrived := os.read(words, 65536):
            *lines, unfinished = (unfinished + arrived).split(b"\n")
            self._last_words.extend(line.decode(errors="replace") for line in lines)
            unfinished = unfinished[-1000:]
        os.close(words)

    def send(self, message: dict[str, Any]) -> None:
        """Send a command; OSError if the worker is gone."""
        self._channel.send(message)

    def receive(self, timeout_seconds: float) -> dict[str, Any] | None:
        """Return the next answer, or None if none came in time; EOFError if the worker is gone."""
        return self._channel.receive(timeout_seconds)

    def kill(self) -> None:
        """Kill the process, and what it has started, if it still runs."""
        if self._process.poll() is None:
            # Before it has made a session of its own it has started nothing.
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(self.pid, signal.SIGKILL)

    def wait(self, seconds: float) -> None:
        """Wait until the process is gone, but no longer than that."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def end(self) -> Death:
        """Wait for a dying process, kill it if it goes on, and release all that it had."""
        process = self._process
        try:
            code = process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            code = process.wait()
        _living.discard(self)
        self._listener.join(_END_SECONDS)
        _close(self._pipes)
        return Death(code, tuple(self._last_words))


def _pipes() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return a worker's stdin, stdout and stderr, and the other ends of them."""
    pipes = os.pipe(), os.pipe(), os.pipe()
    commands, answers, words = pipes
    return (commands[0], answers[1], words[1]), (commands[1], answers[0], words[0])


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _started(
    launcher: Sequence[str], streams: Sequence[int], shared_fd: int
) -> ForkedProcess | subprocess.Popen[bytes]:
    """Start a worker: forked where that can be, else by itself, which also says why it cannot."""
    _refuse_at_the_end()
    if (forked := _forked_worker(launcher, (*streams, shared_fd))) is not None:
        return forked
    _refuse_at_the_end()
    stdin, stdout, stderr = streams
    try:
        return subprocess.Popen(
            [*python_command(launcher, "edgeflare_agent.runtime.worker"), str(shared_fd)],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            pass_fds=(shared_fd,),
            # Ctrl-C in the parent's terminal is the parent's to handle.
            start_new_session=True,
        )
    except OSError as error:
        raise WorkerLost(f"cannot start {launcher[0]}: {error.strerror}") from error


def _refuse_at_the_end() -> None:
    if _ending.is_set():
        raise WorkerLost("this process is ending")


def _forked_worker(launcher: Sequence[str], descriptors: Sequence[int]) -> ForkedProcess | None:
    """Return a new worker, None if it has to be started by itself.

    Args:
        launcher: the command that starts Python.
        descriptors: descriptors of its stdin, stdout, stderr and shared file.

    """
    key = tuple(launcher)
    while (server := _server(key)) is not None:
        forked = server.fork(descriptors)
        with _lock:
            if forked is not None:
                server.forked = True
                return forked
            if _servers.get(key) is server:  # else another thread has let go of it meanwhile
                if not server.forked:
                    _without.add(key)
                _forget(key)
    return None


@atexit.register
def end_fork_servers() -> None:
    """Kill all servers, not their workers."""
    with _lock:
        for launcher in list(_servers):
            _forget(launcher)


@contextlib.contextmanager
def fork_server_socket() -> Iterator[int | None]:
    """Give the descriptor by which a child process may ask this one's fork server for workers.

    The child is told of it by `--fork-server`, and must have the environment of this process in all
    that its workers look at. None where there is no such server.
    """
    server = _server(tuple(default_launcher()))
    with _lock:
        # One of its own, since another thread may let go of the server before the child has it.
        lost = server is None or server.socket.fileno() < 0
        own = None if server is None or lost else server.socket.dup()
        if server is not None:
            server.forked = True  # for the child, as far as is known here
    try:
        yield None if own is None else own.fileno()
    finally:
        if own is not None:
            own.close()


def take_fork_server(descriptor: int) -> None:
    """Ask the fork server of the parent process for the workers that the default launcher starts.

    Args:
        descriptor: what `fork_server_socket` gave there.

    Raises:
        OSError: it is no socket.

    """
    given = ForkServer(socket.socket(fileno=descriptor), forked=True)
    given.socket.set_inheritable(False)
    with _lock:
        _servers[tuple(default_launcher())] = given


def _server(launcher: tuple[str, ...]) -> ForkServer | None:
    """Return the server of a launcher; one that was started elsewhere makes room for another.

    None where it cannot be started, or this process ends: nobody would end another one.
    """
    with _lock:
        server = _servers.get(launcher)
        if server is not None and server.surroundings != surroundings():
            del _servers[launcher]
            server.retire()
            server = None
        if server is None and launcher not in _without and not _ending.is_set():
            try:
                command = python_command(launcher, "edgeflare_agent.runtime.fork_server")
                server = _servers[launcher] = ForkServerProcess(command)
            except OSError:
                _without.add(launcher)
        return server


def _forget(launcher: tuple[str, ...]) -> None:
    _servers.pop(launcher).kill()


# Loading a large model under QEMU takes tens of seconds; a runtime that hangs takes for ever.
# What is run to warm up comes on top.
_LOAD_SECONDS = 180.0


class DiedLoading(Exception):  # noqa: N818
    """The worker died before it was ready.

    Attributes:
        runtime: the runtime that it had imported by then, or None.

    """

    def __init__(self, runtime: str | None) -> None:
        super().__init__(runtime)
        self.runtime = runtime

    def blame(self, death: Death) -> ModelRejected | WorkerLost:
        """Return the error that names the cause: the model, or the installation."""
        if self.runtime is None:
            return WorkerLost(f"the worker process does not start: {death}")
        return ModelRejected(f"{self.runtime} crashed on loading it: {death}")


def loading_order(path: Path, options: Options, sha256: str | None = None) -> LoadingOrder:
    """Return the order by which a worker loads a model; the same bytes each time, or none.

    Args:
        path: the file.
        options: how to run it.
        sha256: what the file must hash to; None for what it hashes to now.

    Raises:
        ModelRejected: the file cannot be read, or cannot be a model.

    """
    digest = _sha256(path, sha256, runtime_with(options.kernels))
    return LoadingOrder(os.fspath(path.absolute()), digest, options)


def load(worker: WorkerProcess, order: LoadingOrder) -> ReadyModel:
    """Have a new worker load a model, and return what it says of it.

    Raises:
        ModelRejected: the runtime refuses it.
        ModelChanged: the file no longer hashes to what was ordered.
        WorkerLost: there is no runtime, or it does not get ready in time.
        DiedLoading: see there.

    """
    runtime = None
    try:
        worker.send(dataclasses.asdict(order))
        runtime = _expect(worker, "runtime", _LOAD_SECONDS)
        warming = order.options.warmup * order.options.input_timeout_seconds
        return ReadyModel.read(_expect(worker, "ready", _LOAD_SECONDS + warming))
    except (OSError, EOFError):
        raise DiedLoading(runtime) from None


def _expect(worker: WorkerProcess, key: str, seconds: float) -> Any:
    answer = worker.receive(seconds)
    if answer is None:
        raise WorkerLost(f"the worker process did not get ready within {seconds:.0f} s")
    if "no_runtime" in answer:
        raise WorkerLost(answer["no_runtime"])
    if "changed" in answer:
        raise ModelChanged(answer["changed"])
    if "rejected" in answer:
        raise ModelRejected(answer["rejected"])
    return answer[key]


def _sha256(path: Path, known: str | None, runtime: ModelRuntime) -> str:
    """Look at the head of a file, and return its hash, computed unless it is known."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            head = file.read(8)
            file.seek(0)
            while known is None and (block := file.read(1 << 20)):
                digest.update(block)
    except OSError as error:
        raise ModelRejected(f"cannot read {path}: {error.strerror}") from error
    if not head:
        raise ModelRejected("the file is empty")
    if (misfit := runtime.misfit(head)) is not None:
        raise ModelRejected(misfit)
    return known or digest.hexdigest()
