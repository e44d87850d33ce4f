"""`edgeflare report` of a survey: what is printed, what is written, and what is not loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgeflare.record.folder_lock import lock_folder
from linear_laboratory import linear_laboratory
from surveyed_runs import surveyed_run
from surveying import LaboratorySurvey, StoppingObserver

WRITTEN = {
    "--html": ("survey.html", b"\n\n<!doctype html>"),
    "--junit": ("junit.xml", b"<?xml"),
    "--csv": ("survey.csv", b"table,name"),
    "--summary": ("summary.md", b"## EdgeFlare survey"),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return surveyed_run(tmp_path / "run").path


def test_without_a_switch_the_survey_is_shown(call: Any, run: Path) -> None:
    said = call("report", run)
    assert said.code == 0
    assert said.out.startswith("sneakers deviates on")
    assert "For the release notes" in said.out


@pytest.mark.parametrize("switch", WRITTEN)
def test_a_switch_writes_its_file_and_says_which(call: Any, run: Path, switch: str) -> None:
    name, start = WRITTEN[switch]
    said = call("report", run, switch)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [str(run / name)]
    assert (run / name).read_bytes().lstrip().startswith(start.lstrip())


def test_json_is_the_document_itself(call: Any, run: Path) -> None:
    said = call("report", run, "--json")
    assert json.loads(said.out) == json.loads((run / "survey.json").read_bytes())


def test_a_damaged_document_is_a_line(call: Any, run: Path) -> None:
    (run / "survey.json").write_text("{}")
    said = call("report", run)
    assert said.code == 2
    assert said.err.count("\n") == 1
    assert "survey.json is not of the schema edgeflare.survey/v1" in said.err


def test_a_page_without_its_run_says_so_and_has_the_rates(call: Any, run: Path) -> None:
    (run / "run.json").write_text("{}")
    said = call("report", run, "--html")
    assert said.code == 0
    assert said.err.startswith("warning: ")
    assert b"Conditions and severities" in (run / "survey.html").read_bytes()


def test_a_survey_that_was_cut_off_is_shown_as_far_as_it_came(call: Any, tmp_path: Path) -> None:
    """Its run has no survey.json, and is no search."""
    survey = LaboratorySurvey(linear_laboratory(tmp_path))
    survey.run("cut", StoppingObserver(device=30))
    said = call("report", tmp_path / "cut", "--json")
    assert (said.code, said.err) == (0, "")
    document = json.loads(said.out)
    assert document["asked"] == len(survey.device("cut")) < document["items"] == 144
    assert document["stopped_by"] == "interrupt"
    shown = call("report", tmp_path / "cut")
    assert shown.code == 0
    assert "at any distance" not in shown.out
    assert shown.out.startswith("laboratory deviates on")
    (tmp_path / "cut" / "run.json").unlink()
    assert call("report", tmp_path / "cut", "--csv", "--summary").code == 0
    summary = (tmp_path / "cut" / "summary.md").read_text()
    assert "still running" not in summary
    assert "stopped" in summary
    assert not (tmp_path / "cut" / "survey.json").exists()


def test_a_survey_that_was_cut_off_early_has_nothing_to_say(call: Any, tmp_path: Path) -> None:
    LaboratorySurvey(linear_laboratory(tmp_path)).run("cut", StoppingObserver(host=20))
    said = call("report", tmp_path / "cut")
    assert (said.code, said.out) == (2, "")
    for complaint in (said.complaint(), call("report", tmp_path / "cut", "--csv").complaint()):
        assert "is a survey that was stopped before the host's models had answered all" in complaint
        assert "of 144): finish it with --resume" in complaint


@pytest.mark.parametrize("stop", [{"host": 20}, {"device": 30}], ids=["host", "device"])
def test_a_survey_that_is_still_running_says_so(
    stop: dict[str, Any], call: Any, tmp_path: Path
) -> None:
    LaboratorySurvey(linear_laboratory(tmp_path)).run("run", StoppingObserver(**stop))
    lock = lock_folder(tmp_path / "run")
    said = call("report", tmp_path / "run")
    assert "--resume" not in said.out + said.err
    assert "still running" in said.out + said.err
    assert "stopped" not in said.out + said.err
    os.close(lock)
    assert "still running" not in (later := call("report", tmp_path / "run")).out + later.err


def test_a_report_of_a_run_loads_nothing_of_surveys(run: Path) -> None:
    (run / "survey.json").unlink()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from edgeflare.cli.report import report\n"
        "report(None, Path(sys.argv[1]), html=False, junit=False, csv=False, with_summary=False,"
        " as_json=False)\n"
        "print([name for name in sys.modules if name.startswith('edgeflare.survey')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(run)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
