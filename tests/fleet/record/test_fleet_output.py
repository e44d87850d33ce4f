"""What lies where a fleet's result goes, as the fleet left it or changed; and its page."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edgeflare.fleet.record.fleet_folder import REFRESH_SECONDS, fleet_page
from edgeflare.fleet.record.fleet_output import FleetOutput
from edgeflare.fleet.record.fleet_state import AttemptState, FleetState, PlaceState, UnitState
from edgeflare.record.atomic_file import write_atomically
from edgeflare.record.json_types import plain_json
from edgeflare.run.run_directory import DOCUMENT, JOURNAL, RUN, RunDirectory

Refusal = Callable[..., str]


@pytest.fixture
def output(tmp_path: Path) -> FleetOutput:
    return FleetOutput(tmp_path / "run.fleet" / "output")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "run"


def written(folder: Path, text: str) -> Path:
    """Write what an attempt sends, or what a search of somebody else's leaves."""
    if not folder.exists():
        os.close(RunDirectory.claim(folder, overwrite=False)[1])
    write_atomically(folder / DOCUMENT, text.encode())
    (folder / JOURNAL).write_bytes(b"SQLite format 3\0".ljust(72, b"\0") + text.encode())
    return folder


def put(output: FleetOutput, place: Path, made: Path) -> None:
    with RUN.claim(place, overwrite=True) as claimed:
        output.put(claimed, made)


def test_what_the_fleet_has_put_there_is_its_own_until_somebody_changes_it(
    output: FleetOutput, place: Path, tmp_path: Path, refusal: Refusal
) -> None:
    output.begin([place])
    output.require_unchanged([place])
    for text in ("some", "all"):
        put(output, place, written(tmp_path / "made", text))
        assert output.is_made(place)
        assert (place / DOCUMENT).read_text() == text
    (place / "report.html").touch()
    assert output.is_made(place)
    (place / f"{JOURNAL}-wal").write_text("a search that somebody has killed")
    assert not output.is_made(place)
    assert "move it away" in refusal(output.require_unchanged, [place])
    assert "move it away" in refusal(put, output, place, written(tmp_path / "made", "more"))
    assert (place / DOCUMENT).read_text() == "all"


def test_what_is_to_be_replaced_may_be_replaced_and_is_no_result(
    output: FleetOutput, place: Path, tmp_path: Path, refusal: Refusal
) -> None:
    written(place, "old")
    output.begin([place])
    output.require_unchanged([place])
    assert not output.is_made(place)
    written(place, "of somebody else")
    assert "is not as the fleet left it" in refusal(output.require_unchanged, [place])
    written(place, "old")
    put(output, place, written(tmp_path / "made", "new"))
    assert output.is_made(place)


def test_what_is_gone_is_made_again(output: FleetOutput, place: Path, tmp_path: Path) -> None:
    output.begin([place])
    put(output, place, written(tmp_path / "made", "some"))
    place.rename(tmp_path / "aside")
    output.require_unchanged([place])
    assert not output.is_made(place)
    put(output, place, written(tmp_path / "made", "all"))
    assert output.is_made(place)


@pytest.mark.parametrize("swapped", [True, False])
def test_killed_as_it_puts_a_run_there_it_may_go_on(
    output: FleetOutput, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped: bool
) -> None:
    output.begin([place])
    put(output, place, written(tmp_path / "made", "some"))
    rename = os.rename

    def killed(one: Path, other: Path) -> None:
        if Path(other).name == "replacing":
            if swapped:
                rename(one, other)
            raise OSError("killed")
        rename(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        with pytest.raises(OSError, match="killed"):
            put(output, place, written(tmp_path / "made", "all"))
    output.require_unchanged([place])
    put(output, place, written(tmp_path / "again", "all"))
    assert output.is_made(place)


def test_places_are_held_apart(
    output: FleetOutput, place: Path, tmp_path: Path, refusal: Refusal
) -> None:
    other = written(tmp_path / "other", "old")
    output.begin([place, other])
    put(output, place, written(tmp_path / "made", "new"))
    assert (output.is_made(place), output.is_made(other)) == (True, False)
    written(other, "changed")
    output.require_unchanged([place])
    assert str(other) in refusal(output.require_unchanged, [place, other])


def test_without_a_note_what_lies_there_is_somebody_elses(
    output: FleetOutput, place: Path, refusal: Refusal
) -> None:
    assert refusal(output.require_unchanged, [written(place, "of another command")])


@pytest.mark.parametrize("kept", ["[" * 5000, "[]", '{"PLACE": 1}', '{"PLACE": {"made": []}}'])
def test_a_marker_of_other_values_knows_no_place(
    output: FleetOutput, place: Path, kept: str
) -> None:
    output.marker.parent.mkdir()
    output.marker.write_text(kept.replace("PLACE", str(place)))
    assert not output.is_made(place)
    output.require_unchanged([place])


EVIL = '<script>alert("x")</script>&\x1b[31m'


def state(ended: bool) -> FleetState:
    attempt = AttemptState(1, EVIL, EVIL, 0.0, 3.0, f"lost ({EVIL})")
    return FleetState(
        fingerprint="c",
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
    assert msgspec.convert(plain_json(state(ended=True)), FleetState) == state(ended=True)
