"""NLA, LResh, LMerg and LConn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import check_sound, few_cells, mutating, relu, relu_chain, taken
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.coverage import draft_pairs
from edgeflare.conform.drafts.draft import FRESH, Draft
from edgeflare.conform.drafts.draft_mutation import (
    MOST_NODES,
    MutationContext,
    reordered,
    without_oldest,
)
from edgeflare.conform.drafts.memo_drawing import MUTATIONS
from edgeflare.conform.drafts.structure_mutations import (
    RESHAPING,
    added_layers,
    added_reshaping_layers,
    connected_layers,
    merged_layers,
)

seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=seeds, names=st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=8))
def test_mutants_of_mutants_are_sound(seed: int, names: list[str]) -> None:
    context = mutating(seed)
    draft = relu_chain([(2, 3), (2, 3)])
    for name in names:
        mutant = MUTATIONS[name](draft, context)
        if mutant is not None:
            check_sound(mutant)
            assert 1 <= len(mutant.nodes) <= MOST_NODES
            assert mutant != draft
            draft = mutant


@pytest.mark.parametrize(
    "mutation", [added_layers, added_reshaping_layers, merged_layers, connected_layers]
)
def test_the_same_generator_makes_the_same_mutant(
    mutation: Callable[[Draft, MutationContext], Draft | None],
) -> None:
    draft = Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3))))
    one, other = mutation(draft, mutating(3)), mutation(draft, mutating(3))
    assert one is not None
    assert one == other


@pytest.mark.parametrize("seed", range(5))
def test_new_layers_are_cells_that_were_never_invoked(seed: int) -> None:
    context, draft = mutating(seed), relu_chain([(2, 3)])
    for cell in few_cells():
        if cell[0] not in {"ABS", "MEAN"}:
            _cover(context, cell)
    mutant = added_layers(draft, context)
    assert mutant is not None
    assert {"ABS", "MEAN"} & {node.operator for node in mutant.nodes}


def test_a_new_layer_is_inserted_before_what_reads_the_same() -> None:
    draft = relu_chain([(2, 3), (2, 3)])
    mutants = [added_layers(draft, mutating(seed)) for seed in range(20)]
    fed = [mutant.nodes[-1].sources for mutant in mutants if mutant is not None]
    assert any(mutant and mutant.nodes[-1].operator == "RELU" for mutant in mutants)
    assert all(FRESH not in sources[:1] for sources in fed)


def test_reshaping_layers_are_of_reshaping_operators() -> None:
    assert any(cell[0] in RESHAPING for cell in chosen_cells())
    for seed in range(10):
        mutant = added_reshaping_layers(relu_chain([(2, 3)]), mutating(seed))
        assert mutant is not None
        assert {node.operator for node in mutant.nodes} <= {"RELU", "RESHAPE", "TRANSPOSE"}
        assert len(mutant.nodes) > 1


def test_a_merging_layer_reads_two_results_of_one_shape() -> None:
    draft = Draft((relu((2, 3)), relu((4,)), relu((2, 3))))
    for seed in range(10):
        mutant = merged_layers(draft, mutating(seed))
        if mutant is not None:
            assert set(mutant.nodes[-1].sources[:2]) == {0, 2}
            assert mutant.nodes[:3] == draft.nodes
    assert merged_layers(Draft((relu((2, 3)), relu((4,)))), mutating(0)) is None


def test_layers_are_connected_by_a_pair_that_is_new() -> None:
    add = mutating(0)
    draft = added_layers(Draft((relu((2, 3)), relu((4, 5)))), add)
    assert draft is not None
    for seed in range(10):
        context = mutating(seed)
        before = set(draft_pairs(draft))
        context.coverage.add(draft, taken(draft))
        mutant = connected_layers(draft, context)
        assert mutant is not None
        assert set(draft_pairs(mutant)) - before


def test_nodes_that_feed_each_other_in_a_ring_have_no_order() -> None:
    nodes = (relu((2,), 1), relu((2,)))
    assert reordered(nodes) == (relu((2,)), relu((2,), 0))
    assert reordered((relu((2,), 1), relu((2,), 0))) is None


def test_the_oldest_nodes_go_and_what_read_them_is_given() -> None:
    draft = without_oldest(relu_chain([(2, 3)] * (MOST_NODES + 2)))
    assert len(draft.nodes) == MOST_NODES
    assert [node.sources for node in draft.nodes] == [
        (FRESH,),
        *[(at,) for at in range(MOST_NODES - 1)],
    ]


def _cover(context: MutationContext, cell: tuple[str, str]) -> None:
    draft = Draft((relu((2, 3)),))
    node = draft.nodes[0]
    other = type(node)(*cell, {}, 0, ())
    context.coverage.add(Draft((other,)), taken(Draft((other,))))
