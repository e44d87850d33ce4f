"""A folder that a command makes or takes, and whose content is replaced in one step."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.record import folder_contents
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.folder import (
    FolderKind,
    half_replaced,
    mend,
    remove_documents,
    remove_files,
    remove_ours,
    require_ours,
    require_whole,
)
from edgeflare.record.folder_contents import (
    BEGUN_LIST,
    DATABASE,
    FOLDER,
    LIST,
    STATE,
    begin_list,
    list_as,
    read_contents,
    sha256_of,
)
from edgeflare.record.folder_lock import lock_folder
from edgeflare.record.path_inside import path_inside
from kills import NOTES, Kill, killed_at_each, put_notes, require_notes

Refusal = Callable[..., str]

THING = FolderKind("thing", files=("thing.json",), folders=("findings",))
SQLITE = b"SQLite format 3\0".ljust(72, b"\0")


def make(out: Path, content: str = "before", *, overwrite: bool = False) -> None:
    """Put a thing into a folder."""
    with THING.claim(out, overwrite=overwrite, by="thing") as claimed, claimed.replaced() as made:
        list_as(made, "thing.db", DATABASE)
        (made / "thing.db").write_bytes(SQLITE + content.encode())
        write_atomically(made / "thing.json", content.encode())
        write_atomically(made / "findings" / "000001.png", b"png of " + content.encode())
        write_atomically(made / f"only-{content}" / "file", b"a file")


def a_thing(out: Path) -> Path:
    """Make a thing, with files of the user's beside its own."""
    make(out)
    put_notes(out)
    return out


def files(folder: Path) -> list[str]:
    return sorted(one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file())


def of(content: str) -> list[str]:
    return sorted([LIST, "findings/000001.png", f"only-{content}/file", "thing.db", "thing.json"])


def test_absent_and_empty_places_are_taken(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("empty", "deep/absent"):
        make(tmp_path / name)
        assert files(tmp_path / name) == of("before")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["deep", "empty"]


@pytest.mark.parametrize("there", [".git", ".env", "thing.json", "contents.jsonl"])
@pytest.mark.parametrize("kind", ["file", "folder"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_somebody_elses_is_known_by_no_name(
    tmp_path: Path, there: str, kind: str, overwrite: bool, refusal: Refusal
) -> None:
    place = tmp_path / "out" / there
    place.mkdir(parents=True) if kind == "folder" else place.parent.mkdir()
    if kind == "file":
        place.write_text('{"schema": "another.tool/v1"}')
    said = refusal(make, tmp_path / "out", overwrite=overwrite)
    assert "is neither empty nor a thing: name another folder with --out" in said
    assert [one.name for one in (tmp_path / "out").iterdir()] == [there]


def test_only_what_was_written_is_replaced(tmp_path: Path, refusal: Refusal) -> None:
    out = a_thing(tmp_path / "out")
    assert "holds a thing already" in refusal(make, out)
    make(out, "after", overwrite=True)
    assert files(out) == sorted([*of("after"), *NOTES])
    require_notes(out)


@pytest.mark.parametrize("name", ["thing.json", "findings/000001.png", "only-before/file"])
def test_a_file_that_was_changed_is_not_replaced(
    tmp_path: Path, name: str, refusal: Refusal
) -> None:
    out = a_thing(tmp_path / "out")
    (out / name).write_text("the user's")
    assert f"{out / name} is not as edgeflare left it" in refusal(
        make, out, "after", overwrite=True
    )
    assert (out / name).read_text() == "the user's"
    assert files(out) == sorted([*of("before"), *NOTES])


def test_a_folder_that_is_named_by_a_link_is_replaced(tmp_path: Path) -> None:
    out, link = a_thing(tmp_path / "out"), tmp_path / "link"
    link.symlink_to(out)
    make(link, "after", overwrite=True)
    assert link.is_symlink()
    assert files(out) == sorted([*of("after"), *NOTES])
    require_notes(out)


def test_links_are_neither_followed_nor_removed(tmp_path: Path, refusal: Refusal) -> None:
    out, elsewhere = a_thing(tmp_path / "out"), tmp_path / "elsewhere"
    (out / "findings").rename(elsewhere)
    (out / "findings").symlink_to(elsewhere)
    assert "is not as edgeflare left it" in refusal(make, out, "after", overwrite=True)
    assert files(elsewhere) == ["000001.png", "mine.txt"]


def half_replace(out: Path, at: str, name: str) -> None:
    """Leave what a stranger's folder may say that a killed command has left to do."""
    make(out)
    (out / at / name).parent.mkdir(parents=True)
    (out / at / name).write_text("planted")
    shutil.copy(out / LIST, out / at / LIST)


@pytest.mark.parametrize("at", ["replacing", "moving"])
@pytest.mark.parametrize("folder", ["elsewhere", "out/findings"])
def test_what_is_half_replaced_is_moved_through_no_link(
    tmp_path: Path, at: str, folder: str, refusal: Refusal
) -> None:
    out = tmp_path / "out"
    half_replace(out, f".edgeflare/{at}", "seedz/.evilrc")
    (tmp_path / folder).mkdir(exist_ok=True)
    (out / "seedz").symlink_to(tmp_path / folder)
    assert f"{out / 'seedz'} is not as edgeflare left it" in refusal(mend, out)
    assert not list(tmp_path.glob("elsewhere/*"))
    assert not (out / "findings" / ".evilrc").exists()


@pytest.mark.parametrize("link", [".edgeflare", ".edgeflare/made", ".edgeflare/moving"])
def test_links_to_folders_of_others_are_nothing_that_was_left(tmp_path: Path, link: str) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    half_replace(out, ".edgeflare/moving", "planted")
    (out / link).parent.mkdir(exist_ok=True)
    (out / ".edgeflare").rename(elsewhere)
    if link != ".edgeflare":
        (out / ".edgeflare").mkdir()
    (out / link).symlink_to(elsewhere / "moving" if "/" in link else elsewhere)
    before = files(elsewhere)
    assert half_replaced(out) is None
    mend(out)
    assert files(elsewhere) == before


@pytest.mark.parametrize("name", [BEGUN_LIST, ".state.json.new"])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str) -> None:
    out, precious = tmp_path / "out", tmp_path / "precious"
    precious.write_text("the user's")
    make(out)
    list_as(out, "state.json", STATE)
    write_atomically(out / "state.json", b"state")
    (out / name).symlink_to(precious)
    write_atomically(out / "state.json", b"another")
    begin_list(out, "thing")
    assert precious.read_text() == "the user's"
    assert (out / "state.json").read_bytes() == b"another"


def test_a_folder_below_which_none_can_be_made_is_refused(refusal: Refusal) -> None:
    assert "cannot make a folder /proc/absent/out" in refusal(make, Path("/proc/absent/out"))


def test_a_list_that_names_what_lies_outside_removes_nothing(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"a file")
    out = tmp_path / "out"
    make(out)
    digest = sha256_of(out / "only-before" / "file")
    with (out / LIST).open("a") as file:
        for name in ("../precious", str(precious)):
            file.write("\n" + json.dumps({"path": name, "sha256": digest, "through": name}))
    remove_ours(out)
    assert precious.exists()
    assert not out.exists()


def test_a_place_is_looked_at_again_before_it_is_filled(tmp_path: Path, refusal: Refusal) -> None:
    out = tmp_path / "out"

    def filled_meanwhile() -> None:
        with THING.claim(out, overwrite=False) as claimed, claimed.replaced() as made:
            write_atomically(made / "thing.json", b"ours")
            (out / "thing.json").write_text("the user's")
            (out / "notes.txt").write_text("the user's")

    assert f"{out / 'thing.json'} is not as edgeflare left it" in refusal(filled_meanwhile)
    assert files(out) == [LIST, "notes.txt", "thing.json"]
    assert (out / "thing.json").read_text() == "the user's"


def test_one_claims_a_place_at_a_time(tmp_path: Path, refusal: Refusal) -> None:
    with THING.claim(tmp_path / "out", overwrite=False):
        assert "being worked on by another process" in refusal(make, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    make(tmp_path / "out")
    lock = lock_folder(tmp_path / "out")
    assert "being worked on" in refusal(make, tmp_path / "out", overwrite=True)
    os.close(lock)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, OSError])
def test_what_is_stopped_leaves_what_was_there(tmp_path: Path, raised: type[BaseException]) -> None:
    out, absent = a_thing(tmp_path / "out"), tmp_path / "absent"

    def stop_half_way(place: Path) -> None:
        with THING.claim(place, overwrite=True) as claimed, claimed.replaced() as made:
            write_atomically(made / "thing.json", b"half")
            raise raised

    for place in (out, absent):
        with pytest.raises(raised):
            stop_half_way(place)
    assert files(out) == sorted([*of("before"), *NOTES])
    assert not absent.exists()


def test_a_file_of_the_users_is_not_written_over(tmp_path: Path, refusal: Refusal) -> None:
    out = a_thing(tmp_path / "out")
    assert "is not what edgeflare put there" in refusal(
        write_atomically, out / "notes.txt", b"ours"
    )
    for data in (b"first", b"second"):
        write_atomically(out / "report.html", data)
    require_notes(out)
    remove_ours(out)
    assert files(out) == sorted(NOTES)


def test_a_listed_file_that_was_changed_is_not_written_over(
    tmp_path: Path, refusal: Refusal
) -> None:
    out = tmp_path / "out"
    make(out)
    write_atomically(out / "summary.md", b"first")
    (out / "summary.md").write_text("the user's")
    for data in (b"first", b"second"):
        assert "is not what edgeflare put there" in refusal(
            write_atomically, out / "summary.md", data
        )
    assert (out / "summary.md").read_text() == "the user's"
    (out / "summary.md").write_bytes(b"")  # as a loss of power may leave it
    write_atomically(out / "summary.md", b"third")
    assert (out / "summary.md").read_bytes() == b"third"


def test_what_is_written_again_adds_no_line(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    list_as(out, "state.json", STATE)
    write_atomically(out / "report.html", b"report")
    before = (out / LIST).read_bytes()
    for number in range(3):
        list_as(out, "state.json", STATE)
        write_atomically(out / "state.json", b"%d" % number)
        write_atomically(out / "report.html", b"report")
    assert (out / LIST).read_bytes() == before
    assert (out / "state.json").read_bytes() == b"2"


def test_a_list_is_read_on_or_anew_as_it_has_changed(tmp_path: Path) -> None:
    """Whatever was read of it before, it is as another process would read it."""

    def named() -> list[str]:
        contents = read_contents(tmp_path)
        return [] if contents is None else sorted(contents.changing)

    begin_list(tmp_path, "thing")
    lines = [b""]
    for number in range(200):  # some 8 KiB
        list_as(tmp_path, f"{number:030d}", FOLDER)
        lines.append(b'\n{"path":"%030d","is":"folder"}' % number)
        assert len(named()) == number + 1
    with (tmp_path / LIST).open("ab") as file:
        file.write(b'\n{"path":"cut","is":"fol')
        file.flush()
        assert len(named()) == 200
        file.write(b'der"}')
    assert named()[-1] == "cut"
    begin_list(tmp_path, "thing")
    assert named() == []
    with (tmp_path / LIST).open("ab") as file:
        file.write(b"".join(lines[:50]))
    assert len(named()) == 49
    (tmp_path / LIST).write_text("a user's")
    assert named() == []


def test_what_a_list_that_was_lost_would_name_is_gone_on_with(tmp_path: Path) -> None:
    make(tmp_path)
    (tmp_path / LIST).unlink()
    with THING.take(tmp_path, lambda: None):
        write_atomically(tmp_path / "thing.json", b"after")
    assert (tmp_path / "thing.json").read_bytes() == b"after"


def test_files_are_removed_where_they_are_listed_and_unchanged(tmp_path: Path) -> None:
    make(tmp_path)
    write_atomically(tmp_path / "*", b"ours, of a name that is a pattern")
    for name in ("thing.json", "notes.txt"):
        (tmp_path / name).write_text("the user's")
    remove_files(tmp_path, "*", "only-before/file", "notes.txt", "thing.json", "../outside", "none")
    assert files(tmp_path) == [LIST, "findings/000001.png", "notes.txt", "thing.db", "thing.json"]
    assert not (tmp_path / "only-before").exists()
    remove_files(tmp_path / "findings", "000001.png")  # which has no list
    assert (tmp_path / "findings" / "000001.png").exists()


def test_folders_of_files_that_are_gone_go_too_unless_they_lie_outside(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    (tmp_path / "a").mkdir()
    (out / "a" / "b").mkdir(parents=True)
    (out / "linked").symlink_to(tmp_path / "a")
    outside = ("../a/file", f"{tmp_path}/a/file", "linked/file", "a/../../a/file")
    remove_files(out, "a/b/file", "findings/none", *outside)
    assert (tmp_path / "a").is_dir()
    assert (out / "linked").is_symlink()
    assert not (out / "a").exists()
    assert (out / "findings").is_dir()


@pytest.mark.parametrize("nested", [False, True])
def test_documents_are_ours_where_the_list_of_their_folder_is_lost(
    tmp_path: Path, *, nested: bool
) -> None:
    out = tmp_path / "inner" if nested else tmp_path
    if nested:
        begin_list(tmp_path, "things")
        list_as(tmp_path, "inner", FOLDER)
    make(out)
    (out / "thing.json").write_text("of another moment")
    remove_documents(out, "thing.json")
    assert (out / "thing.json").exists()  # the list tells that it is the user's
    (out / LIST).unlink()
    (out / "linked").symlink_to("thing.db")
    write_atomically(out / "findings" / "000001.png", b"another png")
    require_ours(out, "thing.json")
    remove_documents(out, "thing.json", "only-before/file", "linked", "../outside", "findings")
    write_atomically(out / "thing.json", b"after")
    assert files(out) == ["findings/000001.png", "linked", "thing.db", "thing.json"]
    remove_ours(tmp_path)
    assert files(out) == ["findings/000001.png", "linked", "thing.db", "thing.json"]


def test_what_others_have_changed_is_not_written_anew(tmp_path: Path, refusal: Refusal) -> None:
    make(tmp_path)
    require_ours(tmp_path, "thing.json", "thing.db", "none")
    (tmp_path / "thing.json").write_bytes(b"")  # as a loss of power leaves it
    require_ours(tmp_path, "thing.json")
    remove_files(tmp_path, "thing.json")
    assert not (tmp_path / "thing.json").exists()
    (tmp_path / "empty").touch()
    (tmp_path / "thing.json").symlink_to("empty")
    refusal(require_ours, tmp_path, "thing.json")
    refusal(write_atomically, tmp_path / "thing.json", b"anew")
    (tmp_path / "thing.json").unlink()
    (tmp_path / "thing.json").write_text("the user's")
    said = refusal(require_ours, tmp_path, "thing.db", "thing.json")
    assert said.startswith(f"{tmp_path / 'thing.json'} is not as edgeflare left it")
    (tmp_path / LIST).unlink()
    require_ours(tmp_path, "thing.json")


@pytest.mark.parametrize("shape", ["{}", "{}/a", "l/l/l/l/l/l/{}", "../{}/a"])
def test_names_of_nothing_cost_nothing(
    tmp_path: Path, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stranger's folder may list as many as it likes: none is looked for by itself."""
    make(tmp_path / "out")
    (tmp_path / "out" / "l").symlink_to(".")
    with (tmp_path / "out" / LIST).open("a") as file:
        for number in range(1000):
            line = {"path": "a", "sha256": "", "through": shape.format(number)}
            file.write("\n" + json.dumps(line))
    looked = []

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: object) -> Any:
            looked.append(args)
            return real(*args)

        return count

    monkeypatch.setattr(folder_contents, "path_inside", counted(path_inside))
    monkeypatch.setattr(os, "listdir", counted(os.listdir))
    mend(tmp_path / "out")
    remove_ours(tmp_path / "out")
    assert 0 < len(looked) < 100


def test_folders_with_lists_and_files_of_state_go_with_the_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out)
    list_as(out, "state.json", STATE)
    for _ in range(3):
        write_atomically(out / "state.json", b"state")
    list_as(out, "inner", FOLDER)
    make(out / "inner")
    (out / "inner" / "notes.txt").write_text("the user's")
    remove_ours(out)
    assert files(tmp_path) == ["out/inner/notes.txt"]


def test_a_list_that_a_full_disk_has_cut_takes_no_further_line_with_it(tmp_path: Path) -> None:
    make(tmp_path / "out")
    with (tmp_path / "out" / LIST).open("a") as file:
        file.write('\n{"path":"cut')
    write_atomically(tmp_path / "out" / "more", b"more")
    contents = read_contents(tmp_path / "out")
    assert contents is not None
    assert contents.is_ours(tmp_path / "out", "more")


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links")

    monkeypatch.setattr(os, "link", refused)
    make(a_thing(tmp_path / "out"), "after", overwrite=True)
    assert files(tmp_path / "out") == sorted([*of("after"), *NOTES])


@pytest.mark.slow
def test_a_kill_at_any_step_is_rolled_back_or_forward(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before the one step, what was there stays; after it, the next claim ends the replacement."""
    forward = 0

    def prepare(folder: Path) -> Callable[[], None]:
        out = a_thing(folder / "out")
        return lambda: make(out, "after", overwrite=True)

    def mended(folder: Path, kill: Kill) -> None:
        nonlocal forward
        out = folder / "out"
        require_notes(out)
        if (new := half_replaced(out)) is not None and (new / LIST).exists():
            with pytest.raises(UserError, match=r"killed \(thing\): type that command"):
                require_whole(out)
            forward += 1
        THING.claim(out, overwrite=True).close()
        said = capsys.readouterr().err
        require_whole(out)
        content = (out / "thing.json").read_text()
        assert files(out) == sorted([*of(content), *NOTES]), kill
        assert said.count("\n") <= 1
        require_notes(out)

    kills = killed_at_each(tmp_path, prepare, mended)
    assert forward > 5
    assert kills > 20


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_a_new_place_free_or_whole(tmp_path: Path) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        return lambda: make(folder / "out")

    def mended(folder: Path, _: Kill) -> None:
        out = folder / "out"
        with contextlib.suppress(UserError):  # a thing, which is whole
            make(out, "again")
        content = (out / "thing.json").read_text()
        assert files(out) == of(content)

    assert killed_at_each(tmp_path, prepare, mended, every=2) > 7


def test_a_disk_that_is_full_is_told_with_the_file_s_name(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, before[1]))
    try:
        with pytest.raises(OSError, match=r"too large: .*/notes\.md'$"):
            write_atomically(tmp_path / "notes.md", bytes(2**20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("meanwhile", ["the content replaced", "the unfinished file removed"])
def test_a_file_that_is_put_without_a_lock_is_listed_whatever_happens_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    begin_list(tmp_path, "run")
    replace = os.replace

    def disturbed(one: Path, other: Path) -> None:
        monkeypatch.undo()
        if meanwhile == "the content replaced":
            begin_list(tmp_path, "run")
        else:
            one.unlink()
        replace(one, other)

    monkeypatch.setattr(os, "replace", disturbed)
    write_atomically(tmp_path / "page.html", b"first")
    write_atomically(tmp_path / "page.html", b"second")
    contents = read_contents(tmp_path)
    assert contents is not None
    assert contents.is_ours(tmp_path, "page.html")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["contents.jsonl", "page.html"]
