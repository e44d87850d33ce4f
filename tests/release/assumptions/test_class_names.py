"""Which names classes are assumed to have, and which sub-folders are labels."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from edgeflare.release.assumptions.assumption import Assumption
from edgeflare.release.assumptions.class_names import assumed_classes
from edgeflare.release.assumptions.input_source import GivenInputs

NAMES = ("shirt", "coat", "bag")


def inputs(folder: Path, *folders: str) -> GivenInputs:
    for name in folders:
        (folder / name).mkdir()
        (folder / name / "one.png").touch()
    return GivenInputs.at(folder)


def said(found: Assumption) -> str:
    return "; ".join(found.notes)


def test_a_model_names_its_own_classes(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("labels.txt", "shirt\ncoat\nbag\n")
    found = assumed_classes(packed.getvalue(), inputs(tmp_path, "Coat", "bag", "hat"), 3)
    assert found.settings.classes == NAMES
    assert "labels.txt in the model: shirt, coat, bag" in said(found)
    assert "those in hat have none" in said(found)


def test_names_that_are_too_many_leave_room_for_others(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a") as archive:
        archive.writestr("labels.txt", "background\nshirt\ncoat\nbag\n")
    (tmp_path / "labels.txt").write_text("shirt\ncoat\nbag\n")
    found = assumed_classes(packed.getvalue(), inputs(tmp_path, "coat"), 3)
    assert found.settings.classes == NAMES


def test_a_damaged_archive_behind_a_model_names_nothing_and_breaks_nothing(tmp_path: Path) -> None:
    packed = io.BytesIO(b"a model")
    with zipfile.ZipFile(packed, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("labels.txt", "shirt\ncoat\nbag\n" * 9)
    content = packed.getvalue()
    for at in range(len(content)):
        damaged = bytearray(content)
        damaged[at] ^= 0x15
        assert assumed_classes(bytes(damaged), inputs(tmp_path), 3).settings.classes is None


@pytest.mark.parametrize("beside", [False, True])
def test_names_may_lie_with_the_inputs(beside: bool, tmp_path: Path) -> None:
    folder = tmp_path / "inputs"
    folder.mkdir()
    given = inputs(folder, "coat")
    (tmp_path if beside else folder).joinpath("labels.txt").write_text("shirt\ncoat\nbag\n\n")
    assert assumed_classes(b"", given, 3).settings.classes == NAMES
    other = assumed_classes(b"", given, 4)
    assert other.settings.classes is None
    assert "has 3 names for 4 scores, so it is not used" in said(other)


def test_names_in_another_encoding_are_not_used(tmp_path: Path) -> None:
    names = "Hemd\nMäntel\nTasche\n"
    for encoding in ("latin-1", "utf-16"):
        (tmp_path / "labels.txt").write_bytes(names.encode(encoding))
        found = assumed_classes(b"", GivenInputs.at(tmp_path), 3)
        assert found.settings.classes is None
        assert "labels.txt is no text in UTF-8: write it so" in said(found)
    (tmp_path / "labels.txt").write_bytes(names.encode("utf-8-sig"))
    found = assumed_classes(b"", GivenInputs.at(tmp_path), 3)
    assert found.settings.classes == ("Hemd", "Mäntel", "Tasche")


def test_one_sub_folder_for_each_score_is_taken_by_the_alphabet(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, *NAMES), 3)
    assert found.settings.classes == ("bag", "coat", "shirt")
    assert "alphabetical order" in said(found)


def test_fewer_sub_folders_than_scores_are_no_labels_without_names(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, *NAMES), 10)
    assert found.settings.classes is None
    assert f"write their names into {tmp_path / 'labels.txt'}" in said(found)


def test_numbers_are_labels(tmp_path: Path) -> None:
    found = assumed_classes(b"", inputs(tmp_path, "0", "7"), 10)
    assert found.settings.classes is None
    assert said(found) == "the inputs have the labels of their sub-folders"
