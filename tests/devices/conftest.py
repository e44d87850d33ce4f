"""Real agents as child processes, a tiny real model, and a server that answers as it is told."""

# ruff: noqa: ARG002, N802 - the names and arguments of methods are those of the wire

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from edgeflare.devices.profile import Profile
from edgeflare_protos import PROTOCOL_MAJOR, PROTOCOL_MINOR, message_crc32, set_seal
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.agent_pb2_grpc import AgentServicer, add_AgentServicer_to_server
from graph_writer import GraphWriter
from interpreter_answers import interpreter_answers

CLASSES, SIDE = 3, 4


class AgentProcess:
    """A real agent that somebody started; killed at the end of the test."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "edgeflare_agent", *arguments], stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        port = json.loads(self.process.stdout.readline())["port"]
        self.address = f"127.0.0.1:{port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture(autouse=True)
def _agents_are_not_shared(own_agents: None) -> None:
    """What starts, loses and ends agents is what is tested here."""


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[Callable[..., AgentProcess]]:
    with ExitStack() as stack:

        def start(*arguments: str) -> AgentProcess:
            agent = AgentProcess("--store", str(tmp_path / "agent-store"), *arguments)
            stack.callback(agent.kill)
            return agent

        yield start


@pytest.fixture(scope="module")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentProcess]:
    """An agent for all tests of a file that leave it as they found it, of a device of its own."""
    folder = tmp_path_factory.mktemp("agent")
    agent = AgentProcess("--store", str(folder / "agent-store"), "--device", str(folder))
    yield agent
    agent.kill()


class FakeAgent(AgentServicer):
    """Speaks the protocol; its model takes and gives four int8 values, and is `answer`."""

    def __init__(
        self,
        answer: Callable[[wire.InferRequest], wire.InferReply] | None = None,
        protocol: tuple[int, int] = (PROTOCOL_MAJOR, PROTOCOL_MINOR),
        payload_limit: int = 40,
        shape: tuple[int, ...] = (1, 4),
        delegated: Iterator[int] | None = None,
        finish: Callable[[wire.OpenSessionReply, wire.OpenSessionRequest], None] | None = None,
        idle_seconds: float = 0.0,
        *,
        lease_seconds: float = 300.0,
        in_use_by: wire.LeaseHolder | None = None,
        streamed: Callable[[], None] = lambda: None,
    ) -> None:
        self._answer = answer
        self._streamed = streamed
        self._finish = finish
        self._idle_seconds = idle_seconds
        self._lease_seconds = lease_seconds
        self._in_use_by = in_use_by
        self._protocol = wire.ProtocolVersion(major=protocol[0], minor=protocol[1])
        self._payload_limit = payload_limit
        self._delegated = delegated or repeat(2)
        self._spec = wire.TensorSpec(name="x", shape=shape, dtype="int8", scale=0.5, zero_point=3)

    def Describe(
        self, request: wire.DescribeRequest, context: grpc.ServicerContext
    ) -> wire.DescribeReply:
        reply = wire.DescribeReply(protocol=self._protocol, payload_limit_bytes=self._payload_limit)
        set_seal(reply)
        return reply

    def FindModel(
        self, request: wire.FindModelRequest, context: grpc.ServicerContext
    ) -> wire.FindModelReply:
        return wire.FindModelReply(present=True)

    def OpenSession(
        self, request: wire.OpenSessionRequest, context: grpc.ServicerContext
    ) -> wire.OpenSessionReply:
        reply = wire.OpenSessionReply(
            session_id="s",
            inputs=[self._spec],
            outputs=[self._spec],
            delegated_nodes=next(self._delegated),
            request_crc32=message_crc32(request),
        )
        set_seal(reply)
        if self._finish is not None:
            self._finish(reply, request)
        return reply

    def InferStream(
        self, request_iterator: Iterator[wire.InferRequest], context: grpc.ServicerContext
    ) -> Iterator[wire.InferReply]:
        assert self._answer is not None
        for reply in map(self._answer, request_iterator):
            reply.lease_number = 1
            set_seal(reply)
            yield reply
        self._streamed()  # not where the host cancels

    def Telemetry(
        self, request: wire.TelemetryRequest, context: grpc.ServicerContext
    ) -> wire.TelemetryReply:
        reply = wire.TelemetryReply(idle_seconds=self._idle_seconds)
        set_seal(reply)
        return reply

    def AcquireLease(
        self, request: wire.AcquireLeaseRequest, context: grpc.ServicerContext
    ) -> wire.AcquireLeaseReply:
        reply = wire.AcquireLeaseReply(
            remaining_seconds=self._lease_seconds, in_use_by=self._in_use_by
        )
        reply.lease_number = 0 if self._in_use_by else 1
        set_seal(reply)
        return reply

    def RenewLease(
        self, request: wire.RenewLeaseRequest, context: grpc.ServicerContext
    ) -> wire.RenewLeaseReply:
        reply = wire.RenewLeaseReply(remaining_seconds=self._lease_seconds)
        set_seal(reply)
        return reply

    def ReleaseLease(
        self, request: wire.ReleaseLeaseRequest, context: grpc.ServicerContext
    ) -> wire.ReleaseLeaseReply:
        return wire.ReleaseLeaseReply()

    def CloseSession(
        self, request: wire.CloseSessionRequest, context: grpc.ServicerContext
    ) -> wire.CloseSessionReply:
        return wire.CloseSessionReply()


@pytest.fixture
def serve() -> Iterator[Callable[..., Profile]]:
    """Serve a FakeAgent, made with the arguments given, and return a profile that reaches it."""
    with ExitStack() as stack:

        def start(**behaviour: Any) -> Profile:
            server = grpc.server(ThreadPoolExecutor(8))
            add_AgentServicer_to_server(FakeAgent(**behaviour), server)
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            stack.callback(lambda: server.stop(None).wait())
            return Profile(name="fake", transport="address", address=f"127.0.0.1:{port}")

        yield start


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A float classifier of one fully connected layer, (1, 4, 4, 1) to (1, 3)."""
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny.tflite")


@pytest.fixture(scope="session")
def two_input_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model(tmp_path_factory.mktemp("models") / "two.tflite", inputs=2)


def tiny_model(path: Path, inputs: int = 1) -> Path:
    """Write the classifier; with more inputs than one, the others are not used."""
    weights = np.random.default_rng(7).normal(size=(CLASSES, SIDE * SIDE)).astype(np.float32)
    graph = GraphWriter()
    images = [graph.tensor(f"image{i}", (1, SIDE, SIDE, 1), "FLOAT32") for i in range(inputs)]
    w = graph.tensor("weights", weights.shape, "FLOAT32", data=weights)
    out = graph.tensor("out", (1, CLASSES), "FLOAT32")
    options = schema.FullyConnectedOptionsT()
    graph.operator("FULLY_CONNECTED", [images[0], w, -1], [out], options)
    return graph.save(path, images, [out])


@pytest.fixture(scope="session")
def images() -> NDArray[np.float32]:
    """Inputs for that classifier: (200, 4, 4, 1)."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, SIDE, SIDE, 1)).astype(np.float32)


@pytest.fixture(scope="session")
def expected(model: Path, images: NDArray[np.float32]) -> Callable[[str], NDArray[np.float32]]:
    """What an interpreter in this process answers to the images, by kernels: (200, 3)."""
    return lambda kernels: interpreter_answers(model, kernels, images)
