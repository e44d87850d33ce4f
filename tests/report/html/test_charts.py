"""The charts of a page: they agree with the document, and are drawn as parts of the page."""

from __future__ import annotations

import re
from collections import Counter
from copy import deepcopy
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from documents import REPLAY, Document, run_document
from edgeflare.pages.chart import COLOURS, Chart, inline_svg, page_style
from edgeflare.report.html.charts import charts_of
from edgeflare.run.run_document import from_json

pytestmark = pytest.mark.slow

OF_ANYTHING_BUT_QUERIES = (
    "by_nearness", "by_largest_change", "_causes", "_strength", "_distance", "_operators",
)  # fmt: skip


@pytest.fixture
def charts(drawn: tuple[Chart, ...]) -> dict[str, Chart]:
    return {chart.title: chart for chart in drawn}


def titled(document: Document) -> dict[str, Chart]:
    return {chart.title: chart for chart in charts_of(from_json(document))}


def test_the_curves_say_the_share_of_all_seeds(
    document: Document, charts: dict[str, Chart]
) -> None:
    for title, key, bound in (
        ("Nearness to the seeds", "db", "at_least_db"),
        ("Largest change", "linf", "at_most_levels"),
    ):
        told = [(row[0].split()[0], row[2]) for row in charts[title].rows]
        near = document["nearness"][key]
        assert told == [(f"{one[bound]:g}", f"{one['share']:.1%}") for one in near]


def test_there_is_one_for_each_question(charts: dict[str, Chart]) -> None:
    assert list(charts) == [
        "Nearness to the seeds",
        "Largest change",
        "Success against queries",
        "Queries for a finding",
        "Causes",
        "Strength",
        "Distance and strength",
        "Operators",
    ]
    for chart in charts.values():
        assert chart.words in chart.svg.replace("&#x27;", "'")
        assert chart.rows
        assert {len(row) for row in chart.rows} == {len(chart.header)}
    ids = [name for chart in charts.values() for name in re.findall(r' id="([^"]*)"', chart.svg)]
    assert len(ids) == len(set(ids))


def test_the_causes_are_counted(document: Document, charts: dict[str, Chart]) -> None:
    counted = Counter(entry["cause"] for entry in document["findings"])
    assert len(counted) > 1
    told = {name: int(count) for name, count, _ in charts["Causes"].rows}
    assert told == dict(counted)


def test_the_histogram_holds_every_finding(document: Document, charts: dict[str, Chart]) -> None:
    rows = charts["Queries for a finding"].rows
    assert sum(int(count) for _, count in rows) == len(document["findings"])
    for span, count in rows:
        low, _, high = span.partition("–")
        within = [
            entry["queries"]
            for entry in document["findings"]
            if int(low) <= entry["queries"] <= int(high or low)
        ]
        assert len(within) == int(count)


def test_success_is_a_share_of_the_seeds_that_were_searched(document: Document) -> None:
    (first, *_) = document["findings"]
    spent = [10, 20, 30, 40, 50]
    document["findings"] = [{**first, "queries": n, "device_queries": 1} for n in spent]
    document["totals"] |= {"seeds": 12, "deviating_seeds": 2}
    chart = titled(document)["Success against queries"]
    assert chart.words.startswith("50% of the seeds led to a finding")
    assert "at most 30 queries" in chart.words
    assert chart.rows == (("25%", "30", "1"), ("50%", "50", "1"))


@pytest.mark.parametrize(("found", "seeds", "last"), [(7, 25, "28%"), (18, 20, "90%")])
def test_rounding_takes_no_seed_more_than_led_to_a_finding(
    found: int, seeds: int, last: str
) -> None:
    """7 / 25 · 25 is a little more than 7."""
    queries = [{"seed_id": n, "queries": n + 1, "device_queries": 1} for n in range(found)]
    totals = {"seeds": seeds, "searched": seeds, "findings": found}
    document = run_document(totals=totals, findings=queries)
    chart = {chart.title: chart for chart in charts_of(document)}["Success against queries"]
    assert chart.rows[-1] == (last, f"{found}", "1")


def test_the_shares_of_the_operators_come_to_one(
    document: Document, charts: dict[str, Chart]
) -> None:
    names = [name for entry in document["findings"] for name in entry["operators"]]
    rows = charts["Operators"].rows
    assert {row[0]: int(row[1]) for row in rows} == Counter(names)
    assert sum(float(row[2].rstrip("%")) for row in rows) == pytest.approx(100, abs=0.5)


def test_strength_is_told_by_cause(document: Document, charts: dict[str, Chart]) -> None:
    for cause, least, middle, most in charts["Strength"].rows:
        values = [one["strength"] for one in document["findings"] if one["cause"] == cause]
        assert [least, middle, most] == [f"{q:.4f}" for q in np.quantile(values, (0, 0.5, 1))]


def test_what_there_is_nothing_of_has_no_charts(document: Document) -> None:
    """Nothing was found, or nothing was searched."""
    assert charts_of(from_json({**document, "findings": []})) == ()
    replayed = titled({**document, "replay": REPLAY})
    assert list(replayed) == ["Causes", "Strength", "Distance and strength"]


def test_crashes_alone_have_no_strength(document: Document) -> None:
    crash: dict[str, Any] = {"kind": "crash", "strength": None, "operators": []}
    entries = [{**deepcopy(entry), **crash} for entry in document["findings"]]
    charts = titled({**document, "findings": entries})
    assert set(charts) == {
        "Nearness to the seeds",
        "Largest change",
        "Success against queries",
        "Queries for a finding",
        "Causes",
    }
    assert charts["Causes"].rows == (("crash", str(len(entries)), "100.0%"),)


@pytest.mark.parametrize(
    "queries", [[1], [2, 3, 4], [40, 60], [3000] * 5, [1, 10, 100, 1000, 3000, 2], [1000, 2500]]
)
def test_charts_of_queries_hold_all_findings_and_have_numbers_alone_along_the_axis(
    document: Document, queries: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    for other in OF_ANYTHING_BUT_QUERIES:  # each takes as long to draw as these do
        monkeypatch.setattr(f"edgeflare.report.html.charts.{other}", lambda _: None)
    (first, *_) = document["findings"]
    document["findings"] = [{**first, "queries": n, "device_queries": n} for n in queries]
    charts = titled(document)
    told = charts["Queries for a finding"].rows
    assert sum(int(count.replace(",", "")) for _, count in told) == len(queries)
    for chart in (charts["Success against queries"], charts["Queries for a finding"]):
        assert "mathdefault" not in chart.svg
        texts = re.findall(r"<text[^>]*>([^<]*)", chart.svg)
        assert sum(re.fullmatch(r"[\d,]+", text) is not None for text in texts) >= 2


def inlined(name: str = "bars", alternative: str = "Two bars.") -> str:
    with page_style():
        figure = Figure(figsize=(3, 2))
        panel = figure.subplots()
        panel.bar(["a < b", "$x^2$"], [1, 2], color=COLOURS["kernel"], hatch="//")
        panel.set(title="<script>", xlabel="bars")
        return inline_svg(figure, name, alternative)


def test_a_figure_is_one_element_that_says_what_it_shows() -> None:
    said = '"Less" < more & <b>'
    root = ElementTree.fromstring(inlined(alternative=said))  # noqa: S314 - ours
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == said
    assert "width" not in root.attrib
    assert root.attrib["viewBox"].split()[2:] == ["216", "144"]
    assert {"a < b", "$x^2$", "<script>"} <= {one.text for one in root.iter() if one.text}


def test_a_figure_takes_the_colours_of_the_page_and_has_none_of_its_own() -> None:
    svg = inlined()
    assert not set(COLOURS.values()) & set(re.findall(r"#[0-9a-f]{6}", svg))
    assert re.findall(r"(?:fill|stroke): #\w+", svg) == []
    for variable in ("ink", "muted", "line", "kernel", "panel"):
        assert f"var(--{variable})" in svg


def test_a_figure_carries_nothing_for_others_and_its_ids_are_its_own() -> None:
    svg = inlined("bars")
    assert svg == inlined("bars")
    for part in ("<style", "<metadata", "<!DOCTYPE"):
        assert part not in svg
    addresses = set(re.findall(r"https?://[^\"']*", svg))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    ids = re.findall(r' id="([^"]*)"', svg)
    assert len(ids) == len(set(ids)) > 0
    assert all(name.startswith("bars-") for name in ids)
    referred = {"".join(two) for two in re.findall(r"url\(#([^)]*)\)|href=\"#([^\"]*)\"", svg)}
    assert set() < referred <= set(ids)


def test_what_a_figure_says_of_itself_holds_no_control_characters() -> None:
    svg = inlined(alternative="a\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}b")
    assert ElementTree.fromstring(svg).attrib["aria-label"] == "a\ufffd[31m\ufffdb"  # noqa: S314
