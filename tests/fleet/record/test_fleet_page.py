"""The page of a fleet: what it says is no markup, and it loads itself again until the end."""

from __future__ import annotations

from edgeflare.fleet.record.fleet_page import REFRESH_SECONDS, fleet_page
from edgeflare.fleet.record.fleet_state import AttemptState, FleetState, PlaceState, UnitState

EVIL = '<script>alert("x")</script>&\x1b[31m'


def state(ended: bool) -> FleetState:
    attempt = AttemptState(1, EVIL, EVIL, 0.0, 3.0, f"lost ({EVIL})")
    return FleetState(
        campaign="c",
        seconds=60.0,
        units=[
            UnitState("unit-0000", EVIL, "0:5", 5, "done", 5, 2, [attempt]),
            UnitState(EVIL, EVIL, "5:10", 5, "running", 1, 0, [attempt]),
        ],
        places=[PlaceState(EVIL, EVIL, EVIL, 1, 30.0, 2, EVIL)],
        drained=[EVIL],
        ended=ended,
    )


def test_what_hosts_say_is_no_markup() -> None:
    page = fleet_page(state(ended=False))
    assert "<script" not in page
    assert "\x1b" not in page
    assert "&lt;script&gt;" in page
    assert "default-src 'none'; style-src 'unsafe-inline'; base-uri" in page


def test_it_loads_itself_again_until_the_end() -> None:
    refresh = f'http-equiv="refresh" content="{REFRESH_SECONDS}"'
    assert refresh in fleet_page(state(ended=False))
    assert "refresh" not in fleet_page(state(ended=True))


def test_it_counts_units_seeds_and_findings() -> None:
    page = fleet_page(state(ended=True))
    assert "1 of 2 units done, 2 attempts lost or failed" in page
    assert "6 of 10 seeds searched, 2 findings, 360 seeds per hour" in page
    assert "0 of 0 units" in fleet_page(FleetState("c"))


def test_a_state_is_read_back() -> None:
    assert FleetState.from_json(state(ended=True).to_json()) == state(ended=True)
