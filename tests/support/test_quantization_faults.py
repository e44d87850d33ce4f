"""Planted faults of quantization: tests/support/quantization_faults.py."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.models.tflite_graph import Graph
from fitted_networks import judged, structure
from quantization_faults import FAULTS, QuantizationFault, drawn_fault, harmful_fault

NETWORK = judged("resnet")
CONTENT, ORIGINAL = NETWORK.network.content, NETWORK.network.original


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_drawn_by_the_seed_and_keeps_the_structure(kind: str) -> None:
    fault, again, other = (
        drawn_fault(CONTENT, ORIGINAL, kind, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert fault == again
    assert fault.content not in (CONTENT, other.content)
    assert len(fault.content) == len(CONTENT)
    assert structure(fault.content) == structure(CONTENT)


@pytest.mark.parametrize("kind", ["scale", "bias", "channel"])
def test_a_fault_in_constants_is_in_its_operator_alone(kind: str) -> None:
    fault = drawn_fault(CONTENT, ORIGINAL, kind, np.random.default_rng(3))
    before, after = Graph(CONTENT), Graph(fault.content)
    changed = {
        old.index
        for old, new in zip(before.tensors, after.tensors, strict=True)
        if old != new
        or (old.constant and (before.values(old.index) != after.values(old.index)).any())
    }
    assert changed
    assert changed <= set(before.operators[fault.operator].inputs)


def test_a_clipped_range_keeps_real_biases() -> None:
    fault = drawn_fault(CONTENT, ORIGINAL, "ranges", np.random.default_rng(3))
    before, after = Graph(CONTENT), Graph(fault.content)
    (made,) = before.operators[fault.operator].outputs
    ratio = after.tensors[made].scales[0] / before.tensors[made].scales[0]
    assert ratio == pytest.approx(fault.amount, rel=1e-3)
    for old, new in zip(before.tensors, after.tensors, strict=True):
        if old.constant and old.dtype == "int32" and old.scales:
            step = max(new.scales)
            real = old.real(before.values(old.index)) - new.real(after.values(new.index))
            assert np.abs(real).max() <= 0.51 * step + 1e-6


def test_a_harmful_fault_is_the_first_with_enough_deviations() -> None:
    faults = [QuantizationFault("bias", at, 0.0, bytes([at])) for at in (20, 29, 30, 40)]
    drawn = iter(faults)
    found, count = harmful_fault(lambda: next(drawn), lambda content: content[0], healthy=20)
    assert (found, count) == (faults[2], 30)
