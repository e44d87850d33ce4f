"""The plan of a fleet: what `fleet.toml` may say, units that partition seeds, their commands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.fleet.fleet_file import DevicePlace, local_fleet, read_fleet
from edgeflare.fleet.work_units import (
    DEVICE,
    RESUME,
    RUN,
    SCREENED_SEEDS,
    UNITS_FOR_EACH_PLACE,
    filled_command,
    given_run,
    screening_parts,
    search_parts,
    shown_command,
)
from edgeflare.run.seed_ids import SeedIds

GOOD = """
[hosts.bench1]
address = "10.0.0.5"
devices = {pixel = ["SERIAL1", "SERIAL2"], emulated-builtin = 2}
[hosts.bench2]
address = "10.0.0.6"
devices = {pixel = ["SERIAL3"]}
"""


def test_devices_are_places_of_their_class(tmp_path: Path, refusal: Callable[..., str]) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    fleet = read_fleet(file)

    assert fleet.places(["pixel"]) == (
        DevicePlace("bench1", "pixel", "SERIAL1"),
        DevicePlace("bench1", "pixel", "SERIAL2"),
        DevicePlace("bench2", "pixel", "SERIAL3"),
    )
    assert [str(place) for place in fleet.places(["emulated-builtin"])] == [
        "emulated-builtin on bench1",
        "emulated-builtin#2 on bench1",
    ]
    assert fleet.host("bench2").address == "10.0.0.6"
    assert fleet.places(["emulated-builtin", "pixel"])[2:] == fleet.places(["pixel"])
    assert len(set(local_fleet(["d", "e"], 3).places(["d", "e"]))) == 6
    message = refusal(fleet.places, ["pixel", "pixle"])
    assert "pixle" in message
    assert "emulated-builtin, pixel" in message


HOST = '[hosts.a]\naddress = "10.0.0.1"\n'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "names no hosts"),
        ("hosts = 3", "names no hosts"),
        ("[hosts", "is not valid TOML"),
        ("[other]\na = 1", "unknown key other"),
        ("[hosts]\na = 1", "expected address and devices"),
        (HOST, "expected address and devices"),
        (HOST + "devices = {c = 1}\nport = 3", "expected address and devices"),
        ("[hosts.a]\naddress = 7\ndevices = {c = 1}", "address is the IP address"),
        ('[hosts.a]\naddress = "bench-1.lab"\ndevices = {c = 1}', "address is the IP address"),
        (
            f"{HOST}devices = {{c = 1}}\n{HOST.replace('.a]', '.b]')}devices = {{c = 1}}",
            "two hosts",
        ),
        (
            '[hosts.a]\naddress = "fd00::1"\ndevices = {c = 1}\n'
            '[hosts.b]\naddress = "FD00:0::1"\ndevices = {c = 1}',
            "two hosts have the address fd00::1",
        ),
        (HOST + 'devices = {"" = 1}', "'' is no device class"),
        (HOST + 'devices = {"node:x" = 1}', "'node:x' is no device class"),
        (HOST + "devices = {}", "devices are names or a number"),
        (HOST + "devices = 2", "devices are names or a number"),
        (HOST + "devices = {c = 0}", "c is a list of device names"),
        (HOST + "devices = {c = true}", "c is a list of device names"),
        (HOST + "devices = {c = 1001}", "c is a list of device names"),
        (HOST + "devices = {c = []}", "c is a list of device names"),
        (HOST + 'devices = {c = ["x", ""]}', "c is a list of device names"),
        (HOST + 'devices = {c = ["x", 1]}', "c is a list of device names"),
        (HOST + 'devices = {c = ["x", "x"]}', "c names a device twice"),
    ],
)
def test_bad_content_is_one_line_that_names_the_file(
    tmp_path: Path, refusal: Callable[..., str], content: str, expected: str
) -> None:
    file = tmp_path / "fleet.toml"
    file.write_bytes(content.encode("latin-1"))
    message = refusal(read_fleet, file)
    assert str(file) in message
    assert expected in message


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    assert "nowhere" in refusal(read_fleet, tmp_path / "nowhere")
    assert str(tmp_path) in refusal(read_fleet, tmp_path)
    large = tmp_path / "large"
    large.write_bytes(b"#" * (2**20 + 1))
    assert str(large) in refusal(read_fleet, large)


@given(
    st.sets(st.integers(0, 10_000), min_size=1, max_size=300),
    st.integers(1, 50),
    st.none() | st.integers(1, 400),
)
def test_units_partition_the_ids(ids: set[int], places: int, size: int | None) -> None:
    parts = search_parts(SeedIds.of(ids), places, size)

    assert [one for part in parts for one in part] == sorted(ids)
    assert all(len(part) > 0 for part in parts)
    if size is None:
        assert len(parts) <= places * UNITS_FOR_EACH_PLACE
    else:
        assert all(len(part) == size for part in parts[:-1])
        assert len(parts[-1]) <= size


@given(st.integers(1, 3000), st.integers(1, 50))
def test_the_screening_is_shared_out_where_that_is_worth_it(seeds: int, places: int) -> None:
    parts = screening_parts(SeedIds.first(seeds), places)

    assert [one for part in parts for one in part] == list(range(seeds))
    assert len(parts) <= places
    assert all(len(part) >= SCREENED_SEEDS for part in parts[:-1])


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


def test_a_command_is_filled_in_on_its_host_and_people_read_what_stands_there() -> None:
    """No word of the user's is taken for a place."""
    begun = ["search", "--device", "pixel", "--out", "/r", "--screening", "/s", "DEVICE", "a b"]
    assert filled_command(COMMAND, WORDS, resume=False) == begun
    assert filled_command(COMMAND, WORDS, resume=True) == [*begun[:5], "--resume", *begun[5:]]
    shown = "search --device DEVICE --out RUN --screening SCREENING DEVICE 'a b'"
    assert shown_command(COMMAND) == shown
