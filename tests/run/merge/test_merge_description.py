"""What a merged run says of itself: its end, warnings, parts, and the health of devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgeflare.core.query import Arm
from edgeflare.run.journal_rows import NotedHealth
from edgeflare.run.merge.merge_runs import merge_runs
from edgeflare.run.merge.run_part import UNSEEN, merged_health
from edgeflare.run.seed_ids import SeedIds
from laboratory import CLASSES, SIDE, linear
from merged_parts import (
    SEEDS,
    MergedParts,
    about_of,
    change_journal,
    copied,
    merged,
    note_about,
    small_laboratory,
)
from run_content import content_differences, run_content


@pytest.mark.slow
def test_signs_of_wrong_preprocessing_are_those_of_all_seeds(tmp_path: Path) -> None:
    """The compressed model answers all seeds alike, which parts of five seeds cannot tell."""
    laboratory = small_laboratory(tmp_path)
    laboratory.models[Arm.TWIN] = linear(np.zeros((SIDE * SIDE, CLASSES), np.float32))
    laboratory.run("whole", max_queries=2)
    for name, ids in (("one", range(5)), ("other", range(5, SEEDS))):
        document = laboratory.run(name, max_queries=2, seed_ids=SeedIds.of(ids))
        assert document["warnings"] == []
    run = merged([tmp_path / "other", tmp_path / "one"], tmp_path / "merged")
    whole = run_content(tmp_path / "whole")
    assert "outputs hardly vary over the seeds" in whole["document"]["warnings"][0]
    assert content_differences(run_content(run), whole) == []


@pytest.mark.slow
def test_a_part_with_a_screening_warns_of_all_seeds_already(parts: MergedParts) -> None:
    noted = about_of(parts.single(0))
    assert noted["warnings"] == about_of(parts.screening)["warnings"]
    assert noted["screening"]


@pytest.mark.slow
@pytest.mark.parametrize("stopped_by", ["interrupt", "time-limit", "infrastructure", "killed"])
def test_it_is_stopped_by_what_stopped_a_part_that_no_other_finished(
    parts: MergedParts, tmp_path: Path, stopped_by: str
) -> None:
    seed_id = parts.whole["document"]["findings"][0]["seed_id"]
    part = copied(parts.single(seed_id), tmp_path / "part")
    change_journal(part, "DELETE FROM answers WHERE role = 'verify' AND n > 0")
    note_about(part, stopped_by=stopped_by)
    others = [one for one in parts.singles if one != parts.single(seed_id)]
    run = merged([*others, part], tmp_path / "merged")
    assert about_of(run)["stopped_by"] == stopped_by
    again = merged([run, parts.single(seed_id)], tmp_path / "again")
    assert content_differences(run_content(again), parts.whole) == []


@pytest.mark.slow
def test_what_belongs_to_no_seed_is_left_to_be_done(parts: MergedParts, tmp_path: Path) -> None:
    runs = []
    for seed_id, single in enumerate(parts.singles):
        runs.append(copied(single, tmp_path / str(seed_id)))
        plan = {**about_of(single)["plan"], "coverage": [0.5]}
        note_about(runs[-1], plan=plan, coverage=None)
    some = merge_runs(runs[1:], tmp_path / "some", overwrite=False)
    assert some.stopped_by is None
    document = merge_runs([tmp_path / "some", runs[0]], tmp_path / "merged", overwrite=False)
    assert document.stopped_by == "merge"
    again = merge_runs([tmp_path / "merged", runs[1]], tmp_path / "again", overwrite=False)
    assert again.stopped_by == "merge"


@pytest.mark.slow
def test_it_says_where_its_seeds_were_searched(parts: MergedParts, tmp_path: Path) -> None:
    first = merged(parts.singles[:2], tmp_path / "first")
    run = merged([first, *parts.singles[2:]], tmp_path / "merged")
    noted = about_of(run)["parts"]
    assert [part["run"] for part in noted] == [str(path) for path in (first, *parts.singles[2:])]
    assert [part["seed_ids"] for part in noted] == ["0:2", *map(str, range(2, SEEDS))]
    assert [part["run"] for part in noted[0]["parts"]] == [str(one) for one in parts.singles[:2]]
    assert all(part["devices"] and part["stopped_by"] is None for part in noted)


@pytest.mark.slow
def test_times_are_those_of_all_parts(parts: MergedParts, tmp_path: Path) -> None:
    paths = parts.singles
    document = merge_runs(paths, tmp_path / "merged", overwrite=False)
    alone = [merge_runs([path], tmp_path / path.name, overwrite=False).totals for path in paths]
    times = [f"{one}_seconds" for one in ("wall", "refine", "verify", "device_busy")]
    for key in (*times, "refined", "refine_queries", "refine_device_queries", "shrink_queries"):
        spent = [getattr(totals, key) or 0 for totals in alone]  # some have nothing to refine
        assert getattr(document.totals, key) == pytest.approx(sum(spent))
        assert sum(spent) > 0
    # Of refining, shrinking has the share that it has of the evaluations: a mean over the parts.
    *shares, merged = (
        (totals.shrink_seconds or 0.0) / totals.refine_seconds
        for totals in (*alone, document.totals)
        if totals.refine_seconds
    )
    assert 0.0 < min(shares) - 1e-9 <= merged <= max(shares) + 1e-9


celsius = st.integers(-20, 120).map(float)


@st.composite
def ranges(draw: st.DrawFn) -> dict[str, float]:
    seen = draw(st.lists(celsius, min_size=1, max_size=4))
    return {"first": seen[0], "min": min(seen), "max": max(seen), "last": seen[-1]}


readings = st.fixed_dictionaries(
    {
        "temperatures_celsius": st.dictionaries(st.sampled_from(["cpu", "skin"]), ranges()),
        "frequencies_mhz": st.dictionaries(st.sampled_from(["cpu0"]), ranges()),
        "canaries": st.dictionaries(
            st.sampled_from(["same", "varied", "changed"]), st.integers(1, 9)
        ),
        "pauses": st.integers(0, 9),
        "paused_seconds": st.integers(0, 99).map(float),
        "failed": st.booleans(),
    }
)

quick = settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])

noted = st.fixed_dictionaries(
    {
        "devices": st.lists(readings, min_size=2, max_size=2),
        "warnings": st.lists(st.sampled_from(["hot", "varied"]), unique=True),
    }
)


@pytest.mark.slow
@quick
@given(runs=st.lists(noted, min_size=1, max_size=4))
def test_counts_add_up_and_extremes_are_those_of_all(runs: list[NotedHealth]) -> None:
    found = merged_health(runs)
    for at, device in enumerate(found["devices"]):
        seen = [run["devices"][at] for run in runs]
        for key in ("pauses", "paused_seconds"):
            assert device[key] == sum(one[key] for one in seen)
        for result in ("same", "varied", "changed"):
            counted = sum(one["canaries"].get(result, 0) for one in seen)
            assert device["canaries"].get(result, 0) == counted
        assert device["failed"] == any(one["failed"] for one in seen)
        for zone, range_ in device["temperatures_celsius"].items():
            all_ = [
                one["temperatures_celsius"][zone]
                for one in seen
                if zone in one["temperatures_celsius"]
            ]
            assert range_ == {
                "first": all_[0]["first"],
                "min": min(one["min"] for one in all_),
                "max": max(one["max"] for one in all_),
                "last": all_[-1]["last"],
            }
        assert set(device["temperatures_celsius"]) == {
            z for one in seen for z in one["temperatures_celsius"]
        }
    assert set(found["warnings"]) == {line for run in runs for line in run["warnings"]}
    assert len(set(found["warnings"])) == len(found["warnings"])


@quick
@given(runs=st.lists(noted, min_size=2, max_size=4), at=st.integers(1, 3))
def test_merging_what_was_merged_is_merging_all(runs: list[NotedHealth], at: int) -> None:
    parts = [merged_health(runs[:at]), merged_health(runs[at:])]
    assert merged_health(parts) == merged_health(runs)


@quick
@given(run=noted)
def test_a_run_of_which_nothing_was_seen_adds_nothing(run: NotedHealth) -> None:
    assert merged_health([UNSEEN, run]) == merged_health([run]) == run
