"""Names from outside, in whatever a command prints or writes: shown, and never obeyed."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

HOSTILE = "=cmd|' /C calc'!A0\x1b]0;owned\x07\x1b[2J\x9b31m\u202egnp.exe\x00<b>|*x*\n# head"
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")


@pytest.fixture(scope="module")
def run(finished: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every name that a document may hold is hostile."""
    folder = tmp_path_factory.mktemp("hostile") / "run"
    shutil.copytree(finished.folder, folder)
    document = json.loads((folder / "run.json").read_bytes())
    document["classes"] = [HOSTILE] * len(document["classes"])
    document["pair"] |= {"name": HOSTILE, "compressed": HOSTILE}
    document["warnings"] = [HOSTILE]
    document["devices"][0]["name"] = HOSTILE
    document["devices"][0]["provenance"] |= {"runtime": HOSTILE, "cache": HOSTILE}
    for entry in document["findings"]:
        entry |= {"device": HOSTILE, "operators": [HOSTILE]}
    (folder / "run.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("command", [("report",), ("compare",), ("compare", "--json")])
def test_a_terminal_is_not_commanded(
    command: tuple[str, ...], run: Path, finished: Any, call: Callable[..., Any]
) -> None:
    name, *options = command
    runs = (run,) if name == "report" else (run, finished.folder)
    said = call(name, *runs, *options)
    assert said.code == 0
    assert "owned" in said.out.replace("\n", "")
    assert not CONTROL.search(said.out)


def test_nor_is_it_by_an_error(run: Path, tmp_path: Path, call: Callable[..., Any]) -> None:
    document = json.loads((run / "run.json").read_bytes())
    document["findings"][0][HOSTILE] = 1
    (tmp_path / "run.json").write_text(json.dumps(document))
    said = call("report", tmp_path)
    assert said.code == 2
    assert not CONTROL.search(said.complaint())


def test_no_cell_of_the_table_is_a_formula(run: Path, call: Callable[..., Any]) -> None:
    assert call("report", run, "--csv").code == 0
    with (run / "findings.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        assert not [cell for cell in row.values() if cell.startswith(tuple("=+-@\t\r"))]
        assert row["device_class"].startswith("'=cmd")
        assert not CONTROL.search("".join(row.values()))
        assert float(row["l2"]) >= 0


def test_the_other_files_hold_it_as_text(run: Path, call: Callable[..., Any]) -> None:
    assert call("report", run, "--junit", "--summary", "--html").code == 0
    root = ElementTree.parse(run / "junit.xml").getroot()  # noqa: S314 - ours
    assert any("owned" in (failure.text or "") for failure in root.iter("failure"))
    for name in ("junit.xml", "summary.md", "report.html"):
        text = (run / name).read_text(encoding="utf-8")
        assert not CONTROL.search(text)
        assert "owned" in text
    assert "<b>" not in (run / "report.html").read_text(encoding="utf-8")
    assert "\n# head" not in (run / "summary.md").read_text(encoding="utf-8")
