"""Tests of edgeflare.repair.precision.margin_comparison, on the example's real models."""

from __future__ import annotations

import numpy as np
import pytest

from edgeflare.repair.fitting.quantizer import weights_only
from edgeflare.repair.precision.margin_comparison import MarginComparison
from fitted_networks import judged, outputs

pytest.importorskip("litert_quantizer")


def test_the_original_has_no_error() -> None:
    network = judged("example").network
    comparison = MarginComparison(network)
    same = comparison.error(network.original)
    assert (same.mean, same.deviating) == (0.0, 0)
    assert not comparison.deviating(network.original).any()


def test_inputs_deviate_where_the_label_is_another_one_or_tied() -> None:
    known = judged("example")
    raw = outputs(known.network.content, known.rows)
    wanted = outputs(known.network.original, known.original_rows).argmax(axis=1)
    best = np.sort(raw, axis=1)
    deviating = (raw.argmax(axis=1) != wanted) | (best[:, -1] == best[:, -2])
    network = known.network.__class__(
        known.network.content, known.network.original, known.rows, known.original_rows
    )
    found = MarginComparison(network).deviating(network.content)
    assert found.any()
    np.testing.assert_array_equal(found, deviating)


def test_a_model_in_float_is_nearer_than_one_in_integers() -> None:
    network = judged("example").network
    comparison = MarginComparison(network)
    assert comparison.error(weights_only(network).content).mean < (
        comparison.error(network.content).mean
    )
