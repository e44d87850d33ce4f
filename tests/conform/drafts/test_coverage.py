"""Which cells and pairs there are, and what of them counts as covered, new and refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drafting import check_sound, few_cells, few_covered, refused, relu_chain, taken
from edgeflare.conform.drafts.cell_pairs import allowed_pairs, example_pair
from edgeflare.conform.drafts.cells import (
    Cell,
    cell_buckets,
    chosen_cells,
    drawn_configuration,
    with_setting,
)
from edgeflare.conform.drafts.coverage import (
    BucketCombinations,
    Coverage,
    draft_pairs,
    node_buckets,
)
from edgeflare.conform.drafts.draft import Draft, DraftNode, DraftOutcome
from edgeflare.conform.drafts.drawing import UniformDrawing
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.errors import UserError

RELU = ("RELU", "float32")
CONV = ("CONV_2D", "int8")


def test_operators_and_types_are_chosen() -> None:
    cells = chosen_cells()
    types = sum(len(one.types) for one in known_operators().values())
    assert len(cells) == len(set(cells)) == types
    assert chosen_cells(("RELU", "ADD"), ("int8", "float32")) == (
        ("ADD", "float32"),
        ("ADD", "int8"),
        ("RELU", "float32"),
        ("RELU", "int8"),
    )


@pytest.mark.parametrize(
    ("operators", "types", "words"),
    [
        (("CONV_9D",), (), "no operator CONV_9D"),
        ((), ("float8",), "no type float8"),
        (("RELU",), ("bool",), "RELU does not exist in bool"),
        (("RELU",), ("float32", "bool"), "none of RELU exists in bool"),
    ],
)
def test_what_does_not_exist_is_named(
    operators: tuple[str, ...], types: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UserError, match=words) as raised:
        chosen_cells(operators, types)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("cell", few_cells(), ids=" ".join)
def test_what_is_drawn_is_valid(cell: Cell) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = drawn_configuration(cell, rng)
        assert drawn is not None
        assert known_operators()[cell[0]].invalid(cell[1], drawn) is None


def test_what_depends_on_a_setting_follows_it() -> None:
    configuration = {"shape": (2, 3), "perm": (1, 0)}
    longer = with_setting(("TRANSPOSE", "float32"), configuration, "shape", (2, 3, 4))
    assert longer is not None
    assert longer["shape"] == (2, 3, 4)
    assert sorted(longer["perm"]) == [0, 1, 2]  # type: ignore[arg-type]
    assert with_setting(RELU, {"shape": (2,)}, "shape", (2, -3)) is None


def test_each_allowed_pair_has_an_example_that_can_be_built() -> None:
    for first, second in allowed_pairs(few_cells()):
        nodes = example_pair(first, second)
        assert nodes is not None
        assert (nodes[0].cell, nodes[1].cell) == (first, second)
        assert nodes[1].sources[0] == 0
        check_sound(Draft(nodes))


def test_cells_feed_those_of_the_type_of_their_result() -> None:
    pairs, add = set(allowed_pairs(few_cells())), ("ADD", "float32")
    assert {(RELU, add), (add, RELU), (RELU, RELU)} <= pairs
    assert not any(first[1] != second[1] for first, second in pairs)
    pairs = set(allowed_pairs(chosen_cells(("ARG_MAX", "RESHAPE"), ("float32", "int32"))))
    indexes, moved = ("ARG_MAX", "float32"), ("RESHAPE", "int32")
    assert (indexes, moved) in pairs
    assert (moved, indexes) not in pairs


def test_pairs_of_buckets_of_a_cell_are_new_once() -> None:
    combinations = BucketCombinations()
    configuration = drawn_configuration(CONV, np.random.default_rng(0))
    assert configuration is not None
    node = DraftNode(*CONV, configuration, 0, ())
    buckets = len(list(cell_buckets(CONV, configuration)))
    combinations.add(replace(node, type="uint8"))
    assert combinations.new(node) == buckets * (buckets - 1) // 2
    combinations.add(node)
    assert combinations.new(node) == 0
    other = "NONE" if configuration["activation"] != "NONE" else "RELU"
    changed = replace(node, configuration={**configuration, "activation": other})
    assert combinations.new(changed) == buckets - 1


def test_a_model_covers_its_cells_buckets_and_pairs() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3), (2, 3)])
    assert list(draft_pairs(draft)) == [(RELU, RELU)]
    assert list(node_buckets(draft.nodes[0])) == [(*RELU, "shape", "rank 2")]
    assert coverage.diverse(draft) == 3
    coverage.add(draft, taken(draft))
    assert coverage.diverse(draft) == 0
    figures = coverage.figures()
    assert [figures[one].covered for one in ("cells", "buckets", "pairs")] == [1, 1, 1]


def test_what_is_expected_is_not_new_until_the_device_refused_it() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3)])
    coverage.expect(draft)
    assert coverage.diverse(draft) == 0
    coverage.settle(draft, refused(draft))
    assert coverage.diverse(draft) == 2
    assert coverage.figures()["cells"].covered == 0


def test_what_is_only_ever_refused_is_left_out() -> None:
    coverage = few_covered()
    before = {name: one.known - one.refused for name, one in coverage.figures().items()}
    for _ in range(3):
        coverage.add(relu_chain([(2, 3)]), refused(relu_chain([(2, 3)])))
    after = {name: one.known - one.refused for name, one in coverage.figures().items()}
    assert coverage.is_refused(RELU)
    assert after["cells"] == before["cells"] - 1
    # With the cell go all of its buckets, and the pairs that it belongs to.
    assert before["buckets"] - after["buckets"] == len(Coverage([RELU]).new_buckets(RELU))
    assert before["pairs"] - after["pairs"] == sum(RELU in pair for pair in coverage.pairs)


def test_a_bucket_that_is_refused_leaves_its_cell() -> None:
    coverage = few_covered()
    good, bad = relu_chain([(2, 3)]), relu_chain([(0,)])
    coverage.add(good, taken(good))
    for _ in range(3):
        coverage.add(bad, refused(bad))
    assert not coverage.is_refused(RELU)
    assert (*RELU, "shape", "a dimension of 0") not in coverage.new_buckets(RELU)
    assert coverage.figures()["buckets"].refused == 1


def test_a_pair_is_refused_by_what_became_of_the_whole() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3), (2, 3)])
    for _ in range(3):
        coverage.add(draft, DraftOutcome((True, True), whole=False))
    assert coverage.figures()["cells"].covered == 1
    assert coverage.is_refused_pair((RELU, RELU))
    assert not coverage.is_new_pair((RELU, RELU))


def test_what_is_avoided_is_not_covered_and_after_some_times_no_aim() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3), (2, 3), (2, 3)])
    bucket = (*RELU, "shape", "rank 2")
    for _ in range(3):
        assert bucket in coverage.new_buckets(RELU)
        assert coverage.is_new_pair((RELU, RELU))
        coverage.expect(draft)
        coverage.settle(draft, DraftOutcome.not_run(draft))
        coverage.avoid(draft, {1})
    assert bucket not in coverage.new_buckets(RELU)
    assert not coverage.is_new_pair((RELU, RELU))
    for figure in coverage.figures().values():
        assert (figure.covered, figure.refused) == (0, 0)


def test_what_stands_beside_a_node_that_is_avoided_stays_an_aim() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3), (4,), (4,)])
    for _ in range(3):
        coverage.avoid(draft, {0})
    assert (*RELU, "shape", "rank 2") not in coverage.new_buckets(RELU)
    assert (*RELU, "shape", "rank 1") in coverage.new_buckets(RELU)
    assert coverage.is_new_pair((RELU, RELU))


def test_what_gave_no_answer_for_want_of_an_operand_is_neither_taken_nor_refused() -> None:
    coverage, draft = few_covered(), relu_chain([(2, 3), (2, 3)])
    for _ in range(3):
        coverage.add(draft, DraftOutcome((None, None), whole=False))
    assert not coverage.is_refused(RELU)
    assert not coverage.is_refused_pair((RELU, RELU))
    assert coverage.diverse(draft) == 3
    with pytest.raises(ValueError, match="zip"):
        coverage.add(draft, DraftOutcome((), whole=True))


def test_what_nobody_asked_for_and_no_bucket_holds_counts_nowhere() -> None:
    coverage, draft = Coverage([("ABS", "float32")]), relu_chain([(2, 3)])
    assert coverage.diverse(draft) == 0
    coverage.add(draft, taken(draft))
    assert {one.covered for one in coverage.figures().values()} == {0}
    assert list(node_buckets(relu_chain([(1,) * 9]).nodes[0])) == []


@pytest.mark.slow
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1), refusals=st.floats(0, 1))
def test_figures_add_up(seed: int, refusals: float) -> None:
    coverage, rng = few_covered(), np.random.default_rng(seed)
    source = UniformDrawing(coverage, rng)
    for _ in range(4):
        drafts = source.ask(20)
        outcomes = [refused(one) if rng.random() < refusals else taken(one) for one in drafts]
        source.tell(drafts, outcomes)
    uncovered, figures = coverage.uncovered(), coverage.figures()
    for name, figure in figures.items():
        assert 0 <= figure.covered <= figure.known - figure.refused
        if name != "pairs":  # of which there are tens of thousands, so that none are listed
            left = len(getattr(uncovered, name))
            assert figure.covered + figure.refused + left == figure.known
        assert 0 <= figure.share <= 1


def test_what_is_diverse_is_what_is_added() -> None:
    """Equation 1: the items with a model, less those without it."""
    coverage = few_covered()
    drafts = UniformDrawing(few_covered(), np.random.default_rng(0)).ask(60)
    for draft in drafts:
        before = sum(one.covered for one in coverage.figures().values())
        diverse = coverage.diverse(draft)
        coverage.add(draft, taken(draft))
        after = sum(one.covered for one in coverage.figures().values())
        assert diverse == after - before
