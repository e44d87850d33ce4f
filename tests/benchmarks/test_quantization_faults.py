"""A planted fault of quantization is where it says, and as large."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from fitted_networks import judged, structure
from quantization_faults import FAULTS, drawn_fault


@pytest.fixture(scope="module")
def network() -> QuantizedNetwork:
    return judged("resnet").network


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_drawn_by_the_seed_and_is_in_one_operator(
    kind: str, network: QuantizedNetwork
) -> None:
    content = network.content
    fault, again, other = (
        drawn_fault(content, network.original, kind, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert fault == again
    assert fault.content not in (content, other.content)
    assert len(fault.content) == len(content)
    assert structure(fault.content) == structure(content)
    before, after = Graph(content), Graph(fault.content)
    changed = {
        old.index
        for old, new in zip(before.tensors, after.tensors, strict=True)
        if old != new
        or (old.constant and (before.values(old.index) != after.values(old.index)).any())
    }
    assert changed
    assert kind == "ranges" or changed <= set(before.operators[fault.operator].inputs)


def test_a_clipped_range_keeps_real_biases(network: QuantizedNetwork) -> None:
    content = network.content
    fault = drawn_fault(content, network.original, "ranges", np.random.default_rng(3))
    before, after = Graph(content), Graph(fault.content)
    (made,) = before.operators[fault.operator].outputs
    ratio = after.tensors[made].scales[0] / before.tensors[made].scales[0]
    assert ratio == pytest.approx(fault.amount, rel=1e-3)
    for old, new in zip(before.tensors, after.tensors, strict=True):
        if old.constant and old.dtype == "int32" and old.scales:
            step = max(new.scales)
            real = old.real(before.values(old.index)) - new.real(after.values(new.index))
            assert np.abs(real).max() <= 0.51 * step + 1e-6
