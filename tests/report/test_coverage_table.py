"""Neuron coverage as it is shown: the table, and what it does not mean, in every report."""

from __future__ import annotations

import io
from copy import deepcopy
from typing import Any

import pytest
from rich.console import Console

from documents import Document
from edgeflare.report.coverage_table import NOT_MEANT, coverage_table
from edgeflare.report.html.page import render_page
from edgeflare.report.markdown_summary import summary
from edgeflare.report.run_terminal import print_run
from edgeflare.run.run_directory import RunDirectory
from edgeflare.run.run_document import from_json

MEASURED = {
    "thresholds": [0, 0.5],
    "seeds": 1,
    "findings": 1,
    "others": 2,
    "device_queries": 0,
    "arms": [
        {
            "arm": "twin", "neurons": 1184,
            "seeds": [0.5, 0.25], "with_findings": [0.625, 0.25], "with_others": [0.75, 0.25],
        },
    ],
    "notes": ["the device is left out: it <b>captures</b> no tensor"],
}  # fmt: skip


@pytest.fixture
def document(run: Any) -> Document:
    copy: Document = deepcopy(run.document)
    copy["coverage"] = deepcopy(MEASURED)
    return copy


def test_each_arm_has_a_row_for_each_set_of_inputs(document: Document) -> None:
    table = coverage_table(from_json(document))
    assert table is not None
    assert table.header == ("neuron coverage", "inputs", "> 0", "> 0.5")
    assert table.rows == (
        ("twin, 1,184 neurons", "1 seed", "50.0%", "25.0%"),
        ("twin, 1,184 neurons", "1 seed + 1 finding", "62.5%", "25.0%"),
        ("twin, 1,184 neurons", "1 seed + 2 other seeds", "75.0%", "25.0%"),
    )
    assert table.lines == (
        "The device is left out: it <b>captures</b> no tensor.",
        NOT_MEANT,
    )


def test_without_findings_the_seeds_stand_alone(document: Document) -> None:
    (arm,) = document["coverage"]["arms"]
    arm |= {"with_findings": None, "with_others": None}
    document["coverage"] |= {"findings": 0, "others": 0, "seeds": 6}
    table = coverage_table(from_json(document))
    assert table is not None
    assert [row[1] for row in table.rows] == ["6 seeds"]
    assert table.lines[0].startswith("No search ended in a finding")


def test_every_report_shows_it_and_what_it_does_not_mean(document: Document, run: Any) -> None:
    read, out = from_json(document), io.StringIO()
    print_run(Console(file=out, width=400), read, "runs/one")
    page = render_page(read, RunDirectory(run.folder), {})
    for shown in (out.getvalue(), summary(read), page):
        assert "1 seed + 2 other seeds" in shown
        assert NOT_MEANT in shown
    assert "<b>captures" not in page
    assert "<b>captures" not in summary(read)


def test_runs_without_it_show_nothing_of_it(run: Any) -> None:
    read = from_json(run.document)
    assert coverage_table(read) is None
    assert NOT_MEANT not in summary(read)
