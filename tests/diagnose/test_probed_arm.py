"""What lies between input and output is seen as it is, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.probed_arm import ProbedArm
from edgeflare.models.model_probe import HostProbe, Probe, Values
from edgeflare.models.tflite_graph import Graph
from tampering import COMPRESSED, InterpreterProbe, example_input, residual_model, whole

X = np.array([[1, -2, 3, 0.5]], np.float32)
WANTED = {"x": X, "a": -X, "b": np.abs(X), "c": np.abs(X) - X, "y": np.abs(X)}
Opens = Callable[[bytes, bool], Probe]


def seen(opens: Opens) -> tuple[dict[str, Values], str | None]:
    content = residual_model()
    graph = Graph(content)
    with closing(ProbedArm(graph, content, opens)) as arm:
        observed = arm.observe([X], arm.outputs([X]))
        assert observed.perturbation is None
    return {
        graph.tensors[tensor].name: one for tensor, one in observed.state.items()
    }, observed.method


def test_a_worker_process_shows_every_tensor() -> None:
    def opens(content: bytes, capture: bool) -> Probe:
        return HostProbe(content, "builtin", capture=capture)

    state, way = seen(opens)
    assert way == "capture"
    assert {name: one.tolist() for name, one in state.items()} == {
        name: one.tolist() for name, one in WANTED.items()
    }


def test_what_is_seen_is_what_the_runtime_has() -> None:
    content, values = COMPRESSED.read_bytes(), example_input()
    graph = Graph(content)
    arm = ProbedArm(graph, content, lambda part, capture: InterpreterProbe(part, capture=capture))
    with closing(arm):
        observed = arm.observe([values], arm.outputs([values]))
    wanted = whole(graph, values, "xnnpack", content)
    assert {tensor: one.tobytes() for tensor, one in observed.state.items()} == {
        tensor: one.tobytes() for tensor, one in wanted.items()
    }
    assert arm.runs == 3


@pytest.mark.old_board
def test_the_old_runtime_writes_over_captured_tensors_and_is_not_believed(
    old_board_python: Path,
) -> None:
    """There, c = a + b is written into the memory of b, though all tensors were to be kept."""
    profile = replace(find_profile("emulated-builtin"), python=str(old_board_python), name="old")
    content = residual_model()
    graph = Graph(content)
    with connect(profile) as device:
        with device.probe(content, capture=True) as probe:
            captured = dict(zip(probe.made, probe.run([X]), strict=True))
        state, _ = seen(lambda part, capture: device.probe(part, capture=capture))
    by_name = {graph.tensors[tensor].name: one for tensor, one in captured.items()}
    assert by_name["b"].tolist() == WANTED["c"].tolist()
    assert state["b"].tolist() == WANTED["b"].tolist()
    assert state["y"].tolist() == WANTED["y"].tolist()
