"""A real labgrid on loopback: a coordinator, and an exporter of one resource for each place."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from free_port import free_port

ROOT = Path(__file__).parents[2]
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
