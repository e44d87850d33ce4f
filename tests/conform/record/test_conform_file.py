"""Tests of edgeflare.conform.record.conform_file: documents read back, and damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformed_runs import conformed_run, constructed_conformance, finding_entry
from edgeflare.conform.record.conform_file import holds_conformance, read_conformance
from edgeflare.run.run_directory import RunDirectory


def test_a_document_comes_back_as_it_was(tmp_path: Path) -> None:
    directory = conformed_run(tmp_path)
    assert holds_conformance(directory)
    assert read_conformance(directory) == constructed_conformance()


def test_a_run_that_was_cut_off_says_how_to_go_on(
    tmp_path: Path, refusal: Callable[..., str]
) -> None:
    assert not holds_conformance(RunDirectory(tmp_path))
    (tmp_path / "conform.db").touch()
    assert holds_conformance(RunDirectory(tmp_path))
    said = refusal(read_conformance, RunDirectory(tmp_path))
    assert f"--out {tmp_path} --resume" in said


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"findings": [finding_entry(verdict="right")]}, "findings[0].verdict"),
        ({"findings": [finding_entry(failing=0)]}, "findings[0].failing"),
        ({"models": -1}, "models"),
        ({"stopped_by": "boredom"}, "stopped_by"),
        ({"more": 1}, "unknown key"),
        ({"schema": "edgeflare.run/v1"}, "is not of the schema edgeflare.conform/v1"),
    ],
)
def test_what_does_not_keep_to_the_schema_is_refused(
    tmp_path: Path, refusal: Callable[..., str], changed: dict[str, Any], said: str
) -> None:
    directory = conformed_run(tmp_path, constructed_conformance(**changed))
    assert said in refusal(read_conformance, directory)
