"""What of a command its units have too, and which options of a fleet belong together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from called_commands import call_here
from edgeflare.cli.fleet_options import FleetOptions, user_words

KEPT = ["search", "pair", "--first", "5", "--find=any", "--chains", "3"]
OF_THE_FLEET = [
    ["--fleet", "local"],
    ["--fleet=h:1"],
    ["--fleet-file", "fleet.toml"],
    ["--unit-seeds=4"],
    ["--fleet-devices", "3"],
    ["--out", "--resume"],
    ["--device", "emulated-builtin"],
    ["--seed-ids", "0:5"],
    ["--fail-on=any"],
    ["--allow", "0.1"],
    ["--resume"],
    ["--overwrite"],
    ["--quiet"],
]


@given(st.permutations([*([one] for one in KEPT[:2]), *OF_THE_FLEET]))
def test_units_have_neither_place_nor_folder(words: list[list[str]]) -> None:
    flat = [word for group in words for word in group]
    without = {"--seed-ids", "--fail-on", "--allow"}
    told = user_words([*flat, *KEPT[2:]], without=without, without_flags={"--quiet"})
    positional = [word for word in flat if word in KEPT[:2]]
    assert list(told) == [*positional, *KEPT[2:]]


def test_what_stands_behind_two_dashes_is_no_option() -> None:
    assert user_words(["pair", "--out", "x", "--", "--out", "y"]) == ("pair", "--", "--out", "y")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (FleetOptions(fleet_devices=4), "belong to --fleet"),
        (FleetOptions(fleet_file=Path("f")), "belong to --fleet"),
        (FleetOptions(fleet="h:1"), "--fleet-file"),
        (FleetOptions(fleet=""), "names no cluster"),
        (FleetOptions(fleet="local", fleet_file=Path("f")), "leave out --fleet-file"),
        (FleetOptions(fleet="h:1", fleet_file=Path("f"), fleet_devices=3), "--fleet-file says it"),
    ],
)
def test_options_that_lack_another_are_refused(
    options: FleetOptions, expected: str, refusal: Callable[..., str]
) -> None:
    assert expected in refusal(options.require_complete)


def test_complete_options_are_not() -> None:
    for options in (
        FleetOptions(),
        FleetOptions(fleet="local", fleet_devices=3),
        FleetOptions(fleet="h:1", fleet_file=Path("f")),
    ):
        options.require_complete()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            ["--device", "emulated-builtin", "--device", "emulated-xnnpack"],
            "name one with --device",
        ),
        (["--device", "nosuch"], "nosuch"),
        (["--seed-ids", "0:1000", "--dry-run"], "names seed 200"),
        (["--screen-only"], "makes and hands on the screening itself"),
        (["--total-queries", "100"], "--max-queries"),
    ],
)
def test_searches_that_no_fleet_can_make_are_refused(
    words: list[str], expected: str, example: Path, tmp_path: Path
) -> None:
    said = call_here("search", example, "--fleet", "local", "--out", tmp_path / "run", *words)
    assert said.code == 2
    assert expected in said.complaint()
    assert not list(tmp_path.iterdir())


def test_a_dry_run_says_what_refining_may_cost_on_all_hosts(example: Path, tmp_path: Path) -> None:
    words = ("--fleet", "local", "--first", "20", "--seed-ids", "4:20", "--unit-seeds", "8")
    out = tmp_path / "run"
    said = call_here(
        *("search", example, *words, "--device", "emulated-builtin", "--shrink", "99"),
        *("--dry-run", "--out", out),
    )
    assert said.code == 0, said.err
    assert "1 units evaluate the seeds, 2 search from them" in said.out
    assert "refined by at most 100 queries more, 1,600 for 16: --strengthen 0" in said.out
    assert not list(tmp_path.iterdir())
