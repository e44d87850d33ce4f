"""`edgeflare inspect --fleet`: what a device of a fleet adds to a run is what it adds alone.

The cluster alone is stood in for, so that the tests need no Ray: the attempt is a real command.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="needs the extra whitebox")

from attempts_of_this_process import attempts_here
from called_commands import call_here

pytestmark = [pytest.mark.whitebox, pytest.mark.slow]

BRIEF = ("--behaviour", "error", "--inputs", "100", "--precision", ".9")


def test_an_inspection_is_put_into_the_run(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = attempts_here(monkeypatch, tmp_path / "cache")
    run, alone = tmp_path / "run", tmp_path / "alone"
    options = ("--first", "4", "--max-queries", "20", "--shrink", "0", "--fail-on", "none")
    assert call_here("search", example, *options, "--out", run).code == 0
    shutil.copytree(run, alone)
    before = (run / "run.json").read_bytes()

    device = ("--device", "emulated-xnnpack")
    here = call_here("inspect", alone, *BRIEF, *device)
    there = call_here("inspect", run, *BRIEF, *device, "--fleet", "local")
    assert (there.code, here.code) == (0, 0)
    written = json.loads((run / "inspect.json").read_bytes())
    assert written == json.loads((alone / "inspect.json").read_bytes())
    assert written["verdict"]["sentence"] in there.out
    assert (run / "run.json").read_bytes() == before
    assert attempts.units() == ["emulated-xnnpack"]
    assert (tmp_path / "run.inspect.fleet" / "fleet.json").is_file()
