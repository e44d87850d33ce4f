"""Tiny models, written as flatbuffers, and agents that run them as real processes."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

from agent_calls import PATIENT_SECONDS, batch, opening
from edgeflare_protos import agent_pb2
from edgeflare_protos.agent_pb2_grpc import AgentStub
from edgeflare_protos.kernel_sets import Kernels
from edgeflare_protos.limits import CHUNK_BYTES
from graph_writer import GraphWriter, write_state_model

INPUTS, CLASSES = 8, 4
FAULTY_KERNELS = Path(__file__).with_name("faulty_kernels.py")


def _classifier(path: Path, dtype: str, version: int = 1) -> Path:
    """Write a fully connected layer and a softmax, float32 or int8."""
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(CLASSES, INPUTS))
    graph = GraphWriter()
    softmax = schema.SoftmaxOptionsT()
    softmax.beta = 1.0
    if dtype == "FLOAT32":
        x = graph.tensor("x", (1, INPUTS), dtype)
        w = graph.tensor("w", weights.shape, dtype, data=weights.astype(np.float32))
        b = graph.tensor("b", (CLASSES,), dtype, data=np.zeros(CLASSES, np.float32))
        y = graph.tensor("logits", (1, CLASSES), dtype)
        p = graph.tensor("p", (1, CLASSES), dtype)
    else:
        x = graph.tensor("x", (1, INPUTS), dtype, (0.02, -3))
        raw = np.clip(np.round(weights / 0.02), -127, 127).astype(np.int8)
        w = graph.tensor("w", weights.shape, dtype, (0.02, 0), raw)
        b = graph.tensor("b", (CLASSES,), "INT32", (0.0004, 0), np.zeros(CLASSES, np.int32))
        y = graph.tensor("logits", (1, CLASSES), dtype, (0.1, 5))
        p = graph.tensor("p", (1, CLASSES), dtype, (1 / 256, -128))
    fully_connected = schema.FullyConnectedOptionsT()
    graph.operator("FULLY_CONNECTED", [x, w, b], [y], fully_connected, version)
    graph.operator("SOFTMAX", [y], [p], softmax)
    return graph.save(path, [x], [p])


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="session")
def int8_model(models: Path) -> Path:
    return _classifier(models / "int8.tflite", "INT8", version=4)


@pytest.fixture(scope="session")
def float_model(models: Path) -> Path:
    return _classifier(models / "float.tflite", "FLOAT32")


@pytest.fixture(scope="session")
def future_model(models: Path) -> Path:
    """A model with an operator version that no runtime has."""
    return _classifier(models / "future.tflite", "INT8", version=99)


@pytest.fixture(scope="session")
def refusing_model(models: Path) -> Path:
    """A gather, whose kernel refuses an index above 2 when it is invoked."""
    graph = GraphWriter()
    values = graph.tensor("values", (3,), "FLOAT32", data=np.array([1, 2, 3], np.float32))
    index = graph.tensor("index", (1,), "INT32")
    y = graph.tensor("y", (1,), "FLOAT32")
    graph.operator("GATHER", [values, index], [y], schema.GatherOptionsT())
    return graph.save(models / "gather.tflite", [index], [y])


@pytest.fixture(scope="session")
def two_input_model(models: Path) -> Path:
    """Two inputs of unlike dtypes and sizes that both come out changed: a + a, and -b."""
    graph = GraphWriter()
    a = graph.tensor("a", (1, 3), "INT32")
    b = graph.tensor("b", (1, 2), "FLOAT32")
    sums = graph.tensor("sums", (1, 3), "INT32")
    negated = graph.tensor("negated", (1, 2), "FLOAT32")
    graph.operator("ADD", [a, a], [sums], schema.AddOptionsT())
    graph.operator("NEG", [b], [negated], schema.NegOptionsT())
    return graph.save(models / "two.tflite", [a, b], [sums, negated])


@pytest.fixture(scope="session")
def large_model(models: Path) -> Path:
    """Sixteen negations of half a megabyte each: their tensors are more than a message carries."""
    graph = GraphWriter()
    tensors = [graph.tensor(f"t{n}", (1, 1 << 17), "FLOAT32") for n in range(17)]
    for given, made in itertools.pairwise(tensors):
        graph.operator("NEG", [given], [made], schema.NegOptionsT())
    return graph.save(models / "large.tflite", tensors[:1], tensors[-1:])


@pytest.fixture(scope="session")
def scalar_model(models: Path) -> Path:
    """A sum over all values, which is a scalar, and its negation."""
    graph = GraphWriter()
    x = graph.tensor("x", (1, 3), "FLOAT32")
    axes = graph.tensor("axes", (2,), "INT32", data=np.array([0, 1], np.int32))
    total, negated = graph.tensor("total", (), "FLOAT32"), graph.tensor("negated", (), "FLOAT32")
    graph.operator("SUM", [x, axes], [total], schema.ReducerOptionsT())
    graph.operator("NEG", [total], [negated], schema.NegOptionsT())
    return graph.save(models / "scalar.tflite", [x], [negated])


@pytest.fixture(scope="session")
def state_model(models: Path) -> Callable[[str], Path]:
    return lambda dtype: write_state_model(models / f"state_{dtype}.tflite", dtype)


@pytest.fixture(scope="session")
def variable_model(models: Path) -> Path:
    """A recurrent step whose state is a variable tensor: h = x + 0.5 h, (1, 1, 2) to itself."""
    graph = GraphWriter()
    x = graph.tensor("x", (1, 1, 2), "FLOAT32")
    w = graph.tensor("w", (2, 2), "FLOAT32", data=np.eye(2, dtype=np.float32))
    again = graph.tensor("again", (2, 2), "FLOAT32", data=np.eye(2, dtype=np.float32) / 2)
    bias = graph.tensor("bias", (2,), "FLOAT32", data=np.zeros(2, np.float32))
    h = graph.tensor("h", (1, 2), "FLOAT32")
    graph.graph.tensors[h].isVariable = True
    y = graph.tensor("y", (1, 1, 2), "FLOAT32")
    graph.operator(
        "UNIDIRECTIONAL_SEQUENCE_RNN", [x, w, again, bias, h], [y], schema.SequenceRNNOptionsT()
    )
    return graph.save(models / "variable.tflite", [x], [y])


@pytest.fixture(scope="session")
def resource_model(models: Path) -> Path:
    """A sum over all that it was given, in a variable that is a resource: total += x."""
    graph = GraphWriter()
    x = graph.tensor("x", (1,), "FLOAT32")
    handle = graph.tensor("handle", (), "RESOURCE")
    before, total = graph.tensor("before", (1,), "FLOAT32"), graph.tensor("total", (1,), "FLOAT32")
    once = schema.CallOnceOptionsT()
    once.initSubgraphIndex = 1
    graph.operator("CALL_ONCE", [], [], once)
    _variable(graph, handle)
    graph.operator("READ_VARIABLE", [handle], [before], schema.ReadVariableOptionsT())
    graph.operator("ADD", [before, x], [total], schema.AddOptionsT())
    graph.operator("ASSIGN_VARIABLE", [handle, total], [], schema.AssignVariableOptionsT())
    graph.second()
    handle = graph.tensor("handle", (), "RESOURCE")
    zero = graph.tensor("zero", (1,), "FLOAT32", data=np.zeros(1, np.float32))
    _variable(graph, handle)
    graph.operator("ASSIGN_VARIABLE", [handle, zero], [], schema.AssignVariableOptionsT())
    graph.first([], [])
    return graph.save(models / "resource.tflite", [x], [total])


def _variable(graph: GraphWriter, handle: int) -> None:
    options = schema.VarHandleOptionsT()
    options.sharedName = "total"
    graph.operator("VAR_HANDLE", [], [handle], options)


@pytest.fixture(scope="session")
def two_signature_model(models: Path) -> Path:
    """Two signatures of a graph each: `negate`, v to w, and `double`, v of another size to w."""
    graph = GraphWriter()
    x, y = graph.tensor("x", (1, 2), "FLOAT32"), graph.tensor("y", (1, 2), "FLOAT32")
    graph.operator("NEG", [x], [y], schema.NegOptionsT())
    graph.signature("negate", 0, {"v": x}, {"w": y})
    graph.second()
    x, y = graph.tensor("x2", (1, 3), "FLOAT32"), graph.tensor("y2", (1, 3), "FLOAT32")
    graph.operator("ADD", [x, x], [y], schema.AddOptionsT())
    graph.signature("double", 1, {"v": x}, {"w": y})
    graph.first([x], [y])
    return graph.save(models / "signatures.tflite", [0], [1])


@pytest.fixture(scope="session")
def dynamic_model(models: Path) -> Path:
    """An input (-1, 3), doubled; and sevens in its shape, which are known once it has run."""
    graph = GraphWriter()
    x, doubled = graph.tensor("x", (1, 3), "FLOAT32"), graph.tensor("doubled", (1, 3), "FLOAT32")
    graph.graph.tensors[x].shapeSignature = graph.graph.tensors[doubled].shapeSignature = [-1, 3]
    shape, same = graph.tensor("shape", (2,), "INT32"), graph.tensor("same", (2,), "INT32")
    zeros = graph.tensor("zeros", (2,), "INT32", data=np.zeros(2, np.int32))
    seven = graph.tensor("seven", (), "FLOAT32", data=np.array(7, np.float32))
    sevens = graph.tensor("sevens", (1, 3), "FLOAT32")
    options = schema.ShapeOptionsT()
    options.outType = schema.TensorType.INT32
    graph.operator("ADD", [x, x], [doubled], schema.AddOptionsT())
    graph.operator("SHAPE", [x], [shape], options)
    graph.operator("ADD", [shape, zeros], [same], schema.AddOptionsT())
    graph.operator("FILL", [same, seven], [sevens], schema.FillOptionsT())
    return graph.save(models / "dynamic.tflite", [x], [doubled, sevens])


WriteCast = Callable[[str, str], Path]


@pytest.fixture(scope="session")
def cast_model(models: Path) -> WriteCast:
    """Write a model that casts values of one type of TFLite's to another."""

    def write(given: str, made: str) -> Path:
        graph = GraphWriter()
        x, y = graph.tensor("x", (1, 4), given), graph.tensor("y", (1, 4), made)
        graph.operator("CAST", [x], [y])
        return graph.save(models / f"cast_{given}_{made}.tflite", [x], [y])

    return write


@pytest.fixture(scope="session")
def textual_model(models: Path) -> Callable[[str], Path]:
    """Write a model with an input beside a real one that is of a type without numbers."""

    def write(dtype: str) -> Path:
        graph = GraphWriter()
        x, y = graph.tensor("x", (1, 2), "FLOAT32"), graph.tensor("y", (1, 2), "FLOAT32")
        other = graph.tensor("other", (1,), dtype)
        graph.operator("NEG", [x], [y], schema.NegOptionsT())
        return graph.save(models / f"{dtype}.tflite", [x, other], [y])

    return write


@pytest.fixture(scope="session")
def old_board_python() -> str:
    """An interpreter with tflite-runtime 2.14 and numpy < 2, and without anything of ours."""
    beside = Path(__file__).parents[2] / ".venv-old-board" / "bin" / "python"
    python = os.environ.get("EDGEFLARE_OLD_BOARD_PYTHON", str(beside))
    if not Path(python).exists():
        pytest.skip(f"needs the old board's environment at {python}")
    return python


@pytest.fixture(scope="session")
def faulty_launcher() -> list[str]:
    """A launcher whose workers have broken kernels; see faulty_kernels.py."""
    return [sys.executable, str(FAULTY_KERNELS)]


def int8_inputs(count: int, seed: int = 0) -> NDArray[np.int8]:
    """Return inputs (count, INPUTS) that no faulty kernel trips over: the first byte is small."""
    inputs = np.random.default_rng(seed).integers(-128, 128, (count, INPUTS)).astype(np.int8)
    inputs[:, 0] %= 40
    return inputs


@pytest.fixture(scope="session")
def harmless_inputs() -> Callable[..., NDArray[np.int8]]:
    return int8_inputs


Reference = Callable[[Path, Kernels, NDArray[np.generic]], bytes]


@pytest.fixture(scope="session")
def reference() -> Reference:
    """What the interpreter itself answers in this process."""
    from interpreter_answers import interpreter_answers  # noqa: PLC0415

    return lambda path, kernels, inputs: interpreter_answers(path, kernels, inputs).tobytes()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("sesame\n")
    return path


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if shutil.which("openssl") is None:
        pytest.skip("needs the openssl command to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(cert)),
        ],
        check=True,
        capture_output=True,
    )
    return cert, key


@dataclass
class RunningAgent:
    """An agent process and what it announced."""

    process: subprocess.Popen[bytes]
    port: int
    pid: int
    ready: dict[str, object]

    def channel(self) -> grpc.Channel:
        return grpc.insecure_channel(f"127.0.0.1:{self.port}")


StartAgent = Callable[..., RunningAgent]


@pytest.fixture
def start_agent(tmp_path: Path) -> Iterator[StartAgent]:
    """Start agents, each as a real process that ends with the test."""
    with contextlib.ExitStack() as stack:

        def start(*arguments: str, **options: Any) -> RunningAgent:
            return _start(stack, ["--store", str(tmp_path / "store"), *arguments], **options)

        yield start


def _start(
    stack: contextlib.ExitStack,
    arguments: list[str],
    python: str = sys.executable,
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> RunningAgent:
    process = subprocess.Popen(
        [python, "-m", "edgeflare_agent", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=env,
        cwd=cwd,
    )
    stack.callback(_stop, process)
    assert process.stdout is not None
    ready = json.loads(process.stdout.readline())
    return RunningAgent(process, ready["port"], ready["pid"], ready)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.wait(200)
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()


@dataclass
class Client:
    """The shortest client: what tests need again and again."""

    stub: AgentStub
    opened: list[str] = field(default_factory=list)

    def upload(self, content: bytes, sha256: str | None = None, size: int | None = None) -> Any:
        header = agent_pb2.UploadModelRequest.Header(
            sha256=hashlib.sha256(content).hexdigest() if sha256 is None else sha256,
            size_bytes=len(content) if size is None else size,
        )
        starts = range(0, len(content), CHUNK_BYTES)
        chunks = (content[start : start + CHUNK_BYTES] for start in starts)
        parts = (agent_pb2.UploadModelRequest(chunk=chunk) for chunk in chunks)
        return self.stub.UploadModel(
            iter([agent_pb2.UploadModelRequest(header=header), *parts]), timeout=PATIENT_SECONDS
        )

    def open(self, model: Path, **fields: Any) -> agent_pb2.OpenSessionReply:
        self.upload(model.read_bytes())
        reply: agent_pb2.OpenSessionReply = self.stub.OpenSession(
            opening(model, **fields), timeout=PATIENT_SECONDS
        )
        self.opened.append(reply.session_id)
        return reply

    def infer(self, session_id: str, inputs: Any, number: int = 1) -> agent_pb2.InferReply:
        reply: agent_pb2.InferReply = self.stub.Infer(
            batch(session_id, inputs, number), timeout=PATIENT_SECONDS
        )
        return reply

    def telemetry(self, session_id: str = "") -> agent_pb2.TelemetryReply:
        request = agent_pb2.TelemetryRequest(session_id=session_id)
        reply: agent_pb2.TelemetryReply = self.stub.Telemetry(request, timeout=PATIENT_SECONDS)
        return reply

    def workers(self) -> int:
        return len(self.telemetry().worker_rss_bytes)

    def close(self, session_id: str) -> None:
        request = agent_pb2.CloseSessionRequest(session_id=session_id)
        self.stub.CloseSession(request, timeout=PATIENT_SECONDS)


@pytest.fixture
def connect() -> Iterator[Callable[[RunningAgent], Client]]:
    with contextlib.ExitStack() as stack:

        def client(agent: RunningAgent) -> Client:
            return Client(AgentStub(stack.enter_context(agent.channel())))

        yield client


@pytest.fixture(scope="module")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAgent]:
    """An agent for all tests of a file that leave it as they found it."""
    with contextlib.ExitStack() as stack:
        yield _start(stack, ["--store", str(tmp_path_factory.mktemp("agent") / "store")])


@pytest.fixture
def client(
    shared_agent: RunningAgent, connect: Callable[[RunningAgent], Client]
) -> Iterator[Client]:
    """A client of that agent, whose sessions are closed behind each test."""
    client = connect(shared_agent)
    yield client
    for session_id in client.opened:
        client.close(session_id)
