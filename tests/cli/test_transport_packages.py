"""A transport of another package, used from the command line; its agent is a real one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from transport_packages import NICE, installed

Call = Callable[..., Any]


@pytest.fixture(autouse=True)
def nice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the package, with a profile for it in the working directory."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "device_profiles"
    folder.mkdir()
    (folder / "background.toml").write_text('transport = "nice"\nniceness = 3\n')
    with installed(tmp_path / "site", NICE):
        yield


def test_its_devices_are_listed_with_their_states(call: Call, tmp_path: Path) -> None:
    assert "background ? not trusted" in " ".join(call("devices").out.split())
    kept = tmp_path / "home" / ".config" / "edgeflare" / "devices"
    kept.parent.mkdir(parents=True)
    (tmp_path / "device_profiles").rename(kept)
    rows = [" ".join(line.split()) for line in call("devices").out.splitlines()]
    assert "background nice at level 3" in rows  # so that nice://3 has no row of its own
    assert [row for row in rows if row.startswith("nice://")] == ["nice://4 nice at level 4"]


@pytest.mark.slow
def test_a_profile_of_it_is_tried(call: Call) -> None:
    refused = call("devices", "check", "background")
    assert (refused.code, 'uses the transport "nice"' in refused.err) == (2, True)
    checked = call("devices", "check", "background", "--trust")
    assert checked.code == 0
    assert "background is ready: it ran a model of one layer" in checked.out
    shown = json.loads(call("devices", "show", "background").out)
    assert (shown["profile"]["niceness"], shown["device"]["transport"]) == (3, "nice")
    assert "options" not in shown["profile"]


def test_nothing_is_installed_on_its_devices(call: Call) -> None:
    said = call("agent", "install", "--device", "nice://3").complaint()
    assert said.endswith(
        'nothing is installed on a device of transport = "nice"; name one that is reached by adb://'
        " or ssh://"
    )


@pytest.mark.slow
def test_a_search_runs_on_it(
    call: Call, example: Path, small: tuple[str, ...], tmp_path: Path
) -> None:
    run = tmp_path / "run"
    searched = call(
        "search", str(example), "--device", "nice://5", *small, "--fail-on", "none", "--out", run
    )
    assert searched.code == 0, searched.err
    (device,) = json.loads((run / "run.json").read_text())["devices"]
    assert (device["name"], device["provenance"]["transport"]) == ("nice://5", "nice")
