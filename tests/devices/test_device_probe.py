"""Looking into a model on a device: parts, all tensors, and agents that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from edgeflare.devices.connection import Connection, DeviceLost
from edgeflare.devices.device import Device, connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.models.graph_parts import isolate
from edgeflare.models.model_probe import ProbeRefused
from edgeflare.models.tflite_graph import Graph
from edgeflare_agent.runtime import offered_kernel_sets
from edgeflare_protos import agent_pb2 as wire
from tampering import COMPRESSED, example_input, run, whole

CONTENT = COMPRESSED.read_bytes()
GRAPH = Graph(CONTENT)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    with connect(find_profile("emulated-builtin")) as opened:
        yield opened


@pytest.mark.slow
def test_all_tensors_are_those_of_the_runtime(device: Device) -> None:
    values = example_input()
    with device.probe(CONTENT, capture=True) as probe:
        assert probe.captures
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
        assert not probe.captures
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
    with (
        device.probe(CONTENT) as probe,
        pytest.raises(DeviceLost, match="a reply arrived damaged"),
    ):
        probe.run([example_input()])


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


def test_an_agent_of_an_older_protocol_is_told_apart(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = wire.DescribeReply(protocol=wire.ProtocolVersion(major=1, minor=0))
    monkeypatch.setattr(device, "_description", older)
    with pytest.raises(ProbeRefused, match=r"protocol 1\.0.*install this version"):
        device.probe(CONTENT)


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
