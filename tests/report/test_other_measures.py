"""Every report says by which measure distances are, where that is not PSNR."""

from __future__ import annotations

import csv
import io
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from documents import Document, run_document
from edgeflare.errors import UserError
from edgeflare.report.csv_table import COLUMNS, csv_table
from edgeflare.report.figure_lines import nearness_lines
from edgeflare.report.html.charts import charts_of
from edgeflare.report.junit_xml import junit_xml
from edgeflare.report.markdown_summary import summary
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.report.run_terminal import print_run
from edgeflare.run.run_document import RunDocument, from_json


@pytest.fixture(scope="module")
def document(run: Any) -> RunDocument:
    """A run whose distances are by SNR, of which the nearest is 23.4 dB."""
    copy: Document = deepcopy(run.document)
    copy["pair"]["domain"] = "audio"
    for key in ("findings", "deviating_seeds"):
        for entry in copy[key]:
            entry["nearness_db"] = 23.4 if key == "findings" else None
    near = copy["nearness"]
    shares = [{**one, "at_least": one["at_least"] - 10.0} for one in near.pop("db")]
    near |= {"measure": "SNR", "curve": [0.0, 50.0], "db": shares}
    return from_json(copy)


def test_the_figures_name_it(document: RunDocument) -> None:
    lines = dict(nearness_lines(document))
    assert lines["seeds within an SNR of"].startswith("10 dB ")


def test_the_terminal_and_the_summary_show_it(document: RunDocument) -> None:
    shown = io.StringIO()
    print_run(Console(file=shown, width=120), document, "runs/sound")
    assert "seeds within an SNR of" in shown.getvalue()
    assert " 23 " in shown.getvalue()
    assert "| 23 |" in summary(document)


def test_the_cases_of_junit_name_it(document: RunDocument) -> None:
    text = junit_xml(document).decode()
    assert "distance to the seed: SNR 23.4 dB" in text
    assert "PSNR" not in text


def test_the_table_has_a_column_of_its_own(document: RunDocument) -> None:
    reader = csv.DictReader(io.StringIO(csv_table(document), newline=""), strict=True)
    rows = [row for row in reader if row["list"] == "finding"]
    assert reader.fieldnames == list(COLUMNS)
    assert rows
    assert {row["nearness_db"] for row in rows} == {"23.4"}


def test_the_curves_of_a_page_are_against_it(document: RunDocument) -> None:
    charts = {chart.title: chart for chart in charts_of(document)}
    near, largest = charts["Nearness to the seeds"], charts["Largest change"]
    assert "SNR to the seed, dB" in near.svg
    assert "PSNR" not in near.svg
    assert near.rows[0][0] == "10 dB"
    assert "an SNR of at least" in near.words
    assert "L∞ to the seed, levels" in largest.svg


def test_runs_of_two_measures_are_not_drawn_together(document: RunDocument, tmp_path: Path) -> None:
    image = run_document(nearness={"db": [], "linf": [], "area": 0.0})
    with pytest.raises(UserError, match="sound measures nearness by SNR, image by PSNR") as caught:
        draw_nearness({"image": image, "sound": document}, tmp_path / "curves.svg")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "curves.svg").exists()
