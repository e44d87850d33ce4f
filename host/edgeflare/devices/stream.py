"""One pipelined stream of batches to a session on the device: many under way, answered in order.

A link whose items arrive late: the emulated latency of profiles with `link_delay_seconds`. This is
emulation, and provenance says so (`transport`, `link_delay_seconds`): nothing but time is added.
Every round trip takes the delay longer, all of it on the way there. As on a real slow link it is
latency and not throughput: what was sent while another item was under way arrives right behind it.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc
import numpy as np
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch
from edgeflare.devices.connection import SLOW_LINK_BYTES_PER_SECOND, Connection, DeviceLost
from edgeflare.errors import InfrastructureError
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import crc32

_Item = TypeVar("_Item")

ATTEMPTS = 2
"""Times that the agent runs an input that hangs, before it is quarantined."""

SLACK_SECONDS = 30.0
"""Seconds beyond what a batch may compute: the link, and workers that are restarted under load."""

HEARTBEAT_INTERVAL_SECONDS = 10.0
"""Seconds without an answer after which the agent is asked whether the session is at work at all,
and again each so long. A batch may rightly take minutes; that one was lost is noticed earlier."""

WATCH_SECONDS = 0.5
"""Seconds between two looks at the clock; deadlines are far longer."""

END_SECONDS = 1.0
"""Seconds that an agent has to end a stream with nothing under way, before it is cancelled."""

_KINDS = {
    wire.InputFailure.KIND_CRASH: "crash",
    wire.InputFailure.KIND_HANG: "hang",
    wire.InputFailure.KIND_ERROR: "error",
}


class InferenceStream:
    """Sends batches without waiting, and resolves their futures as the replies come in.

    Three threads serve it: gRPC's own takes requests off the line, one reads replies, and one
    watches over their time. Whatever goes wrong fails every batch under way with the same error.
    """

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        output_dtype: np.dtype[np.generic],
        output_bytes: int,
        input_timeout_seconds: float,
    ) -> None:
        """Begin the stream.

        Args:
            connection: connection to the agent.
            session_id: the open session there.
            output_dtype: type of the model's output.
            output_bytes: size of its output for one input.
            input_timeout_seconds: time that one input may take.

        """
        self._connection = connection
        self._session_id = session_id
        self._output_dtype = output_dtype
        self._output_bytes = output_bytes
        self._input_timeout_seconds = input_timeout_seconds
        self._lock = threading.Lock()
        self._under_way: deque[_Message] = deque()
        self._sent = 0
        self._end: InfrastructureError | None = None
        self._closed = DeviceLost(f"{connection.name}: the session was closed")
        self._ended = threading.Event()
        self._line: DelayLine[wire.InferRequest] = DelayLine(connection.delay_seconds)
        self._call = connection.infer_stream(iter(self._line))
        self._threads = [
            threading.Thread(target=work, name=f"{connection.name} {title}", daemon=True)
            for work, title in ((self._read, "replies"), (self._watch, "deadlines"))
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, messages: Sequence[NDArray[np.generic]]) -> Future[RawBatch]:
        """Send one batch, already split into what one message holds each; never blocks."""
        batch = _Batch(len(messages))
        requests = [
            wire.InferRequest(
                session_id=self._session_id,
                count=len(inputs),
                payload=(payload := inputs.tobytes()),
                payload_crc32=crc32(payload),
            )
            for inputs in messages
        ]
        with self._lock:
            if self._end is not None:
                batch.future.set_exception(self._end)
                return batch.future
            for request in requests:
                self._sent += 1
                request.request_id = self._sent
                computing = request.count * self._input_timeout_seconds * ATTEMPTS
                self._under_way.append(
                    _Message(
                        request.request_id,
                        request.payload_crc32,
                        request.count,
                        len(request.payload),
                        batch,
                        seconds=computing + self._connection.delay_seconds + SLACK_SECONDS,
                        since=time.monotonic(),
                    )
                )
                self._line.put(request)
        return batch.future

    def close(self) -> None:
        """End the stream; batches still under way fail. Closing twice is no error.

        Where nothing is under way, the agent is left to end it: gRPC counts a cancelled stream
        until the agent's Python has collected it, and refuses new ones after some two dozen.
        """
        with self._lock:
            at_rest = self._end is None and not self._under_way
            if at_rest:  # nothing may be sent behind the end of the line
                self._end = self._closed
        if at_rest:
            self._line.close()
            self._ended.wait(END_SECONDS)
        self.cancel()

    def cancel(self) -> None:
        """End the stream without waiting for the agent, which may be gone."""
        self._finish(self._closed)
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _read(self) -> None:
        """Resolve futures as replies come in, until the stream ends."""
        try:
            for reply in self._call:
                self._take(reply)
            self._finish(DeviceLost(f"{self._connection.name}: the agent ended the stream"))
        except grpc.RpcError as error:
            self._finish(self._connection.lost(error))
        except DeviceLost as error:
            self._finish(error)
        except _WrongReplyError as error:
            self._finish(DeviceLost(f"{self._connection.name}: a reply arrived with {error}"))
        except Exception as error:
            # Else whoever waits for a batch would wait for ever.
            self._finish(InfrastructureError(f"{self._connection.name}: unexpected {error!r}"))
            raise

    def _take(self, reply: wire.InferReply) -> None:
        with self._lock:
            message = self._under_way[0] if self._under_way else None
        if message is None:
            raise _WrongReplyError("nothing under way that it could answer")
        part = self._checked(message, reply)
        with self._lock:
            if not self._under_way:
                return  # finished meanwhile, and its future has failed
            self._under_way.popleft()
            if self._under_way:
                self._under_way[0].since = time.monotonic()
        message.batch.add(part)

    def _checked(self, message: _Message, reply: wire.InferReply) -> RawBatch:
        """Return what a reply says, if it is whole and answers this message."""
        self._connection.check_leased(reply)
        if reply.request_id != message.request_id:
            raise _WrongReplyError(f"id {reply.request_id} instead of {message.request_id}")
        if reply.payload_crc32 != message.crc32:
            raise _WrongReplyError("the checksum of other inputs than those that were sent")
        if reply.outputs_crc32 != crc32(reply.outputs):
            raise _WrongReplyError("outputs that do not match their checksum")
        if len(reply.outputs) != message.count * self._output_bytes:
            raise _WrongReplyError(
                f"{len(reply.outputs)} bytes of outputs instead of"
                f" {message.count * self._output_bytes}"
            )
        if any(failure.index >= message.count for failure in reply.failures):
            raise _WrongReplyError("a failure of an input that was not sent")
        outputs = np.frombuffer(reply.outputs, self._output_dtype).reshape(message.count, -1)
        failures = {failure.index: _KINDS.get(failure.kind, "error") for failure in reply.failures}
        details = {failure.index: failure.detail for failure in reply.failures}
        return RawBatch(outputs, failures, reply.busy_seconds, details)

    def _watch(self) -> None:
        """End the stream when the oldest message under way is overdue, or has not arrived."""
        checked = time.monotonic()
        while not self._ended.wait(WATCH_SECONDS):
            with self._lock:
                oldest = self._under_way[0] if self._under_way else None
                size = sum(message.size for message in self._under_way)
            now = time.monotonic()
            if oldest is None:
                continue
            if now > oldest.since + oldest.seconds:
                self._finish(
                    DeviceLost(
                        f"{self._connection.name}: no answer to {oldest.count} inputs within"
                        f" {oldest.seconds:.0f} s"
                    )
                )
            elif now > max(checked, oldest.since) + HEARTBEAT_INTERVAL_SECONDS:
                self._check_progress(size / SLOW_LINK_BYTES_PER_SECOND, now - oldest.since)
                checked = now

    def _check_progress(self, transfer_seconds: float, waited_seconds: float) -> None:
        """End the stream if the agent does not answer, or is idle for longer than can be.

        It may have been idle long before anything was sent: the host pauses too.
        """
        try:
            idle_seconds = self._connection.idle_seconds(self._session_id, transfer_seconds)
        except InfrastructureError as error:
            self._finish(DeviceLost(str(error)))
            return
        if min(idle_seconds, waited_seconds) > transfer_seconds + HEARTBEAT_INTERVAL_SECONDS:
            self._finish(
                DeviceLost(
                    f"{self._connection.name}: what was sent has not arrived, or its answer has"
                    f" not; the agent has had nothing to do for {idle_seconds:.0f} s"
                )
            )

    def _finish(self, end: InfrastructureError) -> None:
        with self._lock:
            if self._end is None:
                self._end = end
            batches = {id(message.batch): message.batch for message in self._under_way}
            self._under_way.clear()
        self._ended.set()
        self._line.close()
        self._call.cancel()
        for batch in batches.values():
            batch.future.set_exception(self._end)


class _WrongReplyError(Exception):
    """What is wrong with a reply, as the end of a sentence."""


class _Batch:
    """A batch under way, and the parts of its answer that have come back."""

    def __init__(self, messages: int) -> None:
        self.future: Future[RawBatch] = Future()
        self.future.set_running_or_notify_cancel()  # it cannot be called back
        self._messages = messages
        self._parts: list[RawBatch] = []

    def add(self, part: RawBatch) -> None:
        """Take the next part; the last one resolves the future."""
        self._parts.append(part)
        if len(self._parts) == self._messages:
            self.future.set_result(_joined(self._parts))


@dataclass(slots=True)
class _Message:
    """One request under way; `since` is when it became the next to be answered."""

    request_id: int
    crc32: int
    count: int
    size: int
    batch: _Batch
    seconds: float
    since: float


def _joined(parts: Sequence[RawBatch]) -> RawBatch:
    if len(parts) == 1:
        return parts[0]
    failures: dict[int, str] = {}
    details: dict[int, str] = {}
    before = 0
    for part in parts:
        failures.update({before + index: kind for index, kind in part.failures.items()})
        details.update({before + index: detail for index, detail in part.details.items()})
        before += len(part.outputs)
    outputs = np.concatenate([part.outputs for part in parts])
    return RawBatch(outputs, failures, sum(part.busy_seconds for part in parts), details)


class DelayLine(Generic[_Item]):
    """A queue whose items come out in order, each `seconds` after it was put in.

    One thread may put while another iterates. Iteration waits for items until the line is closed.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._sleep = sleep
        self._queue: queue.SimpleQueue[tuple[float, _Item] | None] = queue.SimpleQueue()

    def put(self, item: _Item) -> None:
        """Send an item on its way; never blocks."""
        self._queue.put((self._clock() + self._seconds, item))

    def close(self) -> None:
        """End the iteration behind the items that are under way."""
        self._queue.put(None)

    def __iter__(self) -> Iterator[_Item]:
        while (entry := self._queue.get()) is not None:
            due, item = entry
            if (left := due - self._clock()) > 0:
                self._sleep(left)
            yield item
