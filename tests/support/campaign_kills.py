"""Killing the parts of a real campaign at random moments, over and over."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from documents import Document
from laboratory import untimed
from processes import FORK_SERVER, process_file

ROOT = Path(__file__).parents[2]
SEARCH = (
    *("search", "examples/fashion_lenet4", "--device", "emulated-builtin"),
    *("--strategy", "random", "--first", "12", "--max-queries", "300", "--shrink", "20"),
    *("--fail-on", "none"),
)
"""Some seconds, and some findings: a strategy that needs longer, to be killed in."""

Role = Literal["host", "agent", "fork server", "host's worker", "device's worker"]
Victim = Literal["host", "agent", "worker"]

ROLES: dict[Victim, tuple[Role, ...]] = {
    "host": ("host",),
    "agent": ("agent",),
    "worker": ("host's worker", "device's worker"),
}

LONGEST_WAIT: dict[Victim, float] = {"host": 2.0, "agent": 2.0, "worker": 0.6}
"""Seconds that a victim lives at most once it is seen: as long as it takes to start, and more."""

GONE_SECONDS = 200.0
"""After which a process that should end by itself counts as left running."""

LOOK_SECONDS = 0.05
"""Between two looks at what runs."""

MARK = "EDGEFLARE_KILL_TEST"


@dataclass(frozen=True)
class Process:
    """A process of a campaign."""

    pid: int
    role: Role


@dataclass
class Campaign:
    """`edgeflare search` in processes of its own, each of which can be found by its environment."""

    folder: Path
    _mark: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def out(self) -> Path:
        return self.folder / "run"

    def start(self) -> subprocess.Popen[bytes]:
        """Begin the campaign, or go on with it."""
        self.folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "edgeflare", *SEARCH, "--out", str(self.out)]
        if (self.out / "run.db").exists():
            command.append("--resume" if self.has_begun() else "--overwrite")
        with (self.folder / "stderr").open("ab") as words:
            return subprocess.Popen(
                command,
                cwd=ROOT,
                # What a killed host leaves in the temporary folder goes with the test's.
                env={**os.environ, MARK: self._mark, "TMPDIR": str(self.folder)},
                stdout=subprocess.DEVNULL,
                stderr=words,
            )

    def has_begun(self) -> bool:
        """Whether there is a journal to go on with."""
        if not (self.out / "run.db").exists():
            return False
        with closing(sqlite3.connect(self.out / "run.db")) as db:
            return bool(db.execute("PRAGMA user_version").fetchone()[0])

    def run(self) -> Document:
        """Run the campaign to its end."""
        while (code := self.start().wait()) == 3:
            pass  # the device was lost too often in a row; the same command goes on
        assert code == 0, self.failure_reason()
        return self.document()

    def document(self) -> Document:
        document: Document = json.loads((self.out / "run.json").read_bytes())
        return document

    def failure_reason(self) -> str:
        return (self.folder / "stderr").read_text()[-2000:]

    def processes(self) -> list[Process]:
        """All processes of the campaign, whoever their parent is by now."""
        marked = {pid: status for pid, status in _processes() if self._is_marked(pid)}
        return [Process(pid, _role(marked, pid)) for pid in marked if marked[pid].arguments]

    def await_the_end_of_all(self) -> None:
        """Wait until no process of the campaign is left."""
        deadline = time.monotonic() + GONE_SECONDS
        while left := self.processes():
            assert time.monotonic() < deadline, f"left running: {left}"
            time.sleep(LOOK_SECONDS)

    def _is_marked(self, pid: int) -> bool:
        return f"{MARK}={self._mark}".encode() in process_file(pid, "environ").split(b"\0")


@dataclass
class KillTally:
    """What was done, and what it took.

    Attributes:
        kills: processes killed, by role.
        campaigns: campaigns that the kills were spread over.
        starts: times that the host was started, or started again.
        findings: findings of all campaigns together.

    """

    kills: dict[Role, int] = field(default_factory=dict)
    campaigns: int = 0
    starts: int = 0
    findings: int = 0

    @property
    def total(self) -> int:
        return sum(self.kills.values())


def kill_many(victim: Victim, times: int, folder: Path, expected: Document, seed: int) -> KillTally:
    """Kill one part of as many campaigns as it takes, and hold each against an undisturbed one.

    Args:
        victim: what is killed; a worker is the device's or one of the host's.
        times: how often.
        folder: where the campaigns run.
        expected: the document of an undisturbed campaign.
        seed: decides the moments.

    """
    rng = np.random.default_rng(seed)
    tally = KillTally()
    while tally.total < times:
        campaign = Campaign(folder / f"{victim}-{tally.campaigns}")
        while True:
            host = campaign.start()
            tally.starts += 1
            _kill_while_it_runs(campaign, host, victim, times, tally, rng)
            code = host.wait()
            campaign.await_the_end_of_all()
            if code == 0:
                break
            # 3: the device was lost too often in a row; the same command goes on after that, too.
            assert code in (-signal.SIGKILL, 3), campaign.failure_reason()
        assert_same(campaign, expected)
        tally.campaigns += 1
        tally.findings += len(expected["findings"])
    return tally


def assert_same(campaign: Campaign, expected: Document) -> None:
    """Nothing was lost, nothing doubled, and all is as in an undisturbed campaign but times."""
    document = campaign.document()
    assert untimed(document) == untimed(expected)
    findings = document["findings"]
    for folder, images in (
        ("findings", [entry["refined"]["file_before"] for entry in findings]),
        ("refined", [entry["file"] for entry in findings]),
        ("deviating_seeds", [entry["file"] for entry in document["deviating_seeds"]]),
    ):
        stored = campaign.out.glob(f"{folder}/*.png")
        assert sorted(str(path.relative_to(campaign.out)) for path in stored) == images


def _kill_while_it_runs(
    campaign: Campaign,
    host: subprocess.Popen[bytes],
    victim: Victim,
    times: int,
    tally: KillTally,
    rng: np.random.Generator,
) -> None:
    killed: set[int] = set()
    while tally.total < times and host.poll() is None:
        # A device that is lost before the run begins ends it, and rightly so.
        if victim != "host" and not campaign.has_begun():
            time.sleep(LOOK_SECONDS)
            continue
        found = [
            process
            for process in campaign.processes()
            if process.role in ROLES[victim] and process.pid not in killed
        ]
        if not found:
            time.sleep(LOOK_SECONDS)
            continue
        target = found[int(rng.integers(len(found)))]
        if victim == "host" and rng.random() < 0.5:
            _await_the_search(campaign, host)
        time.sleep(float(rng.uniform(0.0, LONGEST_WAIT[victim])))
        if _kill(campaign, target):
            killed.add(target.pid)
            tally.kills[target.role] = tally.kills.get(target.role, 0) + 1


def _await_the_search(campaign: Campaign, host: subprocess.Popen[bytes]) -> None:
    """Wait until the host has all that it searches with, so that not only its start is hit."""
    while host.poll() is None:
        if any(process.role == "device's worker" for process in campaign.processes()):
            return
        time.sleep(LOOK_SECONDS)


def _kill(campaign: Campaign, target: Process) -> bool:
    """Kill a process if it is still there, and still the campaign's."""
    if target not in campaign.processes():
        return False
    os.kill(target.pid, signal.SIGKILL)
    return True


@dataclass(frozen=True)
class _Status:
    parent: int
    arguments: tuple[bytes, ...]


def _processes() -> Iterator[tuple[int, _Status]]:
    """Yield what runs on this machine; who is dead but not yet buried has no arguments."""
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            pid = int(folder.name)
            # The command's name stands in parentheses, and may hold anything.
            fields = process_file(pid, "stat").rpartition(b")")[2].split()
            if fields:
                arguments = tuple(process_file(pid, "cmdline").split(b"\0")[:-1])
                yield pid, _Status(int(fields[1]), arguments)


def _role(marked: dict[int, _Status], pid: int) -> Role:
    arguments = marked[pid].arguments
    if b"edgeflare_agent" in arguments:
        return "agent"
    parent = marked.get(marked[pid].parent)
    if FORK_SERVER in arguments and parent is not None and FORK_SERVER in parent.arguments:
        # Host and agent share a fork server: a worker has its pipes in common with whose it is.
        agents = [
            other for other, status in marked.items() if b"edgeflare_agent" in status.arguments
        ]
        shared = any(_pipes(pid) & _pipes(agent) for agent in agents)
        return "device's worker" if shared else "host's worker"
    if FORK_SERVER in arguments:
        return "fork server"
    if b"edgeflare_agent.runtime.worker" not in arguments:
        return "host"
    if parent is not None and b"edgeflare_agent" in parent.arguments:
        return "device's worker"
    return "host's worker"


def _pipes(pid: int) -> set[str]:
    """Return the pipes that a process has open."""
    found: set[str] = set()
    with suppress(OSError):  # it ends meanwhile
        found |= {os.readlink(link) for link in Path(f"/proc/{pid}/fd").iterdir()}
    return {name for name in found if name.startswith("pipe:")}
