"""The laws that a simulated fleet keeps: benchmarks/fleet_simulation.py."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.fleet.work_units import screening_parts
from edgeflare.run.seed_ids import SeedIds
from simulated_fleet import FleetScenario, ServiceTimes, SharedServer, SimulatedFleet

INSTANT = ServiceTimes(**{field.name: 0.0 for field in fields(ServiceTimes)})
"""A head, a link and commands that take no time at all."""


def calm(devices: int, **how: float) -> FleetScenario:
    return FleetScenario(devices, device_hours=0, host_hours=0, **how)  # type: ignore[arg-type]


def screened(asked: FleetScenario) -> int:
    """Return in how many units the seeds are evaluated."""
    return len(screening_parts(SeedIds.first(round(asked.findings)), asked.devices))


@given(
    devices=st.integers(1, 40),
    unit_seconds=st.floats(20, 900),
    units=st.integers(1, 8),
    hours=st.floats(0.2, 50),
    seed=st.integers(0, 99),
)
def test_all_is_done_and_no_device_does_more_than_it_can(
    devices: int, unit_seconds: float, units: int, hours: float, seed: int
) -> None:
    asked = FleetScenario(
        devices, unit_seconds, units, device_hours=0, host_hours=hours, host_away=60.0, seed=seed
    )
    try:
        found = SimulatedFleet(asked, ServiceTimes()).run()
    except RuntimeError:
        return  # hosts were lost so often that no device was left
    assert found.done == devices * units + screened(asked)
    assert 0.0 < found.busy <= 1.0
    time = devices * (found.screening + found.seconds)
    assert found.busy_in_all * time + found.repeated <= time
    assert all(0.0 <= one <= 1.0 for one in (found.head, found.collector))
    assert (found.lost == 0) <= (found.repeated == 0.0)


@pytest.mark.slow
def test_a_head_that_takes_no_time_keeps_all_devices_busy() -> None:
    """But for passes, of half a second at most, and for the last units."""
    found = SimulatedFleet(calm(50, units_of_a_device=200), INSTANT).run()
    assert 0.985 < found.busy <= 1.0
    assert (found.lost, found.quarantined, found.repeated, found.head) == (0, 0, 0.0, 0.0)


def test_one_device_needs_the_time_of_its_units_and_of_their_starts() -> None:
    times = replace(INSTANT, start=10.0, finish=5.0)
    asked = calm(1, units_of_a_device=20)
    found = SimulatedFleet(asked, times).run()
    kept = found.busy * found.seconds
    assert kept == pytest.approx(20 * 300.0, rel=0.1)
    assert found.seconds == pytest.approx(kept + 20 * 15.0, abs=20 * asked.wait_seconds)


def test_a_saturated_head_does_what_it_can() -> None:
    """A result takes it two seconds, so that it has no use for more than thirty units a minute."""
    found = SimulatedFleet(calm(300, unit_seconds=60.0), replace(ServiceTimes(), keep=2.0)).run()
    assert found.head > 0.97
    assert found.done / found.seconds == pytest.approx(0.5, rel=0.1)


def test_lost_hosts_cost_what_was_not_backed_up() -> None:
    lossy = replace(calm(100), host_hours=2.0)
    often, seldom = (
        SimulatedFleet(replace(lossy, backup_seconds=every), ServiceTimes()).run()
        for every in (10.0, 120.0)
    )
    assert often.lost > 20
    assert 0.0 < often.repeated / often.lost < 10.0
    assert often.repeated / often.lost < seldom.repeated / seldom.lost < 120.0


def test_a_device_that_is_away_for_long_is_quarantined() -> None:
    failing = replace(calm(20), device_hours=4.0, device_away=90.0)
    brief = SimulatedFleet(failing, ServiceTimes()).run()
    long = SimulatedFleet(replace(failing, device_away=3600.0), ServiceTimes()).run()
    assert brief.quarantined < long.quarantined
    assert brief.done == long.done == 20 * 24 + screened(failing)
    assert long.busy < brief.busy


def test_the_screening_is_shared_out_and_merged() -> None:
    """Ten devices evaluate 1,000 seeds in the time of 100, and the head merges ten runs."""
    asked = calm(10, unit_seconds=300.0, units_of_a_device=20, screening_seconds=1.0)
    times = replace(INSTANT, start=4.0, merge_seed=0.01, merge_part=2.0)
    found = SimulatedFleet(asked, times).run()
    assert found.screening_merge == pytest.approx(1000 * 0.01 + 10 * 2.0)
    evaluated = found.screening - found.screening_merge
    assert evaluated == pytest.approx(4.0 + 100.0, abs=2 * asked.wait_seconds)
    assert found.merge == pytest.approx((10 + 200 + 3) * 2.0)  # in three groups, and these again


@given(asking=st.integers(1, 2000), think=st.floats(0.1, 60), service=st.floats(1e-5, 0.5))
def test_a_shared_server_answers_no_more_than_it_can(
    asking: int, think: float, service: float
) -> None:
    """By Little's law, and with the delays of one that asks and of very many."""
    server = SharedServer(asking, think, service)
    assert server.delays[1] == service
    assert server.share(asking) <= 1.0 + 1e-9
    assert server.rate(asking) <= asking / (think + service) + 1e-9
    assert server.delays[asking] >= max(service, asking * service - think) - 1e-6
    assert sorted(server.delays[1:]) == pytest.approx(server.delays[1:])
