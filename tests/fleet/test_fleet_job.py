"""What a job of a fleet says where it fails."""

from __future__ import annotations

import errno
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgeflare.errors import InfrastructureError
from edgeflare.fleet.command_job import CommandJob


@dataclass(frozen=True, slots=True, kw_only=True)
class LosingJob(CommandJob):
    """A job that loses its last device, and may meet a full disk as well."""

    full: bool

    def run_all(self, runs: Any) -> bool:  # noqa: ARG002 - as the job has it
        raise InfrastructureError("no device is left")

    def put_all(self, runs: Any, lying: Collection[str]) -> bool:  # noqa: ARG002 - likewise
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return True


@pytest.mark.parametrize("full", [False, True])
def test_what_is_done_is_said_to_lie_there_only_where_it_was_put(
    tmp_path: Path, *, full: bool
) -> None:
    hosts: Any = None  # nothing is asked of any
    job = LosingJob(
        out=tmp_path, hosts=hosts, classes=("pixel",), command=("survey",), given={}, full=full
    )
    runs: Any = SimpleNamespace(goes_on="")
    with pytest.raises(InfrastructureError, match=r"^no device is left") as lost:
        job.run(runs)
    assert (f"what is done is in {tmp_path}" in str(lost.value)) is not full
