"""Runs that an earlier commit of version 0.1.0 recorded, 3635223.

They load and are reported, explained, replayed and resumed as they were then.

`ended` came to its end, with four findings, refined, and their explanations. `interrupted` was
killed during the search, after two chains had ended. Where the models lay then is no path of this
machine, and what identifies the machine is written anew, as far as a resume compares it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from edgeflare.devices.device import connect
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.models.host_description import describe_host

Call = Callable[..., Any]

RECORDED = Path(__file__).with_name("runs_of_0_1_0")
PAIR = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
MODELS = (
    *("--original", str(PAIR / "original.tflite")),
    *("--compressed", str(PAIR / "compressed.tflite")),
)
BUILT_IN = [
    *("average-blur", "gaussian-blur", "gaussian-noise", "median-blur"),
    *("multiplicative-noise", "pixel-change", "salt-and-pepper"),
]
UNTIL_THE_END = {
    0: (11, "d7e7456a"),
    1: (60, "ea5e6f56"),
    2: (43, "3da3b722"),
    3: (45, "90f79a31"),
    4: (49, "4b8d6ae7"),
    5: (13, "a1dd2b2a"),
}
"""What that commit found from each seed where nobody killed it: queries, and the image's sha256."""


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    return Path(shutil.copytree(RECORDED / "ended", tmp_path / "ended"))


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """The interrupted run, as if it had been begun on this machine."""
    run = Path(shutil.copytree(RECORDED / "interrupted", tmp_path / "interrupted"))
    with connect(find_profile("emulated-builtin-slow")) as device:
        here = device.provenance.to_json()
    journal = sqlite3.connect(run / "run.db")
    (devices,) = journal.execute("SELECT value FROM about WHERE key = 'devices'").fetchone()
    (then,) = json.loads(devices)
    now = [{**then, "provenance": {**here, **dict(_of_the_model(then["provenance"]))}}]
    host = describe_host(str(PAIR / "original.tflite"))
    for key, value in (("devices", now), ("host", host)):
        journal.execute("UPDATE about SET value = ? WHERE key = ?", (json.dumps(value), key))
    journal.commit()
    journal.close()
    return run


def _of_the_model(provenance: dict[str, Any]) -> Any:
    return ((key, provenance[key]) for key in ("delegate", "delegated_nodes", "total_nodes"))


def document(run: Path) -> Any:
    return json.loads((run / "run.json").read_bytes())


def test_its_document_is_derived_from_its_journal_as_it_was(ended: Path, call: Call) -> None:
    then = document(ended)
    (ended / "run.json").unlink()
    said = call("report", ended, "--json")
    now = json.loads(said.out)
    assert now["plan"].pop("operators") == BUILT_IN  # which older runs drew from, and did not say
    assert now == then


@pytest.mark.slow
def test_it_is_reported(ended: Path, call: Call) -> None:
    assert call("report", ended, "--html", "--junit", "--csv", "--summary").code == 0
    assert (ended / "report.html").read_text().count("<article") >= len(document(ended)["findings"])


@pytest.mark.slow
def test_it_is_replayed(ended: Path, tmp_path: Path, call: Call) -> None:
    said = call("replay", ended, *MODELS, "--out", tmp_path / "replay")
    assert said.code == 0, said.err  # all lie farther from their seeds than --within
    replayed = document(tmp_path / "replay")
    sha256 = {entry["sha256"] for entry in document(ended)["findings"]}
    assert {entry["sha256"] for entry in replayed["findings"]} == sha256


@pytest.mark.slow
def test_its_explanations_are_read_and_others_added(ended: Path, call: Call) -> None:
    known = json.loads((ended / "explain.json").read_bytes())
    verdicts = {seed_id: one["verdict"] for seed_id, one in known["findings"].items()}
    del known["findings"]["0"]
    (ended / "explain.json").write_text(json.dumps(known))
    assert call("explain", ended, *MODELS).code == 0
    now = json.loads((ended / "explain.json").read_bytes())["findings"]
    assert {seed_id: one["verdict"] for seed_id, one in now.items()} == verdicts


@pytest.mark.slow
def test_it_is_resumed_and_finds_what_it_would_have_found(interrupted: Path, call: Call) -> None:
    command = (
        *("search", str(PAIR), "--limit", "6", "--chains", "1", "--max-queries", "200"),
        *("--device", "emulated-builtin-slow", "--shrink", "40", "--within", "none"),
        *("--fail-on", "none", "--out", str(interrupted), "--resume"),
    )
    assert call(*command).code == 0
    found = {
        entry["seed_id"]: (entry["queries"], entry["sha256"][:8])
        for entry in document(interrupted)["findings"]
    }
    assert found == UNTIL_THE_END
