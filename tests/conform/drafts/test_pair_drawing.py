"""Models of a few operators, each of which reads the result of the one before."""

from __future__ import annotations

import numpy as np
import pytest

from drafting import check_sound, few_covered, refused, taken
from edgeflare.conform.drafts.cell_pairs import example_pair
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import Coverage, draft_pairs
from edgeflare.conform.drafts.draft_source import DraftOutcome
from edgeflare.conform.drafts.pair_drawing import PAIR_NODES, PairDrawing


@pytest.mark.parametrize("most_nodes", [2, 4])
def test_each_pair_is_drawn_once_before_any_is_drawn_again(most_nodes: int) -> None:
    coverage = few_covered()
    source = PairDrawing(coverage, np.random.default_rng(0), most_nodes)
    drawn: list[tuple[object, object]] = []
    while len(drawn) < len(list(coverage.pairs)):
        (draft,) = source.ask(1)
        check_sound(draft)
        assert 2 <= len(draft.nodes) <= most_nodes
        assert all(at in draft.nodes[at + 1].sources for at in range(len(draft.nodes) - 1))
        drawn.extend(draft_pairs(draft))
        source.tell([draft], [taken(draft)])
    assert len(set(drawn)) == len(drawn)
    assert coverage.figures()["pairs"].share == 1
    assert [len(draft.nodes) for draft in source.ask(5)] == [2] * 5


def test_most_models_are_as_long_as_may_be() -> None:
    drafts = PairDrawing(few_covered(), np.random.default_rng(0)).ask(15)
    assert sum(len(draft.nodes) == PAIR_NODES for draft in drafts) >= 12


def test_another_operand_than_the_first_is_fed_as_well() -> None:
    drafts = PairDrawing(few_covered(), np.random.default_rng(0)).ask(400)
    places = {draft.nodes[1].sources.index(0) for draft in drafts}
    assert {0, 1} <= places


def test_a_refused_pair_is_drawn_no_more() -> None:
    coverage = few_covered()
    source = PairDrawing(coverage, np.random.default_rng(0), 2)
    reading_sum = [pair for pair in coverage.pairs if pair[1][0] == "SUM"]
    while coverage.figures()["pairs"].refused < len(reading_sum):
        drafts = source.ask(100)
        whole = [all(one.operator != "SUM" for one in draft.nodes[1:]) for draft in drafts]
        alone = [(True,) * len(draft.nodes) for draft in drafts]
        source.tell(drafts, list(map(DraftOutcome, alone, whole)))
    assert not any(draft.nodes[1].operator == "SUM" for draft in source.ask(100))


def test_pairs_of_refused_cells_are_not_drawn() -> None:
    coverage = few_covered()
    source = PairDrawing(coverage, np.random.default_rng(0))
    drafts = source.ask(len(list(coverage.pairs)))
    source.tell(drafts, list(map(refused, drafts)))
    assert source.ask(5) == []


def test_without_pairs_nothing_is_drawn() -> None:
    assert PairDrawing(Coverage([("RELU", "float32")]), np.random.default_rng(0)).ask(3) == []


def test_any_operators_are_drawn_as_pairs() -> None:
    cells, rng = chosen_cells(), np.random.default_rng(0)
    some = [(cells[one], cells[other]) for one, other in rng.integers(len(cells), size=(800, 2))]
    pairs = [pair for pair in some if example_pair(*pair) is not None]
    assert len(pairs) >= 80
    for draft in PairDrawing(Coverage(cells, pairs), rng).ask(len(pairs)):
        check_sound(draft)
