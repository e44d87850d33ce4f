from __future__ import annotations

from pathlib import Path

import pytest

from documents import DEVICE, run_document
from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.replay import past_run
from edgeflare.replay.past_run import PastRun
from edgeflare.run.journal import Journal
from edgeflare.run.plan import Plan
from edgeflare.run.run_header import RunHeader

ABOUT = RunHeader(
    version="test",
    pair={"name": "pair", "fingerprint": "0"},
    plan=Plan("boundary", Goal(), ("board",)),
    devices=({"name": "board", "provenance": DEVICE},),
    arms={},
    classes=(),
    labels=(0,),
)


def test_a_finding_of_a_seed_without_its_label_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal.create(tmp_path / "run.db", ABOUT.to_json()).close()
    document = run_document(findings=[{"seed_id": 1}])
    monkeypatch.setattr(past_run, "load_document", lambda _: document)
    with pytest.raises(UserError, match=r"run\.db is damaged \(.*out of range"):
        PastRun.open(tmp_path)
