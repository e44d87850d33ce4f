"""A quantized network whose values follow from its parameters: the runtime's, with gradients."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting.fake_quantization import (
    FakeQuantizedNetwork,
    Parameters,
    in_whole_steps,
)
from edgeflare.whitebox.array_library import jax, jnp
from edgeflare.whitebox.operator_translation import Array, rounded
from fitted_networks import JudgedNetwork, judged, outputs, structure
from tampering import COMPRESSED, ORIGINAL

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]


@cache
def network(content: bytes = COMPRESSED.read_bytes()) -> FakeQuantizedNetwork:
    graph = Graph(content)
    return FakeQuantizedNetwork(graph, graph.outputs)


@cache
def inputs() -> JudgedNetwork:
    return judged("example")


def labels(content: bytes, rows: NDArray[np.generic]) -> NDArray[np.int64]:
    made = network(content)
    (values,) = jax.jit(made.values)(made.parameters, rows)
    found: NDArray[np.int64] = np.asarray(values).reshape(len(rows), -1).argmax(axis=1)
    return found


def test_labels_are_those_of_the_runtime() -> None:
    content = COMPRESSED.read_bytes()
    rows = np.concatenate([inputs().rows, inputs().network.rows])
    made = labels(content, rows) == outputs(content, rows).argmax(axis=1)
    assert made.mean() >= 0.99
    assert (labels(ORIGINAL.read_bytes(), inputs().original_rows) != made[:120]).any()


def test_values_of_a_float_network_are_those_of_the_runtime() -> None:
    made, rows = network(ORIGINAL.read_bytes()), inputs().original_rows
    (values,) = jax.jit(made.values)(made.parameters, rows)
    wanted = outputs(ORIGINAL.read_bytes(), rows, "builtin")
    assert np.abs(np.asarray(values).reshape(wanted.shape) - wanted).max() < 1e-5


def test_the_gradient_of_steps_is_that_of_clipping_without_rounding() -> None:
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=(2, 500)).astype(np.float32)

    def traced(real: Array, step: Array, fewest: Array, most: Array) -> Array:
        return rounded(jnp.clip(real / step, fewest, most)) * step

    given = values, np.float32(0.3), np.float32(-4), np.float32(2)
    wanted, found = (
        jax.grad(lambda *at, of=of: (of(*at) * weights).sum(), argnums=(0, 1, 2, 3))(*given)
        for of in (traced, in_whole_steps)
    )
    assert all(np.abs(one).max() > 0.1 for one in wanted)
    for one, other in zip(wanted, found, strict=True):
        assert np.asarray(other) == pytest.approx(np.asarray(one), rel=1e-4, abs=1e-4)


def test_what_the_file_has_is_written_as_it_was() -> None:
    content = COMPRESSED.read_bytes()
    assert network().written(content, network().parameters) == content


def test_each_parameter_moves_the_output_and_is_written() -> None:
    made, rows = network(), inputs().rows[:20]

    def confidence(parameters: Parameters) -> Array:
        (values,) = made.values(parameters, rows)
        return (values**2).sum()

    found = jax.jit(jax.grad(confidence))(made.parameters)
    for kind in found:
        assert kind
        assert all(np.abs(np.asarray(one)).max() > 0 for one in kind.values())
    moved = jax.tree.map(lambda one, by: one + 4.0 * np.sign(by), made.parameters, found)
    moved = moved._replace(
        ranges={at: 1.2 * ends for at, ends in made.parameters.ranges.items()},
        biases={at: 1.1 * np.asarray(one) for at, one in made.parameters.biases.items()},
    )
    content = made.written(COMPRESSED.read_bytes(), moved)
    assert structure(content) == structure(COMPRESSED.read_bytes())
    read = FakeQuantizedNetwork(Graph(content), made.outputs)
    for kind, wanted in zip(read.parameters, moved, strict=True):
        for at, one in kind.items():
            assert np.allclose(one, np.clip(wanted[at], -127, 127), rtol=0.02, atol=1e-3)
    assert (labels(content, rows) == outputs(content, rows).argmax(axis=1)).mean() >= 0.95
