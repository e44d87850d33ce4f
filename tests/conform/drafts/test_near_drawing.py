"""The operators of a user's model as they stand, and what is near them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drafting import check_sound, few_cells, taken
from edgeflare.conform.drafts.cells import chosen_cells, drawn_configuration
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import DraftNode, drafted
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.drafts.near_drawing import (
    NearDrawing,
    near_configuration,
    smaller_configuration,
)
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.graphs.graph_file import graph_file
from edgeflare.conform.operators.known_operators import known_operators

MODEL = Path(__file__).parents[3] / "examples" / "face_detection" / "compressed.tflite"


def test_operators_are_drawn_as_they_stand_and_then_what_is_near() -> None:
    reading = read_operators(MODEL.read_bytes())
    coverage = Coverage(chosen_cells())
    source = NearDrawing(reading.distinct, coverage, np.random.default_rng(0))
    standing = source.ask(len(reading.distinct))
    assert [draft.nodes[0].given for draft in standing] == [one.place for one in reading.distinct]
    for draft, one in zip(standing, reading.distinct, strict=True):
        alone = drafted(draft, reading.given).alone[0]
        assert graph_file(alone) == graph_file(one.graph)
    source.tell(standing, list(map(taken, standing)))
    near = source.ask(60)
    assert len(near) == 60
    cells = {one.cell for one in reading.distinct}
    for draft in near:
        check_sound(draft)
        assert draft.nodes[0].given is None
        assert draft.nodes[0].cell in cells


def test_what_is_near_a_large_operator_is_smaller() -> None:
    reading = read_operators(MODEL.read_bytes())
    sizes = []
    for one in reading.distinct:
        smaller = smaller_configuration(one)
        graph = NodeGraphs().graph(DraftNode(*one.cell, smaller, 0, ()))
        size = max(value.size for value in graph.values)
        sizes.append((max(value.size for value in one.graph.values), size))
        if sizes[-1][0] <= 4096:
            assert smaller == one.reading.configuration
    assert max(before for before, _ in sizes) > 100_000
    assert np.mean([after <= 4096 for _, after in sizes]) > 0.9


def test_cells_that_nobody_asked_for_are_left_out() -> None:
    reading = read_operators(MODEL.read_bytes())
    coverage = Coverage(chosen_cells(("RESHAPE",), ("int8",)))
    drafts = NearDrawing(reading.distinct, coverage, np.random.default_rng(0)).ask(50)
    assert {draft.nodes[0].cell for draft in drafts} == {("RESHAPE", "int8")}
    assert NearDrawing((), coverage, np.random.default_rng(0)).ask(5) == []


@pytest.mark.parametrize("cell", few_cells(), ids=" ".join)
def test_most_settings_of_what_is_near_are_those_of_the_model(cell: tuple[str, str]) -> None:
    rng = np.random.default_rng(0)
    alike = total = 0
    for _ in range(30):
        configuration = drawn_configuration(cell, rng)
        assert configuration is not None
        near = near_configuration(DraftNode(*cell, configuration, 0, ()), rng)
        assert near is not None
        assert known_operators()[cell[0]].invalid(cell[1], near) is None
        NodeGraphs().graph(DraftNode(*cell, near, 0, ()))
        alike += sum(near[name] == setting for name, setting in configuration.items())
        total += len(near)
    settings = total / 30
    assert alike / 30 >= min(settings - 2.5, settings / 2)
