from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, drafted
from edgeflare.conform.drafts.node_graphs import NodeGraphs
from edgeflare.conform.findings.fewest_operators import (
    fewest_operators,
    joined_runs,
    parts_of_cells,
)
from edgeflare.conform.findings.shrink_candidate import ShrinkCandidate, ShrinkContext

NAMES = ("ABS", "NEG", "RELU", "ABS", "NEG", "TANH", "RELU", "NEG")


def chain(*operators: str) -> tuple[ShrinkCandidate, ShrinkContext]:
    """Return operators each fed by the one before, with two rows of values."""
    draft = Draft(
        tuple(
            DraftNode(operator, "float32", {"shape": (2, 3)}, at, (at - 1 if at else FRESH,))
            for at, operator in enumerate(operators)
        )
    )
    values = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    context = ShrinkContext({}, np.random.default_rng(0), NodeGraphs())
    return ShrinkCandidate(draft, (values,), 2), context


def names(one: ShrinkCandidate) -> list[str]:
    return [node.operator for node in one.draft.nodes]


def fewest(
    fails: Callable[[list[str]], bool], *operators: str, most_runs: int = 150
) -> tuple[list[str], int]:
    """Return what is left of operators, and how many models the device ran."""
    asking, runs = fewest_operators(*chain(*operators), most_runs), 0
    told: list[bool] | None = None
    while True:
        try:
            tried = next(asking) if told is None else asking.send(told)
        except StopIteration as end:
            return names(end.value), runs
        assert tried
        for one in tried:
            drafted(one.draft)
            assert len(one.draft.nodes) > 1
        runs += sum(map(joined_runs, tried))
        told = [fails(names(one)) for one in tried]


def test_a_pair_of_which_one_feeds_the_other_is_found_at_once() -> None:
    left, runs = fewest(lambda some: some == ["NEG", "TANH"], *NAMES)
    assert left == ["NEG", "TANH"]
    assert runs == 3 * 7


@pytest.mark.parametrize("needed", [["ABS", "TANH"], ["NEG", "RELU", "TANH"]])
def test_operators_that_no_pair_shows_are_left_out_one_by_one(needed: list[str]) -> None:
    def fails(some: list[str]) -> bool:
        rest = iter(some)
        return len(some) > 2 and all(one in rest for one in needed)

    left, runs = fewest(fails, "ABS", "NEG", "RELU", "TANH")
    assert len(left) == 3
    assert set(needed) <= set(left)
    assert runs <= 150


def test_two_operators_are_left_as_they_are() -> None:
    assert fewest(lambda _: True, "RELU", "NEG") == (["RELU", "NEG"], 0)


@pytest.mark.parametrize("most", [0, 2, 20, 100])
def test_the_device_runs_no_more_models_than_are_allowed(most: int) -> None:
    _, runs = fewest(lambda some: len(some) > 2, *NAMES, most_runs=most)
    assert runs <= most


def test_parts_of_operators_that_feed_each_other_come_first() -> None:
    one, context = chain("NEG", "RELU", "ABS", "RELU", "NEG")
    cells = [("RELU", "float32"), ("NEG", "float32")]
    first, second = parts_of_cells(one, cells, context)
    assert names(first) == names(second) == ["RELU", "NEG"]
    assert [part.draft.nodes[1].sources for part in (first, second)] == [(0,), (FRESH,)]
    assert parts_of_cells(one, cells[::-1] * 2, context) == []
