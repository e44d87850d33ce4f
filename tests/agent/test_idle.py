"""An agent ends when no host has asked anything for a while, whatever else goes on."""

# ruff: noqa: ARG002, N802 - the names and arguments of methods are those of the wire

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from agent_calls import PATIENT_SECONDS, wait_until
from edgeflare_agent import __main__ as agent_main
from edgeflare_agent import idle
from edgeflare_agent.idle import IdleWatch, Stop
from edgeflare_agent.security import TokenInterceptor
from edgeflare_agent.unauthenticated_connections import WrongTokens
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentServicer, AgentStub

SECONDS = 50.0
TOKEN = [("authorization", "Bearer sesame")]


@pytest.mark.slow
def test_an_agent_that_nobody_asks_anything_ends_cleanly(start_agent: Any) -> None:
    agent = start_agent("--exit-when-idle", "1")
    assert agent.process.wait(PATIENT_SECONDS) == 0


class Service(AgentServicer):
    """Answers each question at once, but for a batch by itself, which runs until it is told."""

    def __init__(self) -> None:
        self.begun, self.ends = threading.Event(), threading.Event()

    def Telemetry(
        self, request: wire.TelemetryRequest, context: grpc.ServicerContext
    ) -> wire.TelemetryReply:
        return wire.TelemetryReply()

    def Infer(self, request: wire.InferRequest, context: grpc.ServicerContext) -> wire.InferReply:
        self.begun.set()
        assert self.ends.wait(PATIENT_SECONDS)
        return wire.InferReply()

    def InferStream(
        self, request_iterator: Iterator[wire.InferRequest], context: grpc.ServicerContext
    ) -> Iterator[wire.InferReply]:
        return (wire.InferReply() for _ in request_iterator)


class Watched:
    """The server of an agent with such a service, whose watch has a clock that the test sets.

    Attributes:
        watch: knows when somebody last asked.
        service: what is behind it.
        channel: to the server.
        stub: of that channel.

    """

    def __init__(self) -> None:
        self._now = 100.0
        self.service = Service()

    def monotonic(self) -> float:
        return self._now

    def serve(self) -> Any:
        self.watch = IdleWatch()
        tokens = TokenInterceptor("sesame", WrongTokens())
        service: Any = self.service
        server = agent_main._server(service, tokens, self.watch)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        self.stub: Any = AgentStub(self.channel)
        return server

    def pass_time(self) -> float:
        """Let a while pass; return for how long the agent is idle."""
        self._now += SECONDS
        return self.watch.idle_seconds

    def ask(self) -> None:
        request = wire.TelemetryRequest()
        self.stub.Telemetry(request, metadata=TOKEN, timeout=PATIENT_SECONDS)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    watched = Watched()
    monkeypatch.setattr(idle, "time", watched)
    server = watched.serve()
    with watched.channel:
        yield watched
    watched.service.ends.set()
    server.stop(None).wait()


def test_each_question_begins_the_time_anew(watched: Watched) -> None:
    assert [watched.pass_time(), watched.pass_time()] == [SECONDS, 2 * SECONDS]
    watched.ask()
    assert watched.watch.idle_seconds == 0
    assert watched.pass_time() == SECONDS


def test_an_agent_is_not_idle_while_a_batch_runs(watched: Watched) -> None:
    request = wire.InferRequest()
    batch = watched.stub.Infer.future(request, metadata=TOKEN, timeout=PATIENT_SECONDS)
    assert watched.service.begun.wait(PATIENT_SECONDS)
    assert watched.pass_time() == 0
    watched.service.ends.set()
    batch.result()
    assert watched.watch.idle_seconds == 0
    assert watched.pass_time() == SECONDS


def test_a_stream_that_says_nothing_keeps_no_agent(watched: Watched) -> None:
    silence = threading.Event()

    def requests() -> Iterator[wire.InferRequest]:
        yield wire.InferRequest()
        silence.wait()

    replies = watched.stub.InferStream(requests(), metadata=TOKEN, timeout=PATIENT_SECONDS)
    next(replies)
    assert wait_until(lambda: watched.pass_time() >= SECONDS)  # it may still be at its answer
    silence.set()
    assert list(replies) == []


def test_who_is_no_host_keeps_no_agent(watched: Watched) -> None:
    watched.pass_time()
    health = health_pb2_grpc.HealthStub(watched.channel)
    health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENT_SECONDS)
    with pytest.raises(grpc.RpcError) as refused:
        watched.stub.Telemetry(wire.TelemetryRequest(), timeout=PATIENT_SECONDS)
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert watched.watch.idle_seconds == SECONDS


@pytest.mark.slow
def test_the_wait_ends_when_the_time_is_over_and_looks_meanwhile(watched: Watched) -> None:
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks < 3:
            watched.ask()
        watched.pass_time()

    idle.wait_until(Stop(), watched.watch, 2 * SECONDS, look)
    assert looks == 3
    stop = Stop()
    stop.set()
    idle.wait_until(stop, watched.watch, None, look)
    assert looks == 3


def test_whoever_waits_may_be_interrupted_by_what_stops_it() -> None:
    """At any moment: a `threading.Event` would have its own lock then, and wait for it for ever."""
    stop, waited = Stop(), []

    def work() -> None:
        sys.settrace(interrupt)
        waited.append(stop.wait(PATIENT_SECONDS))
        sys.settrace(None)

    def interrupt(*_: object) -> Any:
        stop.set()
        return interrupt

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(PATIENT_SECONDS)
    assert waited == [True]
