"""The notebook, and the snippet for a tracking server, as they stand there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.recipes]

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    return tmp_path


def test_the_notebook_runs_and_shows_results(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("pandas")
    notebooks = folder / "examples" / "notebooks"
    monkeypatch.chdir(notebooks)  # where Jupyter runs it
    notebook = nbformat.read(notebooks / "check.ipynb", 4)
    nbclient.NotebookClient(notebook, timeout=500, kernel_name="python3").execute()
    shown = {
        cell.id: output.data["text/html"]
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result"
    }
    assert "May ship" in shown["check"]
    assert "accuracy-drop" in shown["gates"]
    assert "FULLY_CONNECTED" in shown["layers"]
    assert "EdgeFlare report on" in shown["search"]
    lines = [output for output in notebook.cells[1].outputs if output.output_type == "stream"]
    assert {output.name for output in lines} == {"stderr"}  # progress, in one block


def test_a_check_is_logged_to_a_tracking_server(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mlflow")
    page = (ROOT / "docs" / "registries.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{folder / 'tracked'}")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # no server: a folder
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, timeout=500)
    logged = {path.name for path in (folder / "tracked").rglob("*")}
    assert {"check.html", "edgeflare.verdict"} <= logged
    assert "edgeflare.accuracy-drop on emulated-builtin" in logged
