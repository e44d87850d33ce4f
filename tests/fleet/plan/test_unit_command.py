"""A unit's command is filled in on its host, and no word of the user's is taken for a place."""

from __future__ import annotations

from edgeflare.fleet.plan.unit_command import (
    DEVICE,
    RESUME,
    RUN,
    filled_command,
    given_run,
    shown_command,
)

GIVEN = given_run("screening")
COMMAND = (
    "search",
    "--device",
    DEVICE,
    "--out",
    RUN,
    RESUME,
    "--screening",
    GIVEN,
    "DEVICE",
    "a b",
)
WORDS = {DEVICE: "pixel", RUN: "/r", GIVEN: "/s"}


def test_words_are_filled_in() -> None:
    begun = ["search", "--device", "pixel", "--out", "/r", "--screening", "/s", "DEVICE", "a b"]
    assert filled_command(COMMAND, WORDS, resume=False) == begun
    assert filled_command(COMMAND, WORDS, resume=True) == [*begun[:5], "--resume", *begun[5:]]


def test_people_read_what_stands_there() -> None:
    shown = "search --device DEVICE --out RUN --screening SCREENING DEVICE 'a b'"
    assert shown_command(COMMAND) == shown
