"""The open sessions: each has one model in a worker process of its own."""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from edgeflare_agent.model_store import ModelStore, UnknownModel
from edgeflare_agent.runtime import Batch, IsolatedModel, ModelChanged, Options

MAX_SESSIONS = 8
"""A worker takes 40 MB and more, and a board's memory is small."""

# A host that is gone without a word must not keep its place for ever; one that merely waits for
# the device to cool down must not lose it. Places are taken from idle sessions only when needed.
# Those that a host has lost with its link, and not taken up again, need not be idle.
_ABANDONED_SECONDS = 600.0


class UnknownSession(Exception):  # noqa: N818
    """There is no such session."""


class TooManySessions(Exception):  # noqa: N818
    """As many sessions are open as are allowed."""


@dataclass
class _Session:
    model: IsolatedModel
    sha256: str
    options: Options
    resume_token: str
    # Ends the worker, then lets go of the model's file.
    resources: contextlib.ExitStack
    # The connection of its host by which it was opened, or taken up again.
    connection: int
    used: float = field(default_factory=time.monotonic)
    running: int = 0


class Sessions:
    """All open sessions of an agent. Safe with several threads.

    Args:
        store: where the models are.
        launcher: the command that starts Python for a worker; None for the default.

    """

    def __init__(self, store: ModelStore, launcher: Sequence[str] | None = None) -> None:
        self._store = store
        self._launcher = launcher
        self._lock = threading.Lock()
        self._token_is_free = threading.Condition(self._lock)
        self._tokens_in_use: set[str] = set()
        self._opening = 0
        self._connection = 0
        self._sessions: dict[str, _Session] = {}
        self._past_restarts = 0

    def open(
        self, sha256: str, options: Options, resume_token: str = ""
    ) -> tuple[str, IsolatedModel]:
        """Load a stored model into a worker of its own; return the session's name and the model.

        A session of the same model, options and token is taken up again instead: a host that has
        lost its link, and not its device, need not wait for a model to load again.

        Args:
            sha256: the model.
            options: how it is to be run.
            resume_token: token by which the session is known; empty for none.

        Raises:
            TooManySessions: see there.
            BadName, UnknownModel: see the store.
            ModelRejected, WorkerLost: see the runtime.

        """
        with self._token(resume_token):
            taken_up = self._taken_up(sha256, options, resume_token) if resume_token else None
            return taken_up or self._load(sha256, options, resume_token)

    def _load(self, sha256: str, options: Options, resume_token: str) -> tuple[str, IsolatedModel]:
        connection = self._take_place()
        try:
            with contextlib.ExitStack() as stack:
                path = stack.enter_context(self._store.hold(sha256))
                model = stack.enter_context(
                    IsolatedModel.open(path, options, self._launcher, sha256)
                )
                session_id = secrets.token_urlsafe(16)
                with self._lock:
                    self._sessions[session_id] = _Session(
                        model, sha256, options, resume_token, stack.pop_all(), connection
                    )
        except ModelChanged as changed:
            self._store.recheck(sha256)
            raise UnknownModel(f"the stored model {sha256} was damaged: send it again") from changed
        finally:
            with self._lock:
                self._opening -= 1
        return session_id, model

    @contextlib.contextmanager
    def _token(self, resume_token: str) -> Iterator[None]:
        """Let one thread at a time open under a token.

        What an earlier one, whose host no longer waits, has opened, the next one takes up.
        """
        if not resume_token:
            yield
            return
        with self._lock:
            self._token_is_free.wait_for(lambda: resume_token not in self._tokens_in_use)
            self._tokens_in_use.add(resume_token)
        try:
            yield
        finally:
            with self._lock:
                self._tokens_in_use.remove(resume_token)
                self._token_is_free.notify_all()

    def _taken_up(
        self, sha256: str, options: Options, resume_token: str
    ) -> tuple[str, IsolatedModel] | None:
        """Return the session of that token, after ending it if it is of something else."""
        others = []
        with self._lock:
            for name, session in self._sessions.items():
                if session.resume_token != resume_token:
                    continue
                if (session.sha256, session.options) == (sha256, options):
                    session.used = time.monotonic()  # somebody is there again
                    session.connection = self._connection
                    return name, session.model
                others.append(name)
        for name in others:
            self.close(name)
        return None

    def run(self, session_id: str, payload: bytes, count: int) -> Batch:
        """Run a batch in a session; see IsolatedModel.run.

        Raises:
            UnknownSession: see there; or its model's file was damaged, which ended it.

        """
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None:
                raise UnknownSession("no such session; it was closed, or the agent was restarted")
            session.running += 1
        try:
            return session.model.run(payload, count)
        except ModelChanged as changed:
            self._store.recheck(session.sha256)
            self.close(session_id)
            raise UnknownSession("the session's model was damaged in the store") from changed
        finally:
            with self._lock:
                session.running -= 1
                session.used = time.monotonic()

    def model(self, session_id: str) -> IsolatedModel:
        """Return a session's model, or raise UnknownSession."""
        with self._lock:
            if session := self._sessions.get(session_id):
                return session.model
        raise UnknownSession("no such session; it was closed, or the agent was restarted")

    def idle_seconds(self, session_id: str) -> float:
        """Return the time since a session's last batch ended, 0 while it runs one.

        Raises:
            UnknownSession: see there.

        """
        with self._lock:
            if session := self._sessions.get(session_id):
                return 0.0 if session.running else time.monotonic() - session.used
        raise UnknownSession("no such session; it was closed, or the agent was restarted")

    def close(self, session_id: str) -> None:
        """End a session and its worker. Closing an unknown session is no error."""
        with self._lock:
            session = self._sessions.pop(session_id, None)
            if session is not None:
                self._past_restarts += session.model.restarts
        if session is not None:
            session.resources.close()

    def close_all(self) -> None:
        """End all sessions that are open, and their workers, also in mid-batch."""
        with self._lock:
            names = list(self._sessions)
        for name in names:
            self.close(name)

    def note_new_connection(self) -> None:
        """Note that the host has connected anew.

        What it had open by then it takes up again, or has forgotten: where its link was lost as it
        closed a session, or as it opened one, it could not say so.
        """
        with self._lock:
            self._connection += 1

    def worker_pids(self) -> list[int]:
        """Return the process id of each worker."""
        with self._lock:
            pids = [session.model.worker_pid for session in self._sessions.values()]
        return [pid for pid in pids if pid is not None]

    def restarts(self) -> int:
        """Return how many workers were replaced since the agent began."""
        with self._lock:
            models = [session.model for session in self._sessions.values()]
            return self._past_restarts + sum(model.restarts for model in models)

    def quarantined(self) -> int:
        """Return how many inputs are in quarantine, in all open sessions."""
        with self._lock:
            return sum(session.model.quarantined for session in self._sessions.values())

    def _take_place(self) -> int:
        """Take a place, which one that is abandoned gives way to; return the host's connection."""
        abandoned = None
        with self._lock:
            if len(self._sessions) + self._opening >= MAX_SESSIONS:
                abandoned = self._abandoned()
                if abandoned is None:
                    raise TooManySessions(f"{MAX_SESSIONS} sessions are open, close one first")
            self._opening += 1
            connection = self._connection
        if abandoned is not None:
            self.close(abandoned)
        return connection

    def _abandoned(self) -> str | None:
        """Return the session that was left the longest ago, else one that has been idle long."""
        left = [
            (bool(session.running), session.used, name)
            for name, session in self._sessions.items()
            if session.connection != self._connection
        ]
        if left:
            return min(left)[2]
        idle = [(s.used, name) for name, s in self._sessions.items() if not s.running]
        if idle and time.monotonic() - min(idle)[0] > _ABANDONED_SECONDS:
            return min(idle)[1]
        return None
