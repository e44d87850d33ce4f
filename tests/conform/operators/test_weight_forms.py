"""Weights with a zero point, of four bits, or with scales of blocks: read, and misread."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

from conforming import check_seen
from drafting import fresh
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Quantization
from edgeflare.conform.operators.weighted_sums.convolutions import CONVOLUTION
from edgeflare.conform.operators.weighted_sums.fully_connected import FULLY_CONNECTED
from edgeflare.conform.operators.weighted_sums.weighted_sum import WeightedSum
from edgeflare.conform.specification.parameter import Settings
from edgeflare.errors import UserError
from edgeflare.models.tflite_file import packed_numbers, read_model, unpacked_numbers
from edgeflare.models.tflite_writer import written
from public_cases import CASES

PLAIN: Settings = {"activation": "NONE", "bias": False}
ZEROS = dict.fromkeys(("input_zero_point", "output_zero_point"), 0)


def quantization(value: GraphValue) -> Quantization:
    assert value.quantization is not None
    return value.quantization


def without_zero_point(value: GraphValue) -> GraphValue:
    return replace(value, quantization=replace(quantization(value), zero_point=0))


def with_swapped_neighbours(value: GraphValue) -> GraphValue:
    """Return weights of which the two numbers of each byte are read the other way round."""
    assert value.values is not None
    return value.constant(value.values.reshape(-1, 2)[:, ::-1].reshape(value.shape))


def with_scales_of_rows(value: GraphValue) -> GraphValue:
    """Return weights all blocks of whose rows have the scale of the first."""
    known = quantization(value)
    scales = np.asarray(known.scales).reshape(value.shape[0], -1)
    first = np.broadcast_to(scales[:, :1], scales.shape)
    return replace(value, quantization=replace(known, scales=tuple(first.ravel().tolist())))


def built(known: WeightedSum, type_: str, settings: Settings) -> OperatorGraph:
    rng = np.random.default_rng(3)
    return known.build(type_, {**fresh((known.operator, type_), rng), **PLAIN, **settings}, rng)


ROWS: Settings = {"shape": (3, 96), "depth": 96, "units": 4, "keep_num_dims": False}
IMAGES: Settings = {"channels": 4, "out_channels": 4, "groups": 1, "batch": 2}


@pytest.mark.parametrize(
    ("known", "type_", "settings", "misread"),
    [
        (FULLY_CONNECTED, "asymmetric", {**ROWS, **ZEROS}, without_zero_point),
        (CONVOLUTION, "asymmetric", {**IMAGES, **ZEROS}, without_zero_point),
        (FULLY_CONNECTED, "int8x4", {**ROWS, **ZEROS}, with_swapped_neighbours),
        (FULLY_CONNECTED, "int16x4", ROWS, with_swapped_neighbours),
        (CONVOLUTION, "dynamic4", IMAGES, with_swapped_neighbours),
        (FULLY_CONNECTED, "blockwise", {**ROWS, "block_size": 32}, with_scales_of_rows),
    ],
)
def test_weights_that_a_kernel_misreads_are_seen(
    known: WeightedSum,
    type_: str,
    settings: Settings,
    misread: Callable[[GraphValue], GraphValue],
) -> None:
    graph = built(known, type_, settings)
    (node,), values = graph.nodes, list(graph.values)
    values[node.inputs[known.weights]] = misread(values[node.inputs[known.weights]])
    check_seen(graph, replace(graph, values=tuple(values)), type_)


def test_numbers_of_four_bits_are_packed_as_they_are_unpacked() -> None:
    numbers = np.array([-8, 7, 3, -1, 5], np.int8)
    packed = packed_numbers(numbers, schema.TensorType.INT4)
    assert packed == bytes([0x78, 0xF3, 0x05])
    assert np.array_equal(unpacked_numbers(packed, schema.TensorType.INT4, 5), numbers)


@pytest.mark.parametrize(
    ("case", "types"),
    [
        ("int4_weights", {"CONV_2D": "dynamic4", "FULLY_CONNECTED": "dynamic4"}),
        ("weights_zero_point", {"FULLY_CONNECTED": "asymmetric"}),
    ],
)
def test_weights_of_converted_models_are_read(case: str, types: dict[str, str]) -> None:
    reading = read_operators((CASES / case / "compressed.tflite").read_bytes())
    assert not reading.unknown
    found = {one.operator: one.reading.type for one in reading.known}
    assert types.items() <= found.items()


def test_blocks_that_have_not_one_scale_each_are_no_form_that_is_known() -> None:
    model = read_model(graph_file(built(FULLY_CONNECTED, "blockwise", {**ROWS, "block_size": 32})))
    (weights,) = (one for one in model.subgraphs[0].tensors if one.type == schema.TensorType.INT4)
    weights.quantization.details.blockSize = 48
    with pytest.raises(UserError, match="none of its operators is known"):
        read_operators(written(model))
    weights.quantization.details.blockSize = 36
    with pytest.raises(UserError, match="none of its operators is known"):
        read_operators(written(model))
