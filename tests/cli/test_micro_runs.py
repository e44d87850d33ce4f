"""Runs on emulated-micro: from a search to its explanation and its replay, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

EXAMPLES = Path(__file__).parents[2] / "examples"
BUDGET = (
    *("--find", "kernel", "--first", "6", "--max-queries", "300", "--shrink", "0"),
    *("--within", "none", "--fail-on", "none"),
)


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


def test_a_run_is_explained_and_replayed_and_says_what_arena_it_took(
    call: Call, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    pair = EXAMPLES / "fashion_lenet4"
    said = call("search", pair, "--device", "emulated-micro", *BUDGET, "--out", run)
    assert said.code == 0, said.err
    assert "an arena of " in " ".join(said.out.split())
    document = document_of(run)
    what = document["devices"][0]["provenance"]
    assert (what["kernels"], what["runtime"]) == ("micro", "tflite-micro")
    assert what["arena_bytes"] > 0
    assert what["precision"] is None
    findings = document["findings"]
    assert findings
    assert call("explain", run).code == 0
    explained = json.loads((run / "explain.json").read_bytes())["findings"].values()
    assert {one["verdict"]["name"] for one in explained} == {"kernel"}
    said = call("replay", run, "--out", tmp_path / "again")
    assert said.code == 1, said.err
    assert len(document_of(tmp_path / "again")["findings"]) == len(findings)


def test_a_survey_and_a_ranking_run_there(call: Call, tmp_path: Path) -> None:
    pair, device = EXAMPLES / "fashion_lenet4", ("--device", "emulated-micro")
    run = tmp_path / "survey"
    asked = ("--conditions", "fog", "--severities", "3", "--first", "30", "--device-queries", "10")
    said = call("survey", pair, *device, *asked, "--findings", "0", "--out", run)
    assert said.code == 0, said.err
    assert document_of(run)["devices"][0]["provenance"]["runtime"] == "tflite-micro"
    other = ("--compressed", pair / "original.tflite")
    budget = ("--first", "2", "--max-queries", "10", "--shrink", "0")
    said = call("rank", pair, *device, *other, *budget, "--out", tmp_path / "rank")
    assert said.code == 0, said.err
    ranking = json.loads((tmp_path / "rank" / "rank.json").read_bytes())
    assert all(one["latency_ms"] > 0 for one in ranking["models"])


def test_a_model_that_does_not_fit_the_arena_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    profile = tmp_path / "device_profiles" / "small.toml"
    profile.parent.mkdir()
    profile.write_text('extends = "emulated-micro"\narena_bytes = 4096\n')
    options = ("--device", "small", "--first", "2", "--out", tmp_path / "run")
    said = call("search", EXAMPLES / "fashion_lenet4", *options)
    assert said.code == 2
    assert "and the device's profile allows 4,096: set a higher arena_bytes" in said.err
    assert said.err.strip().count("\n") == 0
