"""Which cells can feed which."""

from __future__ import annotations

from drafting import check_sound, few_cells
from edgeflare.conform.drafts.cell_pairs import allowed_pairs, example_pair, operand_count
from edgeflare.conform.drafts.cells import chosen_cells
from edgeflare.conform.drafts.draft import Draft


def test_each_allowed_pair_has_an_example_that_can_be_built() -> None:
    pairs = allowed_pairs(few_cells())
    for first, second in pairs:
        nodes = example_pair(first, second)
        assert nodes is not None
        assert (nodes[0].cell, nodes[1].cell) == (first, second)
        assert nodes[1].sources[0] == 0
        check_sound(Draft(nodes))


def test_cells_of_one_type_feed_each_other_and_those_of_others_do_not() -> None:
    pairs = set(allowed_pairs(few_cells()))
    relu, add = ("RELU", "float32"), ("ADD", "float32")
    assert {(relu, add), (add, relu), (relu, relu)} <= pairs
    assert (relu, ("RELU", "int8")) not in pairs
    assert not any(first[1] != second[1] for first, second in pairs)


def test_an_operator_of_one_type_feeds_those_of_the_type_of_its_result() -> None:
    pairs = set(allowed_pairs(chosen_cells(("ARG_MAX", "RESHAPE"), ("float32", "int32"))))
    indexes, moved = ("ARG_MAX", "float32"), ("RESHAPE", "int32")
    assert (indexes, moved) in pairs
    assert (moved, indexes) not in pairs


def test_operands_that_are_given_are_counted() -> None:
    assert operand_count(("RELU", "float32")) == 1
    assert operand_count(("CONCATENATION", "int8")) > 1
