from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from edgeflare.errors import UserError
from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.journal import Journal


@pytest.mark.parametrize("header", [{"pair": {}}, {"pair": 3}, {"pair": {"fingerprint": "x"}}])
def test_a_header_that_no_run_wrote_is_damage_and_the_run_is_unlocked(
    tmp_path: Path, header: dict[str, Any]
) -> None:
    whole: dict[str, Any] = {
        "version": "0",
        "plan": {},
        "devices": [],
        "arms": {},
        "classes": [],
        "labels": None,
    }
    Journal.create(tmp_path / "run.db", {**whole, **header}).close()
    ours: Any = None  # has no pair to compare with, once theirs is one
    with (
        patch("edgeflare.run.run_header.Plan.from_json", return_value=None),
        pytest.raises(UserError, match=r"run\.db is damaged"),
    ):
        resume_run(tmp_path, ours)
    Journal.reopen(tmp_path / "run.db").close()
