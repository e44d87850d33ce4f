from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from documents import DEVICE, run_document
from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.replay import past_run
from edgeflare.replay.past_run import PastRun
from edgeflare.run.journal import Journal
from edgeflare.run.plan import Plan
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from image_interfaces import image_interface

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


@pytest.mark.parametrize(
    ("size", "what"), [(2**32 + 1, "has 4,294,967,297 bytes"), (0, "is empty")]
)
def test_a_recorded_model_is_no_larger_than_any_that_is_read(
    tmp_path: Path, size: int, what: str
) -> None:
    compressed = tmp_path / "compressed.tflite"
    with compressed.open("wb") as file:
        file.truncate(size)
    said = {
        "name": "pair",
        "compressed": str(compressed),
        "original": None,
        **image_interface().to_json(),
    }
    past = PastRun(
        RunDirectory(tmp_path), run_document(), replace(ABOUT, pair=said), searched=frozenset()
    )
    with pytest.raises(UserError, match=f"{what}.* say where that is with --compressed"):
        past.pair()
