"""What `make` runs, as `make --dry-run` tells it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is absent")


def told(target: str) -> str:
    command = ["make", "--dry-run", "--no-print-directory", target]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def test_the_check_lints_and_leaves_out_what_is_slow_or_needs_more() -> None:
    check = told("check")
    for line in told("lint").splitlines():
        assert line in check
    (marks,) = re.findall(r"-m\s+(?:\\\n\s*)?'not \((.*)\)'", check)
    project = (ROOT / "pyproject.toml").read_text()
    (known,) = re.findall(r"^markers = \[$(.*?)^\]$", project, re.MULTILINE | re.DOTALL)
    assert set(marks.split(" or ")) == set(re.findall(r'^    "(\w+):', known, re.MULTILINE))


def test_the_help_names_every_target() -> None:
    targets = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"echo 'make (\w+) ", told("help")))
    assert named == set(targets[0].split()) - {"help"}
