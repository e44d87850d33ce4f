"""What lies in the place of a file that a command wrote: a pipe, a device, a link that leads out.

The files are those that commands wrote, found in their folders: none is named here.
"""

from __future__ import annotations

import faulthandler
import os
import shutil
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from called_commands import EXAMPLE, SMALL, call_here, completed
from conformed_runs import run_with_files
from edgeflare.errors import UserError
from edgeflare.fleet.record.fleet_folder import FleetFolder, UnitEnding
from edgeflare.fleet.record.fleet_state import FleetRequest, FleetState
from edgeflare.fleet.work.folder_archive import archive_folder, unpack_folder
from edgeflare.run.seed_ids import SeedIds
from repaired_example import repaired_example
from surveyed_runs import surveyed_run

__all__ = ["repaired_example"]

pytestmark = pytest.mark.slow

Reading = Callable[[Path], object]

HANG_SECONDS = 30


def call_safely(*words: str | Path) -> None:
    """Call a command, which may refuse what it reads, in a line, and nothing else."""
    said = call_here(*words)
    assert "mistake in edgeflare" not in said.err, said.err
    assert said.code in (0, 1, 2), said.err
    if said.code == 2:
        assert said.err.splitlines()[-1].startswith("edgeflare: ")


FLEET_REQUEST = FleetRequest(("phone",), ("survey",))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A search of two seeds, and what is made from it."""
    run = tmp_path_factory.mktemp("searched") / "run"
    completed("search", EXAMPLE, *SMALL, "--first", "2", "--fail-on", "none", "--out", run)
    completed("report", run, "--html", "--junit", "--csv", "--summary")
    completed("explain", run)
    return run


@pytest.fixture(scope="module")
def surveyed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return surveyed_run(tmp_path_factory.mktemp("surveyed") / "run").path


@pytest.fixture(scope="module")
def conformed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("conformed") / "run"
    run_with_files(run)
    return run


@pytest.fixture(scope="module")
def on_fleet(searched: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fleet's work, as a command leaves it that was stopped."""
    folder = FleetFolder(tmp_path_factory.mktemp("fleet") / "run.fleet")
    with folder.claim(FLEET_REQUEST, resume=False, overwrite=False):
        folder.begin(FLEET_REQUEST, [folder.path.parent / "run"])
    archived = archive_folder(searched)
    assert archived is not None
    for name, ending in (("unit-0000", UnitEnding(0, 2, "printed")), ("unit-0001", None)):
        folder.keep_unit(name, archived, ending)
        folder.keep_backup(name, archived)
    folder.keep_parts({"unit-0000": SeedIds.read("0:3"), "unit-0001": SeedIds.read("3:7")})
    folder.drain("host")
    folder.show(FleetState("campaign"))
    return folder.path


@contextmanager
def ended_where_it_hangs() -> Iterator[None]:
    """End what waits for a pipe or reads without end; in Python, or in SQLite with the process."""

    def late(*_: object) -> None:
        raise AssertionError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    faulthandler.dump_traceback_later(2 * HANG_SECONDS, exit=True)
    signal.alarm(HANG_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)


def put_a_pipe(file: Path, _aside: Path) -> None:
    os.mkfifo(file)


def put_a_socket(file: Path, _aside: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(file.parent)  # the path of a socket is short
        try:
            one.bind(file.name)
        finally:
            os.chdir(here)


def put_an_endless_device(file: Path, _aside: Path) -> None:
    file.symlink_to("/dev/zero")


def put_a_folder(file: Path, _aside: Path) -> None:
    file.mkdir()


def put_a_link_that_leads_out(file: Path, aside: Path) -> None:
    file.symlink_to(aside)


PUT = (put_a_pipe, put_a_socket, put_an_endless_device, put_a_folder, put_a_link_that_leads_out)


def read_with_each_in_its_place(folder: Path, work: Path, reading: list[Reading]) -> int:
    """Read a copy of a folder with something else in the place of each of its files in turn."""
    copy, aside = work / folder.name, work / "aside"
    shutil.copytree(folder, copy)
    files = sorted(one.relative_to(copy) for one in copy.rglob("*") if one.is_file())
    for at, name in enumerate(files):
        file = copy / name
        file.rename(aside)
        # A document gets each of them; of the many other files each gets another one, and is read
        # by another command.
        whole = len(name.parts) == 1
        for put in PUT if whole else (PUT[at % len(PUT)],):
            put(file, aside)
            for read in reading if whole else (reading[at % len(reading)],):
                with ended_where_it_hangs():
                    read(copy)
            shutil.rmtree(file) if put is put_a_folder else file.unlink()
        os.rename(aside, file)
    return len(files)


def test_a_search(searched: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def merged(run: Path) -> None:
        call_safely("merge", run, "--out", out, "--overwrite")

    reading: list[Reading] = [
        lambda run: call_safely("report", run),
        lambda run: call_safely("compare", run, searched),
        lambda run: call_safely("export", run, "0", "--out", out / "finding.zip"),
        merged,
        _archived,
    ]
    assert read_with_each_in_its_place(searched, tmp_path, reading) > 8


def test_a_survey(surveyed: Path, tmp_path: Path) -> None:
    reading: list[Reading] = [
        lambda run: call_safely("report", run),
        lambda run: call_safely("report", run, "--json"),
        lambda run: call_safely("compare", run, run),
    ]
    assert read_with_each_in_its_place(surveyed, tmp_path, reading) > 4


def test_a_conformance_run(conformed: Path, tmp_path: Path) -> None:
    zipped = tmp_path / "finding.zip"
    reading: list[Reading] = [
        lambda run: call_safely("report", run),
        lambda run: call_safely("export", run, "1", "--out", zipped),
        _archived,
    ]
    assert read_with_each_in_its_place(conformed, tmp_path, reading) > 4


def test_a_repair(repaired_example: Path, tmp_path: Path) -> None:
    reading: list[Reading] = [lambda run: call_safely("report", run), _archived]
    assert read_with_each_in_its_place(repaired_example, tmp_path, reading) > 2


def test_the_work_of_a_fleet(on_fleet: Path, tmp_path: Path) -> None:
    def gone_on_with(path: Path) -> None:
        folder = FleetFolder(path)
        with suppress(UserError):
            folder.is_of(FLEET_REQUEST)
            folder.claim(FLEET_REQUEST, resume=True, overwrite=False).close()
        for read in (
            *(folder.kept_parts, folder.attempts_before, lambda: folder.drained(["host"])),
            lambda: [folder.ending(name) for name in ("unit-0000", "unit-0001")],
            lambda: [folder.backup(name) for name in ("unit-0000", "unit-0001")],
            lambda: folder.output.require_unchanged([path.parent / "run"]),
        ):
            with suppress(UserError):
                read()

    reading: list[Reading] = [
        lambda path: call_safely("fleet", "status", path.with_suffix("")),
        lambda path: call_safely("fleet", "drain", path.with_suffix(""), "host"),
        gone_on_with,
    ]
    assert read_with_each_in_its_place(on_fleet, tmp_path, reading) > 20


def _archived(run: Path) -> None:
    """Archive a run, to send it to another host, and unpack that."""
    with suppress(UserError):
        archived = archive_folder(run)
        if archived is not None:
            unpack_folder(archived, run.parent / "unpacked")
