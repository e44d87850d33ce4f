"""What `fleet.toml` may say, and what is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from edgeflare.fleet.plan.fleet_file import DevicePlace, local_fleet, read_fleet

GOOD = """
[hosts.bench1]
address = "10.0.0.5"
devices = {pixel = ["SERIAL1", "SERIAL2"], emulated-builtin = 2}
[hosts.bench2]
address = "10.0.0.6"
devices = {pixel = ["SERIAL3"]}
"""


def test_devices_are_places_of_their_class(tmp_path: Path) -> None:
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


def test_a_class_that_nobody_offers_is_refused(tmp_path: Path, refusal: Callable[..., str]) -> None:
    file = tmp_path / "fleet.toml"
    file.write_text(GOOD)
    message = refusal(read_fleet(file).places, ["pixel", "pixle"])
    assert "pixle" in message
    assert "emulated-builtin, pixel" in message


HOST = '[hosts.a]\naddress = "10.0.0.1"\n'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "names no hosts"),
        ("hosts = 3", "names no hosts"),
        ("[hosts", "is not valid TOML"),
        ("\xff", "is not valid TOML"),
        ("[other]\na = 1", "unknown key other"),
        ("[hosts]\na = 1", "expected address and devices"),
        (HOST, "expected address and devices"),
        (HOST + "devices = {c = 1}\nport = 3", "expected address and devices"),
        ('[hosts.a]\naddress = ""\ndevices = {c = 1}', "address is the IP address"),
        ("[hosts.a]\naddress = 7\ndevices = {c = 1}", "address is the IP address"),
        ('[hosts.a]\naddress = "bench-1.lab"\ndevices = {c = 1}', "address is the IP address"),
        (
            f"{HOST}devices = {{c = 1}}\n{HOST.replace('.a]', '.b]')}devices = {{c = 1}}",
            "two hosts",
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
