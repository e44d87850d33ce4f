"""Campaigns are set up in one place, and batches are waited for in few."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CALLERS = {
    "CampaignContext": {"campaign/campaign_record"},  # who sets a campaign up
    "run_chains": {"campaign/search_phase", "campaign/refinement_phase"},  # has chains run
    "stream": {  # who evaluates batches of known inputs
        *("campaign/input_evaluation", "campaign/pair_panel"),
        *("survey/phases/host_phase", "survey/phases/device_phase"),
        "repair/shifts/boundary_set",
    },
}


@pytest.mark.slow
def test_a_campaign_is_set_up_and_run_in_one_way() -> None:
    found = defaultdict(set)
    for folder in ("host/edgeflare", "tests", "benchmarks", "docs"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text, elsewhere = path.read_text(), "/edgeflare/devices/" in path.as_posix()
            if elsewhere or not any(name in text for name in CALLERS):
                continue
            calls = (node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
            for func in calls:
                name = func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")
                if name in CALLERS:
                    within = path.relative_to(ROOT / folder).with_suffix("").as_posix()
                    found[name].add(within)
    assert found == CALLERS
