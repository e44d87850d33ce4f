"""Kinds of files that come from outside: one that is right, and commands that read it.

`run_case` calls the command in a fork of this process, on a copy of the folder in which one file is
changed, and tells whether that ended in a mistake, a signal or a hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from edgeflare.record.json_types import plain_json
from mutated_files import changed_file
from stored_repairs import REPAIR

MOST_SECONDS: Final = 300.0
"""After which a command is killed, on a busy machine; one that waits for as long is a hang."""

_MISTAKE: Final = "this is a mistake in edgeflare"


@dataclass(frozen=True)
class OutsideKind:
    """A kind of file.

    Attributes:
        make: makes a folder in which all is right.
        file: that is changed, relative to the folder.
        format: as `changed_file` takes it.
        commands: of which each case calls one: the arguments of `edgeflare`, or what is called in
            their place with the folder as the working directory.
        without: files that are taken away before, such as the document that a journal would not be
            asked beside.

    """

    make: Callable[[Path], None]
    file: str
    format: str
    commands: Sequence[Sequence[str] | Callable[[], object]]
    without: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        code: its exit code, or minus the signal.
        said: the end of what it wrote to stderr.
        seconds: of processor time, of it and of its children.
        called: what was called.

    """

    code: int
    said: str
    seconds: float
    called: str

    def fault(self, usual: float) -> str:
        """Return "mistake", "signal" or "hang"; empty where it is none.

        Args:
            usual: seconds of processor time on the file that is right.

        """
        if self.code == -signal.SIGALRM or self.seconds > usual + 2:
            return "hang"
        if self.code < 0:
            return "signal"
        return "mistake" if _MISTAKE in self.said or "Traceback (most" in self.said else ""


def changed(kind: OutsideKind, data: bytes, seed: str, number: int) -> bytes:
    """Return the content of a file of a case: those of even numbers keep their format."""
    random = Random(f"{seed}/{number}")  # noqa: S311 - no secret
    return changed_file(data, kind.format, random, valid=number % 2 == 0)


def run_case(
    kind: OutsideKind, right: Path, place: Path, content: bytes | None, number: int
) -> Ended:
    """Call the command of a case.

    Args:
        kind: of the file.
        right: the folder in which all is right.
        place: of the copy, which is made anew.
        content: of the file that is changed; None for the one that is right.
        number: of the case, which says which command is called.

    """
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(right, place, symlinks=True)
    for name in kind.without:
        (place / name).unlink(missing_ok=True)
    if content is not None:
        (place / kind.file).write_bytes(content)
        for beside in ("-wal", "-shm"):
            (place / (kind.file + beside)).unlink(missing_ok=True)
    command = kind.commands[number // 2 % len(kind.commands)]
    errors = place.with_name(place.name + ".errors")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    if (pid := os.fork()) == 0:
        become_command(command, place, errors)
    code = wait_for_group(pid)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    called = command.__name__ if callable(command) else " ".join(command)
    return Ended(code, errors.read_text(errors="replace")[-4000:], seconds, called)


def wait_for_group(pid: int) -> int:
    """Wait for a process that leads a group, and end what is left of the group."""
    until = time.monotonic() + MOST_SECONDS
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > until:
            os.kill(pid, signal.SIGALRM)
            until += 1e9
        time.sleep(0.002)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status)


def become_command(
    command: Sequence[str] | Callable[[], object], place: Path, errors: Path
) -> None:
    """Run the command in this process, which is a fork, and end it."""
    code = 70
    try:
        os.setsid()
        os.chdir(place)
        os.environ["HOME"] = os.environ["XDG_STATE_HOME"] = str(place.with_name("home"))
        for number, path in ((0, os.devnull), (1, os.devnull), (2, str(errors))):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, errors="replace") for number, mode in enumerate(("r", "w", "w"))
        )
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        code = call_command(command)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def call_command(command: Sequence[str] | Callable[[], object]) -> int:
    from edgeflare.cli import main  # noqa: PLC0415

    if callable(command):
        from edgeflare.errors import EdgeFlareError  # noqa: PLC0415

        try:
            code = command()
        except (EdgeFlareError, OSError) as error:
            sys.stderr.write(f"{error}\n"[:2000])
            return 2
        return code if isinstance(code, int) else 0
    sys.argv = ["edgeflare", *command]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def _profile(folder: Path) -> None:
    (folder / "device_profiles").mkdir(parents=True)
    (folder / "device_profiles" / "x.toml").write_text(
        'extends = "emulated-builtin"\ndescription = "one"\nkernels = "xnnpack"\nthreads = 2\n'
        "warmup = 1\ninput_timeout_seconds = 3.5\ncanary_every = 5\nlink_delay_seconds = 0.0015\n"
        'thermal_zones = ["cpu*"]\npause_above_celsius = 60\n'
    )


def _fleet(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fleet.toml").write_text(
        '[hosts.one]\naddress = "10.0.0.1"\ndevices = {phone = ["a", "b"], emulated-builtin = 3}\n'
        '[hosts.two]\naddress = "10.0.0.2"\ndevices = {phone = ["a"]}\n'
    )


def _read_fleet() -> None:
    from edgeflare.fleet.fleet_file import read_fleet  # noqa: PLC0415

    str(read_fleet(Path("fleet.toml")).places(["phone", "emulated-builtin"]))


def _repaired(folder: Path) -> None:
    (folder / "repair").mkdir(parents=True)
    shutil.copy(
        Path(__file__).resolve().parents[1] / "repair" / "shifts" / "repair_by_shifts.json",
        folder / "repair" / "repair.json",
    )


def _stored(folder: Path) -> None:
    (folder / "candidates").mkdir(parents=True)
    (folder / "candidates" / "about.json").write_bytes(msgspec.json.encode(REPAIR))
    (folder / "candidates" / "weights.json").write_text(
        '[{"tried": {"name": "one", "seconds": 1.5, "size": null, "details": {"why": [1]}}}]'
    )


def _read_candidates() -> None:
    from edgeflare.repair.candidate_store import StoredCandidates  # noqa: PLC0415

    StoredCandidates(Path(), REPAIR, resume=True).read("weights")


def _fleet_folder(folder: Path) -> None:
    from edgeflare.fleet.record.fleet_state import (  # noqa: PLC0415
        AttemptState,
        FleetRequest,
        FleetState,
        PlaceState,
        UnitState,
    )

    place = folder / "run.fleet"
    (place / "done").mkdir(parents=True)
    (place / "units" / "0001").mkdir(parents=True)
    attempts = [
        AttemptState(1, "one", "phone", 0.5, 2.0, "exit code 3"),
        AttemptState(2, "a", "b", 3),
    ]
    units = [UnitState("0001", "phone", "0:5", 5, "running", 3, 1, attempts)]
    places = [PlaceState("phone on one", "one", "0001", 1, 4.5), PlaceState("b on a", "a")]
    state = FleetState("ab" * 32, 10.0, units, places, ["one"], False, 1)
    (place / "fleet.json").write_text(json.dumps(plain_json(state)))
    request = FleetRequest(("phone",), ("search",), ("ab" * 32,), cwd="there")
    (place / "request.json").write_text(json.dumps(plain_json(request)))
    (place / "units.txt").write_text("0001 0:5\n0002 5:9,12\n")
    (place / "done" / "0001.json").write_text(
        '{"exit_code": 0, "found": 1, "printed": "one\\ntwo"}'
    )
    (place / "output").write_text('{"run": {"replaced": "ab", "made": "cd"}}')


def _read_fleet_folder() -> None:
    from edgeflare.fleet.record.fleet_folder import FleetFolder  # noqa: PLC0415
    from edgeflare.fleet.record.fleet_state import FleetRequest  # noqa: PLC0415

    fleet = FleetFolder(Path("run.fleet"))
    fleet.is_of(FleetRequest(("phone",), ("search",)))
    for name in fleet.kept_parts() or {}:
        fleet.ending(name)
        fleet.backup(name)
    str(fleet.drained(["one"]))
    fleet.attempts_before()
    fleet.output.is_made(Path("run"))


def _lists(folder: Path) -> None:
    (folder / "tokens").mkdir(parents=True)
    for number in range(3):
        (folder / "tokens" / f"{number}.json").write_text("[1, 2, 3, 4, 5, 6]")
        (folder / "tokens" / f"{number}.png").write_bytes(b"")
    (folder / "tokens" / "groups.csv").write_text("name,who\n0.png,a\n1.png,b\n2.png,a\n")


def _read_groups() -> None:
    from edgeflare.survey.items.survey_inputs import groups_of_files  # noqa: PLC0415

    groups_of_files(Path("tokens"), [f"{number}.png" for number in range(3)], "who")


def _read_tokens() -> None:
    from edgeflare.domains.tokens_domain import load_token_seeds  # noqa: PLC0415

    load_token_seeds(Path("tokens"), 100, 6)


KINDS: Final[Mapping[str, OutsideKind]] = {
    "profile": OutsideKind(
        _profile,
        "device_profiles/x.toml",
        "toml",
        [("devices", "list"), ("devices", "show", "x"), ("doctor",)],
    ),
    "fleet.toml": OutsideKind(_fleet, "fleet.toml", "toml", [_read_fleet]),
    "repair.json": OutsideKind(
        _repaired,
        "repair/repair.json",
        "json",
        [("report", "repair"), ("report", "repair", "--html")],
    ),
    "about.json": OutsideKind(_stored, "candidates/about.json", "json", [_read_candidates]),
    "candidates": OutsideKind(_stored, "candidates/weights.json", "json", [_read_candidates]),
    "fleet.json": OutsideKind(
        _fleet_folder,
        "run.fleet/fleet.json",
        "json",
        [("fleet", "status", "run"), ("fleet", "status", "run", "--json"), _read_fleet_folder],
    ),
    "units.txt": OutsideKind(_fleet_folder, "run.fleet/units.txt", "table", [_read_fleet_folder]),
    "done unit": OutsideKind(
        _fleet_folder, "run.fleet/done/0001.json", "json", [_read_fleet_folder]
    ),
    "fleet's output": OutsideKind(_fleet_folder, "run.fleet/output", "json", [_read_fleet_folder]),
    "groups.csv": OutsideKind(_lists, "tokens/groups.csv", "table", [_read_groups]),
    "tokens": OutsideKind(_lists, "tokens/1.json", "json", [_read_tokens]),
}
"""By its name. Another kind is another row; `more_outside_kinds` has what takes longer."""
