from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgeflare.core.interrupt import Interrupt
from edgeflare.errors import UserError
from edgeflare.rank import rank_runs


@pytest.mark.parametrize("link", ["pair", "pair/measured.json"])
def test_a_ranking_leaves_its_folder_by_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    def recall(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(rank_runs, "load_measurements", recall)
    (tmp_path / "elsewhere").mkdir()
    at = tmp_path / "out" / link
    at.parent.mkdir(parents=True)
    at.symlink_to(tmp_path / "elsewhere")
    grid: Any = SimpleNamespace(plan=None)
    pair: Any = SimpleNamespace(folder_name="pair")
    with pytest.raises(UserError, match="outside of it"):
        rank_runs.measure_all(grid, [pair], tmp_path / "out", None, lambda _: None, Interrupt())
