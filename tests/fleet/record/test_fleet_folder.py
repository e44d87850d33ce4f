"""The folder of a fleet's work: whose it is, and what it keeps."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import (
    AttemptState,
    FleetRequest,
    FleetState,
    PlaceState,
    UnitState,
)
from edgeflare.fleet.work.folder_archive import NotARunError, archive_folder
from edgeflare.record import folder as folder_module
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import FolderKind
from edgeflare.record.folder_contents import FOLDER, begin_list, list_as
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import DOCUMENT, RUN
from edgeflare.run.seed_ids import SeedIds
from kills import Kill, killed_at_each, put_notes, require_notes

Refusal = Callable[..., str]

ENDING = UnitEnding(1, 3, "what it printed\n")


def archive(**files: bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as written:
        for name, content in files.items():
            written.writestr(zipfile.ZipInfo(name.replace("_", ".")), content)
    return data.getvalue()


def asked(words: str = "c") -> FleetRequest:
    return FleetRequest(("phone",), ("survey", words))


def claim(folder: FleetFolder, words: str = "c", **how: bool) -> None:
    """Claim a folder, and begin there, as a command does that has ended by now."""
    lock = folder.claim(asked(words), **{"resume": False, "overwrite": False, **how})
    if not how.get("resume"):
        folder.begin(asked(words))
    lock.close()


@pytest.fixture
def folder(tmp_path: Path) -> FleetFolder:
    return FleetFolder.beside(tmp_path / "r")


def test_the_folder_lies_beside_the_run(tmp_path: Path, refusal: Refusal) -> None:
    assert FleetFolder.beside(tmp_path / "r1").path == tmp_path / "r1.fleet"
    assert "no run directory" in refusal(FleetFolder.beside, Path("/"))


def test_work_is_gone_on_with_replaced_or_refused(folder: FleetFolder, refusal: Refusal) -> None:
    assert "leave out --resume" in refusal(claim, folder, resume=True)
    assert not folder.path.exists()
    claim(folder)
    claim(folder, "another that nothing was done for")
    claim(folder)
    folder.keep_backup("unit-0000", archive(run_json=b"0"))

    assert "--overwrite" in refusal(claim, folder)
    assert "with the words survey c, not survey other" in refusal(
        claim, folder, "other", resume=True
    )
    assert (folder.is_of(asked("c")), folder.is_of(asked("other"))) == (True, False)
    claim(folder, resume=True)
    assert folder.backup("unit-0000") == archive(run_json=b"0")
    claim(folder, "other", overwrite=True)
    assert folder.backup("unit-0000") is None
    claim(folder, "other", resume=True)


def test_what_is_no_folder_of_a_fleet_is_left_alone(folder: FleetFolder, refusal: Refusal) -> None:
    folder.path.mkdir()
    (folder.path / "thesis.txt").write_text("years of work")
    for name in ("thesis.txt", ".env", "request.json", "fleet.json"):
        (folder.path / "thesis.txt").rename(folder.path / name)
        for how in ({}, {"overwrite": True}, {"resume": True}):
            assert "no folder of a fleet" in refusal(claim, folder, **how)
        assert (folder.path / name).read_text() == "years of work"
        (folder.path / name).rename(folder.path / "thesis.txt")


def test_what_others_put_into_a_folder_of_a_fleet_stays(folder: FleetFolder) -> None:
    claim(folder)
    folder.keep_unit("unit-0000", archive(run_json=b"1"), ENDING)
    folder.keep_log("unit-0000", 1, "said")
    theirs = ("notes.txt", ".git/config", "units/unit-0000/notes.txt", "logs/mine.txt", "seeds/a")
    for name in theirs:
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text("years of work")
    folder.keep_unit("unit-0000", archive(run_json=b"2"), ENDING)
    claim(folder, "other", overwrite=True)
    left = [one for one in folder.path.rglob("*") if one.is_file()]
    assert {one.relative_to(folder.path).as_posix() for one in left} == {
        *theirs,
        "request.json",
        "contents.jsonl",
    }
    assert {(folder.path / name).read_text() for name in theirs} == {"years of work"}


@pytest.mark.parametrize("name", ["../run", "..", "a/b", "/etc", "", "a\0b"])
def test_units_have_plain_names(tmp_path: Path, name: str, refusal: Refusal) -> None:
    folder = FleetFolder(tmp_path)
    assert refusal(folder.unit, name)
    assert refusal(folder.ending, name)
    assert refusal(folder.keep_backup, name, b"")
    (tmp_path / "units.txt").write_text(f"{name} 0:3\n")
    assert refusal(folder.kept_parts)


def test_one_command_at_a_time_works_there(folder: FleetFolder, refusal: Refusal) -> None:
    lock = folder.claim(asked("c"), resume=False, overwrite=False)
    folder.begin(asked("c"))
    for how in ({"resume": True}, {"overwrite": True}):
        assert "another process" in refusal(claim, folder, **how)
    lock.close()
    claim(folder, resume=True)


def test_a_folder_that_nothing_was_done_in_is_removed(folder: FleetFolder) -> None:
    for kept in (False, True):
        lock = folder.claim(asked("c"), resume=False, overwrite=False)
        folder.begin(asked("c"))
        folder.show(FleetState("c"))
        if kept:
            folder.keep_backup("unit-0000", archive(run_json=b"0"))
        folder.remove_unused()
        lock.close()
        assert folder.path.exists() == kept


def test_a_unit_is_kept_whole_or_as_it_was(tmp_path: Path) -> None:
    begin_list(tmp_path, "fleet")
    folder = FleetFolder(tmp_path)
    folder.keep_backup("unit-0000", archive(run_json=b"0"))
    folder.keep_unit("unit-0000", archive(run_json=b"1"), None)
    assert folder.ending("unit-0000") is None
    assert folder.backup("unit-0000") == archive(run_json=b"0")
    with pytest.raises(UserError):
        folder.keep_unit("unit-0000", archive(run_json=b"2", _hidden=b""), ENDING)
    assert (folder.unit("unit-0000") / DOCUMENT).read_bytes() == b"1"
    assert list((tmp_path / "units").glob("unit-*")) == [folder.unit("unit-0000")]

    folder.keep_unit("unit-0000", archive(run_json=b"3"), ENDING)
    assert folder.ending("unit-0000") == ENDING
    assert folder.backup("unit-0000") is None
    assert (folder.unit("unit-0000") / DOCUMENT).read_bytes() == b"3"


def test_a_unit_of_runs_with_lists_is_kept_again(
    folder: FleetFolder, tmp_path: Path, refusal: Refusal
) -> None:
    """A bench that was stopped, and is gone on with, comes back as a folder of runs once more."""
    claim(folder)
    place = folder.unit("unit-0000")
    for number in (1, 2):
        made = tmp_path / f"made-{number}"
        with FolderKind("bench").claim(made, overwrite=False):
            list_as(made, "cell/run", FOLDER)
            begin_list(made / "cell" / "run", "run")
            for name in ("run.json", "findings/000001.png"):
                write_atomically(made / "cell" / "run" / name, b"%d" % number)
        archived = archive_folder(made) or b""
        folder.keep_unit("unit-0000", archived, None)
        assert (place / "cell" / "run" / "run.json").read_bytes() == b"%d" % number
    (place / "cell" / "run" / "findings" / "000001.png").write_text("the user's")
    said = refusal(folder.keep_unit, "unit-0000", archived, None)
    assert "000001.png is not as edgeflare left it" in said
    assert (place / "cell" / "run" / "run.json").read_bytes() == b"2"


def test_attempts_of_commands_before_are_known(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    assert folder.attempts_before() == {}
    attempts = [AttemptState(1, "host", "device", 0.0, 2.0, "lost (x)")]
    folder.show(FleetState("c", units=[UnitState("unit-0000", "d", "0:5", 5, attempts=attempts)]))
    assert folder.attempts_before() == {"unit-0000": attempts}
    for damaged in (b"", b"[]", b'{"units": [{"name": "unit-0000", "attempts": [{"a": 1}]}]}'):
        (tmp_path / "fleet.json").write_bytes(damaged)
        assert folder.attempts_before() == {}


def test_what_shows_nothing_yet_is_told_from_what_is_none(
    folder: FleetFolder, refusal: Refusal
) -> None:
    assert "name the --out of a command" in refusal(folder.shown)
    with folder.claim(asked("campaign"), resume=False, overwrite=False):
        folder.begin(asked("campaign"))
    assert "has not begun" in refusal(folder.shown)


def test_the_cutting_into_units_is_kept(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    assert folder.kept_parts() is None
    parts = {"unit-0000": SeedIds.read("0:3"), "unit-0001": SeedIds.read("3:7,9")}
    folder.keep_parts(parts)
    assert folder.kept_parts() == parts


def test_what_a_loss_of_power_has_damaged_is_done_again(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.keep_unit("unit-0000", archive(run_json=b"1"), ENDING)
    folder.keep_backup("unit-0001", archive(run_json=b"1"))
    backup = tmp_path / "backups" / "unit-0001"
    for damaged in (b"", backup.read_bytes().replace(b"run.json1", b"run.json2")):
        backup.write_bytes(damaged)
        assert folder.backup("unit-0001") is None
    (tmp_path / "done" / "unit-0000.json").write_bytes(b"")
    assert folder.ending("unit-0000") is None
    folder.keep_unit("unit-0000", archive(run_json=b"1"), ENDING)
    shutil.rmtree(folder.unit("unit-0000"))
    assert folder.ending("unit-0000") is None


def test_what_is_no_run_is_not_kept(tmp_path: Path) -> None:
    begin_list(tmp_path, "fleet")
    folder = FleetFolder(tmp_path)
    folder.keep_backup("unit-0000", archive(run_json=b"1"))
    for sent in (b"no archive", archive(hello_txt=b"")):
        with pytest.raises(NotARunError):
            folder.keep_backup("unit-0000", sent)
        with pytest.raises(NotARunError):
            folder.keep_unit("unit-0000", sent, ENDING)
    assert folder.backup("unit-0000") == archive(run_json=b"1")
    assert folder.ending("unit-0000") is None
    assert not folder.unit("unit-0000").exists()


def test_killed_as_it_begins_anew_it_is_of_neither_command(
    folder: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal
) -> None:
    claim(folder)
    folder.keep_unit("unit-0000", archive(run_json=b"1"), ENDING)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "_remove_listed", killed)
        with pytest.raises(KeyboardInterrupt):
            folder.begin(asked("other"), [tmp_path / "r"])
    for words in ("c", "other"):
        assert not folder.is_of(asked(words))
        said = refusal(folder.claim, asked(words), resume=True, overwrite=False)
        assert "request.json is damaged, or was cut off" in said
    claim(folder, "other", overwrite=True)
    assert folder.is_of(asked("other"))


def test_what_is_there_is_kept_until_work_begins(folder: FleetFolder) -> None:
    claim(folder)
    folder.keep_unit("unit-0000", archive(run_json=b"1"), ENDING)
    folder.claim(asked("other"), resume=False, overwrite=True).close()
    assert folder.ending("unit-0000") == ENDING
    claim(folder, "other", overwrite=True)
    assert folder.ending("unit-0000") is None
    assert {one.name for one in folder.path.iterdir()} == {"request.json", "contents.jsonl"}


@pytest.mark.parametrize("units", [[], [UnitState("one", "phone", "0:5", 5)]])
def test_a_state_that_contradicts_itself_is_damaged(
    folder: FleetFolder, units: list[UnitState], refusal: Refusal
) -> None:
    claim(folder)
    state = FleetState("c", 1.0, units, [PlaceState("a", "host", unit="one")])
    (folder.path / "fleet.json").write_text(json.dumps(plain_json(state)))
    assert "'a' works on 'one', which is no unit with" in refusal(folder.shown)


@pytest.mark.parametrize(
    "ending", ["[" * 5000, "[1]", '{"exit_code": "0", "found": 1, "printed": ""}', "\ud800", "{}"]
)
def test_an_ending_of_other_values_is_none(folder: FleetFolder, ending: str) -> None:
    claim(folder)
    folder.unit("one").mkdir(parents=True)
    (folder.path / "done").mkdir()
    (folder.path / "done" / "one.json").write_bytes(ending.encode(errors="surrogatepass"))
    assert folder.ending("one") is None


def test_no_host_that_is_drained_is_forgotten_for_another_of_that_moment(
    folder: FleetFolder, tmp_path: Path
) -> None:
    """The command that works on the fleet holds the lock of the folder by then."""
    hosts = ["..", "a/b", "\nc", *map(str, range(40))]
    with folder.claim(asked("c"), resume=False, overwrite=False), ThreadPoolExecutor(8) as several:
        folder.begin(asked("c"))
        list(several.map(folder.drain, hosts))
        assert folder.drained([*hosts, "other"]) == sorted(hosts)
        list(several.map(folder.undrain, hosts[1:]))
        assert folder.drained(hosts) == [".."]
        folder.begin(asked("c"))
        assert folder.drained(hosts) == []
    assert sorted(one.name for one in tmp_path.iterdir()) == ["r.fleet"]


def test_a_host_gets_work_again_whatever_the_list_says(folder: FleetFolder) -> None:
    claim(folder)
    folder.drain("one")
    (file,) = (folder.path / "drained").iterdir()
    file.write_text("changed by somebody")
    folder.undrain("one")
    assert folder.drained(["one"]) == []
    assert not (folder.path / "drained").exists()


@pytest.mark.parametrize("link", ["drained", "drained/8b5b9db0c13db242"])
def test_nothing_outside_of_the_folder_says_who_is_drained(
    folder: FleetFolder, tmp_path: Path, link: str
) -> None:
    claim(folder)
    place = folder.path / link
    place.parent.mkdir(exist_ok=True)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "8b5b9db0c13db242").touch()
    place.symlink_to(elsewhere / place.relative_to(folder.path / "drained"))
    for use in (folder.drain, folder.undrain, lambda host: folder.drained([host])):
        with pytest.raises(UserError, match="outside of it"):
            use("three")
    assert [one.stat().st_size for one in elsewhere.iterdir()] == [0]


def test_a_file_in_the_place_of_the_drained_hosts_is_refused(folder: FleetFolder) -> None:
    claim(folder)
    (folder.path / "drained").touch()
    assert folder.drained(["one"]) == []
    with pytest.raises(UserError, match="drained is no folder: move it away"):
        folder.drain("one")


def work_of(folder: Path, words: str, said: bytes, **how: bool) -> None:
    """Do what a command on a fleet does that comes to its end."""
    fleet, place = FleetFolder(folder / "r.fleet"), folder / "r"
    with (
        fleet.claim(asked(words), **{"resume": False, "overwrite": False, **how}),
        RUN.claim(place, overwrite=True) as claimed,
    ):
        fleet.begin(asked(words), [place])
        fleet.show(FleetState(words))
        fleet.keep_parts({"unit-0000": SeedIds.read("0:3")})
        fleet.keep_log("unit-0000", 1, "said")
        fleet.keep_backup("unit-0000", archive(run_json=said))
        fleet.keep_unit("unit-0000", archive(run_json=said), ENDING)
        fleet.output.put(claimed, fleet.unit("unit-0000"))


@pytest.mark.slow
def test_a_fleet_that_is_killed_costs_nothing_of_the_users_and_is_begun_again(
    tmp_path: Path,
) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        work_of(folder, "old", b"old")
        put_notes(folder / "r.fleet", folder / "r")
        return lambda: work_of(folder, "new", b"new", overwrite=True)

    def next_command(folder: Path, _: Kill) -> None:
        require_notes(folder / "r.fleet", folder / "r")
        work_of(folder, "new", b"again", overwrite=True)
        require_notes(folder / "r.fleet", folder / "r")
        assert (folder / "r" / DOCUMENT).read_bytes() == b"again"
        assert sorted(one.name for one in folder.iterdir()) == ["r", "r.fleet"]
        for one in (folder / "r", folder / "r.fleet"):
            assert not (one / ".edgeflare").exists()

    assert killed_at_each(tmp_path, prepare, next_command, every=5) > 15
