"""Searches on a real cluster of Ray, whose hosts are network namespaces; some of them are killed.

The tests share the cluster and come in this order: the last three end its head.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from documents import Document
from fleet_hosts import CLASS, StoodInFleet, stood_in_fleet, why_no_hosts
from interrupted_commands import started
from kills import put_notes, require_notes
from laboratory import comparable
from processes import stopped

pytestmark = [pytest.mark.fleet, pytest.mark.slow]

EXAMPLE = "examples/fashion_lenet4"
BOUNDS = ("--first", "100", "--max-queries", "500", "--shrink", "20", "--fail-on", "none")
DEADLINE_SECONDS = 540.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoodInFleet]:
    if why := why_no_hosts():
        pytest.skip(f"needs hosts of a fleet: {why}")
    with stood_in_fleet(tmp_path_factory.mktemp("fleet"), 2) as fleet:
        fleet.start()
        yield fleet


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """What one host finds."""
    out = tmp_path_factory.mktemp("alone") / "run"
    with started("search", EXAMPLE, *BOUNDS, "--device", CLASS, "--out", str(out)) as command:
        _, err = command.communicate(timeout=DEADLINE_SECONDS)
    assert command.returncode == 0, err
    return comparable(out)


def begin(fleet: StoodInFleet, out: Path, *more: str, **changed: str) -> subprocess.Popen[bytes]:
    """Start a search on the fleet, at its head."""
    words = search_words(fleet, out, *more)
    return fleet.head.edgeflare(*words, said=out.with_suffix(".said"), **changed)


def search_words(fleet: StoodInFleet, out: Path, *more: str) -> list[str | Path]:
    # fmt: off
    return [
        "search", EXAMPLE, *BOUNDS, "--unit-seeds", "25", "--device", CLASS, "--quiet",
        "--fleet", fleet.address, "--fleet-file", fleet.file, "--out", out, *more,
    ]
    # fmt: on


def said(out: Path) -> str:
    return out.with_suffix(".said").read_text()


def state(out: Path) -> dict[str, Any]:
    file = out.with_name(f"{out.name}.fleet") / "fleet.json"
    return dict(json.loads(file.read_bytes())) if file.is_file() else {"units": []}


def await_state(
    out: Path, command: subprocess.Popen[bytes], reached: Callable[[dict[str, Any]], bool]
) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not reached(state(out)):
        assert command.poll() is None, said(out)
        assert time.monotonic() < deadline, said(out)
        time.sleep(0.1)


def searching(host: str) -> Callable[[dict[str, Any]], bool]:
    """Whether a host searches from the seeds of a unit."""
    return lambda told: any(
        unit["status"] == "running" and unit["seeds"] and unit["attempts"][-1]["host"] == host
        for unit in told["units"]
    )


def test_a_node_that_is_killed_changes_nothing_of_the_result(
    fleet: StoodInFleet, alone: Document, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    lost = fleet.hosts[1]
    command = begin(fleet, out)
    await_state(out, command, searching(lost.name))
    lost.kill()
    assert command.wait(DEADLINE_SECONDS) == 0, said(out)

    assert comparable(out) == alone
    tried = [len(unit["attempts"]) for unit in state(out)["units"] if unit["seeds"]]
    assert len(tried) == 4
    assert max(tried) > 1
    assert said(out) == ""
    lost.join(fleet.head)


@pytest.mark.parametrize(
    ("changed", "code", "expected"),
    [
        ({"RAY_AUTH_TOKEN": "0" * 64}, 3, "RAY_AUTH_TOKEN"),
        ({"RAY_AUTH_TOKEN": "", "HOME": "/nowhere"}, 2, "/nowhere/.ray/auth_token"),
        ({"RAY_AUTH_MODE": ""}, 2, "RAY_AUTH_MODE=token"),
    ],
    ids=["wrong", "missing", "off"],
)
def test_nobody_works_without_the_token(
    fleet: StoodInFleet, tmp_path: Path, changed: dict[str, str], code: int, expected: str
) -> None:
    out = tmp_path / "run"
    assert begin(fleet, out, **changed).wait(DEADLINE_SECONDS) == code
    (line,) = said(out).splitlines()
    assert expected in line
    assert not out.with_name("run.fleet").exists()


def test_devices_that_the_cluster_does_not_have_are_refused(
    fleet: StoodInFleet, tmp_path: Path
) -> None:
    """Those of no host in `fleet.toml`, and those of a host whose daemon does not offer them."""
    out = tmp_path / "run"
    promised = tmp_path / "promised.toml"
    promised.write_text(fleet.file.read_text().replace("= 1}", "= 3}"))
    for more, expected in (
        (["--device", "pixel"], "name one with --device"),
        (["--fleet-file", str(promised)], "--resources='{\"emulated-builtin\": 3}'"),
    ):
        assert begin(fleet, out, *more).wait(DEADLINE_SECONDS) == 2
        assert expected in said(out).splitlines()[-1]
    assert not out.exists()


def test_hosts_none_of_which_takes_part_are_named_with_those_that_do(
    fleet: StoodInFleet, tmp_path: Path
) -> None:
    out, elsewhere = tmp_path / "run", tmp_path / "elsewhere.toml"
    numbers, text = count(77), fleet.file.read_text()
    elsewhere.write_text(
        re.sub('address = "[^"]+"', lambda _: f'address = "192.0.2.{next(numbers)}"', text)
    )
    assert begin(fleet, out, "--fleet-file", str(elsewhere)).wait(DEADLINE_SECONDS) == 3
    line = said(out).splitlines()[-1]
    assert "(192.0.2.77)" in line
    assert fleet.address.partition(":")[0] in line
    assert not out.exists()


SHORT = ("--first", "4", "--max-queries", "20", "--shrink", "0", "--unit-seeds", "2")

STOPPED_AT_THE_STEP = """
import os, signal, sys

def stop(event, args):
    if event == "os.rename" and os.fspath(args[1]) == os.environ["STOPPED_AT"]:
        os.kill(os.getpid(), signal.SIGSTOP)

sys.addaudithook(stop)
"""


def test_a_head_whose_host_dies_as_the_result_is_put_in_place_is_gone_on_with(
    fleet: StoodInFleet, tmp_path: Path
) -> None:
    """Another host, which is told to write there at that moment, is refused meanwhile."""
    out, alone = tmp_path / "run", tmp_path / "alone"
    with started("search", EXAMPLE, *BOUNDS, *SHORT[:-2], "--out", str(alone)) as command:
        _, err = command.communicate(timeout=DEADLINE_SECONDS)
    assert command.returncode == 0, err
    (tmp_path / "sitecustomize.py").write_text(STOPPED_AT_THE_STEP)
    changed = {"PYTHONPATH": str(tmp_path), "STOPPED_AT": str(out / ".edgeflare" / "replacing")}
    first = begin(fleet, out, *SHORT, **changed)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not any(map(stopped, fleet.head.running("-m edgeflare search"))):
        assert first.poll() is None, said(out)
        assert time.monotonic() < deadline, said(out)
        time.sleep(0.05)
    put_notes(out)
    words = search_words(fleet, out, *SHORT, "--overwrite")
    second = fleet.hosts[1].edgeflare(*words, said=tmp_path / "second.said")
    assert second.wait(DEADLINE_SECONDS) == 2
    (line,) = (tmp_path / "second.said").read_text().splitlines()
    assert "another process" in line

    for host in fleet.hosts:
        host.kill()
    assert not (out / "run.json").exists()
    fleet.start()
    assert begin(fleet, out, *SHORT, "--resume").wait(DEADLINE_SECONDS) == 0, said(out)
    require_notes(out)
    assert comparable(out) == comparable(alone)
    assert not (out / ".edgeflare").exists()


def test_a_head_that_is_killed_is_gone_on_with(
    fleet: StoodInFleet, alone: Document, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    command = begin(fleet, out)
    await_state(out, command, lambda told: any(u["status"] == "done" for u in told["units"][1:]))
    driver = fleet.head.running("-m edgeflare search")
    others = [pid for pid in fleet.head.processes() if pid not in driver]
    fleet.head.signal(others, 9)
    assert command.wait(DEADLINE_SECONDS) == 3, said(out)
    (line,) = said(out).splitlines()
    assert f"what is done is in {out}" in line
    assert comparable(out)["totals"]["seeds"] == 100

    for host in fleet.hosts:
        host.kill()
    fleet.start()
    assert begin(fleet, out, "--resume").wait(DEADLINE_SECONDS) == 0, said(out)
    assert comparable(out) == alone


def test_a_cluster_that_anybody_may_take_part_in_is_refused(
    fleet: StoodInFleet, tmp_path: Path
) -> None:
    for host in fleet.hosts:
        host.kill()
    told = dict(fleet.head.environment)
    fleet.head.environment["RAY_AUTH_MODE"] = "disabled"
    fleet.head.join(fleet.head)
    fleet.head.environment.update(told)
    out = tmp_path / "run"
    assert begin(fleet, out).wait(DEADLINE_SECONDS) == 2
    assert "RAY_AUTH_MODE=token wherever" in said(out).splitlines()[-1]
    assert not out.with_name("run.fleet").exists()
