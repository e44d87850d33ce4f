"""A search of the example in sound, explained and reported: made once for all tests that look."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from forked_commands import forked_edgeflare

PAIR = Path(__file__).parents[2] / "examples" / "spoken_words"
SEEDS = 3


@pytest.fixture(scope="session")
def searched_sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory, with `explain.json` and `report.html`."""
    run = tmp_path_factory.mktemp("spoken_words") / "run"
    for command in (
        ("search", PAIR, "--first", SEEDS, "--max-queries", 100, "--shrink", 0,
         "--within", "none", "--fail-on", "none", "--out", run),
        ("explain", run),
        ("report", run, "--html"),
    ):  # fmt: skip
        subprocess.run([forked_edgeflare(), *map(str, command)], check=True)
    return run
