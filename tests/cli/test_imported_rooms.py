"""What a command imports before it does anything: a room that it does not need costs its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

LOADED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sorted({name.split(".")[1] for name in sys.modules if name.startswith("edgeflare.")}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "others"),
    [
        ("edgeflare.cli", {"campaign", "conform", "models", "report", "run", "survey"}),
        ("edgeflare.cli.search", {"conform", "diagnose", "rank", "repair"}),
        ("edgeflare.cli.report", {"conform", "fleet", "repair", "survey"}),
        ("edgeflare.cli.conform", {"diagnose", "rank", "repair"}),
    ],
)
def test_a_command_imports_no_room_that_it_does_not_need(module: str, others: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, module], capture_output=True, text=True, check=True
    )
    assert not others & set(done.stdout.split())
