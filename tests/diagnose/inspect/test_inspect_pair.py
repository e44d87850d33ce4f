"""Inspections of the example's pair, healthy and with a fault in the weights of one channel."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.campaign.opened_pair import open_pair
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.diagnose.inspect.device_tensors import device_tensors
from edgeflare.diagnose.inspect.inspect_pair import BLOCK, InspectionRequest, inspect_pair
from edgeflare.diagnose.inspect.inspected_inputs import Found
from edgeflare.diagnose.inspect.inspection_result import InspectionResult
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.pair import Pair, load_pair
from edgeflare.models.tflite_graph import Graph
from edgeflare.run.plan import Plan

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
DEVICE = "emulated-xnnpack"
REQUEST = InspectionRequest(("error-gradient",), (), 0.1, 400, permutations=200)


@pytest.fixture(scope="module")
def pair() -> Pair:
    return load_pair(ROOT / "examples" / "fashion_lenet4")


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


@pytest.mark.parametrize(("operator", "channel"), [(0, 1), (2, 5)])
def test_a_channel_with_a_fault_is_named_with_its_layer(
    pair: Pair, tmp_path: Path, operator: int, channel: int
) -> None:
    found, _ = inspected(with_fault(pair, operator, channel, tmp_path))
    verdict = found.verdict
    assert verdict.name == "channel", verdict.sentence
    assert verdict.unit is not None
    assert found.layers[verdict.unit.layer].operator == operator
    assert verdict.unit.channel == channel


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
