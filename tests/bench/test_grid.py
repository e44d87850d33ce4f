from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeflare.bench.grid import Grid, check_pairs
from edgeflare.core.goal import Find, Goal
from edgeflare.errors import UserError
from edgeflare.models.pair import Pair
from edgeflare.run.plan import Plan

PLAN = Plan("dflare-r", Goal(Find.KERNEL), ("board",), rng_seed=9, max_queries=50)
GRID = Grid(("dflare", "random"), (3, 0), "dflare", PLAN)


def pair(name: str) -> Pair:
    return Pair(name, None, Path("q.tflite"), Path("seeds.npz"))


def test_a_grid_has_a_campaign_for_each_strategy_and_run_seed() -> None:
    cells = list(GRID.cells(pair("lenet")))
    assert [cell.run.as_posix() for cell in cells] == [
        "lenet/dflare-3",
        "lenet/dflare-0",
        "lenet/random-3",
        "lenet/random-0",
    ]
    for cell in cells:
        assert replace(cell.plan, strategy="dflare-r", rng_seed=9) == PLAN
    assert GRID.device == "board"


def test_one_campaign_alone_is_the_very_one_of_the_whole_grid(refusal: Callable[..., str]) -> None:
    pairs = [pair("lenet"), pair("resnet")]
    alone = GRID.with_only("resnet/random-3", pairs)
    assert [list(alone.cells(one)) for one in pairs] == [[], [list(GRID.cells(pairs[1]))[2]]]
    said = refusal(GRID.with_only, "resnet/randon-3", pairs)
    assert "did you mean 'resnet/random-3'" in said
    assert "one of the 8, such as lenet/dflare-3" in said


def test_each_campaign_has_the_parameters_of_its_strategy() -> None:
    grid = replace(GRID, parameters={"dflare": {"novelty_threshold": 0.25}})
    parameters = {cell.run.name: dict(cell.plan.parameters) for cell in grid.cells(pair("lenet"))}
    assert parameters["dflare-3"] == parameters["dflare-0"] == {"novelty_threshold": 0.25}
    assert parameters["random-3"] == {}
    assert grid.to_json()["plan"]["parameters"] == {"dflare": {"novelty_threshold": 0.25}}
    assert "parameters" not in GRID.to_json()["plan"]


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"strategies": ("dflare", "rando")}, "did you mean 'random'"),
        ({"strategies": ("dflare", "dflare")}, "--strategy dflare: named 2 times"),
        ({"strategies": ()}, "--strategy: there is none"),
        ({"rng_seeds": (1, 1)}, "--rng-seeds 1: named 2 times"),
        ({"baseline": "dflare-r"}, "--baseline dflare-r is none of"),
    ],
)
def test_a_grid_that_cannot_be_run_is_refused(changes: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        replace(GRID, **changes)


def test_two_pairs_of_one_name_are_refused() -> None:
    check_pairs([pair("a"), pair("b")])
    with pytest.raises(UserError, match="named 2 times"):
        check_pairs([pair("a b"), pair("a/b")])


@pytest.mark.parametrize("name", ["lenet5", "../../etc", "a/b", "..", "Modèle 8 bits", ""])
def test_the_runs_of_a_pair_stay_in_the_folder_of_the_bench(name: str) -> None:
    folder = pair(name).folder_name
    assert Path(folder).name == folder
    assert folder not in ("", ".", "..")
