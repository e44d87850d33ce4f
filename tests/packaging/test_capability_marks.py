"""In CI, a test that needs a capability fails where it would otherwise skip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]

SUITE = """\
import pytest

@pytest.fixture
def board():
    pytest.skip("no board here")

@pytest.mark.old_board
def test_skips_in_a_fixture(board): ...

@pytest.mark.old_board
@pytest.mark.skipif(True, reason="no board here")
def test_skips_by_a_condition(): ...

@pytest.mark.old_board
def test_skips_by_itself():
    pytest.skip("no board here")

@pytest.mark.old_board
@pytest.mark.xfail
def test_is_expected_to_fail():
    raise AssertionError

def test_needs_nothing():
    pytest.skip("of no concern to CI")
"""


@pytest.mark.parametrize(
    ("ci", "summary"),
    [({}, "4 skipped, 1 xfailed"), ({"CI": "true"}, "1 failed, 1 skipped, 1 xfailed, 2 errors")],
)
def test_ci_turns_skips_of_marked_tests_into_failures(
    tmp_path: Path, ci: dict[str, str], summary: str
) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    support = ROOT / "tests" / "support"
    settings = f"[pytest]\nmarkers =\n  system\n  old_board\npythonpath = {support}\n"
    (tmp_path / "pytest.ini").write_text(settings)
    (tmp_path / "test_suite.py").write_text(SUITE)

    environment = {name: value for name, value in os.environ.items() if name != "CI"} | ci
    without = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *without],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert summary in run.stdout
    assert ("must not skip. Skipped: no board here" in run.stdout) == bool(ci)
    assert run.returncode == (1 if ci else 0)
