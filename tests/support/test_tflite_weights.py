"""What the benchmarks of §5.4 change in a model: tests/support/tflite_weights.py."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.errors import UserError
from example_compressions import EXAMPLE
from tflite_weights import Weights, mutated, pruned

ORIGINAL = (EXAMPLE / "original.tflite").read_bytes()


def flat(content: bytes) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    weights = Weights(content)
    return np.concatenate([weights.values[tensor].ravel() for tensor in weights.layers])


def test_so_many_weights_change_by_a_tenth_and_the_sets_are_nested() -> None:
    before = flat(ORIGINAL)
    models = mutated(Weights(ORIGINAL), (10, 30, 100), np.random.default_rng(0))
    changed = {percent: flat(content) != before for percent, content in models.items()}
    nonzero = before != 0.0
    for percent, content in models.items():
        after = flat(content)
        ratio = after[changed[percent]] / before[changed[percent]]
        assert np.allclose(np.abs(ratio - 1.0), 0.1, atol=1e-5)
        assert 0.45 < (ratio > 1.0).mean() < 0.55
        assert changed[percent].mean() == pytest.approx(percent / 100, abs=1e-3)
    assert (changed[10] <= changed[30]).all()
    assert (changed[100] == nonzero).all()
    smaller = flat(models[10])[changed[10]]
    assert np.array_equal(flat(models[30])[changed[10]], smaller)


def test_the_generator_alone_decides() -> None:
    weights = Weights(ORIGINAL)
    same = [mutated(weights, (20,), np.random.default_rng(seed))[20] for seed in (1, 1, 2)]
    assert same[0] == same[1] != same[2]


def test_the_smallest_weights_of_one_layer_are_pruned() -> None:
    weights = Weights(ORIGINAL)
    content = pruned(weights, 1, 0.6)
    assert abs(len(content) - len(ORIGINAL)) < 2000
    after = Weights(content)
    for position, (tensor, new) in enumerate(zip(weights.layers, after.layers, strict=True)):
        before, now = weights.values[tensor], after.values[new]
        if position != 1:
            assert np.array_equal(before, now)
            continue
        gone = now == 0.0
        assert gone.mean() == pytest.approx(0.6, abs=0.01)
        assert np.abs(before[gone]).max() <= np.abs(before[~gone]).min()
        assert np.array_equal(before[~gone], now[~gone])


def test_a_model_without_float_weights_is_refused() -> None:
    with pytest.raises(UserError, match="no float32 weights"):
        Weights((EXAMPLE / "compressed.tflite").read_bytes(), "compressed.tflite")
