"""Tests of edgeflare.repair.document."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from edgeflare.models.pair import load_pair
from edgeflare.repair.document import write_pair
from edgeflare.repair.repairing import MODEL

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"


@pytest.mark.parametrize("name", ["plain", 'a "quoted" näme \\ 服'])
def test_the_folder_of_a_repaired_model_is_a_pair(name: str, tmp_path: Path) -> None:
    pair = replace(load_pair(EXAMPLE), name=name, outputs="probabilities")
    shutil.copy(pair.compressed, tmp_path / MODEL)

    write_pair(tmp_path, pair, pair.seeds)

    found = load_pair(tmp_path)
    assert found == replace(pair, name=f"{name}-repaired", compressed=tmp_path / MODEL)
    assert found.fingerprint() == pair.fingerprint()
