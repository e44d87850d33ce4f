"""A command on a device of each class."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from edgeflare.fleet.command_job import CommandJob
from edgeflare.fleet.work_units import WorkUnit


def test_units_get_the_run_directories_that_their_command_names(tmp_path: Path) -> None:
    hosts: Any = None  # nothing is asked of any
    job = CommandJob(
        out=tmp_path,
        hosts=hosts,
        classes=("pixel", "nano"),
        command=("replay", "\0REPLAYED"),
        given={"\0REPLAYED": b"an archive"},
    )
    begun: list[tuple[str, dict[str, bytes]]] = []
    runs: Any = SimpleNamespace(given={"\0SCREENING": b"another"})

    def run(units: Sequence[WorkUnit]) -> bool:
        begun.extend((unit.name, dict(runs.given)) for unit in units)
        return True

    runs.run = run
    assert job.run_all(runs)
    both = {"\0SCREENING": b"another", "\0REPLAYED": b"an archive"}
    assert begun == [("pixel", both), ("nano", both)]
