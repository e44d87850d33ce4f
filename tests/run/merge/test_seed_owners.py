"""Which run says what became of a seed, and that those which both have it agree."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from merged_parts import (
    MergedParts,
    change_journal,
    copied,
    merged,
)
from run_content import content_differences, run_content

pytestmark = pytest.mark.slow

Refusal = Callable[..., str]


def found_seed(parts: MergedParts) -> int:
    """Return a seed with a finding."""
    return int(parts.whole["document"]["findings"][0]["seed_id"])


def deviating_seed(parts: MergedParts) -> int:
    """Return a seed that deviates itself."""
    return int(parts.whole["document"]["deviating_seeds"][0]["seed_id"])


def unrefined(parts: MergedParts) -> tuple[Path, int]:
    """Return a run that was stopped with a finding that is verified and not refined, and its id."""
    for run in parts.stopped:
        content = run_content(run)
        for finding in content["document"]["findings"]:
            if finding["refined"] is None:
                assert finding["verified"]
                return run, int(finding["seed_id"])
    pytest.fail("all that was found is refined")


@pytest.mark.parametrize("column", ["sha256", "kind", "operators"])
def test_findings_that_differ_are_refused_by_the_names_of_runs_and_seed(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, column: str
) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, f"UPDATE triggers SET {column} = ?", "[]")  # noqa: S608 - a constant
    said = refusal(merged, [parts.single(seed_id), other], tmp_path / "merged")
    assert f"{seed_id} (the {column} of what was found)" in said
    assert str(parts.single(seed_id)) in said
    assert str(other) in said
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("column", ["queries", "device_queries", "original_evaluations", "ties"])
def test_searches_that_took_something_else_are_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, column: str
) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, f"UPDATE chains SET {column} = {column} + 1")  # noqa: S608 - a constant
    said = refusal(merged, [parts.single(seed_id), other], tmp_path / "merged")
    assert f"{seed_id} (what its search took)" in said


def test_searches_that_took_longer_are_the_same(parts: MergedParts, tmp_path: Path) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, "UPDATE chains SET seconds = seconds + 100")
    run = merged([parts.single(seed_id), other], tmp_path / "merged")
    assert content_differences(run_content(run), run_content(parts.single(seed_id))) == []


def test_a_seed_that_deviates_in_one_run_only_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    seed_id = deviating_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, "DELETE FROM triggers")
    for runs in ([parts.single(seed_id), other], [other, parts.screening]):
        said = refusal(merged, runs, tmp_path / "merged")
        assert f"{seed_id} (whether it deviates itself)" in said


def test_a_finding_where_the_other_run_has_a_deviating_seed_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, "DELETE FROM chains")
    said = refusal(merged, [parts.single(seed_id), other], tmp_path / "merged")
    assert f"{seed_id} (whether it deviates itself)" in said


def test_two_runs_disagree_also_where_a_third_has_only_begun(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    """The third comes first in the order in which runs count."""
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, "UPDATE triggers SET sha256 = ?", 64 * "0")
    for begun in (parts.screening, parts.killed[0]):
        said = refusal(merged, [begun, other, parts.single(seed_id)], tmp_path / "merged")
        assert f"{seed_id} (the sha256 of what was found)" in said
        assert str(other) in said
        assert str(parts.single(seed_id)) in said


def test_of_many_seeds_some_are_named_and_the_others_counted(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    other = copied(parts.folder / "whole", tmp_path / "other")
    change_journal(other, "UPDATE chains SET queries = queries + 1")
    said = refusal(merged, [other, parts.folder / "whole"], tmp_path / "merged")
    searched = [row[0] for row in parts.whole["chains"]]
    assert len(searched) > 5
    assert f"{searched[4]} (what its search took) and {len(searched) - 5} more;" in said
    assert f"{searched[5]} (" not in said


@pytest.mark.parametrize("names", [("first", "second"), ("second", "first")])
def test_what_is_refined_is_taken_whichever_run_comes_first(
    parts: MergedParts, tmp_path: Path, names: tuple[str, str]
) -> None:
    """Runs of the same seeds count in the order of their names."""
    stopped, seed_id = unrefined(parts)
    runs = [
        copied(run, tmp_path / name)
        for run, name in zip((stopped, parts.folder / "whole"), names, strict=True)
    ]
    content = run_content(merged(runs, tmp_path / "merged"))
    assert content_differences(content, parts.whole) == []
    assert seed_id in {row[0] for row in content["refinements"]}


@pytest.mark.parametrize(("column", "value"), [("sha256", 64 * "0"), ("l2", -1.0), ("changed", -1)])
def test_a_finding_that_is_not_refined_has_to_be_what_the_other_refined(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, column: str, value: object
) -> None:
    stopped, seed_id = unrefined(parts)
    other = copied(stopped, tmp_path / "other")
    statement = f"UPDATE triggers SET {column} = ? WHERE seed_id = ?"  # noqa: S608 - a constant
    change_journal(other, statement, value, seed_id)
    for runs in ([parts.single(seed_id), other], [other, parts.single(seed_id)]):
        said = refusal(merged, runs, tmp_path / "merged")
        assert f"{seed_id} (what was found, before refining)" in said
