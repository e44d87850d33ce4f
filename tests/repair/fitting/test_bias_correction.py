"""Corrected biases bring the mean of each channel back to the original's."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.bias_correction import fit_biases
from edgeflare.repair.fitting.captured_tensors import captured
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import (
    JudgedNetwork,
    Net,
    judged,
    require_progress,
    structure,
    untold,
)

pytestmark = pytest.mark.slow


@cache
def corrected(net: Net) -> tuple[JudgedNetwork, bytes]:
    found = judged(net)
    return found, fit_biases(found.network, untold)


def mean_error(known: JudgedNetwork, content: bytes) -> float:
    """Mean error of the logits' means over the images that nothing was fitted with."""
    network, last = known.network, known.network.layers[-2]
    graph = Graph(content)
    raw = captured(content, known.rows[:80], [last.output])[last.output]
    tensor = graph.tensors[last.output]
    made = (raw.astype(np.float64) - tensor.zero_points[0]) * tensor.scales[0]
    there = captured(network.original, known.original_rows[:80], [last.original_output])
    wanted = there[last.original_output].astype(np.float64)
    return float(np.abs((made - wanted).mean(axis=0)).mean())


@pytest.mark.parametrize("net", ["example", "resnet"])
def test_only_biases_change_and_means_come_nearer(net: Net) -> None:
    known, content = corrected(net)
    before, after = known.network.graph, Graph(content)
    assert len(content) == len(known.network.content)
    assert structure(content) == structure(known.network.content)
    biases = {one.bias for one in known.network.layers if one.bias is not None}
    for tensor in before.tensors:
        if tensor.constant and tensor.index not in biases:
            assert np.array_equal(after.values(tensor.index), before.values(tensor.index))
        if tensor.index not in biases:
            assert after.tensors[tensor.index] == tensor
    assert mean_error(known, content) < 0.7 * mean_error(known, known.network.content)


@pytest.mark.parametrize("kernels", ["xnnpack", "builtin", "reference"])
def test_all_kernels_run_it(kernels: Kernels) -> None:
    known, content = corrected("example")
    assert known.error(content, kernels) < 1.3 * known.error(known.network.content, kernels)


def test_zeroed_biases_come_back() -> None:
    known, content = corrected("resnet")
    network = known.network
    edit = InPlaceEdit(network.content)
    for layer in network.layers[1:5]:
        if layer.bias is not None:
            edit.set_values(layer.bias, np.zeros_like(network.graph.values(layer.bias)))
    damaged = edit.content()
    assert known.error(damaged) > 2 * known.error(network.content)
    assert fit_biases(network.with_content(damaged), untold) == content


def test_logits_that_fitted_ranges_shift_stay_shifted() -> None:
    known = judged("example")
    ranged = known.network.with_content(fit_ranges(known.network, untold))
    content = fit_biases(ranged, untold)
    bias = ranged.graph.tensors[ranged.graph.operators[9].inputs[2]]
    before, after = (bias.real(Graph(one).values(bias.index)) for one in (ranged.content, content))
    shifted = before - np.asarray(known.network.layers[-2].float_bias)
    assert np.abs(shifted).min() > 1.0
    assert np.abs(after - before).max() < 0.5
    assert known.error(content) < 1.5 * known.error(ranged.content)


def test_progress_counts_layers() -> None:
    network, told = judged("example").network, list[tuple[int, int]]()
    fit_biases(network, lambda *far: told.append(far))
    require_progress(told)
    assert told[-1][1] == sum(one.bias is not None for one in network.layers)
