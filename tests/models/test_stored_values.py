"""Constants are read as the runtime reads them, however their file stores them."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare.models.tflite_graph import Graph
from graph_writer import GraphWriter
from prepared_weights import compressed_along
from tampering import run


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.sampled_from([1, 2]), st.integers(0))
def test_a_sparse_tensor_is_read_as_densify_writes_it(
    sizes: list[int], block: int, seed: int
) -> None:
    shape, rng = (*sizes[:-1], sizes[-1] * block), np.random.default_rng(seed)
    values = (rng.normal(size=shape) * rng.integers(0, 2, shape)).astype(np.float32)
    values.flat[-1] = 1.0
    order = rng.permutation(len(shape)).tolist()
    sparse = seed % len(shape)
    writer = GraphWriter()
    sparsity, kept = compressed_along(values, order, sparse, block)
    stored = writer.tensor("stored", shape, "FLOAT32", data=kept)
    writer.graph.tensors[stored].sparsity = sparsity
    given, dense, made = (writer.tensor(name, shape, "FLOAT32") for name in ("x", "w", "y"))
    writer.operator("DENSIFY", [stored], [dense], None, 1)
    writer.operator("ADD", [given, dense], [made], schema.AddOptionsT(), 1)
    with TemporaryDirectory() as folder:
        content = writer.save(Path(folder) / "sparse.tflite", [given], [made]).read_bytes()
    read = Graph(content).real_values(dense)
    assert read is not None
    assert np.array_equal(read, values)
    assert np.array_equal(run(content, [np.zeros(shape, np.float32)])[0], values)


@pytest.mark.parametrize(
    ("dtype", "numbers", "limits"),
    [
        ("INT4", [1, -8, 7], (-8, 7)),
        ("UINT4", [1, 15, 8], (0, 15)),
        ("INT2", [1, -2, -1, 0, 1], (-2, 1)),
    ],
)
def test_numbers_of_few_bits_are_unpacked_lowest_first(
    dtype: str, numbers: list[int], limits: tuple[int, int], tmp_path: Path
) -> None:
    bits = int(dtype[-1])
    packed = sum((one & (2**bits - 1)) << bits * at for at, one in enumerate(numbers))
    writer, shape = GraphWriter(), (len(numbers), 1)
    raw = np.frombuffer(packed.to_bytes(2, "little"), np.uint8)
    tensor = writer.tensor("weights", shape, dtype, (0.5, 0), raw)
    graph = Graph(writer.save(tmp_path / "packed.tflite", [], []).read_bytes())
    assert graph.values(tensor).tolist() == [[one] for one in numbers]
    real = graph.real_values(tensor)
    assert real is not None
    assert real.ravel().tolist() == [one / 2 for one in numbers]
    assert graph.tensors[tensor].limits == limits
