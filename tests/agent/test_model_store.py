from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgeflare_agent.model_store import (
    BadName,
    Corrupted,
    ModelStore,
    StoreFull,
    UnknownModel,
    UnsafeFolder,
)


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def add(store: ModelStore, content: bytes) -> list[str]:
    return store.add(sha(content), len(content), [content])


def age(folder: Path, *oldest_first: bytes) -> None:
    for second, content in enumerate(oldest_first):
        os.utime(folder / f"{sha(content)}.tflite", (second, second))


def test_what_is_added_can_be_held(tmp_path: Path) -> None:
    store = ModelStore(tmp_path / "deep" / "store", 100)
    assert sha(b"model") not in store
    with pytest.raises(UnknownModel), store.hold(sha(b"model")):
        pass
    assert store.add(sha(b"model"), 5, [b"mo", b"", b"del"]) == []
    assert sha(b"model") in store
    with store.hold(sha(b"model")) as path:
        assert path.read_bytes() == b"model"
    assert store.used_bytes() == 5
    again = ModelStore(tmp_path / "deep" / "store", 5)
    assert sha(b"model") in again
    assert add(again, b"model") == []
    assert again.used_bytes() == 5


@pytest.mark.parametrize(
    ("name", "size", "why"),
    [
        (sha(b"other"), 5, "promised was"),
        (sha(b"model"), 4, "more than the promised 4"),
        (sha(b"model"), 6, "5 bytes came, 6 were promised"),
    ],
)
def test_what_is_not_as_promised_is_not_kept(
    tmp_path: Path, name: str, size: int, why: str
) -> None:
    store = ModelStore(tmp_path, 100)
    with pytest.raises(Corrupted, match=why):
        store.add(name, size, [b"mod", b"el"])
    assert name not in store
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> ModelStore:
    return ModelStore(tmp_path_factory.mktemp("store"), 100)


@given(
    name=st.text(max_size=80)
    | st.sampled_from(["../" * 3 + "x", "A" * 64, "a" * 63, "a" * 64 + "\n"])
)
@settings(max_examples=20)
def test_only_hashes_are_names(empty_store: ModelStore, name: str) -> None:
    with pytest.raises(BadName):
        name in empty_store  # noqa: B015
    with pytest.raises(BadName):
        empty_store.add(name, 1, [b"x"])
    with pytest.raises(BadName), empty_store.hold(name):
        pass


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, 30)
    a, b, c, d = b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 15
    for content in (a, b, c):
        add(store, content)
    age(tmp_path, b, a, c)
    with store.hold(sha(b)):
        pass
    assert add(store, d) == [sha(a), sha(c)]
    assert [sha(content) in store for content in (a, b, c, d)] == [False, True, False, True]


def test_a_held_model_is_not_evicted(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, 20)
    add(store, b"a" * 10)
    with store.hold(sha(b"a" * 10)):
        with pytest.raises(StoreFull, match="sessions hold"):
            add(store, b"b" * 11)
        assert sha(b"a" * 10) in store
    assert add(store, b"b" * 11) == [sha(b"a" * 10)]


def test_a_model_held_by_another_agent_is_not_evicted_until_that_agent_dies(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, 20)
    add(store, b"a" * 10)
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, pathlib; from edgeflare_agent.model_store import ModelStore\n"
            "with ModelStore(pathlib.Path(sys.argv[1]), 20).hold(sys.argv[2]):\n"
            "    print('held', flush=True); sys.stdin.read()",
            str(tmp_path),
            sha(b"a" * 10),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreFull):
            add(store, b"b" * 20)
        holder.kill()
    assert add(store, b"b" * 20) == [sha(b"a" * 10)]


def test_too_large_for_any_eviction(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, 20)
    add(store, b"a")
    with pytest.raises(StoreFull, match="--store-limit-mib"):
        add(store, b"b" * 21)
    assert sha(b"a") in store


def test_half_sent_leftovers_are_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".upload-deadbeef").write_bytes(b"half")
    store = ModelStore(tmp_path, 100)

    def slowly() -> list[bytes]:
        # A second agent starts meanwhile, and must leave this upload alone.
        ModelStore(tmp_path, 100)
        return [b"model"]

    store.add(sha(b"model"), 5, (chunk for chunk in slowly()))
    assert [path.name for path in tmp_path.iterdir()] == [f"{sha(b'model')}.tflite"]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=12), max_size=12))
def test_the_bound_holds_and_the_newest_is_there(
    tmp_path_factory: pytest.TempPathFactory, contents: list[bytes]
) -> None:
    store = ModelStore(tmp_path_factory.mktemp("store"), 20)
    present: set[str] = set()
    for content in contents:
        present |= {sha(content)}
        present -= set(add(store, content))
        assert store.used_bytes() <= 20
        assert sha(content) in store
        assert all(name in store for name in present)


def test_links_in_the_folder_lead_nowhere(tmp_path: Path) -> None:
    """Neither a link in place of the lock nor one in place of a model touches another file."""
    folder, victim = tmp_path / "store", tmp_path / "victim"
    folder.mkdir(mode=0o700)
    victim.write_bytes(b"model")
    (folder / ".lock").symlink_to(victim)
    (folder / f"{sha(b'model')}.tflite").symlink_to(victim)
    store = ModelStore(folder, 100)
    assert sha(b"model") not in store
    add(store, b"model")
    with store.hold(sha(b"model")) as path:
        assert not path.is_symlink()
    assert victim.read_bytes() == b"model"


def test_a_named_pipe_in_place_of_a_model_stops_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"{sha(b'model')}.tflite")
    store = ModelStore(tmp_path, 100)
    assert sha(b"model") not in store
    add(store, b"model")
    assert sha(b"model") in store


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(UnsafeFolder, match="chmod o-w"):
        ModelStore(folder, 100)
    folder.chmod(0o700)
    ModelStore(folder, 100)


def test_a_folder_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(UnsafeFolder, match=r"belongs to another user .uid \d+.: .*--store"):
        ModelStore(tmp_path, 100)


@given(content=st.binary(min_size=1, max_size=64), at=st.integers(0, 63), other=st.integers(1, 255))
def test_a_damaged_model_is_removed_when_it_is_asked_for(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, at: int, other: int
) -> None:
    folder = tmp_path_factory.mktemp("store")
    add(ModelStore(folder, 100), content)
    path = folder / f"{sha(content)}.tflite"
    damaged = bytearray(content)
    damaged[at % len(content)] ^= other
    path.write_bytes(damaged)
    store = ModelStore(folder, 100)
    with pytest.raises(UnknownModel, match=r"damaged.*send it again"), store.hold(sha(content)):
        pass
    assert not path.exists()
    add(store, content)
    with store.hold(sha(content)) as held:
        assert held.read_bytes() == content


def test_a_model_damaged_after_it_was_used_is_removed_too(tmp_path: Path) -> None:
    store = ModelStore(tmp_path, 100)
    add(store, b"model")
    path = tmp_path / f"{sha(b'model')}.tflite"
    with store.hold(sha(b"model")):
        pass
    path.write_bytes(b"mOdel")
    os.utime(path, ns=(0, 1))
    assert sha(b"model") not in store
    assert not path.exists()


def test_an_unchanged_model_is_hashed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(ModelStore(tmp_path, 100), b"model")
    store = ModelStore(tmp_path, 100)
    hashed, name, sha256 = [], sha(b"model"), hashlib.sha256
    monkeypatch.setattr(hashlib, "sha256", lambda: hashed.append(1) or sha256())  # type: ignore[func-returns-value]
    for _ in range(3):
        assert name in store
        with store.hold(name):
            pass
    assert len(hashed) == 1


def test_rechecking_hashes_what_seems_unchanged(tmp_path: Path) -> None:
    """A worker that read other bytes is believed, though size and time are those of before."""
    store = ModelStore(tmp_path, 100)
    add(store, b"model")
    path = tmp_path / f"{sha(b'model')}.tflite"
    before = path.stat()
    path.write_bytes(b"mOdel")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    store.recheck(sha(b"model"))
    assert not path.exists()


def test_what_others_have_in_the_folder_is_neither_counted_nor_removed(tmp_path: Path) -> None:
    others = [tmp_path / name for name in ("model.tflite", ".upload-of-photos", "notes.txt")]
    for path in others:
        path.write_bytes(b"others'")
    store = ModelStore(tmp_path, 10)
    assert store.used_bytes() == 0
    add(store, b"12345678")
    assert add(store, b"87654321") == [sha(b"12345678")]
    assert {path.read_bytes() for path in others} == {b"others'"}


def test_half_sent_files_that_are_links_or_pipes_are_cleared_away(tmp_path: Path) -> None:
    store, kept = tmp_path / "store", tmp_path / "kept"
    store.mkdir(mode=0o700)
    kept.touch()
    (store / ".upload-alinkaln").symlink_to(kept)
    (store / ".upload-_nowhere").symlink_to(tmp_path / "absent")
    os.mkfifo(store / ".upload-namedpip")
    code = (
        "from edgeflare_agent.model_store import ModelStore, Path;"
        f" ModelStore(Path({str(store)!r}), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=200)  # a pipe may hang it
    assert not list(store.iterdir())
    assert kept.exists()
