"""Whatever searches and whatever is looked for, merged parts are the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from called_commands import call_here
from edgeflare.campaign.campaign import run_screening
from edgeflare.core.goal import Find, Goal
from edgeflare.run.seed_ids import SeedIds
from edgeflare.search.strategy import SearchGenerator, Start
from edgeflare.search.strategy_registry import strategies
from laboratory import Laboratory
from merged_parts import merged, search_part, small_laboratory
from run_content import content_differences, run_content

EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
BUILT_IN = {name: one.strategy for name, one in strategies().items()}
BLACK_BOX = sorted(name for name, one in BUILT_IN.items() if not one.needs_gradients)
WHITE_BOX = sorted(name for name, one in BUILT_IN.items() if one.needs_gradients)

pytestmark = pytest.mark.slow


@pytest.fixture
def few_seeds(tmp_path: Path) -> Laboratory:
    """A laboratory of four seeds."""
    laboratory = small_laboratory(tmp_path, seeds=4)
    laboratory.plan = replace(laboratory.plan, max_queries=20, shrink=5)
    return laboratory


@pytest.mark.parametrize("find", list(Find))
@pytest.mark.parametrize("strategy", BLACK_BOX)
def test_parts_are_the_whole_and_other_seeds_are_handed_to_those_that_say_so(
    few_seeds: Laboratory, monkeypatch: pytest.MonkeyPatch, strategy: str, find: Find
) -> None:
    handed: set[int] = set()
    searches = BUILT_IN[strategy]
    search = searches.search

    def watched(self: Any, start: Start) -> SearchGenerator:
        handed.add(len(start.donors))
        return search(self, start)

    monkeypatch.setattr(searches, "search", watched)
    folder = few_seeds.folder
    asked: dict[str, Any] = {"strategy": strategy, "goal": Goal(find)}
    totals = few_seeds.run("whole", **asked)["totals"]
    assert totals["searched"] > 2
    reads = find in searches.reads_other_seeds
    assert handed == ({totals["searched"]} if reads else {0})

    if reads:
        few_seeds.run("screening", phases=run_screening, **asked)
    for name, ids in (("one", [0, 3]), ("other", [1, 2])):
        if reads:
            search_part(few_seeds, name, ids, folder / "screening", **asked)
        else:
            few_seeds.run(name, seed_ids=SeedIds.of(ids), **asked)
    assert len(handed) == 1
    run = merged([folder / "one", folder / "other"], folder / "merged")
    assert content_differences(run_content(run), run_content(folder / "whole")) == []


@pytest.mark.whitebox
def test_parts_of_a_search_by_gradients_are_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="needs the extra whitebox")
    command = ("search", EXAMPLE, "--strategy", "gradient", "--first", "2", "--fail-on", "none")
    asked: dict[str, tuple[str, ...]] = {
        "whole": (),
        "one": ("--seed-ids", "0"),
        "other": ("--seed-ids", "1"),
    }
    for name, given in asked.items():
        said = call_here(*command, "--shrink", "5", *given, "--out", tmp_path / name)
        assert said.code == 0, said.err
    run = merged([tmp_path / "one", tmp_path / "other"], tmp_path / "merged")
    whole = run_content(tmp_path / "whole")
    assert whole["white_box"]
    assert content_differences(run_content(run), whole) == []


def test_those_that_ask_for_gradients_say_that_they_read_no_other_seeds() -> None:
    assert WHITE_BOX
    assert all(not BUILT_IN[name].reads_other_seeds for name in WHITE_BOX)
