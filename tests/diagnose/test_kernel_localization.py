"""Where device and twin part: a device double runs the same parts with a fault planted in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from math import ceil, log2
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.arm_probe import ProbedArm
from edgeflare.diagnose.compression_localization import CompressionLocalizer
from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.diagnose.kernel_localization import KernelLocalizer, find_onset
from edgeflare.diagnose.layer_difference import KernelOnset
from edgeflare.models.model_probe import HostProbe, Probe, ProbeFailed, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph
from fault_injection import Planted, broken
from graph_writer import GraphWriter
from networks import Kind, pair_of
from tampering import (
    COMPRESSED,
    InterpreterProbe,
    class_reader,
    constant_of,
    example_input,
    residual_model,
    weighted,
    whole,
    with_constant,
)

CONTENT = COMPRESSED.read_bytes()
GRAPH = Graph(CONTENT)
LAYERS = len(GRAPH.layers)
Opens = Callable[[bytes, bool], Probe]
Change = Callable[[bytes], bytes]


def on_host(content: bytes, capture: bool) -> Probe:
    return InterpreterProbe(content, capture=capture)


def find(
    device: Opens,
    limit: int = 3 << 20,
    values: Values | None = None,
    most_runs: int = MOST_DEVICE_QUERIES,
    content: bytes = CONTENT,
) -> KernelOnset:
    graph = Graph(content)
    with closing(KernelLocalizer(graph, content, device, on_host, limit)) as finder:
        seen = finder.find(example_input() if values is None else values, most_runs)
    assert set(graph.outputs) <= set(seen.twin) or seen.onset.method != "capture"
    return seen.onset


def fault_in(operator: int, content: bytes = CONTENT) -> Change:
    """Negate the weights of a layer; cut a sum off at -1 and 1."""
    graph = Graph(content)
    one = graph.operators[operator]
    fault = "sum cut off" if one.name == "ADD" else "weights negated"
    planted = Planted(fault, graph.tensors[one.outputs[0]].name)
    return lambda part: broken(part, planted)


def faulty(operator: int, content: bytes = CONTENT) -> Opens:
    """A device on which one layer is wrong."""
    change = fault_in(operator, content)
    return lambda part, capture: InterpreterProbe(change(part), capture=capture)


def hiding(opens: Opens, hides: Callable[[Graph], bool] = lambda _: False) -> Opens:
    """A device that captures nothing, and refuses some models."""

    def device(content: bytes, capture: bool) -> Probe:
        if capture or hides(Graph(content)):
            raise ProbeRefused("too many outputs")
        return opens(content, capture)

    return device


def is_whole_with_all_outputs(graph: Graph) -> bool:
    return len(graph.layers) == len(graph.outputs) == LAYERS and len(graph.inputs) == 1


def require_onset(found: KernelOnset, method: str, operator: int, *, first: bool = True) -> None:
    assert found.onset is not None
    assert (found.method, found.onset.operator_index, found.first) == (method, operator, first)


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_fault_in_a_layer_is_found_there(operator: int) -> None:
    found = find(faulty(operator))
    require_onset(found, "capture", operator)
    assert found.most == found.onset
    assert found.perturbation is None
    by_operator = {layer.operator_index: layer for layer in found.layers}
    for index, layer in by_operator.items():
        assert layer.own is not None
        assert layer.total is not None
        assert layer.own.parted == (index == operator)
        assert index >= operator or not layer.total.parted
    assert by_operator[operator].new_share == 1.0
    last = by_operator[max(by_operator)]
    if last.operator_index > operator:
        assert last.new_share == 0.0


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_without_capture_tensors_are_made_outputs_or_beginnings_bisected(operator: int) -> None:
    require_onset(find(hiding(faulty(operator))), "exposure", operator)
    found = find(hiding(faulty(operator), is_whole_with_all_outputs))
    require_onset(found, "prefix", operator)
    assert found.device_runs <= ceil(log2(LAYERS)) + 2 + 1  # the last tells what is new where


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_a_fault_in_any_layer_of_other_networks_is_found_by_capture_and_by_bisection(
    kind: Kind,
) -> None:
    """In every second layer that LeNets do not have, and in every fourth of the others."""
    content = pair_of(kind)[1]
    layers = Graph(content).layers

    def is_whole(graph: Graph) -> bool:
        return len(graph.layers) == len(layers) and len(graph.inputs) == 1

    new = [one.index for one in layers if one.name in ("DEPTHWISE_CONV_2D", "ADD")]
    known = [one.index for one in layers if one.name in ("CONV_2D", "FULLY_CONNECTED")]
    for operator in (*new[::2], *known[::4]):
        device = faulty(operator, content)
        found = find(device, content=content)
        require_onset(found, "capture", operator)
        assert [one.operator_index for one in found.layers if one.own and one.own.parted] == [
            operator
        ]
        delegate = hiding(device, lambda graph: is_whole(graph) and len(graph.outputs) > 1)
        found = find(delegate, content=content)
        require_onset(found, "prefix", operator)
        assert found.device_runs <= ceil(log2(len(layers))) + 2 + 1


def test_what_cannot_be_borne_out_is_not_called_the_first() -> None:
    """A delegate that runs parts only if they put out no more than they must."""
    operator = weighted(CONTENT)[2]
    found = find(hiding(faulty(operator), lambda graph: len(graph.outputs) > 2))
    require_onset(found, "prefix", operator, first=False)


def test_a_capture_that_changes_the_output_is_not_believed() -> None:
    operator = weighted(CONTENT)[1]
    opens, name = faulty(operator), constant_of(CONTENT, weighted(CONTENT)[0])

    def device(content: bytes, capture: bool) -> Probe:
        if capture:
            content = with_constant(content, name, lambda weights: weights // 2)
        return opens(content, capture)

    found = find(device)
    require_onset(found, "exposure", operator)
    assert found.perturbation is not None
    assert found.perturbation.parted


def test_a_captured_tensor_that_was_written_over_is_not_believed() -> None:
    """As under tflite-runtime 2.14, where an ADD writes its sum over what it was given."""
    operator, stale = weighted(CONTENT)[2], weighted(CONTENT)[0]
    change = fault_in(operator)

    class Overwriting(InterpreterProbe):
        def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
            values = list(super().run(inputs))
            at = self.made.index(GRAPH.operators[stale].outputs[0])
            values[at] = np.full_like(values[at], 77)
            return tuple(values)

    def device(content: bytes, capture: bool) -> Probe:
        return (Overwriting if capture else InterpreterProbe)(change(content), capture=capture)

    require_onset(find(device), "capture", operator)


def test_the_same_kernels_do_not_part_and_others_do_by_units() -> None:
    found = find(on_host)
    assert (found.onset, found.most) == (None, None)
    assert not any(layer.total is None or layer.total.parted for layer in found.layers)
    rng = np.random.default_rng(3)
    noise = rng.integers(-128, 128, example_input().shape).astype(np.int8)
    found = find(
        lambda content, capture: InterpreterProbe(content, "reference", capture=capture),
        values=noise,
    )
    assert found.onset is not None
    assert found.onset.name == "CONV_2D"
    own = next(one.own for one in found.layers if str(one) == str(found.onset))
    assert own is not None
    assert own.max_error_steps == 1


def test_a_message_too_small_for_all_operators_is_spent_around_the_onset() -> None:
    operator = weighted(CONTENT)[2]
    tensor = GRAPH.tensors[GRAPH.fed(GRAPH.operators[operator])[0]]
    found = find(faulty(operator), limit=tensor.nbytes)
    assert found.most is not None
    assert found.most.operator_index == operator
    assert any(layer.own is None for layer in found.layers)


def observed(opens: Opens, run: Callable[[Graph, Probe, Sequence[Values]], Any]) -> Opens:
    """A device whose probes are run by a function."""

    def device(content: bytes, capture: bool) -> Probe:
        probe, graph = opens(content, capture), Graph(content)
        plain = SimpleNamespace(run=probe.run)
        setattr(probe, "run", lambda inputs: run(graph, plain, inputs))  # noqa: B010
        return probe

    return device


@pytest.mark.slow
@pytest.mark.parametrize("most_runs", [*range(12), MOST_DEVICE_QUERIES])
@pytest.mark.parametrize("hides", [None, lambda _: False, is_whole_with_all_outputs])
def test_the_device_is_not_asked_more_often_than_it_may_be(
    most_runs: int, hides: Callable[[Graph], bool] | None
) -> None:
    operator, asked = weighted(CONTENT)[2], count()
    opens = faulty(operator) if hides is None else hiding(faulty(operator), hides)

    def counted(_: Graph, probe: Probe, inputs: Sequence[Values]) -> tuple[Values, ...]:
        next(asked)
        return probe.run(inputs)

    limit = GRAPH.tensors[GRAPH.inputs[0]].nbytes
    found = find(observed(opens, counted), limit=limit, most_runs=most_runs)
    assert next(asked) == found.device_runs <= most_runs
    assert found.onset is None or found.onset.operator_index == operator
    if most_runs == MOST_DEVICE_QUERIES:
        assert found.onset is not None
        assert found.first


NOT_SHOWN = weighted(CONTENT)[1]


def shows_anything(operator: int | None) -> Opens:
    """A device that shows anything of one layer; another one, if there is one, is wrong."""
    made = GRAPH.tensors[GRAPH.operators[NOT_SHOWN].outputs[0]].name

    def shown(graph: Graph, probe: Probe, inputs: Sequence[Values]) -> tuple[Values, ...]:
        names = [graph.tensors[tensor].name for tensor in graph.outputs]
        return tuple(
            np.full_like(values, 77) if name == made and len(inputs) == 1 else values
            for name, values in zip(names, probe.run(inputs), strict=True)
        )

    return hiding(observed(on_host if operator is None else faulty(operator), shown))


def test_what_a_device_only_shows_of_a_layer_is_not_what_it_computes() -> None:
    """As on an accelerator that fills tensors that are made outputs with anything."""
    found = find(shows_anything(None))
    (layer,) = [one for one in found.layers if one.hidden]
    assert (layer.operator_index, layer.total) == (NOT_SHOWN, None)
    assert (found.method, found.onset, found.most) == ("exposure", None, None)
    assert str(layer) in found.note


def test_no_layer_is_blamed_before_the_one_that_is_wrong_behind_what_is_not_shown() -> None:
    wrong = weighted(CONTENT)[2]
    found = find(shows_anything(wrong))
    require_onset(found, found.method, wrong, first=False)
    assert found.most == found.onset
    assert found.in_layer


def test_a_crash_is_told_and_no_layer_blamed() -> None:
    class Crashing(InterpreterProbe):
        def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
            raise ProbeFailed(f"crash: SIGSEGV on {len(inputs)} inputs")

    found = find(lambda content, capture: Crashing(content, capture=capture))
    assert (found.method, found.onset) == ("none", None)
    assert "SIGSEGV" in found.note


def test_a_layer_is_to_blame_too_where_only_its_network_shows_it() -> None:
    """As of nodes that fall back to the CPU in a network, and not in isolation."""
    operator = weighted(CONTENT)[1]
    change = fault_in(operator)

    def device(content: bytes, capture: bool) -> Probe:
        whole = len(Graph(content).layers) == LAYERS and len(Graph(content).inputs) == 1
        return InterpreterProbe(change(content) if whole else content, capture=capture)

    found = find(device)
    assert (found.most, found.first) == (None, True)
    assert found.in_layer
    assert find(faulty(operator)).in_layer
    assert find(on_host).in_layer is False
    # Without an equal layer before it, the input itself may be another one.
    from_the_onset = tuple(one for one in found.layers if one.operator_index >= operator)
    assert replace(found, layers=from_the_onset).in_layer is False
    assert KernelOnset("none").in_layer is None


# Bisection.


@given(st.lists(st.booleans(), min_size=1, max_size=300))
def test_before_an_onset_the_arms_are_together_and_behind_it_they_are_not(
    apart: list[bool],
) -> None:
    """Also where they part and meet again."""
    apart[-1] = True
    asked: list[int] = []

    def parted(position: int) -> bool:
        asked.append(position)
        return apart[position]

    onset = find_onset(len(apart), parted)
    assert apart[onset]
    assert onset == 0 or not apart[onset - 1]
    assert len(asked) <= ceil(log2(len(apart)))
    assert len(set(asked)) == len(asked)
    assert len(apart) - 1 not in asked


@given(st.integers(1, 500), st.data())
def test_where_they_never_meet_again_it_is_the_first(count: int, data: st.DataObject) -> None:
    first = data.draw(st.integers(0, count - 1))
    assert find_onset(count, lambda position: position >= first) == first


# What lies between input and output is seen as it is, or not at all.

X = np.array([[1, -2, 3, 0.5]], np.float32)
WANTED = {"x": X, "a": -X, "b": np.abs(X), "c": np.abs(X) - X, "y": np.abs(X)}


def in_worker(content: bytes, capture: bool) -> Probe:
    return HostProbe(content, "builtin", capture=capture)


def seen(opens: Opens, content: bytes, values: Values) -> tuple[dict[str, Values], ProbedArm]:
    graph = Graph(content)
    with closing(ProbedArm(graph, content, opens)) as arm:
        observed = arm.observe([values], arm.outputs([values]))
    assert (observed.perturbation, observed.method) == (None, "capture")
    return {graph.tensors[tensor].name: one for tensor, one in observed.state.items()}, arm


def test_every_tensor_is_seen_as_the_runtime_has_it() -> None:
    state, _ = seen(in_worker, residual_model(), X)
    assert {name: one.tolist() for name, one in state.items()} == {
        name: one.tolist() for name, one in WANTED.items()
    }
    state, arm = seen(on_host, CONTENT, example_input())
    wanted = whole(GRAPH, example_input(), "xnnpack", CONTENT)
    assert {name: one.tobytes() for name, one in state.items()} == {
        GRAPH.tensors[tensor].name: one.tobytes() for tensor, one in wanted.items()
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
        arm = ProbedArm(graph, content, lambda part, capture: device.probe(part, capture=capture))
        with closing(arm):
            state = arm.observe([X], arm.outputs([X])).state
    by_name, believed = (
        {graph.tensors[tensor].name: one.tolist() for tensor, one in known.items()}
        for known in (captured, state)
    )
    assert by_name["b"] == WANTED["c"].tolist()
    assert believed["b"] == WANTED["b"].tolist()
    assert believed["y"] == WANTED["y"].tolist()


# One tensor that cannot be read hides the operators that touch it, and no others.

RNG = np.random.default_rng(5)
WEIGHTS = RNG.normal(size=(3, 40)).astype(np.float32)
HALVED = np.array([[1], [0.5], [1]], np.float32)
GIVEN = RNG.normal(size=(1, 8, 8)).astype(np.float32)
REASON = "tensor 'spectrum' of RFFT2D (operator 0), complex64, cannot be read"
SPECTRUM, MAGNITUDE, FLAT, LOGITS, SOFTMAX = range(5)


def of_spectrum(weights: NDArray[np.float32]) -> bytes:
    """A softmax of weights over the spectrum of an input, which is complex."""
    writer = GraphWriter()
    shapes = {"magnitude": (1, 8, 5), "flat": (1, 40), "logits": (1, 3), "y": (1, 3)}
    x = writer.tensor("x", (1, 8, 8), "FLOAT32")
    spectrum = writer.tensor("spectrum", (1, 8, 5), "COMPLEX64")
    magnitude, flat, logits, y = (
        writer.tensor(name, shape, "FLOAT32") for name, shape in shapes.items()
    )
    length, shape = (writer.constant("", np.array(of, np.int32)) for of in ([8, 8], [1, 40]))
    writer.operator("RFFT2D", [x, length], [spectrum], schema.Rfft2dOptionsT())
    writer.operator("COMPLEX_ABS", [spectrum], [magnitude])
    writer.operator("RESHAPE", [magnitude, shape], [flat], schema.ReshapeOptionsT())
    read = writer.constant("weights", weights)
    writer.operator("FULLY_CONNECTED", [flat, read], [logits], schema.FullyConnectedOptionsT())
    writer.operator("SOFTMAX", [logits], [y], schema.SoftmaxOptionsT(beta=1.0))
    return writer.content([x], [y])


def test_a_fault_behind_a_complex_tensor_is_found_between_twin_and_original() -> None:
    contents = of_spectrum(WEIGHTS), of_spectrum(WEIGHTS * HALVED)
    original, compressed = map(Graph, contents)
    with closing(in_worker(contents[1], True)) as probe:
        twin = dict(zip(probe.made, probe.run([GIVEN]), strict=True))
    twin[compressed.inputs[0]] = GIVEN
    reader = class_reader(contents[0])
    localizer = CompressionLocalizer(compressed, original, contents[0], in_worker, reader)
    with closing(localizer):
        found = localizer.find(twin, GIVEN)
    assert [layer.layer.operator_index for layer in found.layers] == [FLAT, LOGITS, SOFTMAX]
    assert [layer.layer.operator_index for layer in found.beyond] == [LOGITS]
    assert REASON in found.note
    assert "the other layers are compared" in found.note


def test_device_and_twin_are_compared_before_and_behind_it() -> None:
    content = of_spectrum(WEIGHTS)

    def device(model: bytes, capture: bool) -> Probe:
        return in_worker(model.replace(WEIGHTS.tobytes(), (-WEIGHTS).tobytes()), capture)

    hidden = hiding(device, lambda graph: len(graph.outputs) > 2)
    assert WEIGHTS.tobytes() in content
    for opens, method in ((device, "capture"), (hidden, "prefix")):
        with closing(KernelLocalizer(Graph(content), content, opens, in_worker, 1 << 20)) as finder:
            seen = finder.find(GIVEN)
        found = seen.onset
        assert (found.method, found.onset and found.onset.operator_index) == (method, LOGITS)
        assert REASON in found.note
        layers = {layer.operator_index: layer for layer in found.layers}
        assert SPECTRUM not in layers
        assert len(seen.twin) > len(Graph(content).inputs)
        if method == "capture":
            assert layers[MAGNITUDE].total is not None
            assert layers[MAGNITUDE].own is None
            assert layers[FLAT].own is not None
