"""Weights, biases and ranges that are learned from the original's answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.core.tensor import pack_rows
from edgeflare.errors import UserError
from edgeflare.models.tflite_graph import Graph
from edgeflare.repair.fitting import distillation
from edgeflare.repair.fitting.distillation import fit_distillation, require_learnable
from edgeflare.repair.fitting.fake_quantization import FakeQuantizedNetwork
from edgeflare.repair.fitting.gradient_descent import Descent
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork, Rows
from edgeflare.repair.repair_methods import candidate_plans
from edgeflare.repair.repair_request import RepairRequest
from fitted_networks import judged, require_progress, structure, untold
from graph_writer import GraphWriter

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]


def mixtures(network: QuantizedNetwork, wanted: int) -> tuple[Rows, Rows]:
    """Inputs between two of those to fit with, halves of each."""
    first, second = np.random.default_rng(0).integers(len(network.rows), size=(2, wanted))
    between = (network.rows[first].astype(np.int16) + network.rows[second]) >> 1
    return between.astype(np.int8), ((between + 128) / 255).astype(np.float32)


def damaged(network: QuantizedNetwork) -> bytes:
    """The file with the weights of the second convolution off by up to 12 steps each."""
    known = FakeQuantizedNetwork(network.graph, network.graph.outputs)
    tensor = [one for one in network.graph.layers if one.name == "CONV_2D"][1].inputs[1]
    weights: dict[int, NDArray[np.float32]] = {**known.parameters.weights}
    weights[tensor] += np.random.default_rng(1).uniform(-12, 12, weights[tensor].shape)
    return known.written(network.content, known.parameters._replace(weights=weights))


def test_what_is_damaged_is_learned_again_and_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distillation, "MOST_STEPS", 150)
    monkeypatch.setattr(distillation, "_RATE", 0.1)
    monkeypatch.setattr(distillation, "_INPUTS", 640)
    example = judged("example")
    content = damaged(example.network)
    network = replace(
        example.network,
        content=content,
        further=lambda wanted: mixtures(example.network, wanted),
    )
    told: list[tuple[int, int]] = []
    made, again = (
        fit_distillation(network, np.random.default_rng(0), said)
        for said in (lambda done, of: told.append((done, of)), untold)
    )
    assert made == again
    assert structure(made) == structure(content)
    assert len(made) == len(content)
    require_progress(told)
    assert example.error(made) < 0.7 * example.error(content)


def test_a_batch_in_parts_moves_as_one() -> None:
    rng = np.random.default_rng(0)
    given = rng.normal(size=(8, 3)), rng.normal(size=(8,))

    def reached(parts: int) -> NDArray[np.float32]:
        descent = Descent(
            lambda moved, batch: ((batch[0] @ moved - batch[1]) ** 2).mean(),
            np.ones(3, np.float32),
            4,
            parts,
        )
        for _ in range(4):
            descent.take(given, np.float32(0.1))
        return np.asarray(descent.reached)

    assert not np.allclose(reached(1), 1.0, atol=0.1)
    assert reached(4) == pytest.approx(reached(1), rel=1e-4)


def test_too_few_inputs_are_refused_before_anything_is_fitted() -> None:
    network = judged("example").network
    said = r"at least 200 inputs, and only 80 .*: give more seeds"
    with pytest.raises(UserError, match=said):
        require_learnable(network)
    with pytest.raises(UserError, match=said):
        fit_distillation(network, np.random.default_rng(0), untold)


def test_auto_does_not_learn_where_that_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for by its name it does: what is refused then are too few inputs."""
    network = judged("example").network
    for method, work, said in (
        ("auto", 5e8, "--method learning tries it"),
        ("auto", 5e11, "give more seeds"),
        ("learning", 5e8, "give more seeds"),
    ):
        monkeypatch.setattr(distillation, "_WORK", work)
        request = RepairRequest(method, "int8-only", True, "none", "none", None)
        plan = candidate_plans(request, network)[-1]
        assert plan.name == "learning"
        with pytest.raises(UserError, match=said):
            plan.make(untold)


@pytest.mark.parametrize("ending", ["LOGISTIC", "DEQUANTIZE", None])
def test_values_and_truths_are_learned_too(
    ending: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two weights off by 40 %, of a float network whose output is compared as it is or as odds."""
    monkeypatch.setattr(distillation, "MOST_STEPS", 200)
    monkeypatch.setattr(distillation, "_RATE", 2.0)
    rows = np.random.default_rng(0).normal(size=(256, 2)).astype(np.float32)
    wanted, started = np.array([[1.0, -0.5]], np.float32), np.array([[1.4, -0.3]], np.float32)
    original = linear(wanted, None if ending == "DEQUANTIZE" else ending)
    content = linear(started, ending)
    network = QuantizedNetwork(content, original, rows, rows, "values")
    made = Graph(fit_distillation(network, np.random.default_rng(0), untold))
    weights = made.values(made.layers[0].inputs[1]).astype(np.float32)
    assert np.abs(weights - wanted).max() < 0.25 * np.abs(started - wanted).max()


def test_several_inputs_and_a_state_are_learned_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits and a state, made of two inputs and each off.

    The state is off by as much everywhere, which would not count if its numbers were choices.
    """
    monkeypatch.setattr(distillation, "MOST_STEPS", 200)
    monkeypatch.setattr(distillation, "_RATE", 2.0)
    monkeypatch.setattr(distillation, "_BIAS_RATE", 2.0)
    original, content = recurrent(1.0, 0.2), recurrent(1.4, 0.5)
    graph = Graph(content)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(256, 1, size)).astype(np.float32) for size in (2, 3)]
    rows = pack_rows([graph.tensors[tensor].as_interface for tensor in graph.inputs], arrays)
    network = QuantizedNetwork(content, original, rows, rows, carried=frozenset(graph.outputs[1:]))
    made = Graph(fit_distillation(network, np.random.default_rng(0), untold))
    _, logits, state = made.layers
    off = [
        made.values(tensor).astype(float) - Graph(original).values(tensor).astype(float)
        for tensor in (logits.inputs[1], *state.inputs[1:])
    ]
    off[0] -= off[0].mean(axis=0)  # all logits alike do not count
    assert max(np.abs(differences).max() for differences in off) < 0.1


def recurrent(weight: float, bias: float) -> bytes:
    """A step that has two inputs side by side, and two outputs of them, logits and a state."""
    writer = GraphWriter()
    given = [writer.tensor(name, (1, size), "FLOAT32") for name, size in (("a", 2), ("b", 3))]
    both = writer.tensor("both", (1, 5), "FLOAT32")
    writer.operator("CONCATENATION", given, [both], schema.ConcatenationOptionsT(axis=1))
    made = [writer.tensor(name, (1, 3), "FLOAT32") for name in ("logits", "state")]
    for at, tensor in enumerate(made):
        weights = weight * np.linspace(-1, 1, 15).reshape(3, 5).astype(np.float32)
        constants = [
            writer.constant(f"weights {at}", weights),
            writer.constant(f"bias {at}", np.full(3, bias * at, np.float32)),
        ]
        options = schema.FullyConnectedOptionsT()
        writer.operator("FULLY_CONNECTED", [both, *constants], [tensor], options)
    return writer.content(given, made)


def linear(weights: NDArray[np.float32], ending: str | None) -> bytes:
    writer = GraphWriter()
    given = writer.tensor("given", (1, 2), "FLOAT32")
    made = writer.tensor("made", (1, 1), "FLOAT32")
    inputs = [given, writer.constant("weights", weights)]
    writer.operator("FULLY_CONNECTED", inputs, [made], schema.FullyConnectedOptionsT())
    if ending is not None:
        before, made = made, writer.tensor("ended", (1, 1), "FLOAT32")
        writer.operator(ending, [before], [made])
    return writer.content([given], [made])
