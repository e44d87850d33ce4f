"""What a command imports before it does anything: a room that it does not need costs its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*(name for name in sys.modules if name.startswith("edgeflare")))
"""

MOST_OF_A_SEARCH = 249
"""Modules of ours that a search may import before it begins, a few more than it does."""


def imported(module: str) -> list[str]:
    """Return the modules of ours that are imported with one."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, module], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("edgeflare.cli", {"campaign", "conform", "models", "report", "run", "survey"}),
        (
            "edgeflare.cli.search",
            {"bench", "check", "conform", "diagnose", "fleet", "matrix", "rank", "repair"}
            | {"replay", "survey", "whitebox"},
        ),
        ("edgeflare.cli.report", {"conform", "fleet", "repair", "survey"}),
        ("edgeflare.cli.conform", {"diagnose", "rank", "repair"}),
    ],
)
def test_a_command_imports_no_room_that_it_does_not_need(module: str, others: set[str]) -> None:
    assert not others & {name.split(".")[1] for name in imported(module) if "." in name}


@pytest.mark.slow
def test_a_search_imports_few_modules() -> None:
    assert len(imported("edgeflare.cli.search")) <= MOST_OF_A_SEARCH
