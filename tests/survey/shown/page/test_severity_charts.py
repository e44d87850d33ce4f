"""Tests of edgeflare.survey.shown.page.severity_charts: what is drawn, for whom and of what."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure

from constructed_surveys import (
    constructed_document,
    constructed_facts,
    with_distances,
    without_original,
)
from edgeflare.report.html.chart import Chart, finish
from edgeflare.survey.shown.page.severity_charts import severity_charts


def texts(chart: Chart) -> set[str]:
    root = ElementTree.fromstring(chart.svg)  # noqa: S314 - ours
    return {"".join(one.itertext()).strip() for one in root.iter() if one.tag.endswith("text")}


def test_labelled_inputs_have_rates_and_accuracy_of_each_arm() -> None:
    rates, accuracy = severity_charts(constructed_document())
    assert {"device", "by compression", "by kernels", "0", "1", "3", "5"} <= texts(rates)
    assert {"original", "twin", "device", "right"} <= texts(accuracy)
    for chart in (rates, accuracy):
        assert [row[0] for row in chart.rows] == [
            "unchanged", "severity 1", "severity 3", "severity 5",
        ]  # fmt: skip


def test_a_task_with_distances_has_these_in_place_of_accuracy() -> None:
    facts = with_distances(constructed_facts())
    _, far = severity_charts(constructed_document(facts))
    assert far.title == "Distance against severity"
    assert {"twin", "device", "mean IoU"} <= texts(far)
    assert "compression" not in far.words


def test_without_an_original_only_kernels_are_drawn() -> None:
    rates, _ = severity_charts(constructed_document(without_original(constructed_facts())))
    assert "by kernels" in texts(rates)
    assert not {"device", "by compression"} & texts(rates)


def test_no_axis_goes_beyond_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the device is right about all, or deviates on all."""
    figures: list[Figure] = []

    def kept(title: str, figure: Figure, *rest: Any) -> Chart:
        figures.append(figure)
        return finish(title, figure, *rest)

    monkeypatch.setattr("edgeflare.survey.shown.page.severity_charts.finish", kept)
    document = constructed_document()
    for one in (document["unchanged"], *document["by_severity"]["slices"]):
        one["deviation"] |= {"estimate": 1.0, "low": 0.9, "high": 1.0}
        one["accuracy"]["device"] |= {"estimate": 1.0, "low": 1.0, "high": 1.0}
    severity_charts(document)
    limits = [figure.axes[0].get_ylim() for figure in figures]
    assert [high for _, high in limits] == [1.0, 1.0]
    assert all(low >= 0.0 for low, _ in limits)


def test_unchanged_inputs_alone_have_no_chart() -> None:
    assert severity_charts(constructed_document(constructed_facts(conditions=()))) == ()


def test_a_hostile_name_of_a_distance_stays_text() -> None:
    document = constructed_document(with_distances(constructed_facts()))
    document["distance"] = "<script>\x1b</script>"
    for chart in severity_charts(document):
        assert "<script" not in chart.svg
        assert "\x1b" not in chart.svg
        ElementTree.fromstring(chart.svg)  # noqa: S314 - ours
