"""What lies where a fleet's result goes: as the fleet left it, or changed by somebody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.errors import InfrastructureError
from edgeflare.fleet.record.fleet_output import FleetOutput
from edgeflare.run.run_directory import DOCUMENT, JOURNAL

Refusal = Callable[..., str]


@pytest.fixture
def output(tmp_path: Path) -> FleetOutput:
    return FleetOutput(tmp_path / "run.fleet" / "output", (tmp_path / "run",))


def write(output: FleetOutput, text: str) -> None:
    (place,) = output.places
    place.mkdir(exist_ok=True)
    for name in (DOCUMENT, JOURNAL):
        (place / name).write_text(text)


def test_what_the_fleet_has_made_is_its_own_until_somebody_changes_it(
    output: FleetOutput, refusal: Refusal
) -> None:
    output.begin()
    output.require_unchanged()
    with output.writing():
        write(output, "made")
    assert output.is_made()
    output.require_unchanged()
    (output.places[0] / "report.html").touch()
    assert output.is_made()
    (output.places[0] / f"{JOURNAL}-wal").write_text("a search that somebody has killed")
    assert not output.is_made()
    assert "move it away" in refusal(output.require_unchanged)


def test_what_is_to_be_replaced_may_be_replaced_and_is_no_result(
    output: FleetOutput, refusal: Refusal
) -> None:
    write(output, "old")
    output.begin()
    output.require_unchanged()
    assert not output.is_made()
    write(output, "new")
    assert "is not as the fleet left it" in refusal(output.require_unchanged)


def test_what_is_gone_is_made_again(output: FleetOutput) -> None:
    with output.writing():
        write(output, "made")
    output.places[0].rename(output.places[0].with_name("aside"))
    output.require_unchanged()
    assert not output.is_made()


def test_a_merge_that_fails_leaves_what_was_known(output: FleetOutput) -> None:
    with output.writing():
        write(output, "made")
    with pytest.raises(InfrastructureError), output.writing():
        raise InfrastructureError("the disk is full")
    assert output.is_made()


def test_without_a_note_what_lies_there_is_somebody_elses(
    output: FleetOutput, refusal: Refusal
) -> None:
    write(output, "of another command")
    assert refusal(output.require_unchanged)
