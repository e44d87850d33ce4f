"""A run as an archive and back, also while it is being worked on."""

from __future__ import annotations

import io
import sqlite3
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from called_commands import call_here
from edgeflare.fleet.work.folder_archive import NotARunError, archive_folder, unpack_folder
from edgeflare.run.journal import Journal
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import INPUT_FOLDERS, JOURNAL, RunDirectory
from made_once import made_once

EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        # fmt: off
        said = call_here(
            "search", EXAMPLE, "--first", "6", "--max-queries", "60", "--shrink", "5",
            "--fail-on", "none", "--out", folder / "run",
        )
        # fmt: on
        assert said.code == 0, said.err

    return made_once(tmp_path_factory, "archived_run", make) / "run"


def files(run: Path) -> dict[str, bytes]:
    return {
        f"{name}/{file.name}": file.read_bytes()
        for name in INPUT_FOLDERS
        for file in (run / name).glob("*")
    }


@pytest.mark.slow
def test_an_archived_run_is_the_run_again(searched: Path, tmp_path: Path) -> None:
    archived = archive_folder(searched)
    assert archived is not None
    unpack_folder(archived, tmp_path / "again")

    assert files(tmp_path / "again") == files(searched)
    assert len(files(searched)) > 3
    assert load_document(RunDirectory(tmp_path / "again")) == load_document(RunDirectory(searched))


def test_there_is_no_archive_of_what_is_no_run_yet(tmp_path: Path) -> None:
    assert archive_folder(tmp_path) is None
    (tmp_path / JOURNAL).touch()
    (tmp_path / "findings").mkdir()
    (tmp_path / "findings" / "000000.png").touch()
    assert archive_folder(tmp_path) is None
    (tmp_path / JOURNAL).write_bytes(b"no journal" * 1000)
    assert archive_folder(tmp_path) is None


@pytest.mark.parametrize(
    "name",
    [".other", "findings/", "findings/../../x", "/etc/x", "findings/.a/b", "../run.db"],
)
def test_an_archive_that_names_another_file_is_refused(
    name: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr(name, b"x")
    run = tmp_path / "within" / "run"
    assert name in refusal(unpack_folder, data.getvalue(), run)
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


def test_an_archive_that_is_damaged_is_refused_in_a_line(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", b"x" * 1000)
    whole = data.getvalue()
    packed, directory = whole.index(b"run.json") + 8, whole.rindex(b"PK\1\2")
    changes = {
        "nothing": b"",
        "no archive": b"no archive",
        "other content": whole[:packed] + b"\xff" * 9 + whole[packed + 9 :],
        "another packing": whole[: directory + 10] + b"\x63" + whole[directory + 11 :],
        "encrypted": whole[: directory + 8] + b"\x01" + whole[directory + 9 :],
        "too large": whole[: directory + 24] + b"\xff\xff\xff\x7f" + whole[directory + 28 :],
    }
    for changed in changes.values():
        with pytest.raises(NotARunError) as refused:
            unpack_folder(changed, tmp_path / "run")
        assert "\n" not in str(refused.value)


def test_a_run_is_archived_while_it_is_being_written(tmp_path: Path) -> None:
    """Each archive is a sound journal, as it was at one moment, with all inputs before it."""
    run = tmp_path / "run"
    directory, lock = RunDirectory.claim(run, overwrite=False)
    journal = Journal.create(directory.journal, {"at": 0}, lock=lock)
    (run / "findings").mkdir()
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(directory.journal, timeout=60)) as db:
            at = 0
            while not stop.wait(0.001):
                at += 1
                (run / "findings" / f"{at:06d}.png").write_bytes(b"x" * 100)
                gone = run / "findings" / f"{at - 5:06d}.old"
                gone.touch()
                with db:
                    db.execute("UPDATE about SET value = ? WHERE key = 'at'", (str(at),))
                gone.unlink()

    writing = threading.Thread(target=write)
    writing.start()
    seen = []
    try:
        for at in range(20):
            archived = archive_folder(run)
            assert archived is not None
            copy = tmp_path / f"copy{at}"
            unpack_folder(archived, copy)
            with closing(sqlite3.connect(copy / JOURNAL)) as db:
                assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                (text,) = db.execute("SELECT value FROM about WHERE key = 'at'").fetchone()
            seen.append(int(text))
            named = {f"{one:06d}.png" for one in range(1, seen[-1] + 1)}
            assert named <= {file.name for file in (copy / "findings").glob("*.png")}
    finally:
        stop.set()
        writing.join()
        journal.close()
    assert seen == sorted(seen)
    assert seen[-1] > seen[0]
