"""What a fleet was asked: whether it goes on, and the first thing that it does not go on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.fleet.record.fleet_state import FleetRequest
from edgeflare.record.json_types import plain_json, read_text
from edgeflare.run.plan import Plan

PLAN = Plan("boundary", Goal(), ("phone",), max_queries=100)
BEGUN = FleetRequest(("phone",), ("search",), ("pair 1",), PLAN)


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (replace(BEGUN, classes=("board",)), "with --device phone, not board"),
        (replace(BEGUN, command=("survey",)), "with the words search, not survey"),
        (replace(BEGUN, files=("pair 2",)), "with the files pair 1, not pair 2"),
        (replace(BEGUN, version="9"), "with edgeflare"),
        (replace(BEGUN, cwd="/elsewhere"), "not /elsewhere"),
        (replace(BEGUN, plan=replace(PLAN, max_queries=200)), "with --max-queries 100, not 200"),
    ],
)
def test_what_is_asked_otherwise_is_named(now: FleetRequest, said: str) -> None:
    with pytest.raises(UserError, match=said) as refused:
        now.require_goes_on_with(BEGUN, Path("run.fleet"))
    assert str(refused.value).startswith("run.fleet was begun with")
    assert now.campaign != BEGUN.campaign


def test_what_is_read_again_goes_on() -> None:
    kept = msgspec.convert(plain_json(BEGUN), FleetRequest, dec_hook=read_text)
    assert kept == BEGUN
    assert kept.campaign == BEGUN.campaign
    kept.require_goes_on_with(BEGUN, Path("run.fleet"))
