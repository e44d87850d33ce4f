"""What a fleet's command says of its progress where no terminal looks on."""

from __future__ import annotations

from pathlib import Path

import pytest

from edgeflare.cli import fleet_progress as shown_here
from edgeflare.cli.fleet_progress import fleet_progress
from edgeflare.fleet.record.fleet_state import AttemptState, FleetState, PlaceState, UnitState


def state() -> FleetState:
    units = [UnitState(f"unit-{at:04d}", "class", "", 2) for at in range(3)]
    places = [PlaceState("bench-1: one", "bench-1"), PlaceState("bench-2: two", "bench-2")]
    return FleetState("c", seconds=60.0, units=units, places=places)


def test_lines_say_what_has_changed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(shown_here, "LINE_SECONDS", 0.0)
    with fleet_progress(tmp_path / "run.fleet") as show:
        now = state()
        show(now)
        show(now)
        now.units[0].status, now.units[0].ended = "done", 2
        show(now)
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("0 of 3 units done")
    assert second.startswith("1 of 3 units done, 2 of 6 seeds searched")
    assert second.endswith(f"see {tmp_path / 'run.fleet' / 'fleet.html'}")


def test_seldom_enough_for_a_log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with fleet_progress(tmp_path) as show:
        show(state())
    assert capsys.readouterr().err == ""


def test_a_host_that_is_away_is_warned_of_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with fleet_progress(tmp_path) as show:
        now = state()
        now.places[1].away = True
        show(now)
        show(now)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("warning: bench-2 takes no part in the cluster")


def test_what_is_under_way_counts_as_busy_and_what_was_lost_is_counted() -> None:
    now = state()
    now.units[0].attempts = [
        AttemptState(1, "bench-1", "one", 0.0, 10.0, "lost (WorkerCrashedError)"),
        AttemptState(2, "bench-1", "one", 10.0, 20.0),
    ]
    place = now.places[0]
    place.busy_seconds, place.unit = 10.0, "unit-0000"
    assert now.busy_share(place) == 0.5
    assert "1 attempts lost or failed" in now.summary()
    assert now.why_idle(place) == ""
    now.drained = ["bench-1"]
    assert now.why_idle(place) == "drained"
    place.quarantined = "unplugged"
    assert now.why_idle(place) == "unplugged"
