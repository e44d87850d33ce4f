"""Tokens, clips, several inputs, and a package's own task and domain: from a search to a replay."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interrupted_commands import started
from laboratory import untimed
from plugin_package import install_plugin
from small_pairs import (
    VOCABULARY,
    write_clip_pair,
    write_score_pair,
    write_tokens_pair,
    write_two_inputs_pair,
)

pytestmark = pytest.mark.slow

Call = Callable[..., Any]

TESTS = Path(__file__).parents[1]
LIMITS = (
    *("--first", "4", "--max-queries", "300"),
    *("--shrink", "40", "--strengthen", "40", "--within", "none"),
)


def document_of(run: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((run / "run.json").read_bytes())
    return document


def searched(call: Call, pair: Path, run: Path, *options: str) -> dict[str, Any]:
    """Search a pair; return the run's document, all of whose findings are verified."""
    said = call("search", pair, *options, *LIMITS, "--out", run)
    assert said.code == 1, said.err
    document = document_of(run)
    assert document["findings"]
    assert all(one["verified"] for one in document["findings"])
    assert any(one["refined"] for one in document["findings"])
    return document


def require_the_same_again(call: Call, run: Path) -> None:
    """Check that all findings of a run deviate still when its stored files are tried again."""
    assert call("replay", run, "--out", f"{run}-again").code == 1
    before, after = document_of(run), document_of(Path(f"{run}-again"))
    for key in ("findings", "deviating_seeds"):
        assert [one["sha256"] for one in after[key]] == [one["sha256"] for one in before[key]]
    assert not after["replay"]["mended"]


def require_shown(call: Call, run: Path) -> None:
    assert call("explain", run).code == 0
    assert call("report", run, "--html", "--junit", "--csv").code == 0
    assert (run / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    "strategy", [("boundary", "--set", "step_length=0.5"), ("random",), ("climb",)]
)
def test_texts_of_ids_are_searched(strategy: tuple[str, ...], call: Call, tmp_path: Path) -> None:
    pair = write_tokens_pair(tmp_path / "pair")
    document = searched(call, pair, tmp_path / "run", "--strategy", *strategy)
    for one in document["findings"]:
        ids = json.loads((tmp_path / "run" / one["image"]).read_text())
        seed = json.loads((tmp_path / "run" / one["seed_image"]).read_text())
        assert len(ids) == len(seed)
        assert ids != seed
        assert set(ids) <= set(range(VOCABULARY))
    require_the_same_again(call, tmp_path / "run")
    if strategy == ("random",):
        require_shown(call, tmp_path / "run")


@pytest.mark.parametrize("strategy", ["boundary", "dflare"])
def test_clips_are_searched(strategy: str, call: Call, tmp_path: Path) -> None:
    pair = write_clip_pair(tmp_path / "pair")
    document = searched(call, pair, tmp_path / "run", "--strategy", strategy)
    with np.load(tmp_path / "run" / document["findings"][0]["image"]) as clip:
        assert clip["frames"].shape == (6, 4, 4, 1)
        assert clip["frames"].dtype == np.uint8
    require_the_same_again(call, tmp_path / "run")
    if strategy == "boundary":
        require_shown(call, tmp_path / "run")


def test_one_of_two_inputs_is_searched_beside_the_other(call: Call, tmp_path: Path) -> None:
    pair = write_two_inputs_pair(tmp_path / "pair")
    options = ("--set", "step_length=0.05")
    document = searched(call, pair, tmp_path / "run", *options)
    assert [one["search"] for one in document["pair"]["inputs"]] == [True, False]
    require_the_same_again(call, tmp_path / "run")
    require_shown(call, tmp_path / "run")


def test_a_killed_search_of_one_of_two_inputs_goes_on(call: Call, tmp_path: Path) -> None:
    pair = write_two_inputs_pair(tmp_path / "pair")
    slowly = ("--device", "emulated-builtin-slow", "--strategy", "random", "--chains", "1")
    killed = tmp_path / "killed"
    command = ("search", str(pair), *slowly, *LIMITS, "--out")
    with started(*command, str(killed)) as process:
        deadline = time.monotonic() + 300.0
        while not (killed / "findings").is_dir() and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
    assert not (killed / "run.json").exists()

    assert call(*command, killed, "--resume").code == 1
    assert call(*command, tmp_path / "whole").code == 1
    before, after = document_of(tmp_path / "whole"), document_of(killed)
    assert untimed(after) == untimed(before)
    require_the_same_again(call, killed)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return where a package with a task and one with a domain are installed."""
    task = install_plugin(
        tmp_path_factory.mktemp("task"),
        "night_light",
        (TESTS / "tasks" / "night_light.py").read_text(),
        {"edgeflare.tasks": {"night-light": "night_light:NightLight"}},
    )
    domain = install_plugin(
        tmp_path_factory.mktemp("domain"),
        "room_temperatures",
        (TESTS / "domains" / "room_temperatures.py").read_text(),
        {
            "edgeflare.domains": {"room-temperatures": "room_temperatures:RoomTemperatures"},
            "edgeflare.operators": {"room-temperatures": "room_temperatures"},
        },
    )
    return f"{task}:{domain}"


def test_a_task_of_another_package_is_searched(
    packages: str, start: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", packages)
    values = '[inputs.values]\ndomain = "array"\narray = "inputs"\nlowest = -4.0\nhighest = 4.0\n'
    task = '[task]\nname = "night-light"\ndusk = 0.5\n'
    pair = write_score_pair(tmp_path / "pair", values + task)
    document = searched(start, pair, tmp_path / "run")
    assert document["pair"]["task"] == "night-light"
    for one in document["findings"]:
        assert {one["labels"]["original"], one["labels"]["device"]} == {0, 1}
    require_the_same_again(start, tmp_path / "run")
    require_shown(start, tmp_path / "run")


def test_a_domain_of_another_package_is_searched_by_its_operators(
    packages: str, start: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", packages)
    rooms = '[inputs.values]\ndomain = "room-temperatures"\n'
    task = '[task]\nname = "threshold"\nthreshold = 0.25\n'
    pair = write_score_pair(tmp_path / "pair", rooms + task)
    with np.load(pair / "seeds.npz") as seeds:
        np.savez(pair / "seeds.npz", inputs=20.0 + 5.0 * seeds["inputs"])

    said = start("search", pair, "--out", tmp_path / "refused")
    assert said.code == 2
    assert "EdgeFlare has none for the domain room-temperatures: say --operators all" in said.err
    assert not (tmp_path / "refused").exists()

    document = searched(start, pair, tmp_path / "run", "--operators", "all")
    assert document["plan"]["operators"] == ["open-window"]
    for one in document["findings"]:
        rooms_of_finding = np.fromfile(tmp_path / "run" / one["image"], "<f4")
        assert rooms_of_finding.shape == (6,)
        assert (rooms_of_finding >= 0.0).all()
        assert (rooms_of_finding <= 40.0).all()
    require_the_same_again(start, tmp_path / "run")
    require_shown(start, tmp_path / "run")
