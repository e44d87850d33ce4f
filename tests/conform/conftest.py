"""A conformance run with the files of its findings, which tests of its rooms share."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformed_runs import run_with_files
from made_once import made_once


@pytest.fixture(scope="session")
def run_of_findings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with two findings: an ADD that wraps, and one that is said to crash and does not."""
    return made_once(tmp_path_factory, "run_of_findings", run_with_files)
