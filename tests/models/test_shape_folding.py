"""Folded shapes: the same outputs to the bit, and one line where they are not fixed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.models.invocation import Invocation
from edgeflare.models.shape_folding import asks_for_shapes, fold_shapes, with_fixed_shapes
from edgeflare.models.tflite_graph import Graph
from edgeflare_protos.kernel_sets import TFLITE_KERNEL_SETS
from flattening import (
    FlatteningModel,
    write_flattening,
    write_flattening_twice,
    write_sized_by_values,
)
from graph_writer import GraphWriter
from tampering import COMPRESSED, InterpreterProbe, example_input
from unread_graphs import write_of_any_size

Refusal = Callable[..., str]

FLATTEN = ("SHAPE", "STRIDED_SLICE", "PACK")


def names(content: bytes) -> list[str]:
    return [one.name for one in Graph(content).operators]


@settings(max_examples=6, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 5)] * 4),
    seed=st.integers(0, 2**32 - 1),
    twice=st.booleans(),
)
def test_it_gives_the_same_to_the_bit_under_all_kernels(
    shape: tuple[int, ...], seed: int, twice: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write = write_flattening_twice if twice else write_flattening
    content = write(tmp_path_factory.mktemp("model") / "model.tflite", shape).read_bytes()
    folded = fold_shapes(content)
    assert folded.operators == FLATTEN * (2 if twice else 1)
    assert names(folded.content) == [one for one in names(content) if one not in FLATTEN]
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    for kernels in TFLITE_KERNEL_SETS:
        (own,) = InterpreterProbe(content, kernels).run([values])
        (got,) = InterpreterProbe(folded.content, kernels).run([values])
        assert got.shape == own.shape
        assert got.tobytes() == own.tobytes()


def test_shapes_that_are_fixed_are_those_of_all_tensors(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    kernel, weights = (rng.normal(size=size).astype(np.float32) for size in ((3, 2, 2, 1), (4, 3)))
    content = write_of_any_size(tmp_path / "any.tflite", kernel, weights)
    fixed = with_fixed_shapes(content, "any.tflite", Invocation(shapes={"x": (1, 6, 5, 1)}))
    shapes = [Graph(fixed).tensors[one.outputs[0]].shape for one in Graph(fixed).operators]
    assert shapes == [(1, 6, 5, 3), (1, 3), (1, 4), (1, 4)]
    InterpreterProbe(fixed).run([np.zeros((1, 6, 5, 1), np.float32)])
    assert with_fixed_shapes(content, "any.tflite", Invocation()) is content


def test_shapes_that_a_model_computes_are_those_of_its_run(tmp_path: Path) -> None:
    model = FlatteningModel((1, 4, 3))
    flat = model.flatten(model.logistic(model.x), (1, 4, 3))
    made = model.logistic(flat)
    for tensor in (flat, made):  # as a converter writes what follows from a shape alone
        model.graph.tensors[tensor].shape = [1, 1]
        model.graph.tensors[tensor].shapeSignature = [-1, -1]
    content = model.save(tmp_path / "computed.tflite", [model.x], [made]).read_bytes()
    fixed = Graph(with_fixed_shapes(content, "computed.tflite", Invocation()))
    assert [fixed.tensors[one].shape for one in (flat, made)] == [(1, 12), (1, 12)]


def test_the_model_that_ships_keeps_all_but_its_three_operators() -> None:
    content = COMPRESSED.read_bytes()
    folded = fold_shapes(content)
    before, after = Graph(content), Graph(folded.content)
    assert folded.operators == FLATTEN
    assert names(folded.content) == [one for one in names(content) if one not in FLATTEN]
    (reshape,) = (one for one in after.operators if one.name == "RESHAPE")
    assert after.values(reshape.inputs[1]).tolist() == [1, after.tensors[reshape.outputs[0]].size]
    assert (after.inputs, after.outputs) == (before.inputs, before.outputs)
    signatures = [one.signatureKey for one in after.model.signatureDefs]
    assert signatures == [one.signatureKey for one in before.model.signatureDefs]
    (own,), (got,) = (
        InterpreterProbe(one).run([example_input()]) for one in (content, folded.content)
    )
    assert got.tobytes() == own.tobytes()
    assert fold_shapes(content).content == folded.content


def test_shapes_that_the_pair_fixes_are_those_that_are_folded(tmp_path: Path) -> None:
    path = write_flattening(tmp_path / "model.tflite", (1, 2, 3), dynamic=True)
    folded = fold_shapes(path.read_bytes(), invocation=Invocation(shapes={"x": (4, 2, 3)}))
    graph = Graph(folded.content)
    (reshape,) = (one for one in graph.operators if one.name == "RESHAPE")
    assert graph.values(reshape.inputs[1]).tolist() == [4, -1]
    assert graph.tensors[graph.inputs[0]].shape == (4, 2, 3)


def test_a_shape_that_values_decide_is_refused_with_the_operator(
    tmp_path: Path, refusal: Refusal
) -> None:
    path = write_sized_by_values(tmp_path / "model.tflite", 6)
    said = refusal(fold_shapes, path.read_bytes(), "mine.tflite")
    assert "mine.tflite: SHAPE (operator 3) asks for a shape that is not fixed" in said
    assert "WHERE (operator 1)" in said


def test_where_there_is_nothing_to_fold_it_says_so(tmp_path: Path, refusal: Refusal) -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "y"))
    graph.operator("LOGISTIC", [x], [y])
    path = graph.save(tmp_path / "model.tflite", [x], [y])
    assert not asks_for_shapes(path)
    assert "nothing to fold: leave --fold-shapes out" in refusal(fold_shapes, path.read_bytes())
    folded = tmp_path / "folded.tflite"
    folded.write_bytes(fold_shapes(COMPRESSED.read_bytes()).content)
    assert asks_for_shapes(COMPRESSED)
    assert not asks_for_shapes(folded)


def test_a_signature_of_another_graph_is_refused(tmp_path: Path, refusal: Refusal) -> None:
    graph = GraphWriter()
    x, y = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("x", "y"))
    graph.operator("LOGISTIC", [x], [y])
    graph.second()
    a, b = (graph.tensor(name, (1, 3), "FLOAT32") for name in ("a", "b"))
    graph.operator("LOGISTIC", [a], [b])
    graph.first([a], [b])
    graph.signature("other", 1, {"a": a}, {"b": b})
    content = graph.save(tmp_path / "model.tflite", [x], [y]).read_bytes()
    said = refusal(fold_shapes, content, invocation=Invocation(signature="other"))
    assert "'other' is not of the first graph" in said


def test_what_is_no_model_is_one_line(refusal: Refusal) -> None:
    assert "mine.tflite" in refusal(fold_shapes, b"no model at all", "mine.tflite")
