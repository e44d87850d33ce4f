"""What `make` runs, as `make --dry-run` tells it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
MARKS = r"pytest .* -m (?:'([^']*)'|(\w+))"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is absent")


def told(target: str) -> str:
    command = ["make", "--dry-run", "--no-print-directory", target]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=300
    )
    return done.stdout


def marks_of(target: str) -> list[str]:
    return [quoted or one for quoted, one in re.findall(MARKS, told(target))]


def test_each_test_is_run_by_one_of_two_commands_and_the_check_is_the_quick_part_of_one() -> None:
    assert marks_of("test") == ["not system"]
    assert marks_of("test-all") == ["system"]
    assert marks_of("check") == ["not (slow or system)"]
    assert marks_of("test-newest") == marks_of("check")
    check = told("check")
    for line in told("lint").splitlines():
        assert line in check


def test_each_mark_but_slow_is_one_of_a_capability(request: pytest.FixtureRequest) -> None:
    project = (ROOT / "pyproject.toml").read_text()
    (known,) = re.findall(r"^markers = \[$(.*?)^\]$", project, re.MULTILINE | re.DOTALL)
    shared: Any = request.config.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    marks = set(re.findall(r'^    "(\w+):', known, re.MULTILINE))
    assert marks - {"slow", "system"} == shared.CAPABILITY_MARKS


def test_the_help_names_every_target() -> None:
    targets = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = set(re.findall(r"echo 'make ([\w-]+) ", told("help")))
    assert named == set(targets[0].split()) - {"help"}


@pytest.mark.slow
def test_without_a_network_one_line_says_what_is_wrong(tmp_path: Path) -> None:
    for name in ("Makefile", "constraints.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    command = ["make", "--no-print-directory", "--quiet", ".venv/.complete"]
    command.append(f"PYTHON={sys.executable}")
    # The `make test` that runs this test hands its depth and its flags to what it starts.
    outer = {"MAKELEVEL", "MAKEFLAGS", "MFLAGS"}
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**environment, "PIP_NO_INDEX": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 2
    said, of_make = done.stderr.splitlines()
    assert said.startswith("pip could not fill .venv: ")
    assert said.endswith("(is there a network? .venv/pip.log has the rest)")
    assert of_make.startswith("make: ***")
    assert not (tmp_path / ".venv" / ".complete").exists()
