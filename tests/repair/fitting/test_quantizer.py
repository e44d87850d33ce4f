"""Models rewritten by litert-quantizer, run on the host's runtime."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st
from litert_quantizer.quantizer import Quantizer
from msgspec import structs

from edgeflare.core.tensor import Tensor
from edgeflare.errors import UserError
from edgeflare.models.compressed_model import open_in_other_runtime
from edgeflare.models.in_place_edit import InPlaceEdit
from edgeflare.models.tflite_graph import Graph, GraphOp
from edgeflare.models.tflite_writer import Writer, notes
from edgeflare.repair.fitting.float_model import FloatModel, RewritingFailed
from edgeflare.repair.fitting.quantized_network import QuantizedNetwork, matched_layers
from edgeflare.repair.fitting.quantizer import (
    Rewritten,
    compressed_as,
    float_operators,
    operators_in_float,
    weights_only,
)
from edgeflare.repair.fitting.weight_rounding import RoundedLayer, round_original
from edgeflare.repair.methods.requantization import fit_calibration
from edgeflare.repair.repair_methods import candidate_plans
from edgeflare.repair.repair_request import DEFAULT_REQUEST
from edgeflare_protos.kernel_sets import Kernels
from fitted_networks import Net, judged, require_progress, untold
from graph_writer import GraphWriter
from operator_chain import ChainStep, write_tflite
from state_pairs import write_variable_pair
from tampering import COMPRESSED, ORIGINAL, InterpreterProbe, edited, run

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED")
KERNELS: tuple[Kernels, ...] = ("xnnpack", "builtin", "reference")
REWRITINGS: dict[str, Callable[[QuantizedNetwork], Rewritten]] = {
    "weights only": weights_only,
    "head in float": lambda network: float_operators(network, [head(network.graph).index]),
}


EACH: dict[str, Callable[[QuantizedNetwork], Rewritten]] = {
    **REWRITINGS,
    "8 bits anew": lambda network: compressed_as(network.content, network),
}


@cache
def example(net: Net = "example") -> QuantizedNetwork:
    """A network, with a few images."""
    known = judged(net).network
    return replace(known, rows=known.rows[:24], original_rows=known.original_rows[:24])


@cache
def rewritten(rewriting: str) -> bytes:
    return REWRITINGS[rewriting](example()).content


def head(graph: Graph) -> GraphOp:
    return [one for one in graph.operators if one.name == "FULLY_CONNECTED"][-1]


def outputs(content: bytes, kernels: Kernels = "xnnpack") -> Any:
    """The real outputs on the images: (24, classes)."""
    graph = Graph(content)
    given, made = graph.tensors[graph.inputs[0]], graph.tensors[graph.outputs[0]]
    rows = example().original_rows if given.dtype == "float32" else example().rows
    probe = InterpreterProbe(content, kernels)
    return made.real(np.concatenate([probe.run([row[None]])[0] for row in rows]))


def weights_of(graph: Graph) -> list[Any]:
    """What an operator with weights reads, behind a DEQUANTIZE: the tensors of its constants."""
    found = []
    for one in graph.operators:
        if one.name in WEIGHTED:
            maker = graph.made_by.get(one.inputs[1])
            found.append(one.inputs[1] if maker is None else graph.operators[maker].inputs[0])
    return found


def activations(graph: Graph) -> set[str]:
    """The types of what operators that depend on the input write, shapes left out."""
    return {graph.tensors[tensor].dtype for tensor in written_by(graph)} - {"int32"}


def in_the_old_way(model: Any) -> None:
    """Number operators in the old field alone, as converters before 2020 wrote it."""
    for code in model.operatorCodes:
        code.builtinCode = 0


def nameless(model: Any) -> None:
    for tensor in model.subgraphs[0].tensors:
        tensor.name = b"same"


@pytest.mark.parametrize("change", [in_the_old_way, nameless])
@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_an_original_of_another_converter_is_rewritten_as_any(
    rewriting: str, change: Callable[[Any], None]
) -> None:
    original = edited(ORIGINAL.read_bytes(), change)
    network = replace(example(), original=original)
    made = REWRITINGS[rewriting](network).content
    np.testing.assert_array_equal(outputs(made), outputs(rewritten(rewriting)))


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_a_rewritten_model_computes_what_the_original_does_on_each_kernel_set(
    rewriting: str,
) -> None:
    content = rewritten(rewriting)
    wanted = outputs(ORIGINAL.read_bytes())
    for kernels in KERNELS:
        assert np.abs(outputs(content, kernels) - wanted).mean() < 0.01


def test_weights_alone_are_stored_as_int8_and_all_else_is_float() -> None:
    content = rewritten("weights only")
    graph = Graph(content)
    assert {graph.tensors[tensor].dtype for tensor in weights_of(graph)} == {"int8"}
    assert activations(graph) == {"float32"}
    assert len(content) < len(COMPRESSED.read_bytes()) * 1.02
    wanted = outputs(ORIGINAL.read_bytes())
    before = np.abs(outputs(COMPRESSED.read_bytes()) - wanted).mean()
    assert np.abs(outputs(content) - wanted).mean() < before / 2


@pytest.mark.parametrize("kind", ["mobilenet", "resnet"])
def test_weights_that_were_rounded_otherwise_are_kept_to_the_step(kind: Net) -> None:
    network, rng = example(kind), np.random.default_rng(3)
    original = network.original_graph
    rounded = []
    for one in (one for one in original.operators if one.name in WEIGHTED):
        shape = original.tensors[one.inputs[1]].shape
        channels = shape[3 if one.name == "DEPTHWISE_CONV_2D" else 0]
        # No two are one step apart: nothing but the scales themselves says which these are.
        steps = rng.choice([-126, -3, 0, 3, 126], shape).astype(np.int8)
        scales = np.asarray(rng.uniform(0.001, 0.1, channels), np.float32)
        bias = np.asarray(rng.normal(size=channels), np.float32)
        rounded.append(RoundedLayer(one.index, one.inputs[1], one.inputs[2], steps, scales, bias))
    graph = Graph(weights_only(network, rounded).content)
    biases = [one.inputs[2] for one in graph.operators if one.name in WEIGHTED]
    for tensor, place, layer in zip(weights_of(graph), biases, rounded, strict=True):
        np.testing.assert_array_equal(graph.values(tensor), layer.steps)
        np.testing.assert_array_equal(graph.tensors[tensor].scales, layer.scales)
        np.testing.assert_array_equal(graph.values(place), layer.float_bias)


def test_gptq_on_float_activations_comes_nearer_to_the_original() -> None:
    network = example()
    rounded = round_original(network.original, network.original_rows, lambda *_: None)
    wanted = outputs(network.original)
    nearest = np.abs(outputs(rewritten("weights only")) - wanted).mean()
    assert np.abs(outputs(weights_only(network, rounded).content) - wanted).mean() < nearest
    last = head(network.graph).index
    graph = Graph(float_operators(network, [last], rounded).content)
    np.testing.assert_array_equal(graph.values(weights_of(graph)[-1]), rounded[-1].steps)
    np.testing.assert_array_equal(
        graph.values(weights_of(graph)[0]), network.graph.values(weights_of(network.graph)[0])
    )


def fitted(content: bytes) -> bytes:
    """An int8 file as fitting changes it: weights, a bias and a range, by some steps."""
    graph, edit = Graph(content), InPlaceEdit(content)
    first, last = graph.operators[0], head(graph)
    weights = np.asarray(graph.values(first.inputs[1]), np.int16) + 1
    edit.set_values(first.inputs[1], np.clip(weights, -127, 127).astype(np.int8))
    edit.set_values(last.inputs[2], np.asarray(graph.values(last.inputs[2]), np.int32) + 7)
    logits = graph.tensors[last.outputs[0]]
    edit.set_quantization(logits.index, [logits.scales[0] * 0.75], [logits.zero_points[0] - 9])
    return edit.content()


def constants(graph: Graph) -> list[Any]:
    read = [one.inputs[1:3] for one in graph.operators if one.name in WEIGHTED]
    return [graph.values(tensor).tolist() for both in read for tensor in both]


def written_by(graph: Graph) -> list[int]:
    return [tensor for one in graph.layers for tensor in one.outputs]


def steps(graph: Graph) -> list[Any]:
    """The quantizations of what all operators write."""
    written = [graph.tensors[tensor] for tensor in written_by(graph)]
    return [(one.dtype, one.scales, one.zero_points) for one in written if one.scales]


@pytest.mark.parametrize("kind", ["example", "mobilenet", "resnet"])
def test_what_is_not_named_keeps_weights_biases_and_ranges_that_were_fitted(kind: Net) -> None:
    network = example(kind)
    network = network.with_content(fitted(network.content))
    content = float_operators(network, []).content
    graph = Graph(content)
    assert constants(graph) == constants(network.graph)
    np.testing.assert_equal(steps(graph), steps(network.graph))
    np.testing.assert_array_equal(outputs(content), outputs(network.content))


def test_a_named_operator_and_the_softmax_behind_it_are_float_with_the_originals_weights() -> None:
    network = example().with_content(fitted(example().content))
    original = network.original_graph
    graph = Graph(float_operators(network, [head(network.graph).index]).content)
    last, softmax = head(graph), graph.operators[-1]
    ends = (*last.inputs, *last.outputs, *softmax.outputs)
    assert {graph.tensors[tensor].dtype for tensor in ends} == {"float32"}
    assert softmax.name == "SOFTMAX"
    np.testing.assert_array_equal(
        graph.values(last.inputs[2]), original.values(head(original).inputs[2])
    )
    (stored,) = weights_of(graph)[-1:]
    exact = original.values(head(original).inputs[1])
    step = np.asarray(graph.tensors[stored].scales)[:, None]
    assert (np.abs(graph.tensors[stored].real(graph.values(stored)) - exact) <= step * 0.501).all()
    assert graph.tensors[graph.inputs[0]].dtype == "int8"
    assert steps(graph) == steps(network.graph)[:-2]


def test_what_computes_in_16_bits_keeps_them_beside_a_float_operator() -> None:
    """Its steps stay; the softmax and the operator before it are float."""
    (rule,) = float_operators(example(), []).recipe
    of_8_bits = rule["op_config"]["activation_tensor_config"]
    of_16_bits = {**of_8_bits, "num_bits": 16, "symmetric": True}
    config = {**rule["op_config"], "activation_tensor_config": of_16_bits}
    model = FloatModel(example())
    model.observe_ranges()
    network = example().with_content(model.quantized(({**rule, "op_config": config},)))
    graph = Graph(float_operators(network, [head(network.graph).index]).content)
    assert {one[0] for one in steps(graph)} == {"int16"}
    assert steps(graph) == steps(network.graph)[:-2]


@pytest.mark.slow
@settings(max_examples=15)
@given(data=st.data(), kind=st.sampled_from(["example", "mobilenet", "resnet"]))
def test_any_operators_are_computed_in_float_and_no_others(data: Any, kind: Net) -> None:
    network = example(kind)
    layers = [layer for layer in network.layers if layer.name != "SOFTMAX"]
    chosen = data.draw(st.sets(st.sampled_from([layer.operator for layer in layers])))
    content = float_operators(network, chosen).content
    graph = Graph(content)
    types = {
        graph.tensors[tensor].name: graph.tensors[tensor].dtype for tensor in written_by(graph)
    }
    original = network.original_graph.tensors
    for layer in layers:
        known = original[layer.original_output]
        if known.dtype == "float32":
            assert types[known.name] == ("float32" if layer.operator in chosen else "int8")
    wanted = outputs(network.original)
    before = np.abs(outputs(network.content) - wanted).mean()
    assert np.abs(outputs(content, "builtin") - wanted).mean() < 2 * before


def test_inputs_are_float_where_only_float_operators_read_them() -> None:
    graph = Graph(float_operators(example(), [0]).content)
    assert graph.tensors[graph.inputs[0]].dtype == "float32"
    assert graph.tensors[graph.outputs[0]].dtype == "int8"
    assert activations(graph) == {"float32", "int8"}


def test_an_input_that_is_cut_off_gets_the_range_of_its_values() -> None:
    edit = InPlaceEdit(example().content)
    (given,) = example().graph.inputs
    edit.set_quantization(given, [0.2 / 255], [-128])
    told: list[tuple[int, int]] = []
    damaged = replace(example(), content=edit.content())
    made = fit_calibration(damaged, lambda done, of: told.append((done, of))).content
    tensor = Graph(made).tensors[given]
    assert tensor.scales[0] * 255 == pytest.approx(1)
    assert tensor.zero_points == (-128,)
    assert np.abs(outputs(made) - outputs(ORIGINAL.read_bytes())).mean() < 0.01
    require_progress(told)


def test_what_is_calibrated_has_its_recipe_also_behind_new_ranges() -> None:
    request = structs.replace(DEFAULT_REQUEST, method="calibration")
    made = [plan.make(untold) for plan in candidate_plans(request, example())]
    assert [bool(one.recipe) for (one,) in made] == [True, True]
    assert [operators_in_float(one.content) for (one,) in made] == [0, 0]
    assert operators_in_float(rewritten("weights only")) == 8


def test_what_writes_a_variable_is_no_layer_that_is_matched_or_computes_in_float(
    tmp_path: Path,
) -> None:
    pair = write_variable_pair(tmp_path / "pair", resource=True)
    compressed, original = (pair / f"{name}.tflite" for name in ("compressed", "original"))
    assert operators_in_float(compressed.read_bytes()) == 4
    layers = matched_layers(Graph(compressed.read_bytes()), Graph(original.read_bytes()))
    assert "ADD" in (names := {layer.name for layer in layers})
    assert "ASSIGN_VARIABLE" not in names


def test_weights_alone_are_not_calibrated() -> None:
    network = replace(example(), content=rewritten("weights only"))
    with pytest.raises(UserError, match="weights alone in 8 bits"):
        fit_calibration(network, untold)


def test_an_operator_without_a_counterpart_is_named() -> None:
    writer = Writer(COMPRESSED.read_bytes())
    graph = Graph(COMPRESSED.read_bytes())
    (old,) = graph.outputs
    new = writer.tensor(Tensor("twice", graph.tensors[old].shape, "int8", 1 / 128, -128))
    writer.replace_output(old, writer.operator("QUANTIZE", [old], new, version=2))
    network = example().with_content(writer.content())
    with pytest.raises(UserError, match=r"operator 11 of the compressed model, QUANTIZE, has no"):
        float_operators(network, [len(graph.operators)])


def named_otherwise(content: bytes) -> bytes:
    """A file whose input, output and signature have other names."""

    def change(model: Any) -> None:
        main = model.subgraphs[0]
        main.tensors[main.inputs[0]].name = b"pixels"
        main.tensors[main.outputs[0]].name = b"classes"
        model.signatureDefs[0].signatureKey = b"classify"
        model.signatureDefs[0].outputs[0].name = b"scores"

    return edited(content, change)


def with_float_ends(content: bytes) -> bytes:
    """A file whose integers stand between a QUANTIZE and a DEQUANTIZE."""

    def change(model: Any) -> None:
        writer, main = GraphWriter(model), model.subgraphs[0]
        given, made = int(main.inputs[0]), int(main.outputs[0])
        shapes = (tuple(map(int, main.tensors[at].shape)) for at in (given, made))
        x, y = (writer.tensor("end", shape, "FLOAT32") for shape in shapes)
        main.operators.insert(0, writer.detached("QUANTIZE", [x], [given]))
        main.operators.append(writer.detached("DEQUANTIZE", [made], [y], version=2))
        main.inputs, main.outputs = [x], [y]
        (signature,) = model.signatureDefs
        signature.inputs[0].tensorIndex, signature.outputs[0].tensorIndex = x, y

    return edited(content, change)


@pytest.mark.parametrize("ends", [bytes, with_float_ends])
@pytest.mark.parametrize("rewriting", EACH)
def test_inputs_outputs_and_signature_are_those_of_the_compressed_model(
    rewriting: str, ends: Callable[[bytes], bytes]
) -> None:
    network = example().with_content(named_otherwise(ends(example().content)))
    graph = Graph(EACH[rewriting](network).content)
    assert [graph.tensors[tensor].name for tensor in graph.inputs] == ["pixels"]
    assert [graph.tensors[tensor].name for tensor in graph.outputs] == ["classes"]
    (signature,) = graph.model.signatureDefs
    (output,) = signature.outputs
    assert (signature.signatureKey, output.name) == (b"classify", b"scores")
    assert (output.tensorIndex,) == graph.outputs


@pytest.mark.parametrize("rewriting", EACH)
def test_metadata_and_the_files_behind_the_graph_are_those_of_the_compressed_model(
    rewriting: str,
) -> None:
    """Of a model with a further graph, whose signature is no matter of the main one."""

    def change(model: Any) -> None:
        writer = GraphWriter(model)
        writer.second()
        given, made = (writer.tensor(name, (1, 4), "FLOAT32") for name in ("given", "made"))
        writer.operator("ABS", [given], [made], schema.AbsOptionsT())
        writer.first([given], [made])
        writer.signature("further", 1, {"given": given}, {"made": made})

    writer = Writer(edited(example().content, change))
    writer.note("TFLITE_METADATA", b"names")
    file = io.BytesIO()
    file.write(writer.content())
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr("labels.txt", "shirt\nboot\n")
    made = EACH[rewriting](example().with_content(file.getvalue())).content
    assert notes(made)["TFLITE_METADATA"] == b"names"
    with zipfile.ZipFile(io.BytesIO(Writer(made).content())) as archive:
        assert archive.read("labels.txt") == b"shirt\nboot\n"
    assert [known.signatureKey for known in Graph(made).model.signatureDefs] == [b"serving_default"]


def with_two_outputs(content: bytes, *, softmax_first: bool) -> bytes:
    def change(model: Any) -> None:
        graph = Graph(content)
        logits, (probabilities,) = head(graph).outputs[0], graph.outputs
        both = [probabilities, logits] if softmax_first else [logits, probabilities]
        model.subgraphs[0].outputs = np.asarray(both, np.int32)
        model.signatureDefs = []

    return edited(content, change)


def test_outputs_have_the_order_of_the_compressed_model() -> None:
    network = replace(
        example(),
        content=with_two_outputs(COMPRESSED.read_bytes(), softmax_first=True),
        original=with_two_outputs(ORIGINAL.read_bytes(), softmax_first=False),
    )
    for rewriting in EACH.values():
        graph = Graph(rewriting(network).content)
        made_by = [graph.tensors[tensor].name for tensor in graph.outputs]
        assert made_by == [network.graph.tensors[tensor].name for tensor in network.graph.outputs]


def test_the_recipe_is_what_the_library_takes() -> None:
    rewritten = weights_only(example())
    recipe = json.loads(json.dumps(rewritten.recipe))
    made = Quantizer(bytearray(ORIGINAL.read_bytes()), recipe).quantize(
        enable_progress_bar=False, enable_progress_report=False
    )
    assert made.quantized_model is not None
    mine, theirs = Graph(rewritten.content), Graph(bytes(made.quantized_model))
    for tensor, other in zip(weights_of(mine), weights_of(theirs), strict=True):
        np.testing.assert_array_equal(mine.values(tensor), theirs.values(other))


@cache
def wide() -> QuantizedNetwork:
    """A network with more weights than the library writes into the flatbuffer."""
    rng = np.random.default_rng(5)
    hidden = rng.normal(0, 0.05, (400, 784)).astype(np.float32)
    last = rng.normal(0, 0.05, (10, 400)).astype(np.float32)
    nothing = np.zeros(400, np.float32)
    chain = [
        ChainStep("hidden", "FULLY_CONNECTED", ("image",), (1, 400), hidden, nothing, "RELU"),
        ChainStep("scores", "FULLY_CONNECTED", ("hidden",), (1, 10), last, nothing[:10]),
        ChainStep("classes", "SOFTMAX", ("scores",), (1, 10)),
    ]
    ranges = {"image": (0, 1), "hidden": (0, 4), "scores": (-4, 4), "classes": (0, 255 / 256)}
    original, compressed = (write_tflite(chain, (1, 784), known) for known in (None, ranges))
    rows = rng.integers(-128, 128, (4, 784)).astype(np.int8)
    return QuantizedNetwork(compressed, original, rows, ((rows + 128.0) / 255).astype(np.float32))


@pytest.mark.parametrize("rewriting", REWRITINGS)
def test_a_large_file_has_its_buffers_inside_of_the_flatbuffer(rewriting: str) -> None:
    network = wide()
    content = REWRITINGS[rewriting](network).content
    model = schema.ModelT.InitFromPackedBuf(content)
    assert max(0 if one.data is None else len(one.data) for one in model.buffers) == 400 * 784
    assert [one.offset for one in model.buffers if one.offset] == []
    assert len(content) < 340_000
    rows = network.original_rows if "head" not in rewriting else network.rows
    graph = Graph(content)
    raw = np.concatenate([run(content, [row[None]])[0] for row in rows])
    answers = graph.tensors[graph.outputs[0]].real(raw)
    original = network.original
    wanted = np.concatenate([run(original, [row[None]])[0] for row in network.original_rows])
    assert np.abs(answers - wanted).max() < 0.02


def test_what_the_library_does_not_rewrite_is_refused_in_one_line() -> None:
    """An original that is compressed itself, and a rule that it does not know."""
    (rule,) = weights_only(example()).recipe
    said = r"\Alitert-quantizer does not rewrite the model: ValueError: .*none such.*\Z"
    with pytest.raises(RewritingFailed, match=said):
        FloatModel(example()).quantized(({**rule, "algorithm_key": "none such"},))
    network = replace(example(), original=example().content)
    for rewriting in REWRITINGS.values():
        with pytest.raises(RewritingFailed, match=r"original stores '\S+' as int(8|32), but"):
            rewriting(network)


def test_an_import_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("litert_quantizer")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "litert_quantizer", None)
    with pytest.raises(UserError, match=r"pip install 'edgeflare\[repair\]'"):
        weights_only(example())


@pytest.mark.old_board
@pytest.mark.parametrize("rewriting", sorted(REWRITINGS.keys() - {"head in int16"}))
def test_an_old_runtime_decides_alike(
    rewriting: str, old_board_python: Path, tmp_path: Path
) -> None:
    content = rewritten(rewriting)
    (tmp_path / "model.tflite").write_bytes(content)
    rows = example().rows if "head" in rewriting else example().original_rows
    with open_in_other_runtime(tmp_path / "model.tflite", f"builtin@{old_board_python}") as model:
        answers = model.submit(rows).result().outputs.reshape(len(rows), -1)
    decided = outputs(content, "builtin").argmax(axis=1)
    assert (answers.argmax(axis=1) == decided).mean() >= 0.95
