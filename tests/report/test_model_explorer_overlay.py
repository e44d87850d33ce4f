"""The node data that Model Explorer lays over the graph of a compressed model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from documents import finding as finding_of
from edgeflare.diagnose.compression_error import CompressionError, LayerCompressionError
from edgeflare.diagnose.constant_error import ConstantError
from edgeflare.diagnose.explain_document import ExplainedFinding
from edgeflare.diagnose.layer_difference import (
    Difference,
    KernelOnset,
    LayerName,
    difference,
    layer_difference,
    layer_name,
)
from edgeflare.diagnose.verdict import Verdict
from edgeflare.models.tflite_graph import Graph
from edgeflare.report.model_explorer_overlay import OVERLAY_FILES, model_explorer_overlay
from explained_findings import explained
from graph_writer import GraphWriter

EXAMPLES = Path(__file__).parents[2] / "examples"
FULL = {"kernel": "#b4531a", "compression": "#2563a8"}
KERNEL = Verdict("kernel", "the device gives one label, the twin another", "delegate")
COMPRESSION = Verdict("compression", "twin and device agree")

Document = dict[str, Any]


@pytest.fixture(scope="module")
def graph() -> Graph:
    """The example's compressed model, an int8 LeNet."""
    return Graph((EXAMPLES / "fashion_lenet4" / "compressed.tflite").read_bytes())


def entry(
    verdict: Verdict, parting: KernelOnset | None = None, loss: CompressionError | None = None
) -> ExplainedFinding:
    """An entry of `explain.json`, as far as layers are concerned."""
    of = {"finding": finding_of(seed_id=12), "device": "emulated-builtin"}
    return explained(verdict, parting, loss, **of)


def names(graph: Graph) -> list[LayerName]:
    return [layer_name(graph, one) for one in graph.operators]


def apart(graph: Graph, operator: int, steps: int) -> Difference:
    """A difference behind an operator: its first value is so many steps off."""
    tensor = graph.tensors[graph.operators[operator].outputs[0]]
    wanted = np.zeros(tensor.shape, tensor.dtype)
    got = wanted.copy()
    got.flat[0] = steps
    return difference(tensor, wanted, got)


def parted(graph: Graph, totals: Sequence[int], onset: int, *, first: bool = True) -> KernelOnset:
    """Device and twin so many steps apart behind each operator; half of that is new there."""
    layers = names(graph)
    differences = tuple(
        layer_difference(layer, apart(graph, place, total), apart(graph, place, total // 2))
        for place, (layer, total) in enumerate(zip(layers, totals, strict=True))
    )
    return KernelOnset("capture", layers[onset], first, layers[onset], differences)


def lossy(graph: Graph, residuals: Sequence[float], most: int | None) -> CompressionError:
    """Compression off by so many units in each layer; more than 1 is not explained."""
    layers = names(graph)
    errors = tuple(
        LayerCompressionError(
            layer, "name", None, residual, 1.0, None, (), 0.25 if residual > 1 else None
        )
        for layer, residual in zip(layers, residuals, strict=True)
    )
    return CompressionError(None, None if most is None else layers[most], 0.1, errors)


def read(files: dict[str, bytes], graph_id: str = "main") -> dict[str, Document]:
    sets = {name: json.loads(content) for name, content in files.items()}
    assert all(set(one) == {graph_id} for one in sets.values())
    return {name: one[graph_id] for name, one in sets.items()}


def values(one: Document) -> dict[str, float | str]:
    return {key: node["value"] for key, node in one["results"].items()}


def test_each_operator_has_the_figures_of_its_layer(graph: Graph) -> None:
    totals, residuals = [0, 0, 2, 2, 0, 0, 0, 4, 6, 8, 40], [*[0.123456] * 9, 3.0, 0.0]
    finding = entry(KERNEL, parted(graph, totals, 2), lossy(graph, residuals, 9))
    sets = read(model_explorer_overlay(finding, graph))
    assert tuple(sorted(sets)) == OVERLAY_FILES
    operators = [str(one.index) for one in graph.operators]
    known: dict[str, Sequence[float]] = {
        "1-total.json": totals,
        "2-own.json": [total // 2 for total in totals],
        "3-new-share.json": [0, 0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5, 0.5, 0.5],
        "4-residual.json": [*[0.1235] * 9, 3, 0],
    }
    for name, figures in known.items():
        assert values(sets[name]) == dict(zip(operators, figures, strict=True)), name
    assert values(sets["1-total.json"])["10"] == 40
    assert values(sets["5-margin-share.json"]) == {"9": 0.25}
    assert "quantization units (seed 12)" in sets["1-total.json"]["name"]


def test_the_largest_figure_has_the_full_colour_and_nothing_has_none(graph: Graph) -> None:
    finding = entry(KERNEL, parted(graph, [0, 0, 2, 2, 0, 0, 0, 4, 6, 8, 40], 2))
    total = read(model_explorer_overlay(finding, graph))["1-total.json"]["results"]
    assert "bgColor" not in total["0"]
    assert total["10"]["bgColor"] == FULL["kernel"]
    red = [int(total[key]["bgColor"][1:3], 16) for key in ("2", "7", "8", "9", "10")]
    assert red == sorted(red, reverse=True)
    assert len(set(red)) == 5


def test_the_verdict_stands_in_the_name_and_at_the_onset(graph: Graph) -> None:
    finding = entry(KERNEL, parted(graph, [0, 0, 2, 2, 0, 0, 0, 4, 6, 8, 40], 2))
    one = read(model_explorer_overlay(finding, graph))["6-verdict.json"]
    assert one["name"] == "kernel (delegate) on emulated-builtin (seed 12)"
    assert one["results"]["2"] == {"value": "kernel (delegate); onset", "bgColor": FULL["kernel"]}
    marked = values(one)
    assert (marked["0"], marked["3"], marked["4"]) == ("equal", "differs", "equal")
    maybe = entry(KERNEL, parted(graph, [0, 0, *[2] * 9], 2, first=False))
    one = read(model_explorer_overlay(maybe, graph))["6-verdict.json"]
    assert values(one)["2"] == "kernel (delegate); onset, or earlier"


def test_compression_points_at_its_layer_and_not_at_the_onset(graph: Graph) -> None:
    loss = lossy(graph, [*[0.5] * 8, 3.0, 2.0, 0.0], 8)
    finding = entry(COMPRESSION, parted(graph, [1, *[0] * 10], 0), loss)
    marks = read(model_explorer_overlay(finding, graph))["6-verdict.json"]["results"]
    assert marks["8"] == {
        "value": "compression; equal; beyond quantization",
        "bgColor": FULL["compression"],
    }
    assert marks["9"]["value"] == "equal; beyond quantization"
    assert marks["0"]["value"] == "onset"
    strong = [key for key, node in marks.items() if node.get("bgColor") in FULL.values()]
    assert strong == ["8"]


def test_different_words_have_different_colours_since_model_explorer_counts_these(
    graph: Graph,
) -> None:
    loss = lossy(graph, [0.5, 2.0, 0.5, 2.0, 0.5, 2.0, *[0.5] * 5], 5)
    for verdict, onset in ((KERNEL, 2), (COMPRESSION, 2), (COMPRESSION, 3), (COMPRESSION, 5)):
        parting = parted(graph, [0, 0, *[2] * 4, 0, 4, 6, 8, 40], onset)
        marks = read(model_explorer_overlay(entry(verdict, parting, loss), graph))
        pairs = {
            (one["value"], one["bgColor"]) for one in marks["6-verdict.json"]["results"].values()
        }
        assert len({word for word, _ in pairs}) == len({colour for _, colour in pairs}) > 3


def test_a_layer_whose_constants_are_wrong_is_beyond(graph: Graph) -> None:
    loss = lossy(graph, [0.5] * 11, None)
    wrong = replace(loss.layers[8], constants=ConstantError(9.0, 0.5))
    loss = replace(loss, layers=(*loss.layers[:8], wrong, *loss.layers[9:]))
    marks = read(model_explorer_overlay(entry(COMPRESSION, None, loss), graph))["6-verdict.json"]
    assert values(marks) == {"8": "beyond quantization"}


def test_a_float_network_has_real_values() -> None:
    graph = Graph((EXAMPLES / "fashion_lenet4" / "original.tflite").read_bytes())
    finding = entry(KERNEL, parted(graph, [0] * 10 + [3], 10))
    sets = read(model_explorer_overlay(finding, graph))
    assert "real values" in sets["1-total.json"]["name"]
    assert values(sets["1-total.json"])["10"] == 3


def test_a_layer_without_units_in_a_quantized_network_has_no_figure_but_its_mark(
    graph: Graph,
) -> None:
    parting = parted(graph, [0, 0, *[2] * 9], 2)
    other = replace(apart(graph, 9, 2), max_error_steps=None)
    layers = (*parting.layers[:9], replace(parting.layers[9], total=other), parting.layers[10])
    sets = read(model_explorer_overlay(entry(KERNEL, replace(parting, layers=layers)), graph))
    assert "9" not in values(sets["1-total.json"])
    assert values(sets["6-verdict.json"])["9"] == "differs"


def test_without_layers_there_is_nothing_to_show(graph: Graph) -> None:
    for verdict in (KERNEL, Verdict("unstable", "the device wavers")):
        assert model_explorer_overlay(entry(verdict), graph) == {}


class Watched:
    """A graph that counts how often its tensors are read."""

    def __init__(self, graph: Graph) -> None:
        self._graph, self.reads = graph, 0

    def __getattr__(self, name: str) -> Any:
        self.reads += name == "tensors"
        return getattr(self._graph, name)


def test_the_tensors_of_a_graph_are_gone_through_once_for_all_its_operators(graph: Graph) -> None:
    """Else a graph of 20,000 operators takes minutes."""
    watched: Any = Watched(graph)
    assert model_explorer_overlay(entry(KERNEL, parted(graph, range(11), 2)), watched)
    assert watched.reads == 1


def chain(path: Path, tensors: Sequence[str], name: str | None, signature: str | None) -> Graph:
    """A chain of operators whose tensors have these names, in the order of the chain."""
    writer = GraphWriter()
    made = [writer.tensor(one, (1, 3), "FLOAT32") for one in tensors]
    for read_one, written in pairwise(made):
        writer.operator("LOGISTIC", [read_one], [written], None)
    writer.graph.name = name
    if signature is not None:
        writer.model.signatureDefs = [schema.SignatureDefT()]
        writer.model.signatureDefs[0].signatureKey = signature
        writer.model.signatureDefs[0].inputs = []
        writer.model.signatureDefs[0].outputs = []
    return Graph(writer.save(path, made[:1], made[-1:]).read_bytes())


NAMED = [
    (("x", "y", "z"), "a graph", "serve", "a graph", ["0", "1"]),
    (("x", "y", "z"), None, "serve", "serve", ["0", "1"]),
    (("x", "y", "z"), "", None, "main", ["0", "1"]),
    (("7", "1", "0"), None, None, "main", ["1", "0"]),  # by the tensor that each one writes
    (("0", "y", "y"), None, None, "main", ["1"]),  # nothing names the first one alone
]


@pytest.mark.parametrize(("tensors", "name", "signature", "graph_id", "keys"), NAMED)
def test_graph_and_operators_are_named_as_model_explorer_knows_them(
    tmp_path: Path,
    tensors: Sequence[str],
    name: str | None,
    signature: str | None,
    graph_id: str,
    keys: list[str],
) -> None:
    graph = chain(tmp_path / "model.tflite", tensors, name, signature)
    sets = read(model_explorer_overlay(entry(KERNEL, parted(graph, [1, 2], 0)), graph), graph_id)
    assert list(values(sets["6-verdict.json"])) == keys


@pytest.mark.model_explorer
@pytest.mark.parametrize(("tensors", "name", "signature", "graph_id"), [one[:4] for one in NAMED])
def test_model_explorer_knows_these_names(
    tmp_path: Path, tensors: Sequence[str], name: str | None, signature: str | None, graph_id: str
) -> None:
    chain(tmp_path / "model.tflite", tensors, name, signature)
    (seen,) = converted(tmp_path / "model.tflite")
    assert seen["id"] == graph_id
    assert {"0", "1"} <= {node["id"] for node in seen["nodes"]}


@pytest.mark.model_explorer
@pytest.mark.parametrize("pair", ["fashion_lenet4", "face_detection", "spoken_words"])
def test_nodes_are_the_operators_of_the_graph(pair: str) -> None:
    path = EXAMPLES / pair / "compressed.tflite"
    graph = Graph(path.read_bytes())
    finding = entry(KERNEL, parted(graph, [1] * len(graph.operators), 0))
    (seen,) = converted(path)
    files = model_explorer_overlay(finding, graph)
    marked = read(files, seen["id"])["6-verdict.json"]["results"]
    labels = {node["id"]: node["label"].upper() for node in seen["nodes"]}
    assert [labels[key] for key in marked] == [one.name for one in graph.operators]


def converted(path: Path) -> list[Document]:
    """The graphs that Model Explorer makes of a file."""
    adapter = pytest.importorskip(
        "ai_edge_model_explorer_adapter", reason="needs the extra model-explorer"
    )
    text = adapter.ConvertFlatbufferDirectlyToJson(adapter.VisualizeConfig(), str(path))
    (collection,) = json.loads(text)
    graphs: list[Document] = collection["subgraphs"]
    return graphs
