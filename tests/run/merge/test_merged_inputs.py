"""A part that is damaged is refused in one line, and what lies at --out stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder_contents import begin_list
from edgeflare.run.merge.merge_runs import merge_runs
from kills import Kill, killed_at_each, put_notes, require_notes
from merged_parts import MergedParts, change_journal, copied, merged
from run_content import content_differences, run_content

pytestmark = pytest.mark.slow

Refusal = Callable[..., str]
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


def overwritten(run: Path, seed_id: int) -> None:
    """Overwrite all pages of the journal but the first, which says what tables there are."""
    database = run / "run.db"
    content = database.read_bytes()
    database.write_bytes(content[:4096] + bytes(len(content) - 4096))


DAMAGES: dict[str, tuple[Damage, str]] = {
    "a finding is gone": (gone("refined"), "refined/{id}.png is gone, or not what the run stored"),
    "a finding was changed": (changed("refined"), "refined/{id}.png is gone, or not what the run"),
    "what was refined is gone": (
        gone("findings"),
        "findings/{id}.png is gone, or not what the run",
    ),
    "a seed is gone": (gone("seeds"), "seeds/{id}.png is gone, or not what the run stored"),
    "a folder": (folder_in_its_place, "refined/{id}.png is not a regular file"),
    "a name that leaves the run": (named_outside, "it names '../secret' as an input"),
    "another file of the run": (named_journal, "it names 'run.db' as an input"),
    "a link that leaves the run": (a_link_to_outside, "which is outside of it"),
    "a journal without its end": (cut, "run.db is damaged"),
    "a journal of zeros": (overwritten, "run.db is damaged"),
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

    assert killed_at_each(tmp_path, prepare, next_command, every=11) > 15


def test_a_file_that_no_row_names_is_left(parts: MergedParts, tmp_path: Path) -> None:
    part = copied(parts.single(0), tmp_path / "part")
    (part / "findings").mkdir(exist_ok=True)
    (part / "findings" / "000999.png").write_bytes(b"left by a kill")
    run = merged([part, *parts.singles[1:]], tmp_path / "merged")
    assert content_differences(run_content(run), parts.whole) == []


def test_out_may_be_a_link_to_a_folder(parts: MergedParts, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "elsewhere")
    merged(parts.singles, tmp_path / "out")
    assert content_differences(run_content(tmp_path / "elsewhere"), parts.whole) == []


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
