from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from documents import run_document
from edgeflare.errors import UserError
from edgeflare.replay import past_run
from edgeflare.replay.past_run import PastRun
from edgeflare.run.journal import Journal

ABOUT: dict[str, Any] = {
    "version": "0",
    "pair": {},
    "plan": {},
    "devices": [],
    "arms": {},
    "classes": [],
    "labels": [0],
}


def test_a_finding_of_a_seed_without_its_label_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal.create(tmp_path / "run.db", ABOUT).close()
    document = run_document(findings=[{"seed_id": 1}])
    monkeypatch.setattr(past_run, "load_document", lambda _: document)
    monkeypatch.setattr("edgeflare.run.run_header.Plan.from_json", lambda _: None)
    with pytest.raises(UserError, match=r"run\.db is damaged \(.*out of range"):
        PastRun.open(tmp_path)
