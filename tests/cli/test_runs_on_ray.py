"""A bench and a ranking on a real cluster of this host are those that one device makes."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from run_content import content_differences
from summed_up_runs import summed_up_content

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

SHORT = ("--first", "3", "--max-queries", "40")
FLEET = ("--fleet", "local", "--fleet-devices", "2")
Call = Callable[..., Any]


def question(command: str, example: Path) -> list[str | Path]:
    """A bench of two strategies and two run seeds, or a ranking of two models."""
    asked: dict[str, list[str | Path]] = {
        "bench": ["--strategy", "random", "--strategy", "dflare", "--rng-seeds", "0,1"],
        "rank": ["--compressed", example / "original.tflite", "--shrink", "10"],
    }
    return [command, example, *asked[command], *SHORT]


@pytest.mark.parametrize(("command", "runs"), [("bench", 4), ("rank", 2)])
def test_a_fleet_makes_what_one_device_makes(
    command: str, runs: int, call: Call, start: Call, example: Path, tmp_path: Path
) -> None:
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: the extra fleet brings it")
    words = question(command, example)
    alone, out = tmp_path / "alone", tmp_path / "out"
    on_fleet = start(*words, *FLEET, "--out", out)
    assert on_fleet.code == 0, on_fleet.err
    assert call(*words, "--out", alone).code == 0
    found = summed_up_content(out)
    assert len(found) == 1 + runs
    assert content_differences(found, summed_up_content(alone)) == []
    assert f"{command}.json" in found
    assert on_fleet.out.strip()
    assert f"{runs + 1} of {runs + 1} units done" in call("fleet", "status", out).out
