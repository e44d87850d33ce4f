"""Runs that are no parts of one, disagree, or are damaged: refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from documents import HOST
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import begin_list
from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.merge.merge_runs import merge_runs
from edgeflare.run.run_header import OtherHostError
from kills import Kill, killed_at_each, put_notes, require_notes
from merged_parts import MergedParts, about_of, change_journal, copied, merged, note_about
from run_content import content_differences, run_content

pytestmark = pytest.mark.slow
Refusal = Callable[..., str]
About = dict[str, Any]


def another_plan(**fields: Any) -> Callable[[About], About]:
    return lambda about: {"plan": {**about["plan"], **fields}}


def another_pair(about: About) -> About:
    return {"pair": {**about["pair"], "name": "other", "fingerprint": "1"}}


def other_kernels(about: About) -> About:
    (device,) = about["devices"]
    return {"devices": [{**device, "provenance": {**device["provenance"], "kernels": "xnnpack"}}]}


def other_outputs(about: About) -> About:
    device = about["arms"]["device"]
    read = {**device, "fields": {**device["fields"], "holds": "probabilities"}}
    return {"arms": {**about["arms"], "device": read}}


def held_out(_: About) -> About:
    told = {"path": "t.npz", "inputs": 2, "sha256": 64 * "b", "labels": None, "targets": None}
    return {"test": told}


CHANGES: dict[str, tuple[Callable[[About], About], str]] = {
    "pair": (another_pair, "are of different pairs (laboratory, other, or other files"),
    "run seed": (another_plan(rng_seed=1), "with --rng-seed 0 in the one and 1 in the other"),
    "kernels": (other_kernels, "with kernels builtin in the one and xnnpack in the other"),
    "version": (lambda _: {"version": "0.9"}, "the version of edgeflare differs (test, 0.9)"),
    "seeds": (lambda _: {"all_seeds": "0:11"}, "the choice of seeds differs"),
    "devices": (lambda about: {"devices": 2 * about["devices"]}, "the number of devices differs"),
    "screening": (lambda _: {"screening": 64 * "c"}, "the screening differs ("),
    "held-out inputs": (held_out, "what --test gives differs (nothing, bbbbbbbbbbbb, labels "),
    "outputs": (other_outputs, "how outputs are read differs"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_runs_that_are_no_parts_of_one_are_refused_with_the_first_difference(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, what: str
) -> None:
    change, said = CHANGES[what]
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **change(about_of(other)))
    complaint = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert complaint.startswith(f"{parts.single(0)} and {other} are ")
    assert said in complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other"]


REPLAYED: About = {
    "run": {"run": "runs/before", "devices": ["emulated-builtin"], "compressed": 64 * "c"},
    "baseline": None,
    "sha256": {},
    "seed_sha256": {},
}


@pytest.mark.parametrize(
    ("what", "noted"), [("replay", REPLAYED), ("survey", {"run": "runs/before"})]
)
def test_what_is_no_search_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, what: str, noted: About
) -> None:
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **{what: noted})
    said = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert said == f"{other} is a {what}: merge takes runs of `edgeflare search`"


def test_what_is_no_run_or_being_worked_on_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    (tmp_path / "empty").mkdir()
    lock = lock_folder(copied(parts.single(1), tmp_path / "locked"))
    for name, said in (
        ("absent", "there is no run directory"),
        ("empty", "no run"),
        ("locked", f"{tmp_path / 'locked'} is being worked on by another process"),
    ):
        complaint = refusal(merged, [parts.single(0), tmp_path / name], tmp_path / "merged")
        assert said in complaint, complaint
        assert not (tmp_path / "merged").exists()
    os.close(lock)


def two_hosts(parts: MergedParts, tmp_path: Path, **other: Any) -> list[Path]:
    """Return two parts that were made on hosts which differ."""
    runs = [copied(parts.single(at), tmp_path / str(at)) for at in (0, 1)]
    for run, host in zip(runs, (HOST, {**HOST, **other}), strict=True):
        note_about(run, host=host)
    return runs


def test_parts_of_hosts_that_may_answer_otherwise_need_to_be_allowed(
    parts: MergedParts, tmp_path: Path
) -> None:
    runs = two_hosts(parts, tmp_path, cpu_features=["avx", "amx_int8"])
    with pytest.raises(OtherHostError, match=r"cpu_features avx2 and amx_int8, which may have"):
        merged(runs, tmp_path / "merged")
    document = merge_runs(runs, tmp_path / "merged", overwrite=False, allow_other_host=True)
    (line,) = document.warnings
    assert "several hosts worked on this run, which differ in cpu_features (avx2, amx_int8)" in line
    # What it is merged with says so, too, and says it once.
    more = copied(parts.single(2), tmp_path / "2")
    note_about(more, host=HOST)
    runs = [more, tmp_path / "merged", runs[1]]
    again = merge_runs(runs, tmp_path / "again", overwrite=False, allow_other_host=True)
    assert again.warnings == document.warnings


@pytest.mark.parametrize(
    "said", [{"health": {"devices": [{}], "warnings": []}}, {"other_hosts": [{}]}, {"all_seeds": 1}]
)
def test_a_part_that_says_of_itself_what_no_run_says_is_damaged(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, said: dict[str, Any]
) -> None:
    other = copied(parts.single(1), tmp_path / "other")
    note_about(other, **said)
    complaint = refusal(merged, [parts.single(0), other], tmp_path / "merged")
    assert complaint.startswith(f"{other / 'run.db'} is damaged")
    assert not (tmp_path / "merged").exists()


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


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("triggers SET sha256 = '[]'", "the sha256 of what was found"),
        ("triggers SET kind = '[]'", "the kind of what was found"),
        ("triggers SET operators = '[]'", "the operators of what was found"),
        ("chains SET queries = queries + 1", "what its search took"),
        ("chains SET original_evaluations = original_evaluations + 1", "what its search took"),
        ("chains SET ties = ties + 1", "what its search took"),
    ],
)
def test_findings_and_searches_that_differ_are_refused_by_the_names_of_runs_and_seed(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, change: str, what: str
) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, f"UPDATE {change}")
    said = refusal(merged, [parts.single(seed_id), other], tmp_path / "merged")
    assert f"{seed_id} ({what})" in said
    assert str(parts.single(seed_id)) in said
    assert str(other) in said
    assert not (tmp_path / "merged").exists()


def test_searches_that_took_longer_are_the_same(parts: MergedParts, tmp_path: Path) -> None:
    seed_id = found_seed(parts)
    other = copied(parts.single(seed_id), tmp_path / "other")
    change_journal(other, "UPDATE chains SET seconds = seconds + 100")
    run = merged([parts.single(seed_id), other], tmp_path / "merged")
    assert content_differences(run_content(run), run_content(parts.single(seed_id))) == []


def test_a_seed_that_deviates_in_one_run_only_is_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    for seed_id, table in ((deviating_seed(parts), "triggers"), (found_seed(parts), "chains")):
        other = copied(parts.single(seed_id), tmp_path / table)
        change_journal(other, f"DELETE FROM {table}")  # noqa: S608 - a constant
        said = refusal(merged, [parts.single(seed_id), other], tmp_path / "merged")
        assert f"{seed_id} (whether it deviates itself)" in said
    said = refusal(merged, [tmp_path / "triggers", parts.screening], tmp_path / "merged")
    assert f"{deviating_seed(parts)} (whether it deviates itself)" in said


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


Damage = Callable[[Path, int], None]


def changed(folder: str) -> Damage:
    """Change a byte of a stored input."""

    def damage(run: Path, seed_id: int) -> None:
        path = run / folder / f"{seed_id:06d}.png"
        path.write_bytes(path.read_bytes()[:-1] + b"?")

    return damage


def gone(folder: str) -> Damage:
    return lambda run, seed_id: (run / folder / f"{seed_id:06d}.png").unlink()


def folder_in_its_place(run: Path, seed_id: int) -> None:
    gone("refined")(run, seed_id)
    (run / "refined" / f"{seed_id:06d}.png").mkdir()


def named_outside(run: Path, seed_id: int) -> None:
    (run.parent / "secret").write_text("precious")
    change_journal(run, "UPDATE triggers SET seed_image = '../secret'")


def named_journal(run: Path, seed_id: int) -> None:
    change_journal(run, "UPDATE triggers SET seed_image = 'run.db'")


def a_link_to_outside(run: Path, seed_id: int) -> None:
    gone("seeds")(run, seed_id)
    (run.parent / "secret").write_text("precious")
    (run / "seeds" / f"{seed_id:06d}.png").symlink_to(run.parent / "secret")


def cut(run: Path, seed_id: int) -> None:
    database = run / "run.db"
    database.write_bytes(database.read_bytes()[:-8192])


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a finding is gone": (gone("refined"), "refined/{id}.png is gone, or not what the run stored"),
    "a finding was changed": (changed("refined"), "refined/{id}.png is gone, or not what the run"),
    "a seed is gone": (gone("seeds"), "seeds/{id}.png is gone, or not what the run stored"),
    "a folder": (folder_in_its_place, "refined/{id}.png is not a regular file"),
    "a name that leaves the run": (named_outside, "it names '../secret' as an input"),
    "another file of the run": (named_journal, "it names 'run.db' as an input"),
    "a link that leaves the run": (a_link_to_outside, "which is outside of it"),
    "a journal without its end": (cut, "run.db is damaged"),
}


def snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_part_is_refused_and_nothing_is_written(
    parts: MergedParts, tmp_path: Path, refusal: Refusal, what: str
) -> None:
    damage, said = DAMAGES[what]
    seed_id = int(parts.whole["document"]["findings"][0]["seed_id"])
    part = copied(parts.single(seed_id), tmp_path / "damaged" / "run")
    damage(part, seed_id)
    other = next(one for one in parts.singles if one != parts.single(seed_id))
    out = copied(parts.screening, tmp_path / "out")
    before = snapshot(out)

    complaint = refusal(merge_runs, [part, other], out, overwrite=True)

    assert said.format(id=f"{seed_id:06d}") in complaint, complaint
    assert snapshot(out) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["damaged", "out"]


def test_what_lies_at_out_is_replaced_once_all_is_merged(
    parts: MergedParts, tmp_path: Path
) -> None:
    out = copied(parts.screening, tmp_path / "out")
    write_atomically(out / "report.html", b"of the run before")
    merge_runs(parts.singles, out, overwrite=True)
    assert content_differences(run_content(out), parts.whole) == []
    assert not (out / "report.html").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out"]
    (tmp_path / "elsewhere").mkdir()  # where nothing lies yet, out may be a link
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    merged(parts.singles, tmp_path / "link")
    assert content_differences(run_content(tmp_path / "elsewhere"), parts.whole) == []


def test_a_merge_that_is_killed_costs_nothing_of_the_users_and_is_made_again(
    parts: MergedParts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    merge = partial(merge_runs, parts.singles, overwrite=True)

    def prepare(folder: Path) -> Callable[[], object]:
        put_notes(copied(parts.screening, folder / "out"))
        return partial(merge, folder / "out")

    def next_command(folder: Path, _: Kill) -> None:
        require_notes(folder / "out")
        merge(folder / "out")
        require_notes(folder / "out")
        assert [one.name for one in folder.iterdir()] == ["out"]
        differences = content_differences(run_content(folder / "out"), parts.whole)
        assert differences == ["inputs.findings/mine.txt"]  # the user's
        assert len(capsys.readouterr().err.splitlines()) <= 1

    assert killed_at_each(tmp_path, prepare, next_command, every=23) > 6


def test_a_file_that_no_row_names_is_left(parts: MergedParts, tmp_path: Path) -> None:
    part = copied(parts.single(0), tmp_path / "part")
    (part / "findings").mkdir(exist_ok=True)
    (part / "findings" / "000999.png").write_bytes(b"left by a kill")
    run = merged([part, *parts.singles[1:]], tmp_path / "merged")
    assert content_differences(run_content(run), parts.whole) == []


def test_runs_that_are_named_twice_or_written_over_are_refused(
    parts: MergedParts, tmp_path: Path, refusal: Refusal
) -> None:
    one, other = parts.singles[:2]
    link = tmp_path / "link"
    link.symlink_to(one)
    for again in (one, link, one / ".." / one.name):
        said = refusal(merge_runs, [one, other, again], tmp_path / "out", overwrite=False)
        assert said.endswith(" is named twice: name each run once")
    out = copied(one, tmp_path / "out")
    said = refusal(merge_runs, [other, out], out, overwrite=True)
    assert said == f"{out} is one of the runs that are merged: name another with --out"
    said = refusal(merge_runs, [one, other], out, overwrite=False)
    assert said == (
        f"{out} holds a run already: replace it with --overwrite, or name another folder with --out"
    )
    (tmp_path / "begun").mkdir()  # by a merge that was killed, and then somebody put a file there
    begin_list(tmp_path / "begun", "run")
    (tmp_path / "begun" / "notes.txt").touch()
    said = refusal(merge_runs, [one, other], tmp_path / "begun", overwrite=False)
    assert "--overwrite" in said
    assert "--resume" not in said
