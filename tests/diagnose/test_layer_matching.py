"""Layers are matched by their place in the graph, whatever the order of a file's operators."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.diagnose.layer_matching import match_layers
from edgeflare.models.graph_parts import extract
from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from public_cases import CASES
from tampering import COMPRESSED, ORIGINAL, edited

CONTENT, FLOAT = COMPRESSED.read_bytes(), ORIGINAL.read_bytes()
MODELS = {
    "example": (COMPRESSED, ORIGINAL),
    **{
        name: (CASES / name / "compressed.tflite", CASES / name / "original.tflite")
        for name in ("detection_postprocess", "fp16_mask_nan", "gru_dynamic", "yolo_concat")
    },
}


def nameless(model: Any) -> None:
    for tensor in model.subgraphs[0].tensors:
        tensor.name = b""


def reordered(content: bytes, rng: np.random.Generator) -> tuple[bytes, list[int]]:
    """A model whose operators are in another order of execution, and the old positions."""
    graph, order = Graph(content), list[int]()
    needs = {one.index: {graph.made_by.get(t) for t in one.inputs} for one in graph.operators}
    while waiting := [one for one in needs if one not in order]:
        ready = [one for one in waiting if needs[one] - {None} <= set(order)]
        order.append(int(rng.choice(ready)))

    def change(model: Any) -> None:
        operators = model.subgraphs[0].operators
        model.subgraphs[0].operators = [operators[one] for one in order]

    return edited(content, change), order


def partners(compressed: bytes, original: bytes) -> dict[int, int]:
    found = match_layers(Graph(compressed), Graph(original))
    assert list(found) == sorted(found)
    return {op: there for op, (there, _) in found.items()}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("named", [True, False])
def test_no_order_of_operators_changes_a_match(model: str, named: bool) -> None:
    content, original = (path.read_bytes() for path in MODELS[model])
    wanted, graph = partners(content, original), Graph(content)
    layers = [one for one in graph.layers if one.name not in ("QUANTIZE", "DEQUANTIZE", "CAST")]
    assert set(wanted) == {one.index for one in layers}
    if not named:
        content, original = edited(content, nameless), edited(original, nameless)
    rng = np.random.default_rng(1)
    for _ in range(3):
        changed, order = reordered(content, rng)
        assert {order[op]: there for op, there in partners(changed, original).items()} == wanted


@st.composite
def _drawn(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], int]:
    """What each operator of a network reads, the input being -1, and a seed for all else."""
    size = draw(st.integers(3, 25))
    reads = [
        tuple(draw(st.integers(max(-1, at - 6), at - 1)) for _ in range(draw(st.integers(1, 2))))
        for at in range(size)
    ]
    return reads, draw(st.integers(0, 2**32 - 1))


def _written(reads: list[tuple[int, ...]], convert: Any, names: list[str]) -> bytes:
    """A network of ADDs and RELUs, with a DEQUANTIZE behind a QUANTIZE where `convert` says so."""
    writer, shape = GraphWriter(), (1, 4)
    given = writer.tensor("x", shape, "FLOAT32")
    made: dict[int, int] = {-1: given}
    for at, sources in enumerate(reads):
        taken = {source: made[source] for source in sources}
        for source, tensor in taken.items():
            if convert():
                low = writer.tensor("", shape, "INT8", (0.1, 0))
                taken[source] = writer.tensor("", shape, "FLOAT32")
                writer.operator("QUANTIZE", [tensor], [low], None, 1)
                writer.operator("DEQUANTIZE", [low], [taken[source]], None, 2)
        read = [taken[source] for source in sources]
        made[at] = writer.tensor(names[at], shape, "FLOAT32")
        options = schema.AddOptionsT() if len(read) > 1 else None
        writer.operator("ADD" if len(read) > 1 else "RELU", read, [made[at]], options, 1)
    used = {source for sources in reads for source in sources}
    ends = [made[at] for at in range(len(reads)) if at not in used]
    with TemporaryDirectory() as folder:
        return writer.save(Path(folder) / "drawn.tflite", [given], ends).read_bytes()


@settings(max_examples=25, deadline=None)
@given(_drawn())
def test_in_any_network_with_any_conversions_each_layer_is_found(
    drawn: tuple[list[tuple[int, ...]], int],
) -> None:
    reads, seed = drawn
    rng = np.random.default_rng(seed)
    names = [f"layer {at}" for at in range(len(reads))]
    original = _written(reads, lambda: False, names)
    converted = _written(reads, lambda: rng.random() < 0.3, names)
    twin, order = reordered(converted, rng)
    graph, known = Graph(twin), {f"layer {at}": at for at in range(len(reads))}
    layers = [one for one in graph.layers if one.name in ("ADD", "RELU")]
    wanted = {one.index: known[graph.tensors[one.outputs[0]].name] for one in layers}
    assert partners(twin, original) == wanted
    assert len(order) == len(graph.operators)


def test_names_mislead_nobody_where_the_structure_tells_layers_apart() -> None:
    graph = Graph(CONTENT)

    def exchanged(model: Any) -> None:
        made = [model.subgraphs[0].tensors[one.outputs[0]] for one in graph.layers]
        for tensor, other in zip(made, [one.name for one in reversed(made)], strict=True):
            tensor.name = other

    assert partners(edited(CONTENT, exchanged), FLOAT) == partners(CONTENT, FLOAT)


def test_heads_of_one_shape_that_changed_places_are_told_apart_by_name() -> None:
    paths = (CASES / "output_swapped" / name for name in ("compressed.tflite", "original.tflite"))
    compressed, original = (Graph(path.read_bytes()) for path in paths)
    found = match_layers(compressed, original)
    heads = {op: there for op, (there, by) in found.items() if by == "name"}
    names = [
        (
            compressed.tensors[compressed.operators[op].outputs[0]].name,
            original.tensors[original.operators[there].outputs[0]].name,
        )
        for op, there in heads.items()
    ]
    assert len(names) == 2
    assert all(one == other for one, other in names)


def test_a_layer_that_was_left_out_leaves_the_others_matched() -> None:
    """The original without its softmax, as many are trained."""
    original = Graph(FLOAT)
    logits = Graph(extract(original, 0, original.layers[-2].index).content)
    found = match_layers(Graph(CONTENT), logits)
    assert len(found) == len(logits.layers)
    assert Graph(CONTENT).layers[-1].index not in found
