"""What only reads runs and pairs does so where nothing can be written, and writes nothing there."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from called_commands import EXAMPLE, SMALL, document_of
from confined_commands import where_it_is_read_only, where_its_disk_is_full
from edgeflare.run.run_journal import RunJournal

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(finished: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A pair, a run of it that has ended, and one that was killed with all in its journal."""
    folder = tmp_path_factory.mktemp("runs")
    ended, killed = folder / "ended", folder / "killed"
    shutil.copytree(finished.folder, ended)
    shutil.copytree(finished.folder, folder / "running")
    with closing(RunJournal.reopen(folder / "running" / "run.db")) as journal:
        journal.note("stopped_by", "killed")
        shutil.copytree(folder / "running", killed)
    shutil.rmtree(folder / "running")
    assert (killed / "run.db-wal").stat().st_size > 0
    (killed / "run.json").unlink()
    shutil.copytree(EXAMPLE, folder / "pair")
    return folder


def kept(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = sorted(folder.rglob("*"))
    return {
        str(one.relative_to(folder)): (
            one.stat().st_mtime_ns,
            b"" if one.is_dir() else one.read_bytes(),
        )
        for one in [folder, *found]
    }


@pytest.mark.parametrize("where", [where_it_is_read_only, where_its_disk_is_full])
def test_runs_are_read_from_a_folder_that_cannot_be_written(
    runs: Path, where: Any, tmp_path: Path
) -> None:
    before = kept(runs)
    finding = str(document_of(runs / "ended")["findings"][0]["seed_id"])
    ended, killed, pair = runs / "ended", runs / "killed", runs / "pair"
    out = tmp_path / "out"
    out.mkdir()
    show = ("survey", pair, "--conditions", "fog", "--severities", "3", "--show")
    commands = {
        "ended": ("report", ended),
        "killed": ("report", killed),
        "compared": ("compare", ended, killed),
        "merged": ("merge", killed, "--out", out / "merged"),
        "replayed": ("replay", ended, "--out", out / "replayed"),
        "exported": ("export", killed, finding, "--out", out / "finding.zip"),
        "conditions shown": (*show, out / "conditions.html"),
        "page": ("report", killed, "--html"),
        "conditions shown here": (*show, runs / "conditions.html"),
        "explained": ("explain", ended, finding),
        "merged here": ("merge", ended, "--out", runs / "merged"),
        "gone on with": ("search", EXAMPLE, *SMALL, "--out", ended, "--resume"),
        "resumed": ("replay", ended, "--out", runs / "replayed"),
    }
    said = dict(zip(commands, where(runs, *commands.values()), strict=True))
    read = {"ended", "killed", "compared", "merged", "replayed", "exported", "conditions shown"}
    assert {name: said[name].err for name in read if said[name].code not in (0, 1)} == {}
    assert "killed before its end" in said["killed"].out
    for name in commands.keys() - read:
        assert "\nedgeflare: " in f"\n{said[name].err}", said[name]
        assert said[name].code == 3
        assert "mistake in edgeflare" not in said[name].err
        assert "damaged" not in said[name].err
    assert kept(runs) == before


@pytest.mark.whitebox
def test_what_is_inspected_where_nothing_can_be_written_is_lost_in_a_line(runs: Path) -> None:
    before = kept(runs)
    brief = ("--behaviour", "error", "--max-inputs", "100", "--precision", ".9")
    (said,) = where_its_disk_is_full(runs, ("inspect", runs / "ended", *brief))
    assert said.code == 3
    (line,) = (one for one in said.err.splitlines() if one.startswith("edgeflare: "))
    assert str(runs) in line
    assert "mistake in edgeflare" not in line
    assert kept(runs) == before
