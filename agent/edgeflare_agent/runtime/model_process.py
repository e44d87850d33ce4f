"""A model in a worker process of its own, so that a crash or hang affects only that model."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import cast

from edgeflare_agent.runtime import shared_memory
from edgeflare_agent.runtime.launcher import default_launcher
from edgeflare_agent.runtime.model_runtime import (
    Batch,
    Failure,
    FailureKind,
    ModelRejected,
    Options,
    TensorSpec,
    WorkerLost,
)
from edgeflare_agent.runtime.shared_memory import NOWHERE, SharedBatch
from edgeflare_agent.runtime.worker_messages import LoadingOrder, ReadyModel
from edgeflare_agent.runtime.worker_process import (
    Death,
    DiedLoading,
    WorkerProcess,
    load,
    loading_order,
)

# From the command to the first input; only a machine that is out of breath needs longer.
_BEGIN_SECONDS = 30.0

# How often to look where a silent worker is; a hang is noticed that much later.
_LOOKS_PER_TIMEOUT = 8

# An input that killed or hung the worker this often, the last time all alone, is to blame.
_CONFIRMED = 2

# SIGKILL mostly comes from outside, so it takes more of them until the input is to blame, as it is
# when it makes the system run out of memory.
_CONFIRMED_BY_ANOTHER_HAND = 4

# Workers in a row that died before they began on an input. Generous, since a system out of memory
# or somebody's script kills many of them, and each costs a fraction of a second.
_FRUITLESS_STARTS = 30


@dataclasses.dataclass(frozen=True)
class _Interruption:
    """A worker that ended in mid-batch: at which input, how, and whether by another's hand."""

    index: int
    kind: FailureKind
    detail: str
    by_another_hand: bool


class IsolatedModel:
    """A model in a worker process of its own. Safe to use from several threads.

    The worker counts in shared memory the input that it is at. When it dies or hangs there, a new
    one runs that input again, alone; a second failure confirms it. Such an input is answered with
    a Failure and *quarantined*: when it comes again, it is not run. All others are answered as if
    nothing had happened.

    Attributes:
        inputs: the model's inputs, in the order in which they are laid out in a payload.
        outputs: likewise.
        operators: names in execution order, delegates apart.
        delegated_nodes: nodes of the graph that a delegate took.
        external_nodes: those of them that the external delegate took.
        total_nodes: nodes of the graph.
        input_bytes: size of one input, all its tensors together.
        output_bytes: size of one output.
        runtime: name and version of the runtime that runs it.
        adapter: what its accelerator computes on; empty where there is none.
        arena_bytes: size of its arena; 0 where the runtime has none.

    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    operators: tuple[str, ...]
    delegated_nodes: int
    external_nodes: int
    total_nodes: int
    input_bytes: int
    output_bytes: int
    runtime: str
    adapter: str
    arena_bytes: int

    @classmethod
    def open(
        cls,
        path: Path,
        options: Options,
        launcher: Sequence[str] | None = None,
        sha256: str | None = None,
    ) -> IsolatedModel:
        """Start a worker and load a model in it.

        Args:
            path: the `.tflite` file, which must stay as it is while the model is open.
            options: how to run it.
            launcher: the command that starts Python; None for $EDGEFLARE_AGENT_LAUNCHER, or this
                interpreter.
            sha256: what the file must hash to; None for what it hashes to now. Each worker hashes
                the bytes that it loads.

        Raises:
            ModelRejected: the runtime refuses the file or the delegate, or crashes on loading it.
            ModelChanged: the file has another hash.
            WorkerLost: no worker can be started at all.

        """
        order = loading_order(path, options, sha256)
        return cls(order, default_launcher() if launcher is None else launcher)

    def __init__(self, order: LoadingOrder, launcher: Sequence[str]) -> None:
        self._starts = 0
        self._order = order
        self._timeout = order.options.input_timeout_seconds
        self._launcher = launcher
        self._quarantine: dict[bytes, tuple[FailureKind, str]] = {}
        self._lock = threading.Lock()
        self._closed = False
        self._worker: WorkerProcess | None = None
        self._shared_fd = shared_memory.create()
        try:
            ready = self._start()
        except BaseException:
            os.close(self._shared_fd)
            raise
        self.inputs, self.outputs = ready.inputs, ready.outputs
        self.operators, self.total_nodes = ready.operators, len(ready.operators)
        self.delegated_nodes, self.external_nodes = ready.delegated_nodes, ready.external_nodes
        self.input_bytes, self.output_bytes = ready.input_bytes, ready.output_bytes
        self.runtime, self.adapter = ready.runtime, ready.adapter
        self.arena_bytes = ready.arena_bytes
        self._batch = SharedBatch(self._shared_fd, self.input_bytes, self.output_bytes)

    @property
    def worker_pid(self) -> int | None:
        """The worker's process id, or None where there is none at the moment."""
        worker = self._worker
        return None if worker is None else worker.pid

    @property
    def restarts(self) -> int:
        """Workers that were replaced."""
        return max(0, self._starts - 1)

    @property
    def quarantined(self) -> int:
        """Inputs in quarantine."""
        return len(self._quarantine)

    def __enter__(self) -> IsolatedModel:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, also in mid-batch. Closing twice is no error."""
        self._closed = True
        if (worker := self._worker) is not None:
            worker.kill()
        with self._lock:
            if self._worker is not None:
                self._bury()
            if self._shared_fd >= 0:
                os.close(self._shared_fd)
                self._shared_fd = -1

    def run(self, payload: bytes | memoryview, count: int) -> Batch:
        """Run a batch.

        Args:
            payload: `count` inputs one behind the other, each its tensors in order, C-contiguous
                and little-endian.
            count: inputs in it, at least 1.

        Raises:
            ValueError: the payload does not hold `count` inputs.
            ModelChanged: a new worker was needed, and found another file.
            WorkerLost: no worker stays alive, or the model was closed.

        """
        payload = memoryview(payload).cast("B")
        if count < 1 or len(payload) != count * self.input_bytes:
            raise ValueError(
                f"{count} inputs of {self.input_bytes} bytes each were promised, "
                f"and {len(payload)} bytes came"
            )
        with self._lock:
            return self._run(payload, count)

    def _run(self, payload: memoryview, count: int) -> Batch:
        self._batch.reserve(count)
        self._batch.write_inputs(payload)
        failures = self._known_failures(payload, range(count))
        busy_seconds = 0.0
        first = 0
        suspicions: list[_Interruption] = []
        while first < count:
            if first in failures:
                first += 1
                continue
            stop = first + 1
            while not suspicions and stop < count and stop not in failures:
                stop += 1
            answer = self._attempt(first, stop, failures)
            if isinstance(answer, _Interruption):
                if answer.index > first:
                    suspicions.clear()
                first = answer.index
                suspicions.append(answer)
                if not _confirmed(suspicions):
                    continue
                failures[first] = Failure(first, answer.kind, answer.detail)
                self._quarantine[self._key(payload, first)] = (answer.kind, answer.detail)
                stop = first + 1
                failures.update(self._known_failures(payload, range(stop, count)))
            else:
                busy_seconds += answer
            first = stop
            suspicions.clear()
        for index in failures:
            self._batch.blank_output(index)
        ordered = tuple(failures[index] for index in sorted(failures))
        return Batch(self._batch.read_outputs(count), ordered, busy_seconds)

    def _known_failures(self, payload: memoryview, indexes: range) -> dict[int, Failure]:
        """Return those inputs of a batch that are in quarantine, by index."""
        failures: dict[int, Failure] = {}
        if not self._quarantine:
            return failures
        for index in indexes:
            if known := self._quarantine.get(self._key(payload, index)):
                failures[index] = Failure(index, *known, quarantined=True)
        return failures

    def _key(self, payload: memoryview, index: int) -> bytes:
        one = payload[index * self.input_bytes : (index + 1) * self.input_bytes]
        return hashlib.sha256(one).digest()

    def _attempt(
        self, first: int, stop: int, failures: dict[int, Failure]
    ) -> float | _Interruption:
        """Have inputs run by a worker: seconds that it took, or where and how it was interrupted.

        Inputs that the runtime answers with an error are added to `failures`.
        """
        for _ in range(_FRUITLESS_STARTS):
            worker = self._living_worker()
            self._batch.mark = NOWHERE
            hung = False
            try:
                worker.send({"first": first, "stop": stop, "capacity": self._batch.capacity})
                if (busy_seconds := self._await(worker, failures)) is not None:
                    return busy_seconds
                hung = True
                worker.kill()
            except (OSError, EOFError):
                pass
            death = self._bury()
            index = self._batch.mark
            if index == NOWHERE:
                continue
            if not first <= index < stop:
                # A kernel wrote there. One input alone tells whether it is to blame.
                index = first
            if hung:
                detail = f"no answer within {self._timeout:g} s"
                return _Interruption(index, "hang", detail, by_another_hand=False)
            return _Interruption(index, "crash", str(death), death.by_another_hand)
        raise WorkerLost(f"{_FRUITLESS_STARTS} workers in a row ended at once: {death}")

    def _await(self, worker: WorkerProcess, failures: dict[int, Failure]) -> float | None:
        """Return the seconds that the worker took, or None once an input takes too long.

        An input's time counts from when we first see the worker at it, not from a clock that the
        worker writes down: such a pair could be read half-written.
        """
        seen, since = NOWHERE, time.monotonic()
        while True:
            answer = worker.receive(self._timeout / _LOOKS_PER_TIMEOUT)
            if answer is not None:
                if "error" not in answer:
                    return float(answer["busy_seconds"])
                index, message = answer["error"]
                failures[index] = Failure(index, "error", message)
                continue
            mark, now = self._batch.mark, time.monotonic()
            if mark != seen:
                seen, since = mark, now
            elif now - since >= (_BEGIN_SECONDS if mark == NOWHERE else self._timeout):
                return None

    def _living_worker(self) -> WorkerProcess:
        if self._worker is None:
            try:
                self._start()
            except ModelRejected as error:
                raise WorkerLost(f"the model does not load any more: {error}") from error
        return cast("WorkerProcess", self._worker)

    def _start(self) -> ReadyModel:
        """Start a worker, have it load the model, and return what it says of it."""
        for _ in range(_FRUITLESS_STARTS):
            if self._closed:
                raise WorkerLost("the model was closed")
            self._starts += 1
            worker = self._worker = WorkerProcess(self._launcher, self._shared_fd)
            if self._closed:  # before there was a worker that `close` could kill
                worker.kill()
            try:
                return load(worker, self._order)
            except DiedLoading as died:
                death = self._bury()
                if not death.by_another_hand:
                    raise died.blame(death) from None
            except BaseException:
                worker.kill()
                self._bury()
                raise
        raise WorkerLost(f"{_FRUITLESS_STARTS} workers in a row were killed on starting: {death}")

    def _bury(self) -> Death:
        death = cast("WorkerProcess", self._worker).end()
        self._worker = None
        return death


def _confirmed(suspicions: Sequence[_Interruption]) -> bool:
    own = sum(not suspicion.by_another_hand for suspicion in suspicions)
    return own >= _CONFIRMED or len(suspicions) >= _CONFIRMED_BY_ANOTHER_HAND
