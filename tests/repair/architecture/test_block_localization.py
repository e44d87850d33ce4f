"""The suspiciousness of neurons, by hand."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.repair.architecture.block_localization import (
    reweighed,
    suspicious_neurons,
    tarantula,
)

pytestmark = pytest.mark.whitebox


def test_neurons_that_are_active_on_failures_are_suspicious() -> None:
    failed = np.array([True, True, False, False])
    active = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 0]], bool)
    np.testing.assert_allclose(tarantula(active, failed), [1.0, 0.5, 0.0])


def test_suspicion_falls_where_gradients_are_those_of_all_blocks() -> None:
    scores = {"a": np.array([1.0, 0.5]), "b": np.array([0.8])}
    gradients = {"a": np.array([4.0, -2.0]), "b": np.array([-1.0])}  # the mean of the means is 0
    found = reweighed(scores, gradients)
    np.testing.assert_allclose(found["a"], [1.0, 0.25])
    np.testing.assert_allclose(found["b"], [0.2])
    assert suspicious_neurons(found, 2) == {"a": 2, "b": 0}
    assert suspicious_neurons(found, 3) == {"a": 2, "b": 1}
