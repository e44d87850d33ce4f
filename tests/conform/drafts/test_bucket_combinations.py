from __future__ import annotations

from dataclasses import replace

import numpy as np

from edgeflare.conform.drafts.bucket_combinations import BucketCombinations
from edgeflare.conform.drafts.cells import cell_buckets, drawn_configuration
from edgeflare.conform.drafts.draft import DraftNode

CELL = ("CONV_2D", "int8")


def node(seed: int) -> DraftNode:
    configuration = drawn_configuration(CELL, np.random.default_rng(seed))
    assert configuration is not None
    return DraftNode(*CELL, configuration, 0, ())


def test_of_a_first_node_all_pairs_of_its_buckets_are_new_and_then_none() -> None:
    combinations, one = BucketCombinations(), node(0)
    buckets = len(list(cell_buckets(CELL, one.configuration)))
    assert combinations.new(one) == buckets * (buckets - 1) // 2
    combinations.add(one)
    assert combinations.new(one) == 0


def test_another_setting_makes_new_what_it_is_combined_with() -> None:
    combinations, one = BucketCombinations(), node(0)
    combinations.add(one)
    other = "NONE" if one.configuration["activation"] != "NONE" else "RELU"
    changed = replace(one, configuration={**one.configuration, "activation": other})
    assert combinations.new(changed) == len(list(cell_buckets(CELL, one.configuration))) - 1


def test_cells_have_combinations_of_their_own() -> None:
    combinations, one = BucketCombinations(), node(0)
    combinations.add(replace(one, type="uint8"))
    assert combinations.new(one) > 0
