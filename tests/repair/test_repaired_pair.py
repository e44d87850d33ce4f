"""Tests of edgeflare.repair.repaired_pair."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.models.pair import load_pair
from edgeflare.models.pair_file import Settings, read_settings
from edgeflare.repair.repair_candidate import RepairCandidate
from edgeflare.repair.repaired_pair import MODEL, RECIPE, write_pair, write_repaired

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
