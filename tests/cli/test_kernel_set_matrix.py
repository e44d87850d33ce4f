"""`--device emulated-all`: every kernel set in one table, of a search, a replay and conform."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from called_commands import EXAMPLE, call_here, completed, document_of
from edgeflare.matrix.matrix_folder import claimed_matrix
from edgeflare.record.atomic_file import write_atomically
from edgeflare.run.run_directory import RunDirectory
from networks import write_pair

pytestmark = pytest.mark.slow

BUDGET = (
    *("--find", "kernel", "--first", "2", "--max-queries", "10", "--ensemble", "xnnpack"),
    *("--shrink", "0", "--within", "none", "--fail-on", "none"),
)


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Return what names all kernel sets of a device that offers some of this host's."""

    def offering(*kernels: str) -> str:
        launcher = tmp_path / "python"
        launcher.write_text(_LAUNCHER.format(python=sys.executable, kernels=kernels))
        launcher.chmod(0o755)
        profiles = tmp_path / "device_profiles"
        profiles.mkdir()
        (profiles / "board.toml").write_text(f'transport = "emulated"\npython = "{launcher}"\n')
        monkeypatch.chdir(tmp_path)
        return "board/all"

    return offering


_LAUNCHER = """\
#!{python}
import runpy, sys
from edgeflare_agent.runtime import model_runtime
offered = model_runtime.offered_kernel_sets
model_runtime.offered_kernel_sets = lambda: tuple(k for k in offered() if k in {kernels})
sys.argv = sys.argv[2:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


@pytest.mark.gpu
@pytest.mark.usefixtures("gpu")
def test_the_gpu_stands_alone_with_a_network_that_it_computes_wrongly(
    tmp_path: Path, board: Callable[..., str]
) -> None:
    pair, out = write_pair(tmp_path / "pair", "resnet"), tmp_path / "all"
    device = ("--device", board("xnnpack", "builtin", "gpu"), "--trust")
    said = completed("search", pair, *device, *BUDGET, "--out", out)
    document = document_of(out, "matrix.json")
    rows = {row["kernels"]: row for row in document["kernel_sets"]}
    assert list(rows) == ["xnnpack", "builtin", "gpu"]
    assert document["compared"] == ["twin", "device"]
    assert rows["gpu"]["alone"] == rows["gpu"]["deviating"] == len(document["inputs"]) == 2
    assert rows["gpu"]["deviating_seeds"] == 2
    assert {row["alone"] for kernels, row in rows.items() if kernels != "gpu"} == {0}
    assert all(one["alone"] == "gpu" for one in document["inputs"])
    assert "gpu stands alone on 2 of 2 inputs" in " ".join(said.out.split())
    assert (out / "matrix.md").read_text().startswith("## ")
    for kernels in rows:
        assert document_of(out / kernels)["stopped_by"] is None
    said = call_here("explain", out)
    assert (said.code, f"name one of them, such as {out / 'builtin'}" in said.err) == (2, True)
    # A replay does not write over what it replays.
    options = ("--out", out, "--overwrite")
    said = call_here("replay", out / "gpu", *device, *options)
    assert (said.code, "holds what is replayed" in said.err) == (2, True)
    # What the run of one kernel set found is replayed on all.
    again = tmp_path / "again"
    completed("replay", out / "gpu", *device, "--out", again, code=1)
    assert {
        row["kernels"]: row["alone"] for row in document_of(again, "matrix.json")["kernel_sets"]
    } == {kernels: 2 * (kernels == "gpu") for kernels in rows}


def test_conform_says_which_kernel_sets_are_wrong(
    tmp_path: Path, board: Callable[..., str]
) -> None:
    out = tmp_path / "out"
    kernel_sets = ["xnnpack", "builtin", "reference"]
    device = ("--device", board(*kernel_sets), "--trust")
    asked = ("conform", *device, "--ops", "EXP", "--dtype", "int8", "--models", "4", "--out", out)
    said = call_here(*asked)
    assert said.code in (0, 1), said.err
    document = document_of(out, "matrix.json")
    assert [row["kernels"] for row in document["kernel_sets"]] == kernel_sets
    assert {row["taken"] for row in document["kernel_sets"]} == {1}
    for kernels in kernel_sets:
        assert (out / kernels / "conform.json").exists()
    assert json.loads(call_here(*asked, "--resume", "--json").out) == document
    with closing(sqlite3.connect(out / "builtin" / "conform.db")) as journal, journal:
        ((noted,),) = journal.execute("SELECT value FROM about WHERE key = 'device'")
        device = json.loads(noted)
        device["cpu_features"].append("sve2")
        journal.execute("UPDATE about SET value = ? WHERE key = 'device'", (json.dumps(device),))
    said = call_here(*asked, "--resume")
    assert said.code == 2
    assert "sve2, and this is one whose processor has no others" in said.err


def test_a_dry_run_says_what_each_kernel_set_would_do_and_writes_nothing(
    tmp_path: Path, board: Callable[..., str]
) -> None:
    pair, out = write_pair(tmp_path / "pair", "resnet"), tmp_path / "out"
    asked = ("--device", board("xnnpack", "builtin"), "--trust", "--first", "1", "--out", out)
    said = completed("search", pair, *asked, "--dry-run")
    assert said.out.count("nothing was written") == 2
    assert not out.exists()


def test_what_cannot_be_done_costs_no_earlier_matrix(
    tmp_path: Path, board: Callable[..., str]
) -> None:
    out = tmp_path / "out"
    with claimed_matrix(out, resume=False, overwrite=False):
        for kernels in ("xnnpack", "micro"):
            os.close(RunDirectory.claim(out / kernels, overwrite=False)[1])
            (out / kernels / "run.db").touch()
        write_atomically(out / "matrix.json", b"{}")
    before = sorted(out.rglob("*"))
    device = ("--device", board("xnnpack"), "--trust", "--first", "1")
    said = call_here(
        *("search", EXAMPLE, *device, "--test", tmp_path / "absent.npz"),
        *("--out", out, "--overwrite"),
    )
    assert said.code == 2
    assert "absent.npz" in said.err
    assert sorted(out.rglob("*")) == before


def test_a_search_that_searched_nothing_passes_nothing(
    tmp_path: Path, board: Callable[..., str]
) -> None:
    device = ("--device", board("xnnpack", "builtin"), "--trust")
    options = ("--first", "2", "--time-limit", "0.001", "--out", tmp_path / "out")
    said = call_here("search", EXAMPLE, *device, *options)
    assert said.code == 2
    assert "so nothing can pass" in said.err
