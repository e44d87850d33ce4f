"""Runs of parts, merged, are the run of the whole: in whatever parts, order and overlaps."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from called_commands import call_here
from edgeflare.campaign.campaign import run_screening
from edgeflare.core.goal import Find, Goal
from edgeflare.core.tensor import RawBatch
from edgeflare.errors import InfrastructureError
from edgeflare.run.merge import merge_runs
from edgeflare.run.merge.merge_runs import merge_in_groups
from edgeflare.run.seed_ids import SeedIds
from edgeflare.strategies.strategy import SearchGenerator, Start
from edgeflare.strategies.strategy_registry import strategies
from laboratory import CLASSES, SIDE, Laboratory, linear
from merged_parts import PLAN, SEEDS, MergedParts, about_of, merged, search_part, small_laboratory
from run_content import content_differences, run_content
from wrapped_evaluators import WrappedEvaluator, with_outputs

pytestmark = pytest.mark.slow

few = settings(
    phases=(Phase.explicit, Phase.generate),
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Laboratory:
    """The laboratory of the parts, with a folder of its own."""
    return small_laboratory(tmp_path_factory.mktemp("laboratory"))


def new_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("merged")


def assert_whole(run: Path, parts: MergedParts) -> None:
    assert content_differences(run_content(run), parts.whole) == []


@few
@given(data=st.data())
def test_any_tree_of_merges_is_the_whole(
    parts: MergedParts, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Runs are merged to fewer ones until one is left; those that were merged may come again.

    One at most was stopped before its end, but for those that are merged with all at the end.
    """
    folder, names = new_folder(tmp_path_factory), count()
    stopped = [*parts.stopped, *parts.killed]
    unfinished = data.draw(st.lists(st.sampled_from(stopped), max_size=1))
    left = data.draw(st.permutations([*parts.singles, *unfinished]))
    used: list[Path] = []
    while len(left) > 1:
        taken = data.draw(st.integers(2, len(left)))
        again = data.draw(st.lists(st.sampled_from(used), unique=True)) if used else []
        group = data.draw(st.permutations([*left[:taken], *again]))
        run = merged(group, folder / str(next(names)))
        used += left[:taken]
        left = data.draw(st.permutations([*left[taken:], run]))
    assert_whole(left[0], parts)
    assert about_of(left[0])["stopped_by"] is None
    more = data.draw(
        st.lists(st.sampled_from([*stopped, parts.screening]), max_size=3, unique=True)
    )
    run = merged(data.draw(st.permutations([*left, *more])), folder / "last")
    assert_whole(run, parts)
    assert about_of(run)["stopped_by"] is None


@settings(few, max_examples=3)
@given(owner=st.lists(st.integers(0, 3), min_size=SEEDS, max_size=SEEDS))
def test_parts_that_are_searched_together_are_the_whole_when_merged(
    parts: MergedParts,
    fresh: Laboratory,
    tmp_path_factory: pytest.TempPathFactory,
    owner: list[int],
) -> None:
    fresh.folder = new_folder(tmp_path_factory)
    for part in set(owner):
        ids = [seed_id for seed_id in range(SEEDS) if owner[seed_id] == part]
        search_part(fresh, str(part), ids, parts.screening, **PLAN)
    assert_whole(
        merged([fresh.folder / str(part) for part in set(owner)], fresh.folder / "m"), parts
    )


@settings(few, max_examples=3)
@given(ids=st.sets(st.integers(0, SEEDS - 1), min_size=2, max_size=SEEDS - 1))
def test_what_has_not_all_seeds_is_what_a_search_of_these_makes(
    parts: MergedParts, fresh: Laboratory, tmp_path_factory: pytest.TempPathFactory, ids: set[int]
) -> None:
    fresh.folder = new_folder(tmp_path_factory)
    search_part(fresh, "searched", ids, parts.screening, **PLAN)
    run = merged([parts.single(seed_id) for seed_id in ids], fresh.folder / "merged")
    found = run_content(run)
    assert content_differences(found, run_content(fresh.folder / "searched")) == []
    assert found["document"]["plan"]["seed_ids"] == str(SeedIds.of(ids))


@few
@given(data=st.data(), others=st.sets(st.integers(0, SEEDS - 1)))
def test_a_run_that_was_stopped_goes_on_from_what_others_have_finished(
    parts: MergedParts,
    fresh: Laboratory,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    others: set[int],
) -> None:
    fresh.folder = new_folder(tmp_path_factory)
    stopped = data.draw(st.sampled_from(parts.stopped))
    runs = data.draw(st.permutations([stopped, *map(parts.single, others)]))
    run = merged(runs, fresh.folder / "merged")

    stopped_by = about_of(run)["stopped_by"]
    if stopped_by is None:  # others have finished what was left, or all seeds
        assert others
        assert_whole(run, parts)
    else:
        assert stopped_by == "interrupt"
        assert len(others) < SEEDS
    ended, ends = (
        {row[0]: row for row in content["chains"]} for content in (run_content(run), parts.whole)
    )
    assert all(ended.get(seed_id) == ends.get(seed_id) for seed_id in others)
    fresh.run("merged", resume=True, **PLAN)
    assert fresh.stopped is None
    assert_whole(run, parts)


@few
@given(data=st.data(), others=st.sets(st.integers(0, SEEDS - 1)))
def test_what_several_kills_left_is_the_whole_once_it_is_merged_and_ended(
    parts: MergedParts,
    fresh: Laboratory,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    others: set[int],
) -> None:
    fresh.folder = new_folder(tmp_path_factory)
    drawn = st.lists(st.sampled_from(parts.killed), min_size=1, max_size=3, unique=True)
    runs = [*data.draw(drawn), *map(parts.single, others)]
    one = merged(runs, fresh.folder / "one")
    other = merged(data.draw(st.permutations(runs)), fresh.folder / "other")
    assert content_differences(run_content(one), run_content(other)) == []
    fresh.run("one", resume=True, **PLAN)
    assert_whole(one, parts)


def test_screenings_of_parts_are_the_screening_when_merged(
    parts: MergedParts, fresh: Laboratory
) -> None:
    for name, ids in (("one", "0:4,7"), ("other", "4:7,8:10")):
        fresh.run(name, phases=run_screening, seed_ids=SeedIds.read(ids), **PLAN)
    run = merged([fresh.folder / "one", fresh.folder / "other"], fresh.folder / "merged")
    assert content_differences(run_content(run), run_content(parts.screening)) == []
    search_part(fresh, "part", [0], run, **PLAN)
    assert (
        content_differences(run_content(fresh.folder / "part"), run_content(parts.single(0))) == []
    )


class WrongFrom(WrappedEvaluator):
    """A device whose answers are wrong from one of its calls on."""

    call = 12

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        truth = super().submit(inputs)
        if self.calls < self.call:
            return truth
        return with_outputs(truth.result(), np.roll(truth.result().outputs, 1, axis=-1))


def test_what_a_device_that_failed_left_to_do_is_done_when_the_merged_run_goes_on(
    fresh: Laboratory,
) -> None:
    fresh.run("whole", strategy="random")
    fresh.run("good", strategy="random", seed_ids=SeedIds.read("3:6"))
    failing: dict[str, Any] = {"strategy": "random", "seed_ids": SeedIds.read("0:4,6:10")}
    with pytest.raises(InfrastructureError, match="has changed"):
        fresh.run("failed", wrap_device=WrongFrom, chains=2, **failing)
    run = merged([fresh.folder / "failed", fresh.folder / "good"], fresh.folder / "merged")
    content = run_content(run)
    assert content["document"]["stopped_by"] == "infrastructure"
    assert any("is not to be trusted" in line for line in content["document"]["warnings"])
    assert about_of(run)["health"]["devices"][0]["failed"]

    fresh.run("merged", resume=True, strategy="random")
    assert not about_of(run)["health"]["devices"][0]["failed"]
    whole = run_content(fresh.folder / "whole")
    assert content_differences(run_content(run), whole) == ["document.warnings"]


def test_parts_of_a_search_on_two_devices_are_the_whole(fresh: Laboratory) -> None:
    """Seeds go to devices by their ids, whatever part they are in."""
    rng = np.random.default_rng(1)
    weights = rng.normal(size=(SIDE * SIDE, CLASSES)).astype(np.float32)
    fresh.more_devices = (linear(weights, 0.01),)
    fresh.monitored *= 2
    whole = fresh.run("whole", **PLAN)
    deviating = {one["device"] for one in (*whole["findings"], *whole["deviating_seeds"])}
    assert len(deviating) == 2
    fresh.run("screening", phases=run_screening, **PLAN)
    for name, ids in (("even", [0, 2, 4]), ("rest", [1, 3, 5, 6, 7]), ("last", [8, 9])):
        search_part(fresh, name, ids, fresh.folder / "screening", **PLAN)
    run = merged([fresh.folder / name for name in ("rest", "last", "even")], fresh.folder / "m")
    assert content_differences(run_content(run), run_content(fresh.folder / "whole")) == []
    assert len(about_of(run)["health"]["devices"]) == 2


@pytest.mark.parametrize("group", [2, 3, 100])
def test_groups_of_any_size_are_the_whole(
    parts: MergedParts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: int
) -> None:
    monkeypatch.setattr(merge_runs, "GROUP", group)
    out = tmp_path / "new" / "merged"
    merge_in_groups([*parts.singles, *parts.stopped[:1]], out, overwrite=False)
    assert content_differences(run_content(out), parts.whole) == []
    assert list(out.parent.iterdir()) == [out]


EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
BUILT_IN = {name: one.strategy for name, one in strategies().items()}
BLACK_BOX = sorted(name for name, one in BUILT_IN.items() if not one.needs_gradients)


@pytest.fixture
def few_seeds(tmp_path: Path) -> Laboratory:
    """A laboratory of four seeds."""
    laboratory = small_laboratory(tmp_path, seeds=4)
    laboratory.plan = replace(laboratory.plan, max_queries=20, shrink=5)
    return laboratory


@pytest.mark.parametrize(
    ("strategy", "find"),
    [*((name, Find.ANY) for name in BLACK_BOX), ("boundary", Find.KERNEL), ("donor", Find.KERNEL)],
)
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
    asked = {"whole": (), "one": ("--seed-ids", "0"), "other": ("--seed-ids", "1")}
    for name, ids in asked.items():
        said = call_here(*command, "--shrink", "5", *ids, "--out", tmp_path / name)
        assert said.code == 0, said.err
    run = merged([tmp_path / "one", tmp_path / "other"], tmp_path / "merged")
    whole = run_content(tmp_path / "whole")
    assert whole["white_box"]
    assert content_differences(run_content(run), whole) == []
