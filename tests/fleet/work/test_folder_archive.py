"""A run as an archive and back, also while it is being worked on; and disks that it may lie on."""

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
from edgeflare.fleet.work import folder_archive
from edgeflare.fleet.work.folder_archive import (
    NotARunError,
    archive_folder,
    require_run,
    unpack_folder,
)
from edgeflare.fleet.work.local_disk import file_system, require_local_disk
from edgeflare.record.folder_contents import begin_list
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import DOCUMENT, INPUT_FOLDERS, JOURNAL, RunDirectory
from edgeflare.run.run_journal import RunJournal
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


def packed(files: dict[str, bytes], way: int = zipfile.ZIP_DEFLATED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", way) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return data.getvalue()


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
    for holds in ("run", "bench"):
        begin_list(tmp_path / holds, holds)
        assert archive_folder(tmp_path / holds) is None


def test_a_run_whose_list_is_damaged_is_archived_without_it(tmp_path: Path) -> None:
    (tmp_path / "contents.jsonl").touch()
    (tmp_path / DOCUMENT).touch()
    archived = archive_folder(tmp_path)
    assert archived is not None
    require_run(archived)


@pytest.mark.parametrize(
    "name", [".other", "findings/", "findings/../../x", "/etc/x", "findings/.a/b", "../run.db"]
)
def test_an_archive_that_names_another_file_is_refused(
    name: str, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    run = tmp_path / "within" / "run"
    assert name in refusal(unpack_folder, packed({DOCUMENT: b"", name: b"x"}), run)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_is_damaged_is_refused_in_a_line(tmp_path: Path) -> None:
    whole = packed({DOCUMENT: b"x" * 1000})
    content, directory = whole.index(b"run.json") + 8, whole.rindex(b"PK\1\2")
    changes = {
        "nothing": b"",
        "no archive": b"no archive",
        "other content": whole[:content] + b"\xff" * 9 + whole[content + 9 :],
        "another packing": whole[: directory + 10] + b"\x63" + whole[directory + 11 :],
        "encrypted": whole[: directory + 8] + b"\x01" + whole[directory + 9 :],
        "too large": whole[: directory + 24] + b"\xff\xff\xff\x7f" + whole[directory + 28 :],
    }
    for changed in changes.values():
        with pytest.raises(NotARunError) as refused:
            unpack_folder(changed, tmp_path / "run")
        assert "\n" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


LISTED = b'{"schema":"edgeflare.folder/v1","holds":"%s"}'

NO_RUNS = {
    "another file alone": {"hello.txt": b""},
    "a name that is too long": {DOCUMENT: b"", "x" * 300: b""},
    "a path that is too long": {DOCUMENT: b"", "x/" * 3000 + "x": b""},
    "a file as a folder": {DOCUMENT: b"", "a/b": b"", "a": b""},
    "a list as a folder": {DOCUMENT: b"", "contents.jsonl/a": b""},
    "a list that is none": {DOCUMENT: b"", "contents.jsonl": b"[]"},
    "a list within that is none": {DOCUMENT: b"", "cell/contents.jsonl": b""},
    "a list of something else": {DOCUMENT: b"", "contents.jsonl": LISTED % b"x"},
    "a run that lies elsewhere": {"cell/run.json": b"", "contents.jsonl": LISTED % b"run"},
    "a bench of nothing": {"cell/hello.txt": b"", "contents.jsonl": LISTED % b"bench"},
}


@pytest.mark.parametrize("files", NO_RUNS.values(), ids=NO_RUNS)
def test_an_archive_of_something_else_is_no_run(files: dict[str, bytes], tmp_path: Path) -> None:
    with pytest.raises(NotARunError):
        unpack_folder(packed(files), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_an_archive_that_names_a_file_twice_is_no_run() -> None:
    data = io.BytesIO(packed({DOCUMENT: b"1"}))
    with zipfile.ZipFile(data, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(DOCUMENT, b"2")
    with pytest.raises(NotARunError, match="twice"):
        require_run(data.getvalue())


@pytest.mark.parametrize("way", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_unpacks_without_a_bound_is_no_run(way: int) -> None:
    with pytest.raises(NotARunError, match="packed in an unknown way"):
        require_run(packed({DOCUMENT: b"x"}, way))


def test_whatever_is_raised_of_a_damaged_archive_it_is_no_run() -> None:
    """Among it are a name that is no text, and a place before the beginning."""
    whole = packed({DOCUMENT: b"x" * 100, "findings/ä.png": b"y" * 100})
    raised = set()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        try:
            require_run(bytes(changed))
        except NotARunError as error:
            raised.add(str(error).partition("(")[2].partition(":")[0])
    assert {"BadZipFile", "UnicodeDecodeError", "ValueError"} <= raised


def test_a_bench_with_a_run_within_is_unpacked(tmp_path: Path) -> None:
    within = {"cell/run.db": b"1", "cell/contents.jsonl": LISTED % b"run"}
    unpack_folder(packed({"contents.jsonl": LISTED % b"bench", **within}), tmp_path / "bench")
    assert (tmp_path / "bench" / "cell" / "run.db").read_bytes() == b"1"


@pytest.mark.parametrize(("limit", "most"), [("MOST_BYTES_TOGETHER", 199), ("MOST_MEMBERS", 1)])
def test_an_archive_of_too_much_is_no_run(
    limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = packed({DOCUMENT: bytes(100), "findings/0.png": bytes(100)})
    require_run(data)
    monkeypatch.setattr(folder_archive, limit, most)
    with pytest.raises(NotARunError, match="more than"):
        require_run(data)


@pytest.mark.parametrize("name", ["run.db", "run.db-wal", "cell/conform.db"])
def test_a_journal_may_be_larger_than_what_is_read_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_archive, "MOST_BYTES", 100)
    monkeypatch.setattr(folder_archive, "MOST_JOURNAL_BYTES", 1000)
    unpack_folder(packed({DOCUMENT: b"", name: b"x" * 1000}), tmp_path / "run")
    assert (tmp_path / "run" / name).read_bytes() == b"x" * 1000
    with pytest.raises(NotARunError, match="larger"):
        require_run(packed({DOCUMENT: b"", name: b"x" * 1001}))
    with pytest.raises(NotARunError, match="larger"):
        require_run(packed({DOCUMENT: bytes(101)}))


@pytest.mark.slow
def test_a_run_is_archived_while_it_is_being_written(tmp_path: Path) -> None:
    """Each archive is a sound journal, as it was at one moment, with all inputs before it."""
    run = tmp_path / "run"
    directory, lock = RunDirectory.claim(run, overwrite=False)
    journal = RunJournal.create(directory.journal, {"at": 0}, lock=lock)
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
        for at in range(8):
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


MOUNTS = """\
/dev/sda1 / ext4 rw,relatime 0 0
tmpfs /tmp tmpfs rw 0 0
server:/home /lab nfs4 rw 0 0
/dev/sdb1 /lab/scratch xfs rw 0 0
share /with\\040space cifs rw 0 0
sshfs /far fuse.sshfs rw 0 0
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    file = tmp_path / "mounts"
    file.write_text(MOUNTS)
    return file


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/lab/runs/r1", "nfs4"),
        ("/lab", "nfs4"),
        ("/with space/r", "cifs"),
        ("/far/off", "fuse.sshfs"),
    ],
)
def test_a_network_file_system_is_refused_by_its_kind(
    mounts: Path, refusal: Callable[..., str], path: str, kind: str
) -> None:
    message = refusal(require_local_disk, Path(path), mounts)
    assert path in message
    assert kind in message


@pytest.mark.parametrize("path", ["/lab/scratch/r1", "/laboratory", "/home/r1", "/"])
def test_a_disk_of_the_host_is_not(mounts: Path, path: str) -> None:
    require_local_disk(Path(path), mounts)


def test_a_link_is_followed_and_no_list_refuses_nothing(
    mounts: Path, tmp_path: Path, refusal: Callable[..., str]
) -> None:
    link = tmp_path / "link"
    link.symlink_to("/lab/runs")
    assert "nfs4" in refusal(require_local_disk, link / "r1", mounts)
    assert file_system(Path("/lab"), tmp_path / "absent") == ""
    require_local_disk(tmp_path)
