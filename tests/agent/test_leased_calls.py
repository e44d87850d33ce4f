"""Calls of a running agent that use the device, with and without its lease."""

from __future__ import annotations

import os
import queue
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from agent_calls import DESCRIBE, PATIENT_SECONDS, batch, opening, refused
from edgeflare_agent.sessions import MAX_SESSIONS
from edgeflare_protos import agent_pb2, seal_holds, set_seal
from edgeflare_protos.lease_words import LEASE, lease_token
from edgeflare_protos.limits import MOST_HOLDER_CHARACTERS

ANA, BEN = "a" * 22, "b" * 22
REFUSED = grpc.StatusCode.FAILED_PRECONDITION


def asked(secret: str, former: str = "", user: str = "ana@bench3") -> agent_pb2.AcquireLeaseRequest:
    holder = agent_pb2.LeaseHolder(user=user, pid=812, command="edgeflare search")
    request = agent_pb2.AcquireLeaseRequest(holder=holder, secret=secret, former_secret=former)
    set_seal(request)
    return request


def acquire(client: Any, secret: str, former: str = "") -> Any:
    reply = client.stub.AcquireLease(asked(secret, former), timeout=PATIENT_SECONDS)
    assert seal_holds(reply)
    return reply


def carried(number: int, secret: str) -> tuple[tuple[str, str]]:
    return ((LEASE, lease_token(number, secret)),)


def test_a_call_without_a_lease_is_served_until_somebody_has_one(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Any
) -> None:
    client = connect(start_agent())
    session_id = client.open(int8_model).session_id
    request = batch(session_id, harmless_inputs(3))
    assert client.stub.Infer(request, timeout=PATIENT_SECONDS).lease_number == 0

    number = acquire(client, ANA).lease_number
    assert client.workers() == 0
    session = client.stub.OpenSession(
        opening(int8_model), metadata=carried(number, ANA), timeout=PATIENT_SECONDS
    )
    request.session_id = session.session_id
    capture = agent_pb2.CaptureRequest(session_id=session.session_id)
    for call, asks in (
        (client.stub.FindModel, agent_pb2.FindModelRequest(sha256="0" * 64)),
        (client.stub.UploadModel, iter([agent_pb2.UploadModelRequest()])),
        (client.stub.OpenSession, opening(int8_model)),
        (client.stub.Infer, request),
        (lambda *given, **how: list(client.stub.InferStream(*given, **how)), iter([request])),
        (lambda *given, **how: list(client.stub.Capture(*given, **how)), capture),
        (client.stub.RenewLease, agent_pb2.RenewLeaseRequest()),
    ):
        code, words = refused(call, asks)
        assert code is REFUSED
        assert "the device is in use by ana@bench3 (process 812, edgeflare search) for" in words
    assert client.workers() == 1
    assert client.stub.Describe(DESCRIBE, timeout=PATIENT_SECONDS).machine

    client.stub.ReleaseLease(
        agent_pb2.ReleaseLeaseRequest(), metadata=carried(number, ANA), timeout=PATIENT_SECONDS
    )
    assert client.stub.Infer(request, timeout=PATIENT_SECONDS).lease_number == 0


def test_a_stream_that_outlives_its_lease_is_refused_before_its_batch_is_run(
    start_agent: Any, connect: Any, int8_model: Path, harmless_inputs: Any
) -> None:
    client = connect(start_agent("--lease-seconds", "5"))
    client.upload(int8_model.read_bytes())
    first = acquire(client, ANA)
    session = client.stub.OpenSession(
        opening(int8_model), metadata=carried(first.lease_number, ANA), timeout=PATIENT_SECONDS
    )
    batches: queue.Queue[agent_pb2.InferRequest] = queue.Queue()
    replies = client.stub.InferStream(
        iter(batches.get, None), metadata=carried(first.lease_number, ANA), timeout=PATIENT_SECONDS
    )
    batches.put(batch(session.session_id, harmless_inputs(3)))
    reply = next(replies)
    assert reply.lease_number == first.lease_number
    assert seal_holds(reply)

    # Until the lease of the first has ended.
    while not (second := acquire(client, BEN)).lease_number:
        assert second.in_use_by.user == "ana@bench3"
        assert 0 < second.remaining_seconds <= 5
        time.sleep(0.1)
    assert second.lease_number == first.lease_number + 1
    assert client.workers() == 0
    # Even to a session of the new holder's.
    theirs = client.stub.OpenSession(
        opening(int8_model), metadata=carried(second.lease_number, BEN), timeout=PATIENT_SECONDS
    )
    batches.put(batch(theirs.session_id, harmless_inputs(3)))
    code, words = refused(lambda: next(replies))
    assert code is REFUSED
    assert words.startswith("the lease of this call has ended, and the device")


def test_a_host_keeps_what_it_has_open_under_its_secret_and_another_ends_it(
    start_agent: Any, connect: Any, int8_model: Path
) -> None:
    client = connect(start_agent())
    client.upload(int8_model.read_bytes())
    first = acquire(client, ANA)
    client.stub.OpenSession(
        opening(int8_model), metadata=carried(first.lease_number, ANA), timeout=PATIENT_SECONDS
    )
    # As if the first answer had been lost.
    assert acquire(client, ANA).lease_number == first.lease_number
    assert client.workers() == 1
    assert not acquire(client, BEN, "c" * 22).lease_number
    taken_over = acquire(client, BEN, ANA)
    assert taken_over.lease_number == first.lease_number + 1
    assert client.workers() == 0
    assert not acquire(client, ANA).lease_number


def test_what_a_host_has_lost_with_its_link_gives_way_and_what_it_has_taken_up_again_stays(
    start_agent: Any, connect: Any, int8_model: Path
) -> None:
    client = connect(start_agent())
    client.upload(int8_model.read_bytes())
    number = acquire(client, ANA).lease_number

    def opened(token: str) -> str:
        reply = client.stub.OpenSession(
            opening(int8_model, resume_token=token),
            metadata=carried(number, ANA),
            timeout=PATIENT_SECONDS,
        )
        return str(reply.session_id)

    first = opened("kept")
    lost = {opened(f"lost {at}") for at in range(MAX_SESSIONS - 1)}
    code, _ = refused(lambda: opened("one more"))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert acquire(client, ANA).lease_number == number  # over another link
    assert opened("kept") == first
    new = {opened(f"new {at}") for at in range(MAX_SESSIONS - 1)}
    assert client.workers() == MAX_SESSIONS
    assert new.isdisjoint(lost)
    assert opened("kept") == first
    code, _ = refused(lambda: opened("one more"))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_an_upload_is_held_to_its_lease_to_the_end(
    start_agent: Any, connect: Any, int8_model: Path
) -> None:
    client = connect(start_agent())
    content = int8_model.read_bytes()
    sha256 = opening(int8_model).model_sha256
    number = acquire(client, ANA).lease_number

    def parts() -> Iterator[agent_pb2.UploadModelRequest]:
        header = agent_pb2.UploadModelRequest.Header(sha256=sha256, size_bytes=len(content))
        yield agent_pb2.UploadModelRequest(header=header)
        assert acquire(client, BEN, ANA).lease_number == number + 1
        yield agent_pb2.UploadModelRequest(chunk=content)

    code, _ = refused(client.stub.UploadModel, parts(), metadata=carried(number, ANA))
    assert code is REFUSED
    find = agent_pb2.FindModelRequest(sha256=sha256)
    found = client.stub.FindModel(find, metadata=carried(number + 1, BEN), timeout=PATIENT_SECONDS)
    assert not found.present


def test_a_request_that_is_damaged_or_beyond_its_bounds_gets_no_lease(
    start_agent: Any, connect: Any
) -> None:
    client = connect(start_agent())
    damaged = asked(ANA)
    damaged.secret = BEN
    assert refused(client.stub.AcquireLease, damaged)[0] is grpc.StatusCode.DATA_LOSS
    for request in (
        asked("short"),
        asked("a" * 129),
        asked("ä" * 22),
        asked(ANA, "b" * 129),
        asked(ANA, user="\x1b[2J"),
        asked(ANA, user="x" * (MOST_HOLDER_CHARACTERS + 1)),
    ):
        code, _ = refused(client.stub.AcquireLease, request)
        assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert refused(client.stub.RenewLease, agent_pb2.RenewLeaseRequest())[0] is REFUSED
    assert acquire(client, BEN).lease_number == 1


def test_agents_of_one_device_share_its_lease_and_those_of_two_do_not(
    start_agent: Any, connect: Any, tmp_path: Path
) -> None:
    one, same, other = (
        connect(start_agent("--device", f"{tmp_path} {name}", "--lease-seconds", "3"))
        for name in ("left", "left", "right")
    )
    number = acquire(one, ANA).lease_number
    taken = acquire(same, BEN)
    assert not taken.lease_number
    assert taken.in_use_by.user == "ana@bench3"
    assert taken.told_by.uid == os.getuid()
    assert taken.told_by.pid not in (0, os.getpid())
    assert 0 < taken.remaining_seconds <= 3
    assert not acquire(one, BEN).HasField("told_by")
    assert acquire(other, BEN).lease_number

    # Nobody asks the first agent any more; its lease ends all the same.
    while not (granted := acquire(same, BEN)).lease_number:
        time.sleep(0.1)
    assert not acquire(one, ANA).lease_number
    renewal = agent_pb2.RenewLeaseRequest()
    assert refused(one.stub.RenewLease, renewal, metadata=carried(number, ANA))[0] is REFUSED
    same.stub.ReleaseLease(
        agent_pb2.ReleaseLeaseRequest(),
        metadata=carried(granted.lease_number, BEN),
        timeout=PATIENT_SECONDS,
    )
    assert acquire(one, ANA).lease_number == number + 1
