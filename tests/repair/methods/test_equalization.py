"""Channels that are scaled, so that each makes use of the steps of its activation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.activation_ranges import fit_ranges
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork
from edgeflare.repair.fitting.tensor_capture import captured
from edgeflare.repair.methods.equalization import equalize_channels
from fitted_networks import JudgedNetwork, Net, judged, outputs, structure, untold
from operator_chain import ChainStep, write_tflite
from state_pairs import write_variable_pair
from tampering import InterpreterProbe

SHAPE = (1, 8, 8, 2)
UNLIKE = np.array([1.0, 0.15, 0.2, 0.5])
"""How wide channels are beside the widest."""


def steps() -> list[ChainStep]:
    """A residual block whose channels are unlike, and whose weights take that back behind it."""
    rng = np.random.default_rng(4)

    def convolution(name: str, source: str, given: NDArray[Any], made: NDArray[Any]) -> ChainStep:
        weights = rng.uniform(0, 1, (len(made), 1, 1, len(given))) * made[:, None, None, None]
        bias = rng.uniform(-0.2, 0, len(made)) * made
        shape = (1, 8, 8, len(made))
        pair = (weights / given).astype(np.float32), bias.astype(np.float32)
        return ChainStep(name, "CONV_2D", (source,), shape, *pair, activation="RELU")

    dense = (rng.normal(size=(5, 4)) / UNLIKE).astype(np.float32)
    return [
        convolution("first", "image", np.ones(2), UNLIKE),
        convolution("within", "first", UNLIKE, UNLIKE[::-1]),
        convolution("branch", "within", UNLIKE[::-1], UNLIKE),
        ChainStep("sum", "ADD", ("first", "branch"), (1, 8, 8, 4), activation="RELU"),
        ChainStep("pooled", "MEAN", ("sum",), (1, 1, 1, 4)),
        ChainStep("dense", "FULLY_CONNECTED", ("pooled",), (1, 5), dense, np.zeros(5, np.float32)),
        ChainStep("softmax", "SOFTMAX", ("dense",), (1, 5)),
    ]


def images(count: int, seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(size=(count, *SHAPE[1:])).astype(np.float32)


def raw(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    return (np.rint(rows * 255) - 128).astype(np.int8)


def residual() -> QuantizedNetwork:
    chain, rows = steps(), images(40, 0)
    original = write_tflite(chain, SHAPE)
    probe = InterpreterProbe(original, "builtin", capture=True)
    seen = [probe.run([row[None]]) for row in rows]
    ranges = {
        step.name: (min(0.0, *(row[at].min() for row in seen)), max(row[at].max() for row in seen))
        for at, step in enumerate(chain)
    }
    ranges |= {"image": (0.0, 1.0), "softmax": (0.0, 255 / 256)}
    return QuantizedNetwork(write_tflite(chain, SHAPE, ranges), original, raw(rows), rows)


def spans(network: QuantizedNetwork, name: str) -> NDArray[np.float32]:
    """The largest value of each channel, by that of all."""
    (at,) = [one.index for one in network.original_graph.tensors if one.name == name]
    values = captured(network.original, network.original_rows, [at])[at]
    largest = values.reshape(-1, values.shape[-1]).max(axis=0)
    return np.asarray(largest / largest.max())


def test_unlike_channels_become_alike_and_the_file_nearer_to_the_original() -> None:
    before = residual()
    after = equalize_channels(before)
    assert spans(before, "within").min() < 0.5
    assert spans(after, "within") == pytest.approx(np.ones(4), rel=1e-5)
    shared = [spans(after, name) for name in ("first", "branch", "sum", "pooled")]
    assert np.max(shared, axis=0) == pytest.approx(np.ones(4), rel=1e-5)
    others = images(60, 1)
    judge = JudgedNetwork(before, raw(others), others)
    kept, equalized = (fit_ranges(one, untold) for one in (before, after))
    assert structure(equalized) == structure(kept)
    assert len(equalized) == len(kept)
    assert judge.error(equalized) < 0.6 * judge.error(kept)


@pytest.mark.parametrize("net", ["example", "resnet", "mobilenet"])
def test_the_original_computes_the_same(net: Net) -> None:
    example = judged(net)
    scaled = equalize_channels(example.network)
    assert scaled.original != example.network.original
    wanted, made = (
        outputs(one.original, example.original_rows) for one in (example.network, scaled)
    )
    assert made == pytest.approx(wanted, abs=1e-5)


def test_what_anything_but_a_layer_reads_is_not_scaled() -> None:
    """The mean of the channels themselves would change with them."""
    network = residual()
    chain = steps()
    at = [one.name for one in chain].index("within")
    chain.insert(at, ChainStep("normal", "L2_NORMALIZATION", ("first",), (1, 8, 8, 4)))
    original = write_tflite(chain, SHAPE)
    ranges = {one.name: (-1.0, 3.0) for one in chain} | {"image": (0.0, 1.0)}
    content = write_tflite(chain, SHAPE, ranges)
    changed = equalize_channels(replace(network, content=content, original=original))
    assert spans(changed, "within") == pytest.approx(np.ones(4), rel=1e-5)
    assert spans(changed, "first") == pytest.approx(spans(network, "first"), rel=1e-5)


def test_a_network_of_one_layer_is_refused() -> None:
    dense = np.ones((3, 4), np.float32)
    chain = [
        ChainStep("dense", "FULLY_CONNECTED", ("image",), (1, 3), dense, np.zeros(3, np.float32))
    ]
    content = write_tflite(chain, (1, 4), {"image": (0.0, 1.0), "dense": (-1.0, 4.0)})
    rows = images(1, 0).reshape(-1, 4)
    network = QuantizedNetwork(content, write_tflite(chain, (1, 4)), raw(rows), rows)
    assert [one.name for one in Graph(content).operators] == ["FULLY_CONNECTED"]
    with pytest.raises(UserError, match="no channels between two layers with weights"):
        equalize_channels(network)


def test_a_network_that_writes_a_variable_is_refused_where_nothing_can_be_scaled(
    tmp_path: Path,
) -> None:
    pair = write_variable_pair(tmp_path / "pair", resource=True)
    content, original = (
        (pair / f"{one}.tflite").read_bytes() for one in ("compressed", "original")
    )
    rows = np.zeros((1, 1, 3), np.float32)
    with pytest.raises(UserError, match="no channels between two layers with weights"):
        equalize_channels(QuantizedNetwork(content, original, rows, rows))
