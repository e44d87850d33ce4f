"""Files from outside that are changed at random; benchmarks/outside_files.py runs many more."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from outside_kinds import KINDS, changed, run_case

CASES = 8


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "name",
    [
        *("about.json", "candidates", "done unit", "fleet's output", "fleet.json", "fleet.toml"),
        *("groups.csv", "profile", "repair.json", "tokens", "units.txt"),
    ],
)
def test_no_changed_file_ends_in_a_mistake_a_signal_or_a_hang(name: str, tmp_path: Path) -> None:
    for module in ("app", "devices", "doctor", "fleet", "report", "repair_presentation"):
        import_module(f"edgeflare.cli.{module}")  # here, so that no fork has to
    import_module("edgeflare.repair.candidate_store")
    kind = KINDS[name]
    kind.make(tmp_path / "right")
    data = (tmp_path / "right" / kind.file).read_bytes()
    for number in range(CASES):
        content = changed(kind, data, f"test/{name}", number)
        ended = run_case(kind, tmp_path / "right", tmp_path / "case", content, number)
        assert ended.code in (0, 1, 2, 3), (number, ended)
        assert not ended.fault(usual=60.0), (number, ended)
