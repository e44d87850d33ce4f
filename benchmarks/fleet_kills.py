"""Whether searches on a fleet that is disturbed find what one host finds.

    python benchmarks/fleet_kills.py [--times 60] [--seed 0] [--kind raylet ...]

Needs root and Ray: the hosts are network namespaces, as in the tests. Short searches run one after
the other, and meanwhile something is done to their parts, drawn with its moment by the seed. What
ends with exit code 3, or is killed, is gone on with by --resume. The findings of each search are
held to those of one host: how many are lost, doubled and different has to be 0, 0 and 0.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from fleet_hosts import CLASS, ROOT, StoodInFleet, StoodInHost, stood_in_fleet, why_no_hosts
from laboratory import untimed

BOUNDS = (
    *("search", "examples/fashion_lenet4", "--first", "40", "--max-queries", "800"),
    *("--shrink", "30", "--fail-on", "none", "--device", CLASS, "--quiet"),
)
MOST_OF_A_SEARCH = 4
"""Disturbances of one search."""

LONGEST_WAIT = 12.0
"""Seconds before a disturbance, at most: as long as the units take, and more."""

LONGEST_STOP = 12.0
"""Seconds that a process is stopped or a link is down, at most: longer than the head waits."""

LONGEST_COMMAND = 1800.0
"""Seconds after which a command is taken to hang, which ends the benchmark."""

_RAYLET, _ATTEMPT, _WORKER = "raylet/raylet", "fleet.work.bound_command", "ray::_attempt"
_AGENT, _COLLECTOR, _DRIVER = "-m edgeflare_agent", "ray::_ReportCollector", "-m edgeflare search"


@dataclass
class FleetTally:
    """What was done, and what came of it.

    Commands that end with exit code 1 and say nothing are ended by Ray, which ends a process whose
    raylet is gone; they are gone on with, and counted, since it should be exit code 3.
    """

    done: Counter[str] = field(default_factory=Counter)
    searches: int = 0
    commands: int = 0
    findings: int = 0
    lost: int = 0
    doubled: int = 0
    different: int = 0
    other_fields: int = 0
    unsaid: int = 0

    def hold(self, got: dict[str, Any], expected: dict[str, Any]) -> None:
        """Count what differs from the search of one host."""
        self.searches += 1
        found = Counter(one["seed_id"] for one in got["findings"])
        known = {one["seed_id"]: one for one in expected["findings"]}
        self.findings += len(got["findings"])
        self.lost += len(known.keys() - found.keys())
        self.doubled += sum(count - 1 for count in found.values())
        self.different += sum(one != known.get(one["seed_id"]) for one in got["findings"])
        self.other_fields += got != expected


@dataclass
class Disturber:
    """Does something to parts of a fleet."""

    fleet: StoodInFleet
    rng: np.random.Generator

    def kinds(self) -> dict[str, Callable[[], bool]]:
        """Return what can be done; each says whether there was something to do it to."""
        other = self.fleet.hosts[1]
        return {
            "node": lambda: self._kill_all(other),
            "raylet": lambda: self._kill(_RAYLET, other),
            "head's raylet": lambda: self._kill(_RAYLET, self.fleet.head),
            "worker": lambda: self._kill(_WORKER, *self.fleet.hosts),
            "attempt": lambda: self._kill(_ATTEMPT, *self.fleet.hosts),
            "agent": lambda: self._kill(_AGENT, *self.fleet.hosts),
            "driver": lambda: self._kill(_DRIVER, self.fleet.head),
            "collector": lambda: self._kill(_COLLECTOR, self.fleet.head),
            "raylet stopped": lambda: self._stop(_RAYLET, other),
            "attempt stopped": lambda: self._stop(_ATTEMPT, *self.fleet.hosts),
            "link down": lambda: self._pull(other),
        }

    def mend(self) -> None:
        """Have all hosts take part again."""
        for host in self.fleet.hosts[1:]:
            if not host.running(_RAYLET):
                host.kill()
                host.join(self.fleet.head)

    def mend_all(self) -> None:
        """Have all hosts take part again once no command runs, the head too."""
        if not self.fleet.head.running(_RAYLET):
            for host in self.fleet.hosts:
                host.kill()
            self.fleet.start()
        self.mend()

    def _found(self, part: str, *hosts: StoodInHost) -> tuple[StoodInHost, int] | None:
        found = [(host, pid) for host in hosts for pid in host.running(part)]
        return found[int(self.rng.integers(len(found)))] if found else None

    def _kill(self, part: str, *hosts: StoodInHost) -> bool:
        found = self._found(part, *hosts)
        if found is not None:
            found[0].signal([found[1]], signal.SIGKILL)
        return found is not None

    def _kill_all(self, host: StoodInHost) -> bool:
        ran = bool(host.running(_RAYLET))
        host.kill()
        return ran

    def _stop(self, part: str, *hosts: StoodInHost) -> bool:
        found = self._found(part, *hosts)
        if found is not None:
            found[0].signal([found[1]], signal.SIGSTOP)
            time.sleep(float(self.rng.uniform(1.0, LONGEST_STOP)))
            found[0].signal([found[1]], signal.SIGCONT)
        return found is not None

    def _pull(self, host: StoodInHost) -> bool:
        host.set_link(up=False)
        time.sleep(float(self.rng.uniform(1.0, LONGEST_STOP)))
        host.set_link(up=True)
        return True


def disturbed_search(
    disturber: Disturber, out: Path, wanted: list[str], tally: FleetTally
) -> dict[str, Any]:
    """Search on the fleet while something is done to it; return the document."""
    fleet = disturber.fleet
    words = [*BOUNDS, "--unit-seeds", "10", "--fleet", fleet.address, "--out", str(out)]
    words += ["--fleet-file", str(fleet.file)]
    folder, kinds = out.with_name(f"{out.name}.fleet"), disturber.kinds()
    left = MOST_OF_A_SEARCH
    while True:
        more = ["--resume"] if (folder / "request.json").exists() else []
        command = fleet.head.edgeflare(*words, *more, said=out.with_suffix(".said"))
        tally.commands += 1
        while command.poll() is None and wanted and left:
            _wait(command, float(disturber.rng.uniform(0.0, LONGEST_WAIT)))
            if command.poll() is None and folder.exists() and kinds[wanted[0]]():
                tally.done[wanted.pop(0)] += 1
                left -= 1
                disturber.mend()
        code = command.wait(LONGEST_COMMAND)
        disturber.mend_all()
        if code == 0:
            return comparable(out)
        said = out.with_suffix(".said").read_text()
        if code == 1 and not said.strip():
            tally.unsaid += 1
        elif code not in (3, -signal.SIGKILL) or "Traceback" in said:
            raise RuntimeError(f"exit code {code}: {said[-2000:]}")


def _wait(command: subprocess.Popen[bytes], seconds: float) -> None:
    try:
        command.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def comparable(out: Path) -> dict[str, Any]:
    """Return a run without its times and what is said of its hosts."""
    document = untimed(json.loads((out / "run.json").read_bytes()))
    del document["warnings"]
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=60, help="disturbances (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="decides them (default: 0)")
    parser.add_argument("--seconds", type=float, default=None, help="begin no search after these")
    parser.add_argument("--kind", action="append", help="do this alone; may be given several times")
    options = parser.parse_args()
    if why := why_no_hosts():
        parser.error(why)
    rng = np.random.default_rng(options.seed)
    tally, began = FleetTally(), time.monotonic()
    with tempfile.TemporaryDirectory() as name, stood_in_fleet(Path(name), 2) as fleet:
        alone = Path(name) / "alone"
        command = [sys.executable, "-m", "edgeflare", *BOUNDS, "--out", str(alone)]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env=os.environ)
        expected = comparable(alone)
        fleet.start()
        disturber = Disturber(fleet, rng)
        kinds = sorted(options.kind or disturber.kinds())
        rounds = [rng.permutation(kinds) for _ in range(-(-options.times // len(kinds)))]
        wanted = [str(kind) for one in rounds for kind in one][: options.times]
        while wanted and (options.seconds is None or time.monotonic() - began < options.seconds):
            got = disturbed_search(disturber, Path(name) / f"run{tally.searches}", wanted, tally)
            tally.hold(got, expected)
            print(
                f"{time.monotonic() - began:.0f} s: {tally.done.total()} disturbances in"
                f" {tally.searches} searches ({tally.commands} commands), {tally.findings}"
                f" findings: {tally.lost} lost, {tally.doubled} doubled, {tally.different}"
                f" different; {tally.other_fields} searches differ in any field but times;"
                f" {tally.unsaid} commands ended with exit code 1 and no word",
                flush=True,
            )
    for kind, count in sorted(tally.done.items()):
        print(f"{kind}: {count}")


if __name__ == "__main__":
    main()
