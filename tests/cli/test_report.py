"""`edgeflare report`: what is printed, what is written, and what stands in the way of that."""

from __future__ import annotations

import builtins
import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from called_commands import EXAMPLE, SMALL, call_here, completed, document_of, refused
from conformed_runs import conformed_run
from edgeflare.record.folder_lock import lock_folder
from edgeflare.run.begin_or_resume import begin_run
from edgeflare.run.run_header import RunHeader
from edgeflare.run.run_journal import RunJournal
from linear_laboratory import linear_laboratory
from repaired_example import BY_SHIFTS
from surveyed_runs import surveyed_run
from surveying import LaboratorySurvey, StoppingObserver

REPORTS = {
    "--html": ("report.html", b"<!doctype html>"),
    "--junit": ("junit.xml", b"<?xml"),
    "--csv": ("findings.csv", b"list,seed_id"),
    "--summary": ("summary.md", b"## EdgeFlare"),
}


@dataclass(frozen=True)
class Reported:
    """A kind of run: its document, what is shown of it, and what switches write of it."""

    document: str
    shown: str
    written: dict[str, tuple[str, bytes]]


KINDS = {
    "search": Reported("run.json", "Everything is in", REPORTS),
    "survey": Reported(
        "survey.json",
        "For the release notes",
        {
            "--html": ("survey.html", b"<!doctype html>"),
            "--junit": ("junit.xml", b"<?xml"),
            "--csv": ("survey.csv", b"table,name"),
            "--summary": ("summary.md", b"## EdgeFlare survey"),
        },
    ),
    "conformance": Reported(
        "conform.json",
        "board (tflite-runtime 2.14.0, builtin): 1 fault in 1 operator",
        {
            "--html": ("conform.html", b"<!doctype html>"),
            "--junit": ("junit.xml", b"<?xml"),
            "--summary": ("summary.md", b"## EdgeFlare kernel conformance: board"),
            "--accepted": ("accepted.toml", b"[[accepted]]"),
        },
    ),
    "repair": Reported(
        "repair.json",
        "58 triggers and their seeds, 262 near-boundary inputs",
        {
            "--html": ("repair.html", b"<!doctype html>"),
            "--summary": ("summary.md", b"## EdgeFlare repair"),
        },
    ),
}


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    """A finished run, for the test to write into."""
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


@pytest.fixture
def repair(tmp_path: Path) -> Path:
    folder = tmp_path / "repair"
    folder.mkdir()
    (folder / "repair.json").write_bytes(BY_SHIFTS.read_bytes())
    return folder


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    return surveyed_run(tmp_path / "survey").path


@pytest.fixture
def conformance(tmp_path: Path) -> Path:
    return conformed_run(tmp_path / "conformance").path


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_run_is_shown_printed_and_written(
    kind: str, request: pytest.FixtureRequest
) -> None:
    run: Path = request.getfixturevalue("run" if kind == "search" else kind)
    before = sorted(run.iterdir())
    shown = completed("report", run)
    assert KINDS[kind].shown in shown.out
    assert shown.err == ""
    document = json.loads((run / KINDS[kind].document).read_bytes())
    assert json.loads(completed("report", run, "--json").out) == document
    assert sorted(run.iterdir()) == before
    for switch, (name, start) in KINDS[kind].written.items():
        said = completed("report", run, switch)
        assert (said.out, said.err) == (f"{run / name}\n", "")
        assert (run / name).read_bytes().lstrip().startswith(start)
        assert {path.name for path in run.iterdir()} - {path.name for path in before} <= {
            *(name for name, _ in KINDS[kind].written.values()),
            "contents.jsonl",
        }


@pytest.mark.slow
def test_all_at_once_and_once_more(run: Path) -> None:
    first = completed("report", run, *REPORTS)
    kept = {name: (run / name).read_bytes() for name, _ in REPORTS.values()}
    assert completed("report", run, *REPORTS).out == first.out
    assert len(first.out.splitlines()) == len(REPORTS)
    assert {name: (run / name).read_bytes() for name in kept} == kept


def test_the_page_shows_the_example_and_its_classes(run: Path) -> None:
    completed("report", run, "--html")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<h1>fashion_lenet4</h1>" in page
    found = document_of(run)
    labels = {one for entry in found["findings"] for one in entry["labels"].values()}
    assert len(labels) > 1
    assert all(found["classes"][label] in page for label in labels)
    assert "data:image/" in page


@pytest.mark.slow
def test_a_run_may_be_overwritten_with_its_reports(run: Path) -> None:
    completed("report", run, *REPORTS)
    completed("search", EXAMPLE, *SMALL, "--fail-on", "none", "--out", run, "--overwrite")
    assert not any((run / name).exists() for name, _ in REPORTS.values())


@pytest.mark.parametrize("module", ["matplotlib"])
def test_without_the_extra_it_says_how_to_get_it(
    run: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        if name == "edgeflare.report.html.run_html":
            __import__(module)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert refused("report", run, "--html", "--csv") == (
        f"--html needs {module}, which is not installed: pip install 'edgeflare[report]'"
    )
    assert not (run / "findings.csv").exists()


def test_a_file_that_cannot_be_written_is_one_line(run: Path) -> None:
    (run / "findings.csv").mkdir()
    assert "findings.csv" in refused("report", run, "--csv")


def test_a_run_in_which_nothing_was_evaluated_is_shown(finished: Any, tmp_path: Path) -> None:
    with closing(RunJournal.open(finished.folder / "run.db")) as journal:
        header = RunHeader.from_json(journal.about())
    run = tmp_path / "run"
    begin_run(run, header, 6, overwrite=False)[1].close()
    shown = completed("report", run)
    assert shown.err == ""
    assert "killed before its end" in shown.out
    assert "0 of 6" in shown.out
    written = completed("report", run, "--html", "--junit", "--csv", "--summary")
    assert written.err == ""
    assert len(written.out.splitlines()) == 4
    completed("compare", run, finished.folder)
    assert "found nothing" in " ".join(completed("explain", run).out.split())


def test_the_document_is_printed_where_it_has_to_be_derived(run: Path) -> None:
    written = document_of(run)
    (run / "run.json").unlink()
    said = completed("report", run, "--json")
    assert (json.loads(said.out), said.err) == (written, "")


@pytest.mark.parametrize("switch", ["--junit", "--csv"])
def test_a_repair_has_no_findings_to_write_down(repair: Path, switch: str) -> None:
    assert refused("report", repair, "--html", switch) == (
        f"{switch} has nothing to write of a repair, as {repair} is: say --html or --summary"
    )
    assert not (repair / "repair.html").exists()


def test_what_a_page_draws_needs_the_extra_too(
    repair: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "edgeflare.repair.page.front_figure", raising=False)
    assert "--html needs matplotlib.figure, which is not installed" in refused(
        "report", repair, "--html"
    )


def test_the_page_of_a_survey_without_its_run_says_so_and_has_the_rates(survey: Path) -> None:
    (survey / "run.json").write_text("{}")
    said = completed("report", survey, "--html")
    assert said.err.startswith("warning: ")
    assert b"Conditions and severities" in (survey / "survey.html").read_bytes()


def test_a_survey_that_was_cut_off_is_shown_as_far_as_it_came(tmp_path: Path) -> None:
    """Its run has no survey.json, and is no search."""
    survey = LaboratorySurvey(linear_laboratory(tmp_path))
    survey.run("cut", StoppingObserver(device=30))
    said = completed("report", tmp_path / "cut", "--json")
    assert said.err == ""
    document = json.loads(said.out)
    assert document["asked"] == len(survey.device("cut")) < document["items"] == 144
    assert document["stopped_by"] == "interrupt"
    shown = completed("report", tmp_path / "cut")
    assert "at any distance" not in shown.out
    assert "\nlaboratory deviates on" in shown.out
    (tmp_path / "cut" / "run.json").unlink()
    completed("report", tmp_path / "cut", "--csv", "--summary")
    summary = (tmp_path / "cut" / "summary.md").read_text()
    assert "still running" not in summary
    assert "stopped" in summary
    assert not (tmp_path / "cut" / "survey.json").exists()


def test_a_survey_that_was_cut_off_early_has_nothing_to_say(tmp_path: Path) -> None:
    LaboratorySurvey(linear_laboratory(tmp_path)).run("cut", StoppingObserver(host=20))
    for switches in ((), ("--csv",)):
        complaint = refused("report", tmp_path / "cut", *switches)
        assert "is a survey that was stopped before the host's models had answered all" in complaint
        assert "of 144): finish it with --resume" in complaint


@pytest.mark.parametrize("stop", [{"host": 20}, {"device": 30}], ids=["host", "device"])
def test_a_survey_that_is_still_running_says_so(stop: dict[str, Any], tmp_path: Path) -> None:
    LaboratorySurvey(linear_laboratory(tmp_path)).run("run", StoppingObserver(**stop))
    lock = lock_folder(tmp_path / "run")
    said = call_here("report", tmp_path / "run")
    assert "--resume" not in said.out + said.err
    assert "still running" in said.out + said.err
    assert "stopped" not in said.out + said.err
    os.close(lock)
    assert "still running" not in (later := call_here("report", tmp_path / "run")).out + later.err


@pytest.mark.slow
def test_a_report_of_a_run_loads_nothing_of_surveys(survey: Path) -> None:
    (survey / "survey.json").unlink()
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from edgeflare.cli.report import report\n"
        "report(None, Path(sys.argv[1]), html=False, junit=False, csv=False, with_summary=False,"
        " as_json=False)\n"
        "print([name for name in sys.modules if name.startswith('edgeflare.survey')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(survey)], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
