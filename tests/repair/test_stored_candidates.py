"""Tests of edgeflare.repair.stored_candidates: what a repair goes on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.errors import UserError
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repair_outcome import TriedCandidate
from edgeflare.repair.stored_candidates import FOLDER, StoredCandidates
from judgements import judgement

ABOUT = {"request": {"method": "auto", "rng_seed": 0}, "pair": "abc"}
DETAILS = {"precision": {"blamed": "conv"}}
RECIPE = ({"regex": ".*", "op_config": {"compute_precision": "FLOAT"}},)
JUDGED = TriedCandidate(
    "ranges+head", 1.5, 3, ratio=1.01, judgement=judgement(20, 5), details=DETAILS
)
ASIDE = TriedCandidate("head", 0.5, None, set_aside="the XNNPACK delegate: refused")
CANDIDATE = RepairCandidate("ranges+head", b"abc", RECIPE, DETAILS, {"alone.tflite": b"\xff"})
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


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "pair.toml").touch()
    with pytest.raises(UserError, match="holds no repair to go on with"):
        StoredCandidates(tmp_path, ABOUT, resume=True)
    assert [one.name for one in tmp_path.iterdir()] == ["pair.toml"]


def test_a_repair_of_something_else_does_not_go_on(tmp_path: Path) -> None:
    StoredCandidates(tmp_path, ABOUT, resume=False)
    other = {**ABOUT, "request": {"method": "bias", "rng_seed": 0}}
    with pytest.raises(UserError, match="holds a repair with another request: give that as before"):
        StoredCandidates(tmp_path, other, resume=True)


def test_a_damaged_description_is_said_in_a_line(tmp_path: Path) -> None:
    StoredCandidates(tmp_path, ABOUT, resume=False)
    (tmp_path / FOLDER / "about.json").write_bytes(b"{")
    with pytest.raises(UserError, match=r"about\.json is damaged"):
        StoredCandidates(tmp_path, ABOUT, resume=True)


def test_what_is_removed_leaves_nothing_but_what_others_wrote(tmp_path: Path) -> None:
    out = tmp_path / "out"
    StoredCandidates(out, ABOUT, resume=False).remove()
    assert not out.exists()
    out.mkdir()
    StoredCandidates(out, ABOUT, resume=False).remove()
    assert not list(out.iterdir())
