from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from agent_calls import batch
from edgeflare_protos import agent_pb2, crc32

pytestmark = pytest.mark.slow

SECONDS = 3
"""The limit of these agents; an agent that is wrongly idle, or wrongly busy, shows well beyond."""


def test_an_agent_that_nobody_asks_anything_ends_cleanly(start_agent: Any, connect: Any) -> None:
    agent = start_agent("--exit-when-idle", str(SECONDS))
    connect(agent).telemetry()
    assert agent.process.poll() is None
    assert agent.process.wait(SECONDS * 100) == 0


def test_an_agent_stays_as_long_as_it_is_asked(start_agent: Any, connect: Any) -> None:
    agent = start_agent("--exit-when-idle", str(SECONDS))
    client = connect(agent)
    until = time.monotonic() + 2.5 * SECONDS
    while time.monotonic() < until:
        client.telemetry()
        time.sleep(SECONDS / 10)
    assert agent.process.poll() is None


def test_an_agent_stays_while_a_batch_runs(
    start_agent: Any, connect: Any, int8_model: Path, faulty_launcher: list[str]
) -> None:
    launcher = " ".join(faulty_launcher)
    agent = start_agent("--exit-when-idle", str(SECONDS), "--launcher", launcher)
    client = connect(agent)
    session = client.open(int8_model, input_timeout_seconds=1.5 * SECONDS)
    hang = bytes([102]) + bytes(7)  # runs until its time is over, and once more
    reply = client.infer(session.session_id, hang)
    assert reply.failures[0].kind == agent_pb2.InputFailure.KIND_HANG


def test_a_stream_that_says_nothing_keeps_no_agent(
    start_agent: Any, connect: Any, int8_model: Path
) -> None:
    agent = start_agent("--exit-when-idle", str(SECONDS))
    client = connect(agent)
    session = client.open(int8_model)
    silence = threading.Event()
    payload = bytes(8)

    def requests() -> Any:
        yield batch(session.session_id, payload)
        silence.wait()

    replies = client.stub.InferStream(requests())
    assert next(replies).payload_crc32 == crc32(payload)
    assert agent.process.wait(SECONDS * 100) == 0
    silence.set()


def test_who_is_no_host_keeps_no_agent(start_agent: Any, token_file: Path) -> None:
    agent = start_agent("--exit-when-idle", str(SECONDS), "--token-file", str(token_file))
    with grpc.insecure_channel(f"127.0.0.1:{agent.port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        until = time.monotonic() + 20 * SECONDS
        while agent.process.poll() is None and time.monotonic() < until:
            try:
                health.Check(health_pb2.HealthCheckRequest(), timeout=50)
            except grpc.RpcError:
                break
            time.sleep(SECONDS / 20)
    assert agent.process.wait(SECONDS * 100) == 0
