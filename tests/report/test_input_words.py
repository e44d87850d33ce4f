"""Reports name what the inputs of a run are, and images only where they are images."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from documents import REPLAY, run_document
from edgeflare.pytest_plugin import _message
from edgeflare.report.csv_table import csv_table
from edgeflare.report.figure_lines import unmutated_lines
from edgeflare.report.input_words import input_words
from edgeflare.report.junit_xml import junit_xml
from edgeflare.report.markdown_summary import summary
from edgeflare.report.nearness_figure import draw_nearness
from edgeflare.report.run_terminal import print_run
from edgeflare.run.run_document import RunDocument

RATE = {
    "images": 50, "deviating": 1, "by_tie": 0, "tied": 0, "rate": 0.02, "low": 0.01, "high": 0.1,
    "harm": None, "harm_by_tie": None, "labelled": 0, "right": None,
}  # fmt: skip
PLAN = {"strategy": "random", "rng_seed": 0, "goal": {"find": "any", "ties": False}, "within": 30}

NEARNESS = {
    "db": [{"at_least": 30, "seeds": 1, "share": 0.5}],
    "linf": [{"at_most": 8, "seeds": 1, "share": 0.5}],
    "area": 0.25,
}
CASES = [
    ({}, "image"),
    ({"domain": "image"}, "image"),
    ({"domain": "audio"}, "sound"),
    ({"domain": "array"}, "array"),
    ({"domain": "smells"}, "input"),
]


def document(pair: dict[str, Any], **fields: Any) -> RunDocument:
    found = {
        "labels": {"original": 0, "device": 1}, "nearness_db": 31.5, "strength": 0.25,
        "probabilities": {"original": [0.9, 0.1], "device": [0.3, 0.7]},
        "image": "findings/000001.wav", "seed_image": "seeds/000001.wav",
    }  # fmt: skip
    return run_document(
        pair=pair,
        plan=PLAN,
        unmutated={"seeds": RATE, "test": RATE},
        nearness=NEARNESS,
        findings=[found],
        **fields,
    )


@pytest.mark.parametrize(("pair", "one"), CASES)
def test_lines_name_the_inputs_of_the_domain(pair: dict[str, Any], one: str) -> None:
    run = document(pair)
    assert input_words(run.pair).one == one
    assert unmutated_lines(run)[1][0] == f"unmutated test {one}s"


@pytest.mark.parametrize("replay", [False, True])
@pytest.mark.parametrize("domain", ["audio", "array", "smells"])
def test_no_report_but_the_table_names_an_image(domain: str, replay: bool) -> None:
    run = document({"domain": domain}, **({"replay": REPLAY} if replay else {}))
    drawn = io.StringIO()
    print_run(Console(file=drawn, width=200), run, "runs/first")
    for text in (drawn.getvalue(), summary(run), junit_xml(run).decode()):
        for word in ("image", "pixel", "gray"):
            assert word not in text.lower()
    assert "image" in csv_table(run).splitlines()[0], "stored names of columns stay"


def test_the_figure_of_several_runs_names_what_they_share(tmp_path: Path) -> None:
    sound, image = document({"domain": "audio"}), document({})
    for runs, levels in (({"a": image}, "gray levels"), ({"a": sound, "b": sound}, "levels")):
        draw_nearness(runs, tmp_path / "figure.svg")
        drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
        assert f">L∞ to the seed, {levels}<" in drawn


def test_a_failed_test_names_the_file_of_the_worst(tmp_path: Any) -> None:
    run = document({"domain": "audio"})
    told = _message(run, tmp_path, 0.5, 0.1, run.findings[0])
    assert f"sound: {tmp_path / 'findings/000001.wav'}" in told
    assert "image" not in told
