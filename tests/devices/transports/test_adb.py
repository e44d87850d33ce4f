"""The transport "adb", from the command line down to a real adbd: see `phones.py`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from documents import Document, as_json
from edgeflare.devices.bundle.build_bundle import build_bundle
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from forked_commands import forked_edgeflare
from laboratory import untimed
from phone_parts import PhoneUnavailable
from phones import AdbServer, Phone, unauthorized_phone

pytestmark = [pytest.mark.adb, pytest.mark.slow, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "fashion_lenet4"
SEARCH = (
    *("--strategy", "dflare", "--first", "8", "--max-queries", "200"),
    *("--shrink", "0", "--fail-on", "none"),
)
BUNDLE_BYTES = 10_000_000
"""Fewer than any bundle has; and more than a start and a short search say."""

_PATIENT_SECONDS = 500.0

_GONE_SECONDS = 100.0
"""After which a process that should end by itself counts as left running."""

_IMPATIENTLY = """
import edgeflare.devices.device as device
device.REOPEN_PAUSES_SECONDS = (0.0, 0.5, 0.5)
from edgeflare.cli import main
main()
"""
"""The command, but for the minute that it waits for a cable to be put in again."""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        (line,) = self.err.splitlines()
        return line


class Desk:
    """An adb server, phones beside it, and `edgeflare` called by who sits there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "home").mkdir()
        self.server = AdbServer(folder / "home")
        self.phones: list[Phone] = []

    @contextmanager
    def phone(self) -> Iterator[Phone]:
        with Phone(self.folder / f"phone-{len(self.phones)}") as phone:
            self.phones.append(phone)
            self.server.connect(phone.serial)
            yield phone
        self.server.adb("disconnect", phone.serial)

    def start(self, *arguments: str | Path, command: tuple[str, ...] = ()) -> subprocess.Popen[str]:
        program = [sys.executable, *command] if command else [forked_edgeflare()]
        return subprocess.Popen(
            [*program, *map(str, arguments)],
            cwd=self.folder,
            env={**os.environ, **self.server.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *arguments: str | Path) -> Said:
        return wait_for(self.start(*arguments))

    def profile(self, name: str, text: str) -> None:
        """Write a profile of that user's own, on built-in kernels, whose answers on ARM are others
        than on the host.
        """
        folder = self.folder / "home" / ".config" / "edgeflare" / "devices"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.toml").write_text(f'{text}\nkernels = "builtin"\n')

    def search(self, out: Path, *devices: str) -> Said:
        return self.call(*search(out, *devices))


def search(out: Path, *devices: str, more: tuple[str, ...] = SEARCH) -> list[str | Path]:
    named = [word for device in devices for word in ("--device", device)]
    return ["search", EXAMPLE, *more, *named, "--out", out]


def wait_for(process: subprocess.Popen[str]) -> Said:
    with process:
        out, err = process.communicate(timeout=_PATIENT_SECONDS)
    return Said(process.returncode, out, err)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    build_bundle("android-arm64", "litert")  # a minute, once, which no command below need wait for
    desk = Desk(tmp_path_factory.mktemp("desk"))
    with desk.server:
        yield desk


@pytest.fixture(scope="module")
def phone(desk: Desk) -> Iterator[Phone]:
    try:
        with desk.phone() as phone:
            desk.profile("phone", profile_of(phone))
            yield phone
    except PhoneUnavailable as error:
        pytest.skip(str(error))


def profile_of(phone: Phone) -> str:
    return f'extends = "android-arm64"\nserial = "{phone.serial}"'


@pytest.fixture(scope="module")
def undisturbed(desk: Desk, phone: Phone) -> Document:
    out = desk.folder / "undisturbed"
    assert desk.search(out, "phone").code == 0
    return document(out)


def document(out: Path) -> Document:
    return as_json(load_document(RunDirectory(out)))


def findings(of: Document) -> list[dict[str, Any]]:
    """What was found, wherever it was."""
    return [
        {key: value for key, value in finding.items() if key != "device"}
        for finding in untimed(of)["findings"]
    ]


def assert_nothing_is_left(desk: Desk, *phones: Phone) -> None:
    assert desk.server.forwards() == []
    deadline = time.monotonic() + _GONE_SECONDS
    while left := [agent for phone in phones for agent in phone.agents()]:
        assert time.monotonic() < deadline, f"left running: {left}"
        time.sleep(0.05)


def test_an_agent_is_sent_once_and_runs_as_arm_code(desk: Desk, phone: Phone) -> None:
    with desk.phone() as empty:
        name = f"adb://{empty.serial}"
        first = desk.call("devices", "show", name)
        sent = empty.traffic()
        again = desk.call("devices", "show", name)
        sent_again = empty.traffic() - sent
        assert_nothing_is_left(desk, empty)

    assert (first.code, again.code) == (0, 0)
    told = json.loads(again.out)["device"]
    assert told["machine"] == "aarch64"
    assert told["soc"] == "QEMU Cortex-A76"
    assert told["os"].startswith("Android 14")
    assert sent > BUNDLE_BYTES > 20 * sent_again


def test_a_phone_finds_what_the_same_core_finds_elsewhere(
    desk: Desk, phone: Phone, undisturbed: Document
) -> None:
    desk.profile("core", 'extends = "qemu-cortex-a76"')
    desk.profile("here", 'extends = "emulated-builtin"')
    found = {"phone": findings(undisturbed)}
    for name in ("core", "here"):
        assert desk.search(desk.folder / name, name).code == 0
        found[name] = findings(document(desk.folder / name))

    assert found["phone"]
    assert found["phone"] == found["core"] != found["here"]
    assert_nothing_is_left(desk, phone)


DISTURBANCES: dict[str, tuple[Callable[[Desk, Phone], None], Callable[[Desk, Phone], None]]] = {
    "the cable is pulled": (lambda _, phone: phone.unplug(), lambda _, phone: phone.plug()),
    "adbd is killed": (lambda _, phone: phone.kill_adbd(), lambda _, phone: phone.start_adbd()),
    "the phone starts anew": (lambda _, phone: phone.kill_all(), lambda _, p: p.start_adbd()),
    "the adb server is killed": (
        lambda desk, _: desk.server.kill(),
        lambda d, p: d.server.connect(p.serial),
    ),
}


@pytest.mark.parametrize("name", DISTURBANCES)
def test_a_search_goes_on_as_if_nothing_had_happened_when(
    name: str, desk: Desk, phone: Phone, undisturbed: Document, tmp_path: Path
) -> None:
    disturb, mend = DISTURBANCES[name]
    process = desk.start(*search(tmp_path / "run", "phone"))
    await_the_search(tmp_path / "run", process)
    disturb(desk, phone)
    time.sleep(1.5)
    mend(desk, phone)
    said = wait_for(process)

    assert said.code == 0, said.err
    assert untimed(document(tmp_path / "run")) == untimed(undisturbed)
    assert_nothing_is_left(desk, phone)


def test_a_phone_that_is_gone_for_good_leaves_a_run_that_goes_on_later(
    desk: Desk, phone: Phone, undisturbed: Document, tmp_path: Path
) -> None:
    asked = search(tmp_path / "run", "phone")
    process = desk.start(*asked, command=("-c", _IMPATIENTLY))
    await_the_search(tmp_path / "run", process)
    phone.unplug()
    said = wait_for(process)
    left = document(tmp_path / "run")
    phone.plug()
    desk.server.adb("-s", phone.serial, "wait-for-device")
    resumed = desk.call(*asked, "--resume")

    assert said.code == 3
    assert "lost" in said.err
    assert left["totals"]["queries"] < undisturbed["totals"]["queries"]
    assert resumed.code == 0
    assert untimed(document(tmp_path / "run")) == untimed(undisturbed)
    assert_nothing_is_left(desk, phone)


def test_the_page_about_phones_begins_with_commands_that_work(desk: Desk, phone: Phone) -> None:
    page = (ROOT / "docs" / "devices" / "phone.md").read_text(encoding="utf-8")
    commands = page.split("```text\n")[1].split("```")[0].splitlines()
    assert len(commands) == 3
    for command in commands:
        program, *words = command.split()
        if "PAIR" in words:
            words[words.index("PAIR")] = str(EXAMPLE)
            words += ["--first", "2", "--max-queries", "50", "--shrink", "0", "--fail-on", "none"]
        said = desk.call(*words)

        assert (program, said.code) == ("edgeflare", 0), said.err
        assert phone.serial in said.out or words != ["devices"]


def test_two_phones_share_a_search(
    desk: Desk, phone: Phone, undisturbed: Document, tmp_path: Path
) -> None:
    with desk.phone() as other:
        desk.profile("other", profile_of(other))
        said = desk.search(tmp_path / "run", "phone", "other")
        assert_nothing_is_left(desk, phone, other)

    assert said.code == 0, said.err
    assert findings(document(tmp_path / "run")) == findings(undisturbed)
    found_by = {finding["device"] for finding in document(tmp_path / "run")["findings"]}
    assert found_by == {"phone", "other"}


def test_a_forward_of_somebody_else_stays(desk: Desk, phone: Phone) -> None:
    port = desk.server.adb("-s", phone.serial, "forward", "tcp:0", "tcp:9").strip()
    theirs = desk.server.forwards()
    said = desk.call("devices", "show", f"adb://{phone.serial}")
    kept = desk.server.forwards()
    desk.server.adb("forward", "--remove", f"tcp:{port}")

    assert said.code == 0
    assert theirs == kept == [f"{phone.serial} tcp:{port} tcp:9"]


def test_what_is_not_ready_is_said_in_one_line(desk: Desk, phone: Phone) -> None:
    complaints = {}

    def complain(what: str, serial: str = "") -> None:
        said = desk.call("devices", "show", f"adb://{serial}")
        complaints[what] = said.complaint()
        assert said.code in (2, 3)

    with unauthorized_phone() as serial:
        desk.server.connect(serial)
        complain("unauthorized", serial)
        complain("several")
        desk.server.adb("disconnect", serial)
    complain("absent", "emulator-5554")
    phone.unplug()
    complain("offline", phone.serial)
    desk.server.adb("disconnect", phone.serial)
    complain("none")
    phone.plug()
    desk.server.connect(phone.serial)

    assert "allow" in complaints["unauthorized"].lower()
    assert phone.serial in complaints["several"]
    assert "emulator-5554" in complaints["absent"]
    assert "offline" in complaints["offline"]
    assert "no phone" in complaints["none"]


def await_the_search(out: Path, process: subprocess.Popen[str]) -> None:
    """Wait until a process has searched, and something was found."""
    deadline = time.monotonic() + _PATIENT_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            pytest.fail(f"the search is over: {wait_for(process)}")
        if (out / "findings").is_dir():
            with closing(sqlite3.connect(out / "run.db")) as db:
                searched = "SELECT count(*) FROM stints WHERE wall_seconds > 0"
                if db.execute(searched).fetchone()[0]:
                    return
        time.sleep(0.02)
    pytest.fail("the search did not begin")
