"""A campaign and the run that records it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from called_commands import EXAMPLE
from edgeflare.campaign.campaign_record import _describe_pair
from edgeflare.models.pair import load_pair


@pytest.mark.parametrize("original", ["networks.py:predict", "networks:predict"])
def test_a_file_with_a_function_is_found_from_any_folder_and_a_module_stays_what_it_is(
    original: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "networks.py").write_text("def predict(image): ...\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    said = _describe_pair(replace(load_pair(EXAMPLE), original=original), "").original
    assert said == (str(tmp_path / original) if original.endswith("py:predict") else original)
