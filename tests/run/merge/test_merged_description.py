"""What a merged run says of itself: how it ended, what looks wrong, and where it comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edgeflare.core.arm import Arm
from edgeflare.run.merge.merge_runs import merge_runs
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

pytestmark = pytest.mark.slow


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


def test_a_part_with_a_screening_warns_of_all_seeds_already(parts: MergedParts) -> None:
    noted = about_of(parts.single(0))
    assert noted["warnings"] == about_of(parts.screening)["warnings"]
    assert noted["screening"]


@pytest.mark.parametrize("stopped_by", ["interrupt", "total-time", "infrastructure", "killed"])
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


def test_it_says_where_its_seeds_were_searched(parts: MergedParts, tmp_path: Path) -> None:
    first = merged(parts.singles[:2], tmp_path / "first")
    run = merged([first, *parts.singles[2:]], tmp_path / "merged")
    noted = about_of(run)["parts"]
    assert [part["run"] for part in noted] == [str(path) for path in (first, *parts.singles[2:])]
    assert [part["seed_ids"] for part in noted] == ["0:2", *map(str, range(2, SEEDS))]
    assert [part["run"] for part in noted[0]["parts"]] == [str(one) for one in parts.singles[:2]]
    assert all(part["devices"] and part["stopped_by"] is None for part in noted)


def test_times_are_those_of_all_parts(parts: MergedParts, tmp_path: Path) -> None:
    paths = parts.singles
    document = merge_runs(paths, tmp_path / "merged", overwrite=False)
    alone = [merge_runs([path], tmp_path / path.name, overwrite=False).totals for path in paths]
    times = [f"{one}_seconds" for one in ("wall", "refine", "verify", "device_busy", "shrink")]
    for key in (*times, "refined", "refine_queries", "refine_device_queries", "shrink_queries"):
        spent = [getattr(totals, key) or 0 for totals in alone]  # some have nothing to refine
        assert getattr(document.totals, key) == pytest.approx(sum(spent))
        assert sum(spent) > 0
