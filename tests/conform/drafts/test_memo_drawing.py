"""MEMO's loop: what is selected, what is adopted, and what is covered."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from drafting import check_sound, few_covered, refused, relu_chain, taken
from edgeflare.conform.drafts import memo_drawing
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.drafts.draft_mutation import MutationContext
from edgeflare.conform.drafts.memo_drawing import (
    MemoDrawing,
    SeedSelection,
    metropolis_hastings,
    unguided,
)
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.drafts.seed_models import drawn_seeds, model_seeds
from edgeflare.conform.drafts.uniform_drawing import drawn_node

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
