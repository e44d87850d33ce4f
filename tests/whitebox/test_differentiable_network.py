"""A .tflite file as a function with gradients: what the runtime computes, checked before use."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

pytest.importorskip("jax", reason="needs the extra whitebox")

from edgeflare.core.tensor import Tensor, quantize
from edgeflare.errors import UserError
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.model_probe import HostProbe
from edgeflare.models.tflite_graph import Graph
from edgeflare.whitebox import translation_check
from edgeflare.whitebox.baselines.neuron_coverage import CapturedNeurons
from edgeflare.whitebox.differentiable_network import DifferentiableNetwork
from edgeflare.whitebox.translation_check import excess, require_equal
from graph_writer import GraphWriter
from tampering import EXAMPLE, edited

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]


MODELS = ("original", "compressed")


@pytest.fixture(scope="module")
def images() -> NDArray[np.uint8]:
    seeds: NDArray[np.uint8] = np.load(EXAMPLE / "seeds.npz")["images"][:8]
    return seeds


def content(model: str) -> bytes:
    return (EXAMPLE / f"{model}.tflite").read_bytes()


def network(model: str) -> DifferentiableNetwork:
    return DifferentiableNetwork(Graph(content(model), model))


def rows(graph: Graph, images: NDArray[np.uint8]) -> NDArray[np.generic]:
    known = graph.tensors[graph.inputs[0]]
    scales, points = known.scales or (0.0,), known.zero_points or (0,)
    tensor = Tensor("input", known.shape, known.dtype, scales[0], points[0])
    return quantize((images / np.float32(255)).astype(np.float32), tensor)


@pytest.mark.parametrize("model", MODELS)
def test_each_layer_is_what_the_runtime_computes(model: str, images: NDArray[np.uint8]) -> None:
    made = network(model)
    with HostProbe(content(model), "xnnpack", capture=True) as probe:
        for row in rows(made.graph, images):
            runtime = dict(zip(probe.made, probe.run([row[None]]), strict=True))
            for tensor, values in made.tensors(row).items():
                wanted = runtime[tensor]
                if made.graph.tensors[tensor].scales:
                    assert np.array_equal(values, wanted)
                else:
                    assert np.abs(values - wanted.astype(np.float64)).max() < 1e-4


@pytest.mark.parametrize("model", MODELS)
def test_the_output_has_the_dtype_and_the_label_of_the_runtime(
    model: str, images: NDArray[np.uint8]
) -> None:
    made = network(model)
    with HostProbe(content(model), "xnnpack") as probe:
        for row in rows(made.graph, images):
            output, scores = made.evaluate(row)
            (wanted,) = probe.run([row[None]])
            assert output.dtype == wanted.dtype
            assert output.argmax() == wanted.argmax() == scores.argmax()


def test_a_float_gradient_is_that_of_the_runtime(images: NDArray[np.uint8]) -> None:
    """Against central differences of the runtime's scores, in the direction of the gradient.

    A plain background has ties in its maxima, where there is no gradient; so noise is added.
    """
    made, rng = network("original"), np.random.default_rng(3)
    with HostProbe(content("original"), "xnnpack", capture=True) as probe:
        at = probe.made.index(made.scores)
        for plain in rows(made.graph, images[:5]):
            row = (plain + rng.uniform(0, 0.05, plain.shape)).astype(np.float32)
            weights = rng.normal(size=10)
            gradient = made.gradient(row, weights).reshape(row.shape)
            length = float(np.linalg.norm(gradient))
            step = (2e-3 * gradient / length).astype(np.float32)
            ahead, behind = (
                probe.run([(row + sign * step)[None]])[at].ravel().astype(np.float64)
                for sign in (1, -1)
            )
            assert (ahead - behind) @ weights / 4e-3 == pytest.approx(length, rel=0.01)


def test_an_int8_gradient_is_like_the_float_one(images: NDArray[np.uint8]) -> None:
    """Straight through the rounding: the two models compute nearly the same."""
    exact, rounded = network("original"), network("compressed")
    weights = np.eye(10)[3] - np.eye(10)[5]
    for one in images[:5]:
        first, second = (
            made.gradient(rows(made.graph, one[None])[0], weights).ravel()
            for made in (exact, rounded)
        )
        assert np.corrcoef(first, second)[0, 1] > 0.9
        assert np.linalg.norm(second) == pytest.approx(np.linalg.norm(first), rel=0.3)


def test_tensor_gradients_agree_with_the_gradient_of_the_input(images: NDArray[np.uint8]) -> None:
    """A first layer that is shifted moves the scores as its gradient says."""
    made, weights = network("original"), np.eye(10)[0]
    row = rows(made.graph, images)[0]
    found = made.tensor_gradients(row, weights)
    assert found.keys() == {one.outputs[0] for one in made.layers}
    last = found[made.scores].ravel()
    assert np.array_equal(last, weights)


def test_neurons_are_the_channels_of_layers(images: NDArray[np.uint8]) -> None:
    made = network("compressed")
    row = rows(made.graph, images)[0]
    assert sum(made.neurons.values()) == len(made.covered(row, 0.0))
    assert made.covered(row, 0.9).sum() <= made.covered(row, 0.0).sum()
    nothing = np.zeros(10)
    assert not made.gradient(row, nothing).any()
    assert made.gradient(row, nothing, {0: 1.0}).any()
    count = sum(made.neurons.values())
    with pytest.raises(UserError, match=f"by the neuron {count}, and the network has {count},"):
        made.gradient(row, nothing, {0: 1.0, count: 1.0})


def test_operators_without_values_of_their_own_have_no_neurons() -> None:
    """As where a runtime captures them: a model has the same neurons for both."""
    writer = GraphWriter()
    given, output = (
        writer.tensor(name, (1, size, size, 3), "FLOAT32") for name, size in (("x", 4), ("y", 6))
    )
    quantized, padded, kept = (
        writer.tensor(name, (1, size, size, 3), "INT8", (0.05, 3))
        for name, size in (("quantized", 4), ("padded", 6), ("kept", 6))
    )
    edges = np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32)
    widths = writer.constant("widths", edges)
    writer.operator("QUANTIZE", [given], [quantized], schema.QuantizeOptionsT())
    writer.operator("PAD", [quantized, widths], [padded], schema.PadOptionsT(), 2)
    writer.operator("RELU", [padded], [kept], None, 2)
    writer.operator("DEQUANTIZE", [kept], [output], schema.DequantizeOptionsT(), 2)
    padding = writer.content([given], [output])
    made = DifferentiableNetwork(Graph(padding))
    assert made.neurons == {2: 3}
    with HostProbe(padding, "xnnpack", capture=True) as probe:
        assert CapturedNeurons(made.graph, probe, [0.0]).count == 3


@pytest.mark.parametrize("constant", [False, True])
def test_whatever_a_translation_raises_names_the_operator(constant: bool) -> None:
    """MAX_POOL_2D with a padding that is not one of the two, of the input or of a constant."""
    writer, shape = GraphWriter(), (1, 4, 4, 1)
    given, made, output = (writer.tensor(name, shape, "FLOAT32") for name in ("x", "made", "y"))
    taken = writer.constant("ones", np.ones(shape, np.float32)) if constant else given
    window = schema.Pool2DOptionsT(padding=2, strideH=1, strideW=1, filterHeight=1, filterWidth=1)
    writer.operator("MAX_POOL_2D", [taken], [made], window)
    writer.operator("ADD", [given, made], [output], schema.AddOptionsT())
    graph = Graph(writer.content([given], [output]), "damaged")
    with pytest.raises(UserError, match="damaged: operator 0, MAX_POOL_2D: IndexError: tuple"):
        DifferentiableNetwork(graph)


def test_an_output_of_another_shape_than_the_file_says_is_refused() -> None:
    writer = GraphWriter()
    given, made, output = (
        writer.tensor(name, (1, size), "FLOAT32")
        for name, size in (("x", 4), ("made", 0), ("y", 4))
    )
    writer.operator("RELU", [given], [made])
    writer.operator("ADD", [given, made], [output], schema.AddOptionsT())
    with pytest.raises(UserError, match=r"operator 0, RELU.* makes \(1, 4\).* is \(1, 0\)"):
        DifferentiableNetwork(Graph(writer.content([given], [output]), "damaged"))


def test_an_operator_without_a_translation_is_refused_by_name() -> None:
    writer = GraphWriter()
    given, output = (writer.tensor(name, (1, 4), "FLOAT32") for name in "xy")
    writer.operator("FLOOR", [given], [output])
    with pytest.raises(UserError, match="operator 0, FLOOR, has no translation"):
        DifferentiableNetwork(Graph(writer.content([given], [output]), "floors"))


def test_scores_may_be_the_input_and_an_output_is_made_by_an_operator() -> None:
    def kept(operators: int) -> Graph:
        def change(model: Any) -> None:
            graph = model.subgraphs[0]
            graph.operators = graph.operators[len(graph.operators) - operators :]
            graph.inputs = graph.operators[0].inputs[:1] if operators else graph.inputs

        return Graph(edited(content("compressed"), change), "theirs.tflite")

    with pytest.raises(UserError, match="no operator makes its output"):
        DifferentiableNetwork(kept(0))
    softmax = DifferentiableNetwork(kept(1))
    given, weights = np.arange(10, dtype=np.float32)[None], np.eye(10)[3]
    assert softmax.evaluate(given)[1].shape == (10,)
    assert softmax.gradient(given, weights).ravel() == pytest.approx(weights)


# The check before a translation is used.


def test_another_model_is_refused_with_the_layer_where_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The runtime is given other weights in the second convolution than the translation has."""
    known, made = content("compressed"), network("compressed")
    drawn = np.random.default_rng(0).integers(-128, 128, (3, 1, 28, 28, 1)).astype(np.int8)
    require_equal(made, known, "xnnpack", list(drawn))
    second = [one for one in made.graph.layers if one.name == "CONV_2D"][1]
    edit = InPlaceEdit(known)
    weights = made.graph.values(second.inputs[1])
    edit.set_values(second.inputs[1], np.ascontiguousarray(-np.maximum(weights, -127)))
    with pytest.raises(UserError, match=f"operator {second.index}, CONV_2D"):
        require_equal(made, edit.content(), "xnnpack", list(drawn))
    first, following, *_ = made.graph.layers
    allowed = {first.outputs[0]: 1.0}
    monkeypatch.setattr(translation_check, "excess", lambda one, *_: allowed.get(one.index, 2.0))
    with pytest.raises(UserError, match=f"operator {following.index}, {following.name}"):
        require_equal(made, edit.content(), "xnnpack", list(drawn))
    monkeypatch.setattr(translation_check, "excess", lambda *_: 1.0)
    require_equal(made, edit.content(), "xnnpack", list(drawn))


def test_one_unit_is_allowed_and_a_ten_thousandth() -> None:
    int8, real = (
        one.tensors[one.outputs[0]] for one in (Graph(content(model)) for model in MODELS[::-1])
    )
    zeros = np.zeros(int8.shape, np.int8)
    assert excess(int8, zeros + 1, zeros) == 1.0
    assert excess(int8, zeros + 2, zeros) == 2.0
    assert excess(real, zeros + 1e-4, zeros.astype(np.float32)) == pytest.approx(1.0)
    assert excess(real, zeros + np.nan, zeros.astype(np.float32)) == np.inf
