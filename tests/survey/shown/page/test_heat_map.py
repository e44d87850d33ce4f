"""Tests of edgeflare.survey.shown.page.heat_map."""

from __future__ import annotations

from constructed_surveys import (
    CONDITIONS,
    SEVERITIES,
    constructed_document,
    constructed_facts,
    drawn_sample,
)
from edgeflare.survey.rates.rate_words import bounds, estimated, percent
from edgeflare.survey.shown.page.heat_map import heat_map


def test_each_cell_has_its_rate_and_interval_in_its_place() -> None:
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    found = heat_map(document)
    assert found is not None
    assert list(found.severities) == list(SEVERITIES)
    assert list(found.rows) == list(CONDITIONS)
    slices = {(one["condition"], one["severity"]): one for one in document["by_cell"]["slices"]}
    shades = [found.unchanged.shade]
    for name, row in found.rows.items():
        for severity, cell in zip(found.severities, row, strict=True):
            rate = slices[name, severity]["deviation"]
            assert cell is not None
            assert (cell.rate, cell.interval) == (estimated(rate), bounds(rate))
            assert f"{name} {severity}: " in cell.title
            assert f"{rate['seen']:,} of these deviate" in cell.title
            shades.append(cell.shade)
    assert max(shades) == 100.0
    assert min(shades) >= 0.0


def test_where_all_was_asked_a_cell_is_exact() -> None:
    found = heat_map(document := constructed_document())
    assert found is not None
    exact = document["unchanged"]["deviation"]["estimate"]
    assert (found.unchanged.rate, found.unchanged.interval) == (percent(exact), "exact")
    assert f"{percent(exact)}, exact; 60 of 60 asked" in found.unchanged.title


def test_a_cell_that_was_not_surveyed_is_empty() -> None:
    document = constructed_document()
    del document["by_cell"]["slices"][2]
    found = heat_map(document)
    assert found is not None
    assert [cell is None for cell in found.rows["fog"]] == [False, True, False]


def test_unchanged_inputs_alone_have_no_map() -> None:
    assert heat_map(constructed_document(constructed_facts(conditions=()))) is None


def test_where_nothing_deviates_nothing_is_shaded() -> None:
    document = constructed_document()
    for one in document["by_cell"]["slices"]:
        one["deviation"] |= {"estimate": 0.0, "low": 0.0}
    found = heat_map(document)
    assert found is not None
    assert {cell.shade for row in found.rows.values() for cell in row if cell} == {0.0}
