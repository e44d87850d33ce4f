"""Tests of edgeflare.survey.shown.survey_tables."""

from __future__ import annotations

from typing import Any

from constructed_surveys import (
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    with_distances,
    with_targets,
    without_original,
)
from edgeflare.survey.rates.rate_words import interval, percent, points
from edgeflare.survey.shown.survey_tables import (
    baseline_table,
    group_tables,
    slice_table,
    truth_columns,
    worst_first,
)
from edgeflare.survey.survey_document import survey_document


def test_a_slice_has_its_rates_in_its_row() -> None:
    document = constructed_document()
    one = document["overall"]
    table = slice_table(document, "All", [one])
    row = dict(zip(table.header, table.rows[0], strict=True))
    assert row == {
        "": "over all",
        "deviates": interval(one["deviation"]),
        "without ties": interval(one["deviation_strict"]),
        "by kernels": interval(one["kernel"]),
        "by compression": percent(one["compression"]["share"]),
        "failed": interval(one["failed"]),
        "original right": percent(one["accuracy"]["original"]["share"]),
        "twin right": percent(one["accuracy"]["twin"]["share"]),
        "device right": interval(one["accuracy"]["device"]),
        "drop, points": points(one["accuracy"]["drop"]),
        "harmed": interval(one["accuracy"]["harmed"]),
        "helped": interval(one["accuracy"]["helped"]),
        "items": "360",
        "asked": "360",
    }


def test_a_table_says_with_what_confidence_its_intervals_hold() -> None:
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    slices = document["by_condition"]["slices"]
    together = slice_table(document, "", slices, each=document["by_condition"]["confidence"])
    assert together.note == "Confidence of intervals: 95 % for all together, 97.47 % for each"
    assert slice_table(document, "", slices[:1]).note == "Confidence of intervals: 95 %"
    assert [one.note for one in group_tables(document)] == 2 * ["Confidence of intervals: 95 %"]


def test_a_table_of_exact_rates_has_no_confidence() -> None:
    document = constructed_document()
    slices = document["by_condition"]["slices"]
    assert slice_table(document, "", slices, each=document["by_condition"]["confidence"]).note == ""
    tables = group_tables(document)
    assert [one.note for one in tables] == ["", ""]
    assert all(one.title.endswith(", exact of these inputs alone") for one in tables)


def test_columns_that_say_nothing_are_left_out() -> None:
    document = constructed_document(with_distances(without_original(constructed_facts())))
    one = document["overall"]
    one["failed"]["seen"] = 0
    table = slice_table(document, "All", [one], left_out=("items",))
    assert tuple(table.header) == (
        "", "without ties", "by kernels", "mean IoU to the device", "asked",
    )  # fmt: skip
    assert slice_table(document, "None", []).rows == []


def test_how_far_arms_are_from_targets_has_columns_of_its_own() -> None:
    document = constructed_document(with_targets(constructed_facts()))
    table = slice_table(document, "All", [document["overall"]])
    row = dict(zip(table.header, table.rows[0], strict=True))
    far = document["overall"]["accuracy"]["distance"]
    assert row["mean IoU, original"] == f"{far['original']:.4g}"
    assert row["mean IoU, device"] == f"{far['device']['estimate']:.4g}"
    assert not set(truth_columns(document)) - set(row)
    assert not truth_columns(constructed_document())


def test_the_worst_slices_come_first() -> None:
    document = constructed_document()
    found = worst_first(document, document["by_cell"]["slices"])
    rates = [one["deviation"]["estimate"] for one in found]
    assert rates == sorted(rates, reverse=True)


def test_of_equal_rates_the_order_is_that_of_limits_and_counts() -> None:
    document = constructed_document()
    rate = document["overall"]["deviation"]
    figures = [(0.1, 0.3, 1), (0.2, 0.3, 1), (0.1, 0.3, 2), (0.1, 0.4, 0), (0.1, 0.3, 2)]
    slices = [
        {"name": str(at), "deviation": {**rate, "estimate": one, "high": high, "seen": seen}}
        for at, (one, high, seen) in enumerate(figures)
    ]
    assert [one["name"] for one in worst_first(document, slices)] == ["1", "3", "2", "4", "0"]


def test_groups_are_compared_by_rates_and_by_decisions() -> None:
    facts = constructed_facts(groups=("a", "b", "c", "d"))
    sample = drawn_sample(facts, 0.3)
    document = constructed_document(facts, sample)
    rates, decisions = group_tables(document)
    assert len(rates.rows) == len(decisions.rows) == 6
    pairs = {f"{one['one']} − {one['other']}": one for one in document["groups"]["pairs"]}
    for name, deviation, drop in rates.rows:
        assert deviation == points(pairs[name]["deviation"])
        assert drop == points(pairs[name]["accuracy_drop"])
    for row in decisions.rows:
        cells = dict(zip(decisions.header, row, strict=True))
        gap = pairs[row[0]]["odds"]["device"]
        named = document["classes"][gap["label"]]
        assert cells["equal odds, device"] == f"{interval(gap)} of {named}"
        exact = pairs[row[0]]["parity"]["twin"]
        assert cells["parity, twin"].startswith(f"{percent(exact['estimate'])} of ")
    short, _ = group_tables(document, 2)
    assert short.title == "Differences between groups, the largest 2 of 6"
    assert [list(row) for row in short.rows] == [list(row) for row in rates.rows[:2]]


def test_groups_and_baseline_are_absent_where_nothing_was_asked() -> None:
    document: dict[str, Any] = constructed_document(constructed_facts(groups=()))
    assert group_tables(document) == baseline_table(document) == []


def test_a_baseline_has_a_row_over_all_and_one_for_each_condition() -> None:
    facts = constructed_facts()
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(rng_seed=1))
    document = survey_document(as_asked(facts, sample), sample, about_survey(), baseline)
    document["baseline"]["run"] = "/secret/place/before"
    (table,) = baseline_table(document)
    assert table.title == "Against before"
    assert [row[0] for row in table.rows] == ["over all", "fog", "dark"]
    found = document["baseline"]["overall"]
    assert table.rows[0][1:5] == (
        points(found["difference"]),
        f"{found['both']:,}",
        f"{found['only_now']:,}",
        f"{found['only_before']:,}",
    )
