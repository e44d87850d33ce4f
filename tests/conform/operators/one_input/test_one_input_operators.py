"""The exact answers of operators of one tensor are those of the runtime's kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from edgeflare.conform.graphs.operator_graph import OperatorGraph, Values
from edgeflare.conform.operators.one_input.one_input_operator import OneInputOperator
from edgeflare.conform.operators.one_input.one_input_operators import ONE_INPUT_OPERATORS
from edgeflare.conform.specification.operand_values import OperandStyle
from edgeflare.conform.specification.settings import Configuration
from edgeflare.conform.verdict.exact_rows import exact_rows
from edgeflare.conform.verdict.exceptions import allowance
from edgeflare.conform.verdict.right_values import RightValues
from kernel_rows import kernel_answers

Cell = tuple[str, str]
CELLS = {(one.operator, type_): one for one in ONE_INPUT_OPERATORS for type_ in one.types}
MODELS = 8

WRONG_BUILT_INS: set[Cell] = {
    ("REDUCE_PROD", "int8"),
    ("REDUCE_PROD", "int16x8"),
    ("RESIZE_BILINEAR", "int8"),
    ("SOFTMAX", "int16x8"),
}
"""Cells that the runtime's optimized built-ins do not answer as arithmetic says."""


@dataclass(frozen=True)
class AnsweredModel:
    """A model with its operands, and what the built-ins answered."""

    specification: OneInputOperator
    type: str
    configuration: Configuration
    graph: OperatorGraph
    given: tuple[Values, ...]
    answers: list[Values]

    def offence(self) -> float:
        """Return the largest error of the answers by what is allowed; 1 is still right."""
        cell = allowance(self.specification.operator, self.type)
        exact = exact_rows(self.specification, self.graph, [one[None] for one in self.given], 1)
        worst = 0.0
        for value, right, answer in zip(
            self.graph.results(self.graph.nodes[0]), exact, self.answers, strict=True
        ):
            known = RightValues(value, right, cell)
            offences = known.offences(known.errors(answer[None]))
            worst = max(worst, float(np.max(offences, initial=0.0)))
        return worst


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> Mapping[Cell, list[AnsweredModel]]:
    """Return some models of each cell with the answers of the runtime's optimized built-ins."""
    rng = np.random.default_rng(4)
    asked = [(cell, one) for cell in CELLS for one in drawn(CELLS[cell], cell[1], rng)]
    found: dict[Cell, list[AnsweredModel]] = {cell: [] for cell in CELLS}
    for one in answered_models(asked, "uniform", tmp_path_factory.mktemp("kernels")):
        found[one.specification.operator, one.type].append(one)
    return found


def answered_models(
    asked: Sequence[tuple[Cell, Configuration]], style: OperandStyle, folder: Path
) -> list[AnsweredModel]:
    """Return models with the answers of the runtime's optimized built-ins."""
    rng = np.random.default_rng(5)
    graphs = [CELLS[cell].build(cell[1], one, rng) for cell, one in asked]
    given = [
        CELLS[cell].operands(graph, style, rng)
        for (cell, _), graph in zip(asked, graphs, strict=True)
    ]
    answers = kernel_answers(graphs, given, folder)
    return [
        AnsweredModel(CELLS[cell], cell[1], configuration, graph, operands, several)
        for (cell, configuration), graph, operands, several in zip(
            asked, graphs, given, answers, strict=True
        )
    ]


def drawn(
    specification: OneInputOperator, type_: str, rng: np.random.Generator
) -> list[Configuration]:
    """Return settings of models without a dimension of size zero, on which kernels crash."""
    found: list[Configuration] = []
    while len(found) < MODELS:
        configuration = specification.draw(type_, rng)
        if specification.invalid(type_, configuration) is None:
            graph = specification.build(type_, configuration, rng)
            if all(value.size for value in graph.values):
                found.append(configuration)
    return found


@pytest.mark.parametrize("cell", sorted(CELLS.keys() - WRONG_BUILT_INS), ids="-".join)
def test_kernels_answer_what_is_exact(
    answered: Mapping[Cell, list[AnsweredModel]], cell: Cell
) -> None:
    wrong = {str(dict(one.configuration)): one.offence() for one in answered[cell]}
    assert {model: offence for model, offence in wrong.items() if offence > 1} == {}


def test_a_product_of_one_value_alone_is_wrong(tmp_path: Path) -> None:
    quantization = {
        "input_scale": 0.5,
        "input_zero_point": -100,
        "output_scale": 0.25,
        "output_zero_point": 0,
    }
    factors = (1, 2, 3)
    asked: list[tuple[Cell, Configuration]] = [
        (
            ("REDUCE_PROD", "int8"),
            {"shape": (40, count), "axes": (1,), "keep_dims": False, **quantization},
        )
        for count in factors
    ]
    models = answered_models(asked, "uniform", tmp_path)
    assert [one.offence() > 1 for one in models] == [count == 1 for count in factors]


def test_places_between_pixels_are_rounded_too_coarsely(tmp_path: Path) -> None:
    sizes = {"batch": 1, "input_h": 24, "input_w": 13, "channels": 2, "output_h": 22}
    modes = {"output_w": 13, "align_corners": True, "half_pixel_centers": False}
    quantization = {"input_scale": 1.0, "input_zero_point": 0}
    asked: list[tuple[Cell, Configuration]] = [
        (("RESIZE_BILINEAR", type_), {**sizes, **modes, **quantization})
        for type_ in ("int8", "uint8")
    ]
    signed, unsigned = answered_models(asked, "extreme", tmp_path)
    assert signed.offence() > 2
    assert unsigned.offence() <= 1


def test_the_first_of_equal_values_is_found(tmp_path: Path) -> None:
    settings: Configuration = {"shape": (3, 40), "axis": -1, "output_type": "INT64"}
    asked: list[tuple[Cell, Configuration]] = [
        (("ARG_MAX", "bool"), settings),
        (("ARG_MIN", "bool"), settings),
        (
            ("TOPK_V2", "uint8"),
            {"shape": (3, 40), "k": 9, "input_scale": 1.0, "input_zero_point": 0},
        ),
    ]
    for one in answered_models(asked, "narrow", tmp_path):
        assert one.offence() == 0
