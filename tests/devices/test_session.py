"""One model open on a device, and what is read of its tensors, also by agents that cannot."""

from __future__ import annotations

import gc
import hashlib
import os
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.tensor import Tensor, pack_rows
from edgeflare.devices.connection import SLOW_LINK_BYTES_PER_SECOND, Connection, DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Invocation, Signature
from edgeflare.models.graph_parts import isolate
from edgeflare.models.model_probe import ProbeRefused
from edgeflare.models.tflite import open_tflite
from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime import offered_kernel_sets
from edgeflare_protos import agent_pb2 as wire
from edgeflare_protos.limits import CHUNK_BYTES
from graph_writer import GraphWriter, write_state_model
from processes import kill, workers
from tampering import COMPRESSED, example_input, run, whole

Images = NDArray[np.float32]
Serve = Callable[..., Profile]


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with connect(find_profile("emulated-builtin")) as device:
        yield device


def refusal(device: Device, path: Path) -> str:
    with pytest.raises(UserError) as caught:
        device.open(path)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


def test_the_signature(device: Device, model: Path) -> None:
    session = device.open(model)

    assert session.signature == Signature(
        (Tensor("image0", (1, 4, 4, 1), "float32"),), (Tensor("out", (1, 3), "float32"),)
    )
    assert session.total_nodes == len(session.operators) == 1
    assert session.operators == ("FULLY_CONNECTED",)
    session.close()


def test_a_clip_on_a_device_is_answered_as_on_the_host(device: Device, tmp_path: Path) -> None:
    path = write_state_model(tmp_path / "state.tflite", "INT8")
    invocation = Invocation(state={"state": "next"}, frames=5)
    clips = np.random.default_rng(2).integers(-90, 90, (30, 5, 1, 3)).astype(np.int8)
    with closing(open_tflite(path, "builtin", invocation)) as host:
        expected = host.submit(clips).result().outputs
        with closing(device.open(path, invocation)) as session:
            assert session.signature == host.signature
            answer = session.submit(clips).result(200)
    assert not answer.failures
    assert np.array_equal(answer.outputs, expected)


def test_a_model_whose_tensors_are_all_empty_runs(device: Device, tmp_path: Path) -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 0), "FLOAT32") for name in "xy")
    graph.operator("LOGISTIC", [x], [y])
    with closing(device.open(graph.save(tmp_path / "empty.tflite", [x], [y]))) as session:
        answer = session.submit(np.empty((3, 0), np.float32)).result(200)
    assert answer.outputs.shape == (3, 0)
    assert not answer.failures


def test_several_inputs_of_unlike_types(device: Device, two_input_model: Path) -> None:
    with closing(device.open(two_input_model)) as session:
        tensors = session.signature.inputs
        first, second = np.random.default_rng(1).normal(size=(2, 9, *tensors[0].shape))
        rows = pack_rows(tensors, [first.astype(np.float32), second.astype(np.float32)])
        outputs = session.submit(rows).result(200).outputs
        alike = pack_rows(tensors, [first.astype(np.float32)] * 2)
        assert np.array_equal(session.submit(alike).result(200).outputs, outputs)
        with pytest.raises(ValueError, match=r"expected uint8 \(batch, 128\)"):
            session.submit(first)


def test_an_invocation_that_does_not_fit_is_one_line(device: Device, model: Path) -> None:
    for invocation, words in (
        (Invocation("step"), "there is no signature 'step'"),
        (Invocation(shapes={"image0": (1, 5, 4, 1)}), "does not fit"),
        (Invocation(state={"image0": "out"}, frames=3), "does not fit the input 'image0'"),
        (Invocation(frames=1 << 20), "frames must be from 0 to 65,536"),
        (Invocation(frames=60_000), "more than the 3145728 that one message carries"),
    ):
        with pytest.raises(UserError) as caught:
            device.open(model, invocation)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_call_that_an_older_agent_lacks_is_one_line(serve: Serve) -> None:
    with (
        connect(serve()) as older,
        older.probe(CONTENT) as probe,
        pytest.raises(InfrastructureError) as caught,
    ):
        probe.run([np.zeros((1, 4), np.int8)])
    assert "the agent lacks a call that this host needs" in str(caught.value)
    assert str(caught.value).endswith("; install the same version of edgeflare there")


def test_quantization_and_delegated_nodes_are_told(serve: Serve, model: Path) -> None:
    with connect(serve()) as fake:
        tensor = Tensor("x", (1, 4), "int8", 0.5, 3)
        session = fake.open(model)
        assert session.signature == Signature((tensor,), (tensor,))
        assert fake.provenance.delegated_nodes == session.delegated_nodes == 2


@pytest.mark.slow
def test_two_sessions_at_once(
    device: Device, model: Path, images: Images, expected: Callable[[str], NDArray[np.float32]]
) -> None:
    first, second = device.open(model), device.open(model)
    futures = [
        (start, session.submit(images[start : start + 7]))
        for start in range(0, 190, 7)
        for session in (first, second)
    ]
    for start, future in futures:
        assert np.array_equal(future.result(200).outputs, expected("builtin")[start : start + 7])
    first.close()
    assert second.submit(images[:1]).result(200).outputs.shape == (1, 3)
    second.close()


@dataclass(frozen=True)
class Store:
    """Where an agent keeps the model of these tests, and who asks that agent."""

    agent: Any
    stored: Path
    profile: Profile

    def damage(self) -> None:
        content = bytearray(self.stored.read_bytes())
        content[-60:-20] = bytes(value ^ 0x55 for value in content[-60:-20])
        self.stored.write_bytes(content)


@pytest.fixture
def store(start_agent: Callable[..., Any], model: Path, tmp_path: Path) -> Store:
    agent = start_agent()
    name = f"{hashlib.sha256(model.read_bytes()).hexdigest()}.tflite"
    profile = replace(find_profile(f"grpc://{agent.address}"), kernels="builtin")
    return Store(agent, tmp_path / "agent-store" / name, profile)


Expected = Callable[[str], NDArray[np.float32]]


def test_a_known_model_is_not_sent_again_and_a_damaged_one_is(
    store: Store, model: Path, images: Images, expected: Expected
) -> None:
    for _ in range(2):
        with connect(store.profile) as board:
            board.open(model).close()
            inode = store.stored.stat().st_ino
    with connect(store.profile) as board:
        board.open(model).close()
        assert store.stored.stat().st_ino == inode
        store.damage()
        again = board.open(model)
        assert np.array_equal(again.submit(images).result(200).outputs, expected("builtin"))
    assert store.stored.read_bytes() == model.read_bytes()


def test_another_model_under_its_name_is_replaced(
    store: Store, model: Path, two_input_model: Path, images: Images, expected: Expected
) -> None:
    store.stored.write_bytes(two_input_model.read_bytes())
    with connect(store.profile) as board, closing(board.open(model)) as session:
        assert np.array_equal(session.submit(images).result(200).outputs, expected("builtin"))
    assert store.stored.read_bytes() == model.read_bytes()


def test_a_model_lost_between_looking_and_opening_is_sent_again(
    store: Store, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Connection.upload
    uploads = []

    def upload_and_damage(connection: Connection, sha256: str, content: bytes) -> None:
        upload(connection, sha256, content)
        uploads.append(sha256)
        if len(uploads) == 1:
            store.damage()

    monkeypatch.setattr(Connection, "upload", upload_and_damage)
    with connect(store.profile) as board:
        board.open(model).close()
    assert len(uploads) == 2


def test_a_model_damaged_while_it_is_open_costs_a_reopening(
    store: Store, model: Path, images: Images, expected: Expected
) -> None:
    """A worker that is started anew loads nothing but the model; size and time tell nothing."""
    with connect(store.profile) as board, closing(board.open(model)) as session:
        before = store.stored.stat()
        store.damage()
        os.utime(store.stored, ns=(before.st_atime_ns, before.st_mtime_ns))
        kill(workers(store.agent.process.pid))
        with pytest.raises(DeviceLost, match="damaged in the store"):
            session.submit(images).result(200)
        board.reopen()
        assert np.array_equal(session.submit(images).result(200).outputs, expected("builtin"))
    assert store.stored.read_bytes() == model.read_bytes()


def test_large_models_travel_in_chunks(device: Device, model: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.tflite"
    large.write_bytes(model.read_bytes() + bytes(5_000_001))  # more than one message may carry

    with pytest.raises(UserError):
        device.open(tmp_path / "absent.tflite")
    device.open(large).close()


def test_inputs_that_do_not_fit_are_a_mistake_of_the_caller(device: Device, model: Path) -> None:
    session = device.open(model)
    for wrong in (
        np.zeros((2, 4, 4, 1), np.uint8),
        np.zeros((2, 4, 5, 1), np.float32),
        np.zeros((0, 4, 4, 1), np.float32),
    ):
        with pytest.raises(ValueError, match=r"expected float32 \(batch, 4, 4, 1\)"):
            session.submit(wrong)
    session.close()


def test_models_that_cannot_be_opened(device: Device, model: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut"
    cut.write_bytes(model.read_bytes()[:-200])
    assert refusal(device, cut).startswith("emulated-builtin: ")
    with pytest.raises(UserError, match="is not a model file"):
        device.open(tmp_path)


def test_an_input_that_no_message_can_carry(serve: Serve, model: Path) -> None:
    with connect(serve(shape=(1, 41), payload_limit=40)) as fake:
        assert refusal(fake, model).startswith(
            "one input or output takes 41 bytes, more than the 40 that one message carries"
        )


@pytest.mark.slow
def test_after_refusals_no_session_is_left_on_the_agent(device: Device, model: Path) -> None:
    for _ in range(12):  # more than an agent keeps open
        with pytest.raises(UserError, match="more than the 3145728 that one message carries"):
            device.open(model, Invocation(frames=60_000))
    assert device.telemetry().worker_rss_bytes == ()


CONTENT = COMPRESSED.read_bytes()
GRAPH = Graph(CONTENT)


@pytest.mark.slow
def test_all_tensors_are_those_of_the_runtime(device: Device) -> None:
    values = example_input()
    with device.probe(CONTENT, capture=True) as probe:
        assert probe.given == GRAPH.inputs
        outputs = probe.run([values])
        assert probe.runs == 1
    wanted = whole(GRAPH, values, "builtin", CONTENT)
    assert set(probe.made) == set(wanted) - set(GRAPH.inputs)
    for tensor, got in zip(probe.made, outputs, strict=True):
        assert got.shape == GRAPH.tensors[tensor].shape
        assert got.tobytes() == wanted[tensor].tobytes()


def test_a_part_with_several_inputs_runs(device: Device) -> None:
    values = whole(GRAPH, example_input(), "builtin", CONTENT)
    part = isolate(GRAPH, [one.index for one in GRAPH.layers])
    inputs = [values[tensor] for tensor in part.inputs]
    with device.probe(part.content) as probe:
        outputs = probe.run(inputs)
    for got, wanted in zip(outputs, run(part.content, inputs, "builtin"), strict=True):
        assert got.tobytes() == wanted.tobytes()


def test_an_answer_that_was_damaged_on_its_way_is_not_believed(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failures say of an input what its checksums do not."""
    honest = Connection.capture

    def damaged(*arguments: Any) -> list[wire.CaptureReply]:
        first, *rest = honest(*arguments)
        first.failures.add(kind=wire.InputFailure.KIND_CRASH)
        return [first, *rest]

    monkeypatch.setattr(Connection, "capture", damaged)
    with device.probe(CONTENT) as probe, pytest.raises(DeviceLost, match="a reply arrived damaged"):
        probe.run([example_input()])


class _FakeCall(list[wire.CaptureReply]):
    """The replies of an agent, which are taken one by one."""

    taken = 0

    def __iter__(self) -> Iterator[wire.CaptureReply]:
        for reply in list.__iter__(self):
            self.taken += 1
            yield reply


@pytest.mark.parametrize("chunk", [bytes(CHUNK_BYTES), b""])
def test_of_an_answer_without_end_no_more_is_taken_than_a_model_has_outputs(
    device: Device, monkeypatch: pytest.MonkeyPatch, chunk: bytes
) -> None:
    call = _FakeCall([wire.CaptureReply(chunk=chunk)] * 100)
    with device.probe(CONTENT) as probe:
        monkeypatch.setattr(Connection, "_send", lambda *_: call)
        with pytest.raises(DeviceLost, match="more arrived than the outputs of its model"):
            probe.run([example_input()])
        assert call.taken <= 2
        monkeypatch.undo()


def test_an_answer_has_the_time_that_all_tensors_of_a_model_take_on_a_slow_link(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    times: list[float] = []

    def timed(_connection: Connection, _request: object, seconds: float, most_bytes: int) -> None:
        times.append(seconds - most_bytes / SLOW_LINK_BYTES_PER_SECOND)
        raise DeviceLost("as on a link that is cut")

    monkeypatch.setattr(Connection, "capture", timed)
    for capture in (False, True):
        with device.probe(CONTENT, capture=capture) as probe, pytest.raises(DeviceLost):
            probe.run([example_input()])
    assert times[0] == pytest.approx(times[1])


def test_closing_leaves_no_session(device: Device) -> None:
    before = len(device.telemetry().worker_rss_bytes)
    probe = device.probe(CONTENT)
    assert len(device.telemetry().worker_rss_bytes) == before + 1
    probe.close()
    probe.close()
    assert len(device.telemetry().worker_rss_bytes) == before


def test_a_model_that_the_runtime_refuses(device: Device) -> None:
    with pytest.raises(ProbeRefused, match="emulated-builtin"):
        device.probe(CONTENT[:64] + bytes(64))


def test_a_device_keeps_no_model_that_was_closed(device: Device, model: Path) -> None:
    session = device.open(model)
    session.close()
    kept = weakref.ref(session)
    del session
    device.open(model).close()
    gc.collect()
    assert kept() is None
    assert device.provenance.total_nodes == 1


def test_other_kernels_are_opened_for_a_while(device: Device) -> None:
    known = device.provenance
    other = device.open_as(COMPRESSED, "xnnpack", 2)
    assert other.delegated_nodes > 0
    inputs = np.repeat(example_input(), 3, axis=0)
    batch = other.submit(inputs).result()
    assert len(batch.outputs) == 3
    other.close()
    assert device.provenance == known
    assert set(device.kernels) == set(offered_kernel_sets())


@pytest.mark.skipif(find_spec("openvino") is not None, reason="there may be an NPU")
def test_a_model_is_opened_with_another_fallback_than_the_profiles(device: Device) -> None:
    assert not device.profile.fallback
    with pytest.raises(UserError, match="finds no NPU"):
        device.open_as(COMPRESSED, "npu", 1)
    allowed = device.open_as(COMPRESSED, "npu", 1, precision="fp32", fallback=True)
    assert allowed.delegated_nodes == 0
    allowed.close()
