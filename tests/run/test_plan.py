"""What was asked is kept, and read as it was meant when it was written."""

from __future__ import annotations

import json
from dataclasses import replace

from edgeflare.core.goal import Goal
from edgeflare.run.plan import Plan
from edgeflare.search.operator_pool import pool_names

PLAN = Plan("boundary", Goal(), ("board",), ensemble=("xnnpack",))


def test_a_plan_keeps_the_operators_of_its_search() -> None:
    plan = replace(PLAN, operators=("invert", "pixel-change"))
    told = json.loads(json.dumps(plan.to_json()))
    assert told["operators"] == ["invert", "pixel-change"]
    assert Plan.from_json(told) == plan


def test_an_older_plan_has_the_operators_that_were_built_in() -> None:
    told = PLAN.to_json()
    del told["operators"]
    assert Plan.from_json(told).operators == (
        "average-blur",
        "gaussian-blur",
        "gaussian-noise",
        "median-blur",
        "multiplicative-noise",
        "pixel-change",
        "salt-and-pepper",
    )
    assert Plan.from_json(told).operators == pool_names("image")  # as long as it is these
