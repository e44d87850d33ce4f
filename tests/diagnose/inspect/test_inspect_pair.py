"""Inspections of the example's pair, healthy and with a fault in the weights of one channel."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.campaign.pair_panel import open_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.inspect.behaviour_block import UnitLayer
from edgeflare.diagnose.inspect.inspect_document import InspectionResult
from edgeflare.diagnose.inspect.inspect_pair import (
    BLOCK,
    InspectionRequest,
    device_tensors,
    inspect_pair,
)
from edgeflare.diagnose.inspect.inspection_inputs import Found
from edgeflare.diagnose.inspect.unit_behaviours import BEHAVIOURS, InputBehaviours, UnitBehaviours
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.plan import Plan
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from tampering import COMPRESSED, EXAMPLE, ORIGINAL, example_input, original_input

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

DEVICE = "emulated-xnnpack"
REQUEST = InspectionRequest(("error-gradient",), (), 0.1, 400, permutations=200)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return load_pair(EXAMPLE)


def inspected(
    pair: Pair,
    request: InspectionRequest = REQUEST,
    *,
    on_device: bool = False,
    limit: int | None = None,
) -> tuple[InspectionResult, list[tuple[int, int]]]:
    """Inspect a pair; return what was found, and the progress that was told."""
    told: list[tuple[int, int]] = []
    plan = Plan("boundary", Goal(), (DEVICE,), limit=limit)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, [find_profile(DEVICE)], stack)
        tensors_of = None
        if on_device:
            tensors_of = stack.enter_context(device_tensors(opened.devices[0], opened.pair))
        run_found = [Found(number, opened.seeds.inputs[number]) for number in range(3)]
        found = inspect_pair(
            opened, request, run_found, tensors_of, lambda done, total: told.append((done, total))
        )
    return found, told


def with_fault(pair: Pair, operator: int, channel: int, folder: Path) -> Pair:
    """Return the pair with the weights of one channel times 1.6."""
    content = pair.compressed.read_bytes()
    graph = Graph(content)
    tensor = graph.operators[operator].inputs[1]
    weights = np.array(graph.values(tensor))
    weights[channel] = np.clip(np.round(1.6 * weights[channel].astype(float)), -127, 127)
    edit = InPlaceEdit(content)
    edit.set_values(tensor, weights)
    path = folder / "faulty.tflite"
    path.write_bytes(edit.content())
    return replace(pair, compressed=path)


def test_a_channel_with_a_fault_is_named_with_its_layer(pair: Pair, tmp_path: Path) -> None:
    found, _ = inspected(with_fault(pair, 2, 5, tmp_path))
    verdict = found.verdict
    assert verdict.name == "channel", verdict.sentence
    assert verdict.unit is not None
    assert (found.layers[verdict.unit.layer].operator_index, verdict.unit.channel) == (2, 5)


def test_no_channel_of_a_healthy_pair_is_blamed_and_later_layers_have_more_of_the_error(
    pair: Pair,
) -> None:
    """What the last layer lacks is the rounding of the scores, about half of this pair's error."""
    found, told = inspected(pair)
    assert found.verdict.name in ("diffuse", "nothing")
    shares = [one.share for one in found.layer_scores if one.share is not None]
    assert shares[0] < shares[2] < shares[-1]
    assert 0.3 < shares[-1] < 0.9
    assert told[0] == (BLOCK, told[0][1])
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len({total for _, total in told}) == 1
    assert 300 < told[0][1] <= 403


def test_the_seed_decides_and_a_device_with_the_same_kernels_gives_the_same(pair: Pair) -> None:
    request = replace(REQUEST, precision=0.9, behaviours=("error", "error-gradient"))
    first, _ = inspected(pair, request)
    assert first == inspected(pair, request, on_device=True)[0]
    assert first != inspected(pair, replace(request, rng_seed=1))[0]
    assert (first.inputs, first.ended) == (200, "precise")


def test_too_few_seeds_are_refused(pair: Pair) -> None:
    with pytest.raises(UserError, match="search a pair with 100 seeds or more"):
        inspected(pair, limit=3)


def test_what_is_not_finite_is_refused(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    of = UnitBehaviours.of

    def infinite(units: UnitBehaviours, *rows: NDArray[np.generic]) -> InputBehaviours:
        found = of(units, *rows)
        found.values["error-gradient"][0] = np.inf
        return found

    monkeypatch.setattr(UnitBehaviours, "of", infinite)
    with pytest.raises(UserError, match="gives NaN or infinity on inputs near the boundary"):
        inspected(pair)


# What units do.

SEEDS = range(8)


@cache
def network(path: Path) -> DifferentiableNetwork:
    return DifferentiableNetwork(Graph(path.read_bytes(), path.name))


def units(*behaviours: str) -> UnitBehaviours:
    compressed = network(COMPRESSED)
    wanted = behaviours or BEHAVIOURS
    return UnitBehaviours(network(ORIGINAL), compressed, wanted, compressed.tensors)


def rows(seed: int) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    return original_input(seed)[0], example_input(seed)[0]


def parts(values: NDArray[np.float32], layers: Sequence[UnitLayer]) -> list[NDArray[np.float32]]:
    """Divide the values of all units among their layers."""
    return np.split(values, np.cumsum([layer.channels for layer in layers])[:-1])


def test_layers_come_in_execution_order_without_that_of_the_scores() -> None:
    layers, compressed = units().layers, network(COMPRESSED)
    operators = [layer.operator_index for layer in layers]
    assert operators == sorted(set(operators))
    graph = compressed.graph
    outputs = [graph.operators[operator].outputs[0] for operator in operators]
    assert {compressed.scores, graph.outputs[0]}.isdisjoint(outputs)
    assert [layer.channels for layer in layers] == [graph.tensors[one].shape[-1] for one in outputs]


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_activations_and_errors_are_means_of_what_the_runtime_computes(seed: int) -> None:
    captured = []
    for path, row in zip((ORIGINAL, COMPRESSED), rows(seed), strict=True):
        with HostProbe(path.read_bytes(), "xnnpack", capture=True) as probe:
            captured.append(dict(zip(probe.made, probe.run([row[None]]), strict=True)))
    ours, theirs = (network(path).graph for path in (COMPRESSED, ORIGINAL))
    known, found = units(), units().of(*rows(seed))
    activations, errors = (parts(found.values[name], known.layers) for name in BEHAVIOURS[:2])
    names = [one.name for one in ours.operators]
    for number, layer in enumerate(known.layers):
        (tensor,) = ours.operators[layer.operator_index].outputs
        got = ours.tensors[tensor].real(captured[1][tensor])
        wanted = got.reshape(-1, layer.channels).mean(axis=0)
        assert activations[number] == pytest.approx(wanted, abs=1e-5)
        nth = names[: layer.operator_index].count(layer.name)
        same = [one for one in theirs.operators if one.name == layer.name][nth]
        exact = captured[0][same.outputs[0]].reshape(-1, layer.channels).mean(axis=0)
        assert errors[number] == pytest.approx(exact - wanted, abs=1e-4)


def test_the_error_of_the_margin_is_that_of_the_scores_and_what_the_last_layer_contributes() -> (
    None
):
    """The layer of the scores is linear: what is missing is what its own rounding adds."""
    known, original, compressed = units(), network(ORIGINAL), network(COMPRESSED)
    (step,) = compressed.graph.tensors[compressed.scores].scales
    sums = []
    for seed in SEEDS:
        one, other = rows(seed)
        found = known.of(one, other)
        exact, got = original.evaluate(one)[1], compressed.evaluate(other)[1]
        best, second = np.argsort(-got)[:2]
        right = int(exact.argmax())
        wrong = int(second if best == right else best)
        expected = (exact[right] - exact[wrong]) - (got[right] - got[wrong])
        assert found.margin_error == pytest.approx(expected, abs=1e-4)
        sums.append(parts(found.values["error-gradient"], known.layers)[-1].sum())
        assert abs(sums[-1] - found.margin_error) < 1.5 * step
    assert np.abs(sums).max() > 0.2 * step


def test_a_model_without_error_has_none_in_any_unit() -> None:
    original, row = network(ORIGINAL), rows(0)[0]
    found = UnitBehaviours(original, original, BEHAVIOURS, original.tensors).of(row, row)
    assert found.margin_error == 0.0
    assert not found.values["error"].any()
    assert not found.values["error-gradient"].any()
    assert found.values["activation"].any()


def test_only_what_is_wanted_is_computed_and_units_are_those_of_layers_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(DifferentiableNetwork, "tensor_gradients")
    assert list(units("error").of(*rows(0)).values) == ["error"]
    monkeypatch.setattr("edgeflare.diagnose.inspect.unit_behaviours.match_layers", lambda *_: {})
    with pytest.raises(UserError, match="there are no units to inspect"):
        units()
