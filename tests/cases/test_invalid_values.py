"""NaN of a compressed file is said with its operator, its constant, and the arms that have it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from called_commands import call_here
from public_cases import copied_case

BEGINS = "it begins in MUL (operator 27), whose constant 'tfl.dequantize6' holds infinity"


@pytest.mark.slow
def test_a_constant_that_is_infinite_in_float16_is_named(tmp_path: Path) -> None:
    pair, run = copied_case("fp16_mask_nan", tmp_path), tmp_path / "run"
    looked = call_here("search", pair, "--dry-run", "--first", "4")
    said = " ".join(looked.out.split())
    assert "the twin puts out NaN on 4 of the first 4 seeds" in said
    assert f"the original nowhere; in the compressed file {BEGINS}" in said
    assert "check the preprocessing" not in said
    searched = call_here(
        "search", pair, "--first", "2", "--max-queries", "3", "--fail-on", "none", "--out", run
    )
    assert searched.code == 0
    (warning,) = json.loads((run / "run.json").read_text())["warnings"]
    assert warning.startswith("the twin puts out NaN on 2 of 2 seeds and the device puts out NaN")
    explained = call_here("explain", run)
    assert explained.code == 0
    assert "warning" not in explained.err.lower()
    for finding in json.loads((run / "explain.json").read_text())["findings"].values():
        assert finding["verdict"]["name"] == "compression"
        assert finding["verdict"]["why"].endswith(
            f"NaN on twin and device: {BEGINS}; original is finite"
        )
        assert finding["non_finite"]["original"] is None
        most = finding["twin_and_original"]["most"]
        assert (most["operator"], most["name"]) == (27, "MUL")
    assert call_here("explain", run, "0").code == 0
    assert call_here("report", run, "--html").code == 0
    assert "NaN on twin and device" in (run / "report.html").read_text()
