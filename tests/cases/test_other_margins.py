"""Layers are named by the margin of the pair's own task, and by options that decide numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from called_commands import call_here
from public_cases import copied_case


def explained(pair: Path, compressed: str, limit: int) -> list[Any]:
    """The explanations of findings on some seeds, by the file that is compressed."""
    run = pair / f"run of {compressed}"
    given = ("--compressed", pair / compressed, "--first", str(limit), "--max-queries", "60")
    assert call_here("search", pair, *given, "--fail-on", "none", "--out", run).code == 0
    assert call_here("explain", run).code == 0
    return list(json.loads((run / "explain.json").read_text())["findings"].values())


@pytest.mark.slow
def test_a_resize_by_another_rule_is_named_and_the_healthy_file_is_not_blamed(
    tmp_path: Path,
) -> None:
    pair = copied_case("resize_half_pixel", tmp_path)
    for finding in explained(pair, "compressed.tflite", limit=2):
        error = finding["twin_and_original"]
        assert finding["verdict"]["name"] == "compression"
        assert (error["most"]["operator"], error["most"]["name"]) == (4, "RESIZE_BILINEAR")
        (named,) = (one for one in error["layers"] if one["operator"] == 4)
        assert named["margin_share"] > 0.5
        assert named["options"] == [
            {"name": "half_pixel_centers", "compressed": False, "original": True}
        ]
        assert "has half_pixel_centers false, the original true" in finding["verdict"]["why"]
    healthy = explained(pair, "good.tflite", limit=4)
    assert healthy
    for finding in healthy:
        layers = finding["twin_and_original"]["layers"]
        assert not [
            one for one in layers if one["options"] or (one["operator"] == 4 and one["beyond"])
        ]
