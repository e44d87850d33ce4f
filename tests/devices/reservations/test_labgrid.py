"""Devices that are places of a real labgrid: a coordinator and an exporter on loopback."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from edgeflare.devices.device import connect
from edgeflare.devices.profile import Profile
from edgeflare.devices.reservations.labgrid import LabgridReservation
from edgeflare.errors import InfrastructureError, UserError
from free_port import free_port

ROOT = Path(__file__).parents[3]
SECONDS = 60.0


class LabgridUnavailable(Exception):  # noqa: N818 - a reason to skip
    """It is not installed here."""


@dataclass(frozen=True)
class LabgridBench:
    """A coordinator's address, and the folders of labgrid's programs and of this bench."""

    coordinator: str
    programs: Path
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a user of this bench has in the environment."""
        path = f"{self.programs}{os.pathsep}{os.environ['PATH']}"
        return {"LG_COORDINATOR": self.coordinator, "PATH": path}

    def client(
        self, place: str, *words: str, user: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Call labgrid's client, perhaps as another user."""
        return subprocess.run(
            [self.programs / "labgrid-client", "-p", place, *words],
            env={**os.environ, **self.environment, **(user or {})},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def holder(self, place: str) -> str:
        """Return who has acquired a place, as HOST/USER; "None" for nobody."""
        shown = self.client(place, "show").stdout
        return next(
            line.partition(": ")[2] for line in shown.splitlines() if "  acquired: " in line
        )

    @contextmanager
    def watched(self, place: str) -> Iterator[list[str]]:
        """Yield a list that has, after the context, who acquired a place meanwhile, "None" too."""
        holders: list[str] = []
        log = self.folder / "monitor.log"
        with log.open("w") as written:
            monitor = subprocess.Popen(
                [self.programs / "labgrid-client", "monitor"],
                env={**os.environ, **self.environment, "PYTHONUNBUFFERED": "1"},
                stdout=written,
                stderr=subprocess.STDOUT,
            )
        try:
            self._mark(place, log, "begin")
            begin = len(log.read_text())
            yield holders
            self._mark(place, log, "end")
            changes = re.split(r"^(?=\S)", log.read_text()[begin:], flags=re.MULTILINE)
            for change in changes:
                if change.startswith(f"Place {place} changed:"):
                    holders += re.findall(r"  acquired: \S+ -> (\S+)", change)
        finally:
            monitor.terminate()
            monitor.wait(SECONDS)

    def _mark(self, place: str, log: Path, name: str) -> None:
        """Change a place's comment until the monitor tells of it, and so of all changes before."""
        deadline = time.monotonic() + SECONDS
        for attempt in count():
            done = self.client(place, "set-comment", f"{name}-{attempt}")
            assert done.returncode == 0, done.stderr
            time.sleep(0.2)
            if f"-> {name}-" in log.read_text():
                return
            assert time.monotonic() < deadline, log.read_text()


@contextmanager
def labgrid_bench(folder: Path, places: tuple[str, ...]) -> Iterator[LabgridBench]:
    """Yield a bench with some places, as long as the context lasts.

    Raises:
        LabgridUnavailable: labgrid is not installed.

    """
    found = shutil.which(
        "labgrid-coordinator", path=f"{ROOT / '.venv-labgrid' / 'bin'}:{os.environ['PATH']}"
    )
    if found is None:
        raise LabgridUnavailable(
            "labgrid-coordinator is absent: pip install labgrid, in an environment on PATH"
        )
    address = f"127.0.0.1:{free_port()}"
    bench = LabgridBench(address, Path(found).parent, folder)
    (folder / "exporter.yaml").write_text(
        "".join(
            f"{place}:\n  NetworkService:\n    address: 127.0.0.1\n    username: root\n"
            for place in places
        )
    )
    with ExitStack() as stack:
        for command in (
            ("labgrid-coordinator", "-l", address),
            ("labgrid-exporter", "-c", address, "-n", "bench", "exporter.yaml"),
        ):
            program = (bench.programs / command[0], *command[1:])
            process = subprocess.Popen(
                program, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            stack.callback(process.wait, SECONDS)
            stack.callback(process.terminate)
            _await(bench, "resources", "" if command[0].endswith("coordinator") else places[-1])
        for place in places:
            for words in (("create",), ("add-match", f"bench/{place}/NetworkService")):
                done = bench.client(place, *words)
                assert done.returncode == 0, done.stderr
        yield bench


def _await(bench: LabgridBench, action: str, expected: str) -> None:
    deadline = time.monotonic() + SECONDS
    while True:
        done = bench.client("none", action)
        if done.returncode == 0 and expected in done.stdout:
            return
        assert time.monotonic() < deadline, done.stderr
        time.sleep(0.2)


pytestmark = [pytest.mark.labgrid, pytest.mark.slow]

OTHER = {"LG_USERNAME": "other", "LG_HOSTNAME": "elsewhere"}
PLACE = "board-1"
EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabgridBench]:
    try:
        with labgrid_bench(tmp_path_factory.mktemp("labgrid"), (PLACE,)) as bench:
            yield bench
    except LabgridUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(autouse=True)
def user(bench: LabgridBench, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in bench.environment.items():
        monkeypatch.setenv(name, value)


def board(place: str = PLACE) -> Profile:
    return Profile(
        name="board", transport="emulated", kernels="builtin", reservation=f"labgrid:{place}"
    )


def test_a_place_is_acquired_while_its_device_is_open(bench: LabgridBench) -> None:
    assert bench.holder(PLACE) == "None"
    device = connect(board())
    assert bench.holder(PLACE) != "None"
    device.close()
    device.close()
    assert bench.holder(PLACE) == "None"


def test_a_place_of_somebody_else_is_refused_and_stays_theirs(bench: LabgridBench) -> None:
    assert bench.client(PLACE, "acquire", user=OTHER).returncode == 0
    try:
        with pytest.raises(InfrastructureError, match=r"board: .*acquired by elsewhere/other"):
            connect(board())
        assert bench.holder(PLACE) == "elsewhere/other"
    finally:
        bench.client(PLACE, "release", user=OTHER)


def test_a_place_that_the_user_has_is_used_and_kept(bench: LabgridBench) -> None:
    assert bench.client(PLACE, "acquire").returncode == 0
    try:
        mine = bench.holder(PLACE)
        with bench.watched(PLACE) as holders:
            connect(board()).close()
        assert (bench.holder(PLACE), holders) == (mine, [])
    finally:
        bench.client(PLACE, "release")


def test_a_place_is_given_back_where_its_device_does_not_come_up(bench: LabgridBench) -> None:
    silent = Profile(
        name="board", transport="address", address="127.0.0.1:1", reservation=f"labgrid:{PLACE}"
    )
    with bench.watched(PLACE) as holders, pytest.raises(InfrastructureError):
        connect(silent)
    assert was_lent_once(holders)


def test_an_unknown_place_is_bad_input(bench: LabgridBench) -> None:
    with pytest.raises(UserError, match="labgrid has no place board-7"):
        connect(board("board-7"))


def test_a_coordinator_that_is_not_there_is_trouble(
    bench: LabgridBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LG_COORDINATOR", "127.0.0.1:1")
    with pytest.raises(InfrastructureError, match="does not give board-1"):
        LabgridReservation(PLACE).reserve()


def test_a_search_reserves_its_device_and_gives_it_back(
    bench: LabgridBench, tmp_path: Path
) -> None:
    profiles = tmp_path / "device_profiles"
    profiles.mkdir()
    (profiles / "board.toml").write_text(
        f'transport = "emulated"\nkernels = "builtin"\nreservation = "labgrid:{PLACE}"\n'
    )
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    words = ("search", str(EXAMPLE), "--device", "board", "--first", "2", "--max-queries", "20")
    command = [sys.executable, "-m", "edgeflare", *words, "--fail-on", "none", "--out", "run"]

    def called(*more: str) -> tuple[int, str]:
        done = subprocess.run(
            [*command, *more],
            cwd=tmp_path,
            env={**os.environ, **home},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    code, said = called()
    assert (code, "reservation" in said) == (2, True)
    assert not (tmp_path / "run").exists()
    with bench.watched(PLACE) as holders:
        assert called("--trust")[0] == 0
    assert was_lent_once(holders)

    assert bench.client(PLACE, "acquire", user=OTHER).returncode == 0
    try:
        code, said = called("--trust", "--overwrite")
    finally:
        bench.client(PLACE, "release", user=OTHER)
    assert (code, len(said.splitlines()), "elsewhere/other" in said) == (3, 1, True)
    assert (tmp_path / "run" / "run.json").is_file()


def was_lent_once(holders: list[str]) -> bool:
    """Whether this user acquired a place, and nobody else, and released it."""
    user = f"{socket.gethostname()}/{getpass.getuser()}"
    return holders == [user, "None"]
