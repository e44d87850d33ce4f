from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.errors import path_suggestion, suggestion


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("models/original.tflite", "models/notes.txt", "other/original.tflite"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("models/orginal.tflite", "models/original.tflite"),
        ("model/original.tflite", "models/original.tflite"),
        ("models/original.onnx", "models/original.tflite"),
        ("models/zzz", None),
        ("zzz/original.tflite", None),
        ("model/orginal.tflite", None),  # two guesses on top of each other
        ("models/original.tflite/deeper", None),
    ],
)
def test_the_path_most_like_it_is_named(folder: Path, path: str, meant: str | None) -> None:
    expected = "" if meant is None else f" (did you mean '{folder / meant}'?)"
    assert path_suggestion(folder / path, Path.is_file) == expected


def test_only_what_fits_is_named(folder: Path) -> None:
    assert path_suggestion(folder / "models" / "note.txt", lambda one: one.suffix == ".md") == ""


def test_a_relative_path_is_named_as_it_was_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert path_suggestion(Path("othr"), Path.is_dir) == " (did you mean 'other'?)"


@pytest.mark.timeout(30)
def test_names_of_any_length_and_number_are_answered_at_once() -> None:
    assert suggestion("ab" * 500_000, ["ba" * 500_000]) == ""
    assert suggestion("a" * 150, (f"{number}" + "b" * 150 for number in range(10**7))) == ""
