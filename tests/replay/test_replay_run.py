from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgeflare.core.seeds import Seeds
from edgeflare.errors import UserError
from edgeflare.replay import replay_run
from edgeflare.run.journal import Journal
from edgeflare.run.run_directory import RunDirectory


def copy(name: str, run: Path) -> None:
    """Copy a file of that name from a past run."""
    past: Any = SimpleNamespace(
        suite=[{}], files=lambda _: {name: b"theirs"}, directory=RunDirectory(run.parent / "past")
    )
    seeds = Seeds(np.empty(0), None, ())
    journal = Journal.create(run / "run.db", {})
    replay_run._copy_inputs(past, seeds, RunDirectory(run), journal)


@pytest.mark.parametrize(
    "name", ["run.db", "run.json", "../outside.png", "findings/../../outside.png", "other/1.png"]
)
def test_a_replay_takes_images_only(tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with pytest.raises(UserError, match="names"):
        copy(name, run)
    assert not (tmp_path / "outside.png").exists()
    assert [path.name for path in run.iterdir() if path.suffix != ".lock"] == ["run.db"]


def test_a_replay_writes_through_no_link(tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    (run / "findings").symlink_to(elsewhere)
    with pytest.raises(UserError, match="outside of it"):
        copy("findings/1.png", run)
    assert not list(elsewhere.iterdir())
