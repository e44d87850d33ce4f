"""Models of one operator, drawn over all cells."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import check_sound, few_cells, few_covered, refused, taken
from edgeflare.conform.drafts.cells import cell_buckets, cell_parameters, drawn_configuration
from edgeflare.conform.drafts.coverage import Coverage
from edgeflare.conform.drafts.draft import Draft, DraftNode
from edgeflare.conform.drafts.uniform_drawing import UniformDrawing, configuration_with


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
    drafts = UniformDrawing(Coverage(cells), _rng()).ask(60)
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
    coverage, unguided, rng = few_covered(), few_covered(), _rng()
    UniformDrawing(coverage, _rng()).ask(12 * len(few_cells()))
    for cell in few_cells() * 12:
        draft = Draft((DraftNode(*cell, drawn_configuration(cell, rng) or {}, 0, ()),))
        unguided.expect(draft)
    new = [sum(len(one.new_buckets(cell)) for cell in few_cells()) for one in (coverage, unguided)]
    assert new[0] < new[1]


def test_a_refused_cell_is_drawn_no_more() -> None:
    coverage = few_covered()
    source = UniformDrawing(coverage, _rng())
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
        configuration = configuration_with((*cell, name, bucket), _rng())
        assert configuration is not None
        assert (name, bucket) in set(cell_buckets(cell, configuration))


def test_without_cells_nothing_is_drawn() -> None:
    assert UniformDrawing(Coverage(()), _rng()).ask(3) == []


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)
