"""`edgeflare report`: what is printed, what is written, and what stands in the way of that."""

from __future__ import annotations

import builtins
import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from edgeflare.run.begin_or_resume import begin_run
from edgeflare.run.journal import Journal
from edgeflare.run.run_header import RunHeader
from repaired_example import repair_by_shifts, repaired_example

__all__ = ["repaired_example"]

WRITTEN = {
    "--html": ("report.html", b"<!doctype html>"),
    "--junit": ("junit.xml", b"<?xml"),
    "--csv": ("findings.csv", b"list,seed_id"),
    "--summary": ("summary.md", b"## EdgeFlare"),
}


@pytest.fixture
def run(finished: Any, tmp_path: Path) -> Path:
    """A finished run, for the test to write into."""
    return Path(shutil.copytree(finished.folder, tmp_path / "run"))


def test_without_a_switch_it_is_shown_and_nothing_is_written(call: Any, run: Path) -> None:
    before = sorted(run.iterdir())
    said = call("report", run)
    assert said.code == 0
    assert "Everything is in" in said.out
    assert sorted(run.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("switch", WRITTEN)
def test_a_switch_writes_its_file_and_says_which(call: Any, run: Path, switch: str) -> None:
    name, start = WRITTEN[switch]
    said = call("report", run, switch)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [str(run / name)]
    assert (run / name).read_bytes().startswith(start)
    assert not [other for other, _ in WRITTEN.values() if other != name and (run / other).exists()]


@pytest.mark.slow
def test_all_at_once_and_once_more(call: Any, run: Path) -> None:
    first = call("report", run, *WRITTEN)
    kept = {name: (run / name).read_bytes() for name, _ in WRITTEN.values()}
    assert call("report", run, *WRITTEN).out == first.out
    assert len(first.out.splitlines()) == len(WRITTEN)
    assert {name: (run / name).read_bytes() for name in kept} == kept


def test_the_page_shows_the_example_and_its_classes(call: Any, run: Path) -> None:
    call("report", run, "--html")
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "<h1>fashion_lenet4</h1>" in page
    assert "Ankle boot" in page
    assert "data:image/" in page


@pytest.mark.slow
def test_a_run_may_be_overwritten_with_its_reports(
    call: Any, run: Path, example: Path, small: tuple[str, ...]
) -> None:
    call("report", run, *WRITTEN)
    said = call("search", example, *small, "--fail-on", "none", "--out", run, "--overwrite")
    assert said.code == 0, said.err
    assert not any((run / name).exists() for name, _ in WRITTEN.values())


@pytest.mark.parametrize("switch", WRITTEN)
def test_what_is_not_a_run_is_one_line(call: Any, tmp_path: Path, switch: str) -> None:
    said = call("report", tmp_path / "nowhere", switch)
    assert said.code == 2
    assert "nowhere" in said.complaint()


@pytest.mark.parametrize("module", ["jinja2", "matplotlib"])
def test_without_the_extra_it_says_how_to_get_it(
    call: Any, run: Path, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.split(".", maxsplit=1)[0] == module:
            raise ModuleNotFoundError(f"No module named {module!r}", name=module)
        if name == "edgeflare.report.html.page":
            __import__(module)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    said = call("report", run, "--html", "--csv")
    assert said.code == 2
    assert said.complaint() == (
        f"--html needs {module}, which is not installed: pip install 'edgeflare[report]'"
    )
    assert not (run / "findings.csv").exists()


def test_a_file_that_cannot_be_written_is_one_line(call: Any, run: Path) -> None:
    (run / "findings.csv").mkdir()
    said = call("report", run, "--csv")
    assert said.code == 2
    assert "findings.csv" in said.complaint()


def test_a_run_in_which_nothing_was_evaluated_is_shown(
    finished: Any, call: Any, tmp_path: Path
) -> None:
    with closing(Journal.open(finished.folder / "run.db")) as journal:
        header = RunHeader.from_json(journal.about())
    run = tmp_path / "run"
    begin_run(run, header, 6, overwrite=False)[1].close()
    shown = call("report", run)
    assert (shown.code, shown.err) == (0, "")
    assert "killed before its end" in shown.out
    assert "0 of 6" in shown.out
    written = call("report", run, "--html", "--junit", "--csv", "--summary")
    assert (written.code, written.err) == (0, "")
    assert len(written.out.splitlines()) == 4
    assert call("compare", run, finished.folder).code == 0
    assert "found nothing" in " ".join(call("explain", run).out.split())


@pytest.mark.parametrize("derived", [False, True])
def test_it_prints_the_document(call: Any, run: Path, derived: bool) -> None:
    written = json.loads((run / "run.json").read_bytes())
    if derived:
        (run / "run.json").unlink()
    said = call("report", run, "--json")
    assert (said.code, said.err) == (0, "")
    assert json.loads(said.out) == written
    assert "give --json alone" in call("report", run, "--json", "--csv").complaint()


@pytest.fixture
def repair(repaired_example: Path, tmp_path: Path) -> Path:
    """The folder of a repair, for the test to write into."""
    return Path(shutil.copytree(repaired_example, tmp_path / "repair"))


@pytest.mark.slow
def test_a_repair_is_printed_again(call: Any, repair: Path) -> None:
    before = sorted(repair.iterdir())
    said = call("report", repair)
    assert (said.code, said.err) == (0, "")
    text = " ".join(said.out.split())
    assert "rounding+weights-only on the inputs that judge" in text
    assert f"See it: edgeflare report {repair} --html" in text
    assert sorted(repair.iterdir()) == before


@pytest.mark.slow
def test_a_repair_has_a_page_and_a_summary(call: Any, repair: Path) -> None:
    said = call("report", repair, "--html", "--summary")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [str(repair / "repair.html"), str(repair / "summary.md")]
    assert (repair / "repair.html").read_bytes().startswith(b"<!doctype html>")
    assert (repair / "summary.md").read_bytes().startswith(b"## EdgeFlare repair: fashion")


@pytest.mark.slow
def test_the_document_of_a_repair_is_printed(call: Any, repair: Path) -> None:
    said = call("report", repair, "--json")
    assert json.loads(said.out) == json.loads((repair / "repair.json").read_bytes())


@pytest.fixture
def repaired_by_shifts(tmp_path: Path) -> Path:
    (tmp_path / "repair.json").write_text(json.dumps(repair_by_shifts()))
    return tmp_path


def test_a_repair_by_shifts_is_printed_and_has_a_page(call: Any, repaired_by_shifts: Path) -> None:
    said = call("report", repaired_by_shifts)
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("200 triggers and their seeds, 3,031 near-boundary inputs")
    said = call("report", repaired_by_shifts, "--html")
    assert said.out.splitlines() == [str(repaired_by_shifts / "repair.html")]


@pytest.mark.parametrize("switch", ["--junit", "--csv"])
def test_a_repair_has_no_findings_to_write_down(
    call: Any, repaired_by_shifts: Path, switch: str
) -> None:
    said = call("report", repaired_by_shifts, "--html", switch)
    assert said.code == 2
    assert said.complaint() == (
        f"{switch} has nothing to write of a repair, as {repaired_by_shifts} is: say --html or"
        " --summary"
    )
    assert not (repaired_by_shifts / "repair.html").exists()


def test_a_damaged_repair_is_one_line(call: Any, repaired_by_shifts: Path) -> None:
    (repaired_by_shifts / "repair.json").write_text("{")
    said = call("report", repaired_by_shifts)
    assert said.code == 2
    assert "repair.json is damaged" in said.complaint()
