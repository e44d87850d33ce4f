"""Where device and twin part: a device double runs the same parts with a fault planted in one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from math import ceil, log2

import numpy as np
import pytest

from edgeflare.diagnose.evidence import MOST_DEVICE_QUERIES
from edgeflare.diagnose.kernel_localization import KernelLocalizer, KernelOnset
from edgeflare.models.model_probe import Probe, ProbeFailed, ProbeRefused, Values
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import Kernels
from tampering import (
    COMPRESSED,
    InterpreterProbe,
    constant_of,
    example_input,
    weighted,
    with_constant,
)

CONTENT = COMPRESSED.read_bytes()
GRAPH = Graph(CONTENT)
LAYERS = len(GRAPH.layers)
Opens = Callable[[bytes, bool], Probe]


def find(
    device: Opens,
    limit: int = 3 << 20,
    values: Values | None = None,
    most_runs: int = MOST_DEVICE_QUERIES,
) -> KernelOnset:
    def twin(content: bytes, capture: bool) -> Probe:
        return InterpreterProbe(content, capture=capture)

    with closing(KernelLocalizer(GRAPH, CONTENT, device, twin, limit)) as finder:
        found, seen = finder.find(example_input() if values is None else values, most_runs)
    assert set(GRAPH.outputs) <= set(seen) or found.method != "capture"
    return found


def faulty(operator: int, kernels: Kernels = "xnnpack") -> Opens:
    """A device on which one layer has other weights."""
    name = constant_of(CONTENT, operator)

    def opens(content: bytes, capture: bool) -> Probe:
        broken = with_constant(content, name, lambda weights: -weights)
        return InterpreterProbe(broken, kernels, capture=capture)

    return opens


def hides_captures(opens: Opens) -> Opens:
    def device(content: bytes, capture: bool) -> Probe:
        if capture:
            raise ProbeRefused("no capture here")
        return opens(content, capture)

    return device


def hides_everything(opens: Opens) -> Opens:
    """No capture, and no model with all its tensors for outputs."""

    def device(content: bytes, capture: bool) -> Probe:
        graph = Graph(content)
        if capture or (len(graph.layers) == LAYERS and len(graph.outputs) == LAYERS):
            islands = len(graph.inputs) > 1
            if not islands:
                raise ProbeRefused("too many outputs")
        return opens(content, capture)

    return device


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_a_fault_in_a_layer_is_found_there(operator: int) -> None:
    found = find(faulty(operator))
    assert found.method == "capture"
    assert found.onset is not None
    assert found.most is not None
    assert found.onset.operator == found.most.operator == operator
    assert found.first
    assert found.perturbation is None
    by_operator = {layer.layer.operator: layer for layer in found.layers}
    for index, layer in by_operator.items():
        assert layer.own is not None
        assert layer.total is not None
        assert layer.own.parted == (index == operator)
        assert index >= operator or not layer.total.parted
    assert by_operator[operator].new_share == 1.0
    last = by_operator[max(by_operator)]
    if last.layer.operator > operator:
        assert last.new_share == 0.0


@pytest.mark.parametrize("operator", weighted(CONTENT)[1:3])
def test_without_capture_tensors_are_made_outputs(operator: int) -> None:
    found = find(hides_captures(faulty(operator)))
    assert found.method == "exposure"
    assert found.onset is not None
    assert (found.onset.operator, found.first) == (operator, True)


@pytest.mark.parametrize("operator", weighted(CONTENT))
def test_where_nothing_is_shown_beginnings_are_bisected(operator: int) -> None:
    found = find(hides_everything(faulty(operator)))
    assert found.method == "prefix"
    assert found.onset is not None
    assert (found.onset.operator, found.first) == (operator, True)
    assert found.device_runs <= ceil(log2(LAYERS)) + 2 + 1  # the last tells what is new where


def test_what_cannot_be_borne_out_is_not_called_the_first() -> None:
    """A delegate that runs parts only if they put out no more than they must."""
    operator = weighted(CONTENT)[2]
    opens = faulty(operator)

    def device(content: bytes, capture: bool) -> Probe:
        graph = Graph(content)
        if capture or len(graph.outputs) > 2:
            raise ProbeRefused("too many outputs")
        return opens(content, capture)

    found = find(device)
    assert found.onset is not None
    assert (found.method, found.onset.operator, found.first) == ("prefix", operator, False)


def test_a_capture_that_changes_the_output_is_not_believed() -> None:
    operator = weighted(CONTENT)[1]
    opens, name = faulty(operator), constant_of(CONTENT, weighted(CONTENT)[0])

    def device(content: bytes, capture: bool) -> Probe:
        if capture:
            content = with_constant(content, name, lambda weights: weights // 2)
        return opens(content, capture)

    found = find(device)
    assert found.method == "exposure"
    assert found.perturbation is not None
    assert found.perturbation.parted
    assert found.onset is not None
    assert found.onset.operator == operator


def test_a_captured_tensor_that_was_written_over_is_not_believed() -> None:
    """As under tflite-runtime 2.14, where an ADD writes its sum over what it was given."""
    operator, stale = weighted(CONTENT)[2], weighted(CONTENT)[0]

    class Overwriting(InterpreterProbe):
        def run(self, inputs: Sequence[Values]) -> tuple[Values, ...]:
            values = list(super().run(inputs))
            at = self.made.index(GRAPH.operators[stale].outputs[0])
            values[at] = np.full_like(values[at], 77)
            return tuple(values)

    name = constant_of(CONTENT, operator)

    def device(content: bytes, capture: bool) -> Probe:
        broken = with_constant(content, name, lambda weights: -weights)
        return (Overwriting if capture else InterpreterProbe)(broken, capture=capture)

    found = find(device)
    assert found.method == "capture"
    assert found.onset is not None
    assert (found.onset.operator, found.first) == (operator, True)


def test_the_same_kernels_do_not_part() -> None:
    found = find(lambda content, capture: InterpreterProbe(content, capture=capture))
    assert found.onset is None
    assert found.most is None
    assert not any(layer.total is None or layer.total.parted for layer in found.layers)


def test_other_kernels_part_by_units() -> None:
    rng = np.random.default_rng(3)
    noise = rng.integers(-128, 128, example_input().shape).astype(np.int8)

    def device(content: bytes, capture: bool) -> Probe:
        return InterpreterProbe(content, "reference", capture=capture)

    found = find(device, values=noise)
    assert found.onset is not None
    assert found.onset.name == "CONV_2D"
    own = next(layer.own for layer in found.layers if layer.layer == found.onset)
    assert own is not None
    assert own.max_units == 1


def test_a_message_too_small_for_all_operators_is_spent_around_the_onset() -> None:
    operator = weighted(CONTENT)[2]
    tensor = GRAPH.tensors[GRAPH.fed(GRAPH.operators[operator])[0]]
    found = find(faulty(operator), limit=tensor.nbytes)
    assert found.most is not None
    assert found.most.operator == operator
    assert any(layer.own is None for layer in found.layers)


class Counting:
    """A device that counts the runs of all its probes."""

    def __init__(self, opens: Opens) -> None:
        self.runs = 0
        self._opens = opens

    def __call__(self, content: bytes, capture: bool) -> Probe:
        probe = self._opens(content, capture)
        run = probe.run

        def counted(inputs: Sequence[Values]) -> tuple[Values, ...]:
            self.runs += 1
            return run(inputs)

        setattr(probe, "run", counted)  # noqa: B010
        return probe


@pytest.mark.slow
@pytest.mark.parametrize("most_runs", [*range(12), MOST_DEVICE_QUERIES])
@pytest.mark.parametrize("hidden", [lambda opens: opens, hides_captures, hides_everything])
def test_the_device_is_not_asked_more_often_than_it_may_be(
    most_runs: int, hidden: Callable[[Opens], Opens]
) -> None:
    operator = weighted(CONTENT)[2]
    device = Counting(hidden(faulty(operator)))
    found = find(device, limit=GRAPH.tensors[GRAPH.inputs[0]].nbytes, most_runs=most_runs)
    assert device.runs <= most_runs
    assert device.runs == found.device_runs
    assert found.onset is None or found.onset.operator == operator
    if most_runs == MOST_DEVICE_QUERIES:
        assert found.onset is not None
        assert found.first


NOT_SHOWN = weighted(CONTENT)[1]


def shows_anything(operator: int | None) -> Opens:
    """A device that shows anything of one layer; another one, if there is one, is wrong."""
    made = GRAPH.tensors[GRAPH.operators[NOT_SHOWN].outputs[0]].name

    def device(content: bytes, capture: bool) -> Probe:
        if capture:
            raise ProbeRefused("no capture here")
        healthy = InterpreterProbe(content, capture=False)
        probe = healthy if operator is None else faulty(operator)(content, False)
        graph, run = Graph(content), probe.run

        def shown(inputs: Sequence[Values]) -> tuple[Values, ...]:
            names = [graph.tensors[tensor].name for tensor in graph.outputs]
            return tuple(
                np.full_like(values, 77) if name == made and len(inputs) == 1 else values
                for name, values in zip(names, run(inputs), strict=True)
            )

        setattr(probe, "run", shown)  # noqa: B010
        return probe

    return device


def test_what_a_device_only_shows_of_a_layer_is_not_what_it_computes() -> None:
    """As on an accelerator that fills tensors that are made outputs with anything."""
    found = find(shows_anything(None))
    (layer,) = [one for one in found.layers if one.hidden]
    assert (layer.layer.operator, layer.total) == (NOT_SHOWN, None)
    assert (found.method, found.onset, found.most) == ("exposure", None, None)
    assert str(layer.layer) in found.note


def test_no_layer_is_blamed_before_the_one_that_is_wrong_behind_what_is_not_shown() -> None:
    wrong = weighted(CONTENT)[2]
    found = find(shows_anything(wrong))
    assert found.onset is not None
    assert found.most is not None
    assert (found.onset.operator, found.most.operator, found.first) == (wrong, wrong, False)
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
    name = constant_of(CONTENT, operator)

    def device(content: bytes, capture: bool) -> Probe:
        whole = len(Graph(content).layers) == LAYERS and len(Graph(content).inputs) == 1
        broken = with_constant(content, name, lambda weights: -weights) if whole else content
        return InterpreterProbe(broken, capture=capture)

    def healthy(content: bytes, capture: bool) -> Probe:
        return InterpreterProbe(content, capture=capture)

    found = find(device)
    assert (found.most, found.first) == (None, True)
    assert found.in_layer
    assert find(faulty(operator)).in_layer
    assert find(healthy).in_layer is False
    # Without an equal layer before it, the input itself may be another one.
    from_the_onset = tuple(one for one in found.layers if one.layer.operator >= operator)
    assert replace(found, layers=from_the_onset).in_layer is False
    assert KernelOnset("none").in_layer is None
