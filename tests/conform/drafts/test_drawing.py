"""How models are drawn: over all cells, over all pairs, and near a user's model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import check_sound, few_cells, few_covered, fresh, refused, taken
from edgeflare.conform.drafts.cells import (
    cell_buckets,
    cell_parameters,
    chosen_cells,
)
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftNode, NodeGraphs, drafted
from edgeflare.conform.drafts.drawing import (
    UniformDrawing,
    configuration_with,
)
from edgeflare.conform.drafts.model_reading import read_operators
from edgeflare.conform.drafts.near_drawing import (
    NearDrawing,
    near_configuration,
    smaller_configuration,
)
from edgeflare.conform.graph_file import graph_file
from edgeflare.conform.operators.operator_catalogue import known_operators


@pytest.mark.slow
@settings(max_examples=10)
@given(seed=st.integers(0, 2**32 - 1))
def test_models_are_sound_and_even_over_cells(seed: int) -> None:
    rounds = 3
    drafts = UniformDrawing(few_covered(), np.random.default_rng(seed)).ask(
        rounds * len(few_cells())
    )
    for draft in drafts:
        check_sound(draft)
    cells = [draft.nodes[0].cell for draft in drafts]
    assert set(cells[: len(few_cells())]) == set(few_cells())


def test_cells_with_more_buckets_are_drawn_more_often() -> None:
    cells = (("CONV_2D", "int8"), ("RELU", "int8"))
    drafts = UniformDrawing(Coverage(cells), np.random.default_rng(0)).ask(60)
    counts = Counter(draft.nodes[0].cell for draft in drafts)
    buckets = {cell: sum(len(one.buckets) for one in cell_parameters(cell)) for cell in cells}
    assert counts[cells[0]] / counts[cells[1]] == pytest.approx(
        buckets[cells[0]] / buckets[cells[1]], rel=0.3
    )


def test_the_same_generator_and_outcomes_draw_the_same() -> None:
    drawn = []
    for _ in range(2):
        source = UniformDrawing(few_covered(), np.random.default_rng(7))
        first = source.ask(30)
        source.tell(first, [taken(one) if at % 3 else refused(one) for at, one in enumerate(first)])
        drawn.append(first + source.ask(30))
    assert drawn[0] == drawn[1]


def test_new_buckets_are_preferred() -> None:
    coverage, unguided, rng = few_covered(), few_covered(), np.random.default_rng(0)
    UniformDrawing(coverage, np.random.default_rng(0)).ask(12 * len(few_cells()))
    for cell in few_cells() * 12:
        draft = Draft((DraftNode(*cell, fresh(cell, rng), 0, ()),))
        unguided.expect(draft)
    new = [sum(len(one.new_buckets(cell)) for cell in few_cells()) for one in (coverage, unguided)]
    assert new[0] < new[1]


def test_a_refused_cell_is_drawn_no_more() -> None:
    coverage = few_covered()
    source = UniformDrawing(coverage, np.random.default_rng(0))
    for _ in range(4):
        drafts = source.ask(len(few_cells()))
        outcomes = [
            refused(one) if one.nodes[0].operator == "ADD" else taken(one) for one in drafts
        ]
        source.tell(drafts, outcomes)
    later = source.ask(3 * len(few_cells()))
    assert later
    assert not any(one.nodes[0].operator == "ADD" for one in later)


def test_a_rare_bucket_is_drawn_when_it_is_wanted() -> None:
    cell = ("RELU", "int8")
    for name, bucket in (("shape", "a dimension of 0"), ("output_zero_point", "highest")):
        configuration = configuration_with((*cell, name, bucket), np.random.default_rng(0))
        assert configuration is not None
        assert (name, bucket) in set(cell_buckets(cell, configuration))


MODEL = Path(__file__).parents[3] / "examples" / "face_detection" / "compressed.tflite"


@pytest.mark.slow
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
        configuration = fresh(cell, rng)
        near = near_configuration(DraftNode(*cell, configuration, 0, ()), rng)
        assert near is not None
        assert known_operators()[cell[0]].invalid(cell[1], near) is None
        NodeGraphs().graph(DraftNode(*cell, near, 0, ()))
        alike += sum(near[name] == setting for name, setting in configuration.items())
        total += len(near)
    settings = total / 30
    assert alike / 30 >= min(settings - 2.5, settings / 2)
