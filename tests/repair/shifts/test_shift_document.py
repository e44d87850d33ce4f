"""Tests of edgeflare.repair.shifts.shift_document."""

from __future__ import annotations

from pathlib import Path

from edgeflare.repair.repair_cost import Cost
from edgeflare.repair.repaired_pair import MODEL
from edgeflare.repair.shifts.shift_document import write_models
from edgeflare.repair.shifts.shift_repair import STANDALONE, Shifted


def test_the_shifts_are_there_for_a_model_that_cannot_be_edited_too(tmp_path: Path) -> None:
    cost = Cost("board", 100, 200, 1e-5, 1e-5, 1.0)
    write_models(tmp_path / "out", Shifted(b"model", b"shifts", cost, 100, 100))
    found = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert found == {MODEL: b"model", STANDALONE: b"shifts"}
