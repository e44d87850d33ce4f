"""Files of a repair: the candidates that it goes on with, and the repaired pair."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings, read_settings
from edgeflare.record.folder import FolderKind
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_outcome import TriedCandidate
from edgeflare.repair.repaired_pair import MODEL, RECIPE, write_document, write_pair, write_repaired
from edgeflare.repair.stored_candidates import FOLDER, StoredCandidates
from judgements import judgement
from kills import Kill, killed_at_each, put_notes, require_notes

ABOUT = {"request": {"method": "auto", "rng_seed": 0}, "pair": "abc"}
DETAILS = {"precision": {"blamed": "conv"}}
FLOATS = ({"regex": ".*", "op_config": {"compute_precision": "FLOAT"}},)
JUDGED = TriedCandidate(
    "ranges+head", 1.5, 3, ratio=1.01, judgement=judgement(20, 5), details=DETAILS
)
ASIDE = TriedCandidate("head", 0.5, None, set_aside="the XNNPACK delegate: refused")
CANDIDATE = RepairCandidate("ranges+head", b"abc", FLOATS, DETAILS, {"alone.tflite": b"\xff"})
TRIED = [(CANDIDATE, JUDGED), (None, ASIDE)]


def test_what_is_stored_is_what_is_read(tmp_path: Path) -> None:
    StoredCandidates(tmp_path, ABOUT, resume=False).write("heads", TRIED)
    again = StoredCandidates(tmp_path, ABOUT, resume=True)
    assert again.read("heads") == TRIED
    assert again.read("ranges") is None


@pytest.mark.parametrize("damage", [b"[}", b"", b'[{"tried": {"name": "\xff"}}]', b"[{}]"])
@pytest.mark.parametrize("name", ["heads.json", "ranges+head.tflite"])
def test_a_plan_with_a_damaged_or_missing_file_was_not_tried(
    tmp_path: Path, name: str, damage: bytes
) -> None:
    StoredCandidates(tmp_path, ABOUT, resume=False).write("heads", TRIED)
    (tmp_path / FOLDER / name).write_bytes(damage)
    assert StoredCandidates(tmp_path, ABOUT, resume=True).read("heads") is None
    (tmp_path / FOLDER / name).unlink()
    assert StoredCandidates(tmp_path, ABOUT, resume=True).read("heads") is None


@pytest.mark.parametrize("outside", ["../esc", "/etc/passwd", "a/b", "repair.json", ".hidden", ""])
def test_names_of_a_folder_of_a_stranger_stay_in_it(tmp_path: Path, outside: str) -> None:
    store = StoredCandidates(tmp_path, ABOUT, resume=False)
    beside = replace(CANDIDATE, files={outside: b"x"})
    store.write("heads", [(beside, JUDGED)])
    assert store.read("heads") is None


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    StoredCandidates(elsewhere, ABOUT, resume=False).write("heads", TRIED)
    folder.mkdir()
    (folder / FOLDER).symlink_to(elsewhere / FOLDER)
    with pytest.raises(UserError, match="outside of it"):
        StoredCandidates(folder, ABOUT, resume=True)


OTHER = {**ABOUT, "request": {"method": "bias", "rng_seed": 0}}


@pytest.mark.parametrize(
    ("begun", "name", "content", "about", "said"),
    [
        (False, "pair.toml", b"", ABOUT, "holds no repair to go on with"),
        (True, "notes", b"", OTHER, "holds a repair with another request: give that as before"),
        (True, f"{FOLDER}/about.json", b"{", ABOUT, r"about\.json is damaged"),
    ],
    ids=["something else", "another repair", "damaged"],
)
def test_what_is_no_repair_to_go_on_with_is_left_alone(
    tmp_path: Path, begun: bool, name: str, content: bytes, about: Any, said: str
) -> None:
    if begun:
        StoredCandidates(tmp_path, ABOUT, resume=False)
    (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError, match=said):
        StoredCandidates(tmp_path, about, resume=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_is_removed_leaves_nothing_but_what_others_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for left in (set(), {"notes.txt", "candidates/mine.json"}):
        for name in left:
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_text("mine")
        with FolderKind("repair").take(out, lambda: None):
            stored = StoredCandidates(out, ABOUT, resume=False)
            stored.write("heads", TRIED)
            stored.remove()
        found = {one.relative_to(out).as_posix() for one in out.rglob("*") if one.is_file()}
        assert found - {"contents.jsonl"} == left
        assert out.exists() == bool(left)


def test_a_folder_of_candidates_that_a_kill_has_left_empty_goes(tmp_path: Path) -> None:
    with FolderKind("repair").take(tmp_path, lambda: None):
        stored = StoredCandidates(tmp_path, ABOUT, resume=False)
        stored.remove()
        (tmp_path / FOLDER).mkdir()
        stored.remove()
        assert not (tmp_path / FOLDER).exists()


def repair(out: Path) -> None:
    """Do what a repair does that goes on, and writes its model."""
    with FolderKind("repair").take(out, lambda: None):
        stored = StoredCandidates(out, ABOUT, resume=True)
        for plan in ("heads", "ranges"):
            if stored.read(plan) is None:
                stored.write(plan, TRIED)
        write_repaired(out, CANDIDATE)
        write_document(out, {"schema": "a repair"})


@pytest.mark.slow
def test_a_repair_that_is_killed_costs_nothing_of_the_users_and_is_gone_on_with(
    tmp_path: Path,
) -> None:
    def prepare(folder: Path) -> Callable[[], None]:
        repair(folder / "out")
        (folder / "out" / FOLDER / "ranges.json").unlink()
        put_notes(folder / "out")
        return lambda: repair(folder / "out")

    def next_command(folder: Path, _: Kill) -> None:
        require_notes(folder / "out")
        repair(folder / "out")
        require_notes(folder / "out")
        left = {one.name for one in (folder / "out").rglob("*") if one.is_file()}
        assert {"repair.json", "ranges.json", "alone.tflite"} <= left
        assert not [name for name in left if name.startswith(".")]

    assert killed_at_each(tmp_path, prepare, next_command) > 10


EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


EVIL = "\x7f\x9b31m\u202egnp"


@pytest.mark.parametrize("name", ["plain", 'a "quoted" näme \\ 服', f"one that commands {EVIL}"])
def test_the_folder_of_a_repaired_model_is_a_pair(name: str, tmp_path: Path) -> None:
    pair = load_pair(EXAMPLE, Settings(name=name, outputs="probabilities"))
    shutil.copy(pair.compressed, tmp_path / MODEL)

    write_pair(tmp_path, pair, pair.seeds)

    assert not set(EVIL[:2] + EVIL[5]) & set((tmp_path / "pair.toml").read_text(encoding="utf-8"))
    found = load_pair(tmp_path)
    assert found == replace(pair, name=f"{name}-repaired", compressed=tmp_path / MODEL)
    assert found.fingerprint() == pair.fingerprint()


def test_it_is_one_wherever_its_models_were_named_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = load_pair(EXAMPLE)
    assert pair.original is not None
    folder, out = tmp_path / "here", tmp_path / "out"
    folder.mkdir()
    shutil.copy(pair.original, folder / "float.tflite")
    shutil.copy(pair.seeds, folder / "seeds.npz")
    monkeypatch.chdir(folder)
    named = replace(pair, original="float.tflite", seeds=Path("seeds.npz"))

    write_pair(out, named, named.seeds)
    shutil.copy(pair.compressed, out / MODEL)
    monkeypatch.chdir(tmp_path)

    found = load_pair(out)
    assert found.original == str(folder / "float.tflite")
    assert found.seeds == folder / "seeds.npz"
    assert found.fingerprint() == pair.fingerprint()


def test_a_callable_stays_as_it_is_and_its_file_is_found(tmp_path: Path) -> None:
    pair = load_pair(EXAMPLE)
    (tmp_path / MODEL).touch()
    for typed, written in (
        ("package.module:predict", "package.module:predict"),
        ("model.py:predict", f"{Path.cwd() / 'model.py'}:predict"),
    ):
        write_pair(tmp_path, replace(pair, original=typed), pair.seeds)
        assert read_settings(tmp_path / "pair.toml").original == written


def test_what_belongs_beside_a_model_is_written_with_it(tmp_path: Path) -> None:
    files = {"shifts.tflite": b"shifts"}
    write_repaired(tmp_path / "out", RepairCandidate("shifts", b"model", None, files=files))
    write_repaired(tmp_path / "out", RepairCandidate("head", b"other", ({"regex": ".*"},)))
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found.keys() == {MODEL, RECIPE, "shifts.tflite"}
    assert (found[MODEL], found["shifts.tflite"]) == (b"other", b"shifts")
