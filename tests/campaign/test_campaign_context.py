"""Campaigns are set up in one place, and batches are waited for in few."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PIPELINE = "host/edgeflare/campaign/pipeline.py"


def callers(name: str) -> Iterator[str]:
    """Return the files, but for this one, that call a function or a method of that name."""
    for folder in ("host", "tests", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            tree = ast.parse(path.read_text())
            calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
            names = {func.id if isinstance(func, ast.Name) else _attribute(func) for func in calls}
            if name in names:
                yield path.relative_to(ROOT).as_posix()


def _attribute(func: ast.expr) -> str | None:
    return func.attr if isinstance(func, ast.Attribute) else None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("CampaignContext", ["recorded_campaign"]),  # who sets a campaign up
        ("run_chains", ["journaled_chains", "../repair/shifts/boundary_set"]),  # who has chains run
        (
            "stream",  # who evaluates batches of known inputs
            [
                "input_evaluation",
                "opened_pair",
                "../survey/phases/host_phase",
                "../survey/phases/device_phase",
            ],
        ),
    ],
)
def test_a_campaign_is_set_up_and_run_in_one_way(name: str, files: list[str]) -> None:
    room = (ROOT / PIPELINE).parent
    wanted = {(room / f"{file}.py").resolve().relative_to(ROOT).as_posix() for file in files}
    assert {file for file in callers(name) if "/edgeflare/devices/" not in file} == wanted
