"""Hosts that worked on a run beside its first are named in its warnings, each difference once."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgeflare.run.begin_or_resume import resume_run
from edgeflare.run.derive_document import write_document
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_header import RunHeader
from edgeflare.run.same_run import OtherHostError
from merged_parts import about_of, copied, note_about
from recorded_run import Run

HOST: dict[str, Any] = {"machine": "x86_64", "cpu_features": ["avx"], "cores": 2}


def lines(run: Path) -> list[str]:
    with closing(Journal.open(run / "run.db")) as journal:
        document = write_document(RunDirectory(run), journal)
    return [line for line in document.warnings if "several hosts worked on this run" in line]


def gone_on(run: Path, host: dict[str, Any]) -> None:
    """Go on with a run on a host, though it is another one."""
    header = replace(RunHeader.from_json(about_of(run)), host=host)
    _, journal = resume_run(run, header, allow_other_host=True)
    journal.close()


def test_each_other_host_is_named_once(run: Run, tmp_path: Path) -> None:
    here = copied(run.folder, tmp_path / "run")
    note_about(here, host=HOST)
    gone_on(here, {**HOST, "cores": 64})
    assert lines(here) == []
    for _ in range(2):
        gone_on(here, {**HOST, "cpu_features": ["avx", "amx_int8"]})
        (line,) = lines(here)
    assert line == (
        "several hosts worked on this run, which differ in cpu_features (no others, amx_int8):"
        " original and twin may have answered differently on each"
    )
    gone_on(here, {**HOST, "machine": "aarch64"})
    assert [said.partition(" (")[2].partition(")")[0] for said in lines(here)] == [
        "no others, amx_int8",
        "x86_64, aarch64",
    ]


def test_a_host_that_is_not_allowed_leaves_the_run_as_it_was(run: Run, tmp_path: Path) -> None:
    here = copied(run.folder, tmp_path / "run")
    note_about(here, host=HOST)
    before = about_of(here)
    header = replace(RunHeader.from_json(before), host={**HOST, "machine": "aarch64"})
    with pytest.raises(OtherHostError, match="machine x86_64 there and aarch64 here"):
        resume_run(here, header)
    assert about_of(here) == before
    assert (here / "run.json").is_file()
