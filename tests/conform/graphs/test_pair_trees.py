"""Trees of pairs: each pair is met in each use of its first result."""

from __future__ import annotations

from collections import Counter

import numpy as np

from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.draft import NodeGraphs
from edgeflare.conform.graphs.commonness import covering_order, pair_lateness
from edgeflare.conform.graphs.operator_variants import DrawnGraph, OperatorVariants
from edgeflare.conform.graphs.pair_trees import PairTrees, PairUse, pair_uses

CELLS = chosen_cells(("ABS", "ADD", "NEG", "RELU", "SUM"), ("float32",))


def _trees() -> PairTrees:
    ways = OperatorVariants(np.random.default_rng(0), NodeGraphs())
    variants = {cell: tuple(ways.of(cell)) for cell in CELLS}
    return PairTrees(variants, ways, lambda *_: True)


def _pairs(drawn: DrawnGraph) -> list[PairUse]:
    variants, model = drawn
    return pair_uses([variant.node.cell for variant in variants], model.graph)


def test_each_pair_is_met_in_each_use_by_graphs_of_several() -> None:
    graphs = list(map(_pairs, _trees().trees()))
    met = {pair for pairs in graphs for pair in pairs}
    wanted = {
        PairUse(first, second, use)
        for first in CELLS
        for second in CELLS
        for use in ("answered", "hidden", "shared")
    }
    assert met == wanted
    assert len(graphs) < len(wanted) / 3


def test_the_pairs_of_a_graph_that_fails_are_drawn_again_until_an_operator_is_blamed() -> None:
    trees = _trees()
    lost: Counter[str] = Counter()
    for drawn in trees.trees():
        pairs = _pairs(drawn)
        wrong = [pair for pair in pairs if pair.taker[0] == "SUM" and pair.use == "answered"]
        lost.update(pair.maker[0] for pair in wrong)
        cells = [variant.node.cell for variant in drawn[0]]
        trees.tell(cells, drawn[1].graph, answered=True, fails=bool(wrong))
    # A pair is drawn three times at most, and what is wrong with any operator before it less often.
    assert len(lost) > 1
    assert max(lost.values()) <= 3
    assert 4 <= lost.total() < 3 * len(CELLS)


def test_each_operator_is_soon_the_first_and_the_second_of_a_pair() -> None:
    rare = ("ATAN2", "float32")
    every = [*CELLS, rare]
    pairs = [(first, second) for first in every for second in every]
    late = list(map(pair_lateness, pairs))
    places = covering_order(pairs, late, np.random.default_rng(0))
    assert sorted(places) == list(range(len(pairs)))
    order = [pairs[at] for at in places]
    soon = order[: 2 * len(every)]
    assert {first for first, _ in soon} == {second for _, second in soon} == set(every)
    assert order[0] != (rare, rare)
