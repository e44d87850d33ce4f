"""The stream against a server in this process that answers as each test tells it to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch
from edgeflare.devices import stream
from edgeflare.devices.connection import DeviceLost
from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos import crc32

Serve = Callable[..., Profile]

ROW_BYTES = 4


def honest(request: wire.InferRequest) -> wire.InferReply:
    """Answer as an agent does whose model is the identity."""
    return wire.InferReply(
        request_id=request.request_id,
        payload_crc32=crc32(request.payload),
        outputs=request.payload,
        outputs_crc32=crc32(request.payload),
        busy_seconds=1.0,
    )


def after(gate: threading.Event, seconds: float = 200.0) -> Callable[..., wire.InferReply]:
    """Answer honestly, once a gate is open or so many seconds are over."""

    def answer(request: wire.InferRequest) -> wire.InferReply:
        gate.wait(seconds)
        return honest(request)

    return answer


def batch(count: int, seed: int = 0) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(-128, 128, (count, ROW_BYTES)).astype(np.int8)


def test_many_batches_under_way_are_answered_each_with_its_own(serve: Serve, model: Path) -> None:
    gate = threading.Event()
    with connect(serve(answer=after(gate))) as device:
        session = device.open(model)
        batches = [batch(1 + seed % 10, seed) for seed in range(300)]
        order: list[Future[RawBatch]] = []
        futures = [session.submit(inputs) for inputs in batches]
        for future in futures:
            future.add_done_callback(order.append)
        assert not any(future.done() for future in futures)  # submit has not waited
        gate.set()
        for inputs, future in zip(batches, futures, strict=True):
            assert np.array_equal(future.result(200).outputs, inputs)
    assert order == futures


@pytest.mark.parametrize("count", [1, 9, 10, 11, 95])
def test_a_batch_is_split_so_that_each_message_fits(serve: Serve, model: Path, count: int) -> None:
    sizes: list[int] = []

    def answer(request: wire.InferRequest) -> wire.InferReply:
        sizes.append(len(request.payload))
        reply = honest(request)
        kinds = (wire.InputFailure.KIND_CRASH, wire.InputFailure.KIND_HANG)
        kind = kinds[len(sizes) % 2]
        reply.failures.add(index=request.count - 1, kind=kind, detail=f"of {len(sizes)}")
        return reply

    with connect(serve(answer=answer, payload_limit=40)) as device:
        session = device.open(model)
        result = session.submit(inputs := batch(count)).result(200)

    messages = -(-count // 10)
    assert np.array_equal(result.outputs, inputs)
    assert len(sizes) == messages
    assert max(sizes) <= 40
    assert result.busy_seconds == messages
    ends = [*range(9, count, 10)] + ([count - 1] if count % 10 else [])
    assert result.failures == {
        end: ("hang", "crash")[position % 2] for position, end in enumerate(ends)
    }
    assert result.details == {end: f"of {at + 1}" for at, end in enumerate(ends)}


def corrupt_outputs(reply: wire.InferReply) -> None:
    reply.outputs = bytes([reply.outputs[0] ^ 1]) + reply.outputs[1:]


def other_inputs(reply: wire.InferReply) -> None:
    reply.payload_crc32 ^= 1


def other_request(reply: wire.InferReply) -> None:
    reply.request_id += 1


def short_outputs(reply: wire.InferReply) -> None:
    reply.outputs = reply.outputs[:-1]
    reply.outputs_crc32 = crc32(reply.outputs)


def failure_of_nobody(reply: wire.InferReply) -> None:
    reply.failures.add(index=3, kind=wire.InputFailure.KIND_CRASH)


@pytest.mark.parametrize(
    ("tamper", "complaint"),
    [
        (corrupt_outputs, "outputs that do not match their checksum"),
        (other_inputs, "the checksum of other inputs than those that were sent"),
        (other_request, "id 4 instead of 3"),
        (short_outputs, "11 bytes of outputs instead of 12"),
        (failure_of_nobody, "a failure of an input that was not sent"),
    ],
)
def test_a_wrong_reply_is_not_believed(
    serve: Serve, model: Path, tamper: Callable[[wire.InferReply], None], complaint: str
) -> None:
    """The third reply is wrong: what came before stands, and all the rest is lost."""

    def answer(request: wire.InferRequest) -> wire.InferReply:
        reply = honest(request)
        if request.request_id == 3:
            tamper(reply)
        return reply

    with connect(serve(answer=answer)) as device:
        session = device.open(model)
        futures = [session.submit(batch(3, seed)) for seed in range(6)]
        for seed in range(2):
            assert np.array_equal(futures[seed].result(200).outputs, batch(3, seed))
        for future in [*futures[2:], session.submit(batch(1))]:
            with pytest.raises(DeviceLost) as caught:
                future.result(200)
            assert str(caught.value) == f"fake: a reply arrived with {complaint}"

        device.reopen()  # and request ids begin anew
        assert np.array_equal(session.submit(batch(5)).result(200).outputs, batch(5))


def test_a_device_that_does_not_answer_in_time_is_lost(
    serve: Serve, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "SLACK_SECONDS", -59.9)  # 3 inputs of 10 s, tried twice
    monkeypatch.setattr(stream, "WATCH_SECONDS", 0.01)
    gate = threading.Event()
    with connect(serve(answer=after(gate))) as device:
        session = device.open(model)
        try:
            with pytest.raises(DeviceLost, match="fake: no answer to 3 inputs within 0 s"):
                session.submit(batch(3)).result(200)
        finally:
            gate.set()


@pytest.mark.slow
@pytest.mark.parametrize(("bytes_per_second", "lost"), [(ROW_BYTES, False), (10**6, True)])
def test_a_device_that_rested_has_not_lost_what_is_on_its_way(
    serve: Serve,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    bytes_per_second: float,
    *,
    lost: bool,
) -> None:
    """The agent is idle since long ago; what counts is how long a batch has been on its way."""
    monkeypatch.setattr(stream, "HEARTBEAT_INTERVAL_SECONDS", 0.1)
    monkeypatch.setattr(stream, "WATCH_SECONDS", 0.01)
    monkeypatch.setattr(stream, "SLOW_LINK_BYTES_PER_SECOND", bytes_per_second)
    gate = threading.Event()
    with connect(serve(answer=after(gate, 1.0), idle_seconds=1000.0)) as device:
        future = device.open(model).submit(batch(8))  # 8 s, or next to none
        try:
            if lost:
                with pytest.raises(DeviceLost, match="what was sent has not arrived"):
                    future.result(200)
            else:
                assert np.array_equal(future.result(200).outputs, batch(8))
        finally:
            gate.set()


def test_a_stream_at_rest_is_ended_and_not_cancelled(serve: Serve, model: Path) -> None:
    """An agent refuses new streams while it still has many cancelled ones."""
    ended = threading.Event()
    with connect(serve(answer=honest, streamed=ended.set)) as device:
        session = device.open(model)
        session.submit(batch(2)).result(200)
        session.close()
        assert ended.is_set()
        with pytest.raises(DeviceLost, match="fake: the session was closed"):
            session.submit(batch(2)).result(200)


def test_closing_fails_what_is_under_way_and_ends_the_threads(serve: Serve, model: Path) -> None:
    gate = threading.Event()
    with connect(serve(answer=after(gate))) as device:
        session = device.open(model)
        future = session.submit(batch(2))
        session.close()
        session.close()
        gate.set()
        with pytest.raises(DeviceLost, match="fake: the session was closed"):
            future.result(200)
        threads = [t.name for t in threading.enumerate() if t.name.startswith("fake ")]
        assert threads == ["fake lease"]
