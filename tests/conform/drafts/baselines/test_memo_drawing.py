"""MEMO: its seven mutations, and its loop: what is selected, adopted, and covered."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from drafting import check_sound, few_cells, few_covered, mutating, refused, relu, relu_chain, taken
from edgeflare.conform.drafts.baselines import memo_drawing
from edgeflare.conform.drafts.baselines.memo_drawing import (
    MUTATIONS,
    MemoDrawing,
    SeedSelection,
    changed_modes,
    changed_shapes,
    drawn_seeds,
    metropolis_hastings,
    model_seeds,
    special_input,
    unguided,
)
from edgeflare.conform.drafts.baselines.structure_mutations import (
    added_layers,
    added_reshaping_layers,
    connected_layers,
    merged_layers,
)
from edgeflare.conform.drafts.cells import cell_parameters
from edgeflare.conform.drafts.coverage import draft_pairs, node_buckets
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, NodeGraphs
from edgeflare.conform.drafts.draft_mutation import (
    MOST_NODES,
    MutationContext,
    reordered,
    without_oldest,
)
from edgeflare.conform.drafts.drawing import drawn_node


@pytest.mark.parametrize("operator", ["ADD", "MEAN"])
@pytest.mark.parametrize("seed", range(5))
def test_modes_change_and_shapes_stay(operator: str, seed: int) -> None:
    draft = Draft((_drawn(operator, "int8", seed),))
    mutant = changed_modes(draft, mutating(seed))
    assert mutant is not None
    check_sound(mutant)
    shapes = [
        parameter.name
        for parameter in cell_parameters((operator, "int8"))
        if parameter.kind == "shape"
    ]
    for name in shapes:
        assert mutant.nodes[0].configuration[name] == draft.nodes[0].configuration[name]
    assert changed_modes(relu_chain([(2, 3)]), mutating(0)) is None


def test_a_mode_is_one_that_was_not_invoked_before() -> None:
    for seed in range(10):
        context = mutating(seed)
        draft = Draft((_drawn("MEAN", "float32", seed),))
        context.coverage.add(draft, taken(draft))
        mutant = changed_modes(draft, context)
        assert mutant is not None
        new = set(node_buckets(mutant.nodes[0])) - set(node_buckets(draft.nodes[0]))
        assert {bucket[2] for bucket in new} == {"keep_dims"}


def test_what_follows_a_changed_shape_follows_it() -> None:
    changed = 0
    for seed in range(10):
        draft = relu_chain([(2, 3)] * 3)
        mutant = changed_shapes(draft, mutating(seed))
        if mutant is not None:
            check_sound(mutant)
            shapes = {node.configuration["shape"] for node in mutant.nodes}
            # Fed layers have the shape of what feeds them, so only the first one's can change.
            assert len(shapes) == 1
            assert shapes != {(2, 3)}
            changed += 1
    assert changed


def test_a_layer_is_given_a_tensor_in_which_nan_can_be() -> None:
    draft = relu_chain([(2, 3)] * 3)
    for seed in range(5):
        mutant = special_input(draft, mutating(seed))
        assert mutant is not None
        check_sound(mutant)
        assert sum(node.sources == (FRESH,) for node in mutant.nodes) == 2
    assert special_input(Draft((relu((2, 3)),)), mutating(0)) is None
    one = _drawn("RESHAPE", "int8", 0)
    settings_ = {**one.configuration, "shape": NodeGraphs().result(one).shape}
    quantized = Draft((one, DraftNode("RESHAPE", "int8", settings_, 0, (0,))))
    assert special_input(quantized, mutating(0)) is None


def _drawn(operator: str, type_: str, seed: int) -> DraftNode:
    context = mutating(seed)
    node = drawn_node((operator, type_), context.coverage, context.graphs, context.rng)
    assert node is not None
    return node


seeds = st.integers(0, 2**32 - 1)


@settings(max_examples=25)
@given(seed=seeds, names=st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=8))
def test_mutants_of_mutants_are_sound_and_drawn_by_the_seed(seed: int, names: list[str]) -> None:
    assert _mutants(seed, names) == _mutants(seed, names)


def _mutants(seed: int, names: list[str]) -> list[Draft]:
    context, made = mutating(seed), list[Draft]()
    draft = relu_chain([(2, 3), (2, 3)])
    for name in names:
        mutant = MUTATIONS[name](draft, context)
        if mutant is not None:
            check_sound(mutant)
            assert 1 <= len(mutant.nodes) <= MOST_NODES
            assert mutant != draft
            made.append(mutant)
            draft = mutant
    return made


@pytest.mark.parametrize("seed", range(5))
def test_new_layers_are_cells_that_were_never_invoked(seed: int) -> None:
    context, draft = mutating(seed), relu_chain([(2, 3)])
    for cell in few_cells():
        if cell[0] not in {"ABS", "MEAN"}:
            covered = Draft((DraftNode(*cell, {}, 0, ()),))
            context.coverage.add(covered, taken(covered))
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


FITNESS: NDArray[np.float64] = np.linspace(40, 1, 40)


@pytest.mark.parametrize(
    ("select", "last", "odds"),
    [(metropolis_hastings, 0, 0.95), (metropolis_hastings, 39, 1.0), (unguided, 0, 1.0)],
)
def test_seeds_are_selected_as_equation_4_says(
    select: SeedSelection, last: int, odds: float
) -> None:
    """From the fittest, one k places behind is accepted (1 - p)^k times as often as itself.

    From the least fit, and without guidance, whatever is proposed is taken.
    """
    rng = np.random.default_rng(0)
    selected = [select(FITNESS, last, rng) for _ in range(20_000)]
    expected = odds ** np.arange(40)
    shares = np.bincount(selected, minlength=40) / len(selected)
    assert shares == pytest.approx(expected / expected.sum(), abs=0.006)


def test_models_come_first_and_then_sound_mutants() -> None:
    seeds = [relu_chain([(2, 3)]), relu_chain([(4,), (4,)])]
    source = _source(seeds)
    drafts = source.ask(60)
    assert drafts[:2] == seeds
    assert len(drafts) == 60
    for draft in drafts:
        check_sound(draft)


def test_the_same_generator_and_outcomes_draw_the_same() -> None:
    drawn = []
    for _ in range(2):
        source = _source([relu_chain([(2, 3)]), relu_chain([(4,)])])
        first = source.ask(25)
        outcomes = [refused(one) if at % 3 else taken(one) for at, one in enumerate(first)]
        source.tell(first, outcomes)
        drawn.append(first + source.ask(25))
    assert drawn[0] == drawn[1]


def test_a_diverse_mutant_takes_the_place_of_its_model_until_the_device_refuses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Lines 8 to 11 of Algorithm 2."""
    mutated: list[Draft] = []

    def noted(draft: Draft, context: MutationContext) -> Draft:
        mutated.append(draft)
        return next_cell(draft, context)

    monkeypatch.setattr(memo_drawing, "MUTATIONS", {"NLA": noted})
    source = _source([relu_chain([(2, 3)])])
    seed, one, two, three, four = source.ask(5)
    assert mutated == [seed, one, two, three]
    source.tell([two, four], [taken(two), refused(four)])
    (five,) = source.ask(1)
    assert mutated[-1] is three
    source.tell([three, five], [refused(three), refused(five)])
    source.ask(1)
    assert mutated[-1] is two


def test_a_seed_is_as_fit_as_equations_2_and_3_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scores of its model and of its mutation, over how often they were selected, and one."""
    seeds, chosen = [relu_chain([(2, 3)]), relu_chain([(4,)])], iter((0, 0, 3, 0))
    seen: list[NDArray[np.float64]] = []

    def selected(fitness: NDArray[np.float64], _last: int, _rng: np.random.Generator) -> int:
        seen.append(fitness.reshape(2, 2))
        return next(chosen)

    def nothing(_draft: Draft, _context: MutationContext) -> None:
        return None

    monkeypatch.setattr(memo_drawing, "MUTATIONS", {"NLA": next_cell, "NaN": nothing})
    source = _source(seeds, selected)
    *_, last = source.ask(5)
    assert seen[0].tolist() == [[0, 0], [0, 0]]
    assert seen[1].tolist() == [[2 / 2, 1 / 1], [1 / 1, 0]]
    assert seen[3].tolist() == [[4 / 3, 2 / 1], [2 / 1, 0 / 2]]
    source.tell([last], [refused(last)])
    chosen = iter((0,))
    source.ask(1)
    assert seen[4].tolist() == [[4 / 4, 2 / 1], [2 / 1, 0 / 2]]


def test_a_mutant_that_covers_nothing_new_replaces_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutated: list[Draft] = []

    def copied(draft: Draft, _context: MutationContext) -> Draft:
        mutated.append(draft)
        return Draft(draft.nodes)

    monkeypatch.setattr(memo_drawing, "MUTATIONS", {"NLA": copied})
    seed, *_ = _source([relu_chain([(2, 3)])]).ask(4)
    assert all(one is seed for one in mutated)


@pytest.mark.slow
def test_mutants_cover_more_than_the_models_that_they_are_made_from() -> None:
    coverage, graphs, rng = few_covered(), NodeGraphs(), np.random.default_rng(0)
    seeds = drawn_seeds(5, MutationContext(coverage, graphs, rng))
    source = MemoDrawing(seeds, coverage, graphs, rng)
    shares = []
    for _ in range(3):
        drafts = source.ask(60)
        source.tell(drafts, list(map(taken, drafts)))
        shares.append({name: one.share for name, one in coverage.figures().items()})
    assert shares[-1]["cells"] == 1
    assert shares[-1]["pairs"] > shares[0]["pairs"]
    assert shares[-1]["buckets"] > shares[0]["buckets"]


def test_a_long_model_is_parted_into_seeds() -> None:
    parts = model_seeds(relu_chain([(2, 3)] * 20))
    assert [len(part.nodes) for part in parts] == [8, 8, 4]
    for part in parts:
        check_sound(part)


def next_cell(_draft: Draft, context: MutationContext) -> Draft:
    """A mutation that always covers something new."""
    cell = context.coverage.new_cells()[0]
    node = drawn_node(cell, context.coverage, context.graphs, context.rng)
    assert node is not None
    return Draft((node,))


def _source(seeds: list[Draft], select: SeedSelection = metropolis_hastings) -> MemoDrawing:
    return MemoDrawing(seeds, few_covered(), NodeGraphs(), np.random.default_rng(1), select)
