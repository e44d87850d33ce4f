"""The exact answers of operators are those of the runtime's kernels, but where these are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from drafting import fresh
from edgeflare.conform.drafts.cells import Cell, chosen_cells
from edgeflare.conform.operator_graph import OperatorGraph
from edgeflare.conform.operators.operator_catalogue import WEIGHTED_SUMS, known_operators
from edgeflare.conform.operators.pools import POOLS
from edgeflare.conform.specification.activation_tensors import OperandStyle
from edgeflare.conform.specification.parameter import Configuration, dimensions
from edgeflare.conform.verdict.exact_rows import one_exact
from edgeflare.conform.verdict.right_values import RightValues, allowance
from kernel_rows import kernel_answers

OPTIMIZED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"
REFERENCE = "BUILTIN_REF"
XNNPACK = "BUILTIN"

WRONG: frozenset[Cell] = frozenset(
    {
        *((one, type_) for one in ("ADD", "MUL") for type_ in ("int8", "uint8")),
        *(("DIV", type_) for type_ in ("int8", "uint8", "int16x8")),
        *((one, "int16x8") for one in ("EXP", "LOG", "LOGISTIC", "MUL", "RELU6", "RSQRT", "TANH")),
        *((one, "int16x8") for one in ("GELU", "REDUCE_PROD", "SOFTMAX", "SQRT")),
        *((one, "int16x8") for one in ("CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV")),
        *(("HARD_SWISH", type_) for type_ in ("int8", "uint8")),
        *((one, "int8") for one in ("REDUCE_PROD", "RESIZE_BILINEAR")),
        *((f"RELU{one}", type_) for one in ("", "6", "_0_TO_1") for type_ in ("int8", "uint8")),
        ("SQUARED_DIFFERENCE", "int8"),
        *(("BATCH_MATMUL", type_) for type_ in ("dynamic", "int16x8")),
        *(
            (one, type_)
            for one in ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")
            for type_ in ("int8", "uint8")
        ),
        *(
            (f"BIDIRECTIONAL_SEQUENCE_{one}", type_)
            for one in ("LSTM", "RNN")
            for type_ in ("float32", "dynamic")
        ),
    }
)
"""Cells in which built-ins overflow, interpolate or rescale coarsely for some scales, or go over
a sequence otherwise than its options say."""

UNTAKEN: frozenset[Cell] = frozenset(
    {
        ("CONV_2D", "asymmetric"),
        ("DEPTHWISE_CONV_2D", "asymmetric"),  # built-ins and reference ignore the zero point
        ("DEPTHWISE_CONV_2D", "int8x4"),  # but for the reference all take it
    }
)
"""Cells that some kernels refuse."""

WRONG_WEIGHTS: frozenset[Cell] = frozenset(
    {("TRANSPOSE_CONV", "asymmetric"), ("FULLY_CONNECTED", "blockwise")}
)
"""Cells in which kernels ignore the zero point, the scales of blocks, or the activation."""

Asked = tuple[Cell, Configuration]


def drawn(cells: Sequence[Cell], rng: np.random.Generator, models: int) -> list[Asked]:
    """Return some models of each cell without a dimension of 0, on which kernels crash."""
    found: list[Asked] = []
    for cell in cells:
        wanted = len(found) + models
        while len(found) < wanted:
            one = fresh(cell, rng)
            graph = known_operators()[cell[0]].build(cell[1], one, rng)
            if all(value.size for value in graph.values) and not reads_scales_of_others(cell, one):
                found.append((cell, one))
    return found


def reads_scales_of_others(cell: Cell, configuration: Configuration) -> bool:
    """Tell of the reference's fault in batches of two dimensions, where XNNPACK is right."""
    if cell != ("BATCH_MATMUL", "dynamic"):
        return False
    return any(len(dimensions(configuration, one)) > 1 for one in ("batch", "right_batch"))


def offences(
    asked: Sequence[Asked], style: OperandStyle, kernels: str, folder: Path
) -> list[float]:
    """Return the largest error of each model's answers by what is allowed; 1 is still right."""
    rng, graphs = np.random.default_rng(5), list[OperatorGraph]()
    for (operator, type_), one in asked:
        assert known_operators()[operator].invalid(type_, one) is None
        graphs.append(known_operators()[operator].build(type_, one, rng))
    given = [
        known_operators()[operator].operands(graph, style, rng)
        for ((operator, _), _), graph in zip(asked, graphs, strict=True)
    ]
    answers = kernel_answers(graphs, given, folder, kernels)
    found = []
    for (cell, _), graph, operands, several in zip(asked, graphs, given, answers, strict=True):
        exact = one_exact(known_operators()[cell[0]], graph, operands)
        worst = 0.0
        for result, true, answer in zip(graph.results(graph.nodes[0]), exact, several, strict=True):
            assert true.values.shape == answer.shape == result.shape, cell
            right = RightValues(result, true, allowance(*cell))
            worst = max(worst, float(right.offences(right.errors(answer)).max(initial=0)))
        found.append(worst)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kernels", "style"), [(XNNPACK, "uniform"), (OPTIMIZED, "extreme")])
def test_kernels_answer_what_is_exact(tmp_path: Path, kernels: str, style: OperandStyle) -> None:
    cells = [cell for cell in chosen_cells() if cell not in WRONG | UNTAKEN | WRONG_WEIGHTS]
    asked = drawn(cells, np.random.default_rng(4), 4)
    found = zip(asked, offences(asked, style, kernels, tmp_path), strict=True)
    assert [(one, worst) for one, worst in found if worst > 1] == []


@pytest.mark.slow
def test_the_reference_answers_weighted_sums(tmp_path: Path) -> None:
    """To a step or the slack, and a little more of int16."""
    cells = [(one.operator, type_) for one in (*WEIGHTED_SUMS, *POOLS) for type_ in one.types]
    cells = [cell for cell in cells if cell not in UNTAKEN | WRONG_WEIGHTS]
    asked = drawn(cells, np.random.default_rng(5), 8)
    found = zip(asked, offences(asked, "uniform", REFERENCE, tmp_path), strict=True)
    most = {"int16x8": 1.5, "int16x4": 1.5}
    assert [(one, worst) for one, worst in found if worst > most.get(one[0][1], 1)] == []


def binary(first: float, second: float, output: float, broadcast: str = "none") -> Configuration:
    """Return a uint8 configuration of several scales."""
    scales: Configuration = {"first_scale": first, "second_scale": second, "output_scale": output}
    zero_points = dict.fromkeys(("first_zero_point", "second_zero_point", "output_zero_point"), 0)
    modes: Configuration = {"constant": "none", "activation": "NONE"}
    kept: Configuration = {
        "shape": (300,),
        "first_broadcast": "none",
        "second_broadcast": broadcast,
    }
    return {**kept, **modes, **scales, **zero_points}


WRAPPING: list[Asked] = [
    (("ADD", "uint8"), binary(0.5, 0.5, 2**-10)),
    *[(("MUL", "uint8"), binary(0.05, 0.05, 2**-10, "scalar"))] * 3,
]


def test_sums_and_products_that_wrap_around_are_seen(tmp_path: Path) -> None:
    """A fault of the runtime's optimized kernels, which the reference does not have."""
    sums, *products = offences(WRAPPING, "uniform", OPTIMIZED, tmp_path)
    assert sums > 100
    assert max(products) > 100  # unless the scalar is small
    assert max(offences(WRAPPING, "uniform", REFERENCE, tmp_path)) <= 1


def test_a_product_of_one_value_alone_is_wrong(tmp_path: Path) -> None:
    quantization = {
        "input_scale": 0.5,
        "input_zero_point": -100,
        "output_scale": 0.25,
        "output_zero_point": 0,
    }
    kept: Configuration = {"axes": (1,), "keep_dims": False, **quantization}
    asked: list[Asked] = [
        (("REDUCE_PROD", "int8"), {"shape": (40, count), **kept}) for count in (1, 2, 3)
    ]
    found = offences(asked, "uniform", OPTIMIZED, tmp_path)
    assert [worst > 1 for worst in found] == [True, False, False]


def test_places_between_pixels_are_rounded_too_coarsely(tmp_path: Path) -> None:
    sizes = {"batch": 1, "input_h": 24, "input_w": 13, "channels": 2, "output_h": 22}
    modes = {"output_w": 13, "align_corners": True, "half_pixel_centers": False}
    settings = {**sizes, **modes, "input_scale": 1.0, "input_zero_point": 0}
    asked: list[Asked] = [(("RESIZE_BILINEAR", type_), settings) for type_ in ("int8", "uint8")]
    signed, unsigned = offences(asked, "extreme", OPTIMIZED, tmp_path)
    assert signed > 2
    assert unsigned <= 1


def test_the_first_of_equal_values_is_found(tmp_path: Path) -> None:
    settings: Configuration = {"shape": (3, 40), "axis": -1, "output_type": "INT64"}
    best: Configuration = {"shape": (3, 40), "k": 9, "input_scale": 1.0, "input_zero_point": 0}
    asked: list[Asked] = [
        (("ARG_MAX", "bool"), settings),
        (("ARG_MIN", "bool"), settings),
        (("TOPK_V2", "uint8"), best),
    ]
    assert max(offences(asked, "narrow", OPTIMIZED, tmp_path)) == 0
