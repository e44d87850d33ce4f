"""Tests of edgeflare.survey.shown.survey_terminal."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from constructed_surveys import (
    CONDITIONS,
    constructed_document,
    constructed_facts,
    drawn_sample,
    gate_entry,
)
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.rates.rate_words import bounds, points
from edgeflare.survey.shown.page.survey_page import render_survey
from edgeflare.survey.shown.survey_summary import survey_summary
from edgeflare.survey.shown.survey_tables import worst_first
from edgeflare.survey.shown.survey_terminal import (
    WORST,
    WORST_CLASSES,
    print_survey,
    short_tables,
)
from edgeflare.survey.shown.survey_words import (
    accuracy_sentence,
    field_sentence,
    headline,
    release_sentence,
)


def printed(document: dict[str, Any], width: int = 200) -> str:
    text = io.StringIO()
    print_survey(Console(file=text, width=width), document, "runs/survey")
    return text.getvalue()


def test_the_headline_is_first_and_gates_follow_with_words() -> None:
    document = constructed_document()
    first, right, field, second, *lines = printed(document).splitlines()
    assert first.rstrip() == f"sneakers {headline(document)}"
    assert right.rstrip() == accuracy_sentence(document)
    assert field.rstrip() == field_sentence(document)
    assert second.rstrip() == "Ended: the precision asked for was reached."
    assert lines[0].rstrip() == "✖ gate rate<0.01 is not held: the rate is above 1 %"
    assert lines[1].rstrip() == "✔ gate rate<0.9 under fog is held: the rate is below 90 %"
    assert lines[2].rstrip() == "warning: the pair's seeds are surveyed"


def test_all_of_it_is_said() -> None:
    document = constructed_document()
    said = printed(document)
    for name in ("Inputs", "unchanged", *CONDITIONS, "severity 3", "young", "old − young", "bee"):
        assert name in said
    assert release_sentence(document) in " ".join(said.split())
    assert "edgeflare report runs/survey --html" in said


def test_each_report_says_how_intervals_hold_together(tmp_path: Path) -> None:
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    severities = "Confidence of intervals: 95 % for all together, 98.3 % for each"
    page = render_survey(document, RunDirectory(tmp_path), None)
    for said in (printed(document), survey_summary(document), page):
        assert severities in said
    assert "Confidence of intervals: 95 % for all together, 99.27 % for each." in page, "the map"


def test_of_many_conditions_the_worst_are_listed() -> None:
    names = tuple(f"condition-{n}" for n in range(14))
    document = constructed_document(constructed_facts(conditions=names, severities=(2,)))
    (table,) = [one for one in short_tables(document) if one.title.startswith("Conditions")]
    assert table.title == "Conditions, the worst 10 of 14"
    rates = {
        one["name"]: one["deviation"]["estimate"] for one in document["by_condition"]["slices"]
    }
    shown = [row[0] for row in table.rows]
    assert len(shown) == WORST
    assert min(rates[name] for name in shown) >= max(
        rate for name, rate in rates.items() if name not in shown
    )


def test_one_row_is_not_cut_off_nor_a_condition_that_a_gate_names() -> None:
    names = tuple(f"condition-{n}" for n in range(14))
    facts = constructed_facts(conditions=names, severities=(2,))
    ungated = constructed_document(facts, gates=[])
    best = worst_first(ungated, ungated["by_condition"]["slices"])[-1]
    named = gate_entry(f"rate<0.9 under {best['condition']}", "held", "it is")
    of_a_set = gate_entry("rate<0.9 under weather", "held", "it is", names)
    document = constructed_document(facts, gates=[named, of_a_set])
    (table,) = [one for one in short_tables(document) if one.title.startswith("Conditions")]
    assert table.title == "Conditions, the worst 10 of 14 and those of gates"
    assert len(table.rows) == WORST + 1
    assert table.rows[-1][0] == best["name"]
    facts = constructed_facts(conditions=names[:11], severities=(2,))
    (table,) = [one for one in short_tables(constructed_document(facts)) if "Cond" in one.title]
    assert (table.title, len(table.rows)) == ("Conditions", 11)


def test_of_many_classes_the_worst_are_listed() -> None:
    document = constructed_document(classes=[f"class {n}" for n in range(12)])
    one = document["by_class"]["slices"][0]
    document["by_class"]["slices"] = [
        {**one, "label": n, "deviation": {**one["deviation"], "estimate": n % 4 / 10}}
        for n in range(12)
    ]
    (table,) = [one for one in short_tables(document) if one.title.startswith("Classes")]
    assert table.title == f"Classes, the worst {WORST_CLASSES} of 12"
    assert [row[0] for row in table.rows] == [
        "class 3", "class 7", "class 11", "class 2", "class 6",
    ]  # fmt: skip


def test_nothing_but_unchanged_inputs_is_one_row() -> None:
    document = constructed_document(constructed_facts(conditions=(), groups=()), gates=[])
    titles = [one.title for one in short_tables(document) if one.rows]
    assert titles == ["Inputs", "Classes"]
    assert "over all" not in printed(document)


def test_names_from_outside_obey_nobody() -> None:
    hostile = "[red]x[/red]\x1b[31m"
    document = constructed_document(constructed_facts(conditions=(hostile,), groups=(hostile, "b")))
    document["pair"]["name"] = document["warnings"][0] = hostile
    document["baseline"] = {
        "run": hostile,
        "overall": {
            "condition": None, "both": 1, "only_now": 0, "only_before": 0, "p": 1, "p_corrected": 1,
            "difference": {"estimate": 0, "low": 0, "high": 0},
        },
        "by_condition": [],
    }  # fmt: skip
    said = printed(document, 300)
    assert "\x1b" not in said
    assert said.count("[red]x[/red]\\x1b[31m") >= 5


def test_names_and_intervals_are_whole_in_a_narrow_terminal() -> None:
    """elastic-transform is the longest name of ours."""
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    for one in document["by_condition"]["slices"]:
        one["failed"]["seen"] = 0  # no column of it
        one["name"] = f"{one['name']}-{'x' * (len('elastic-transform') - len(one['name']) - 1)}"
    lines = [line.strip() for line in printed(document, width=80).splitlines()]
    for one in document["by_condition"]["slices"]:
        (row,) = (at for at, line in enumerate(lines) if line.startswith(one["name"]))
        assert f"({bounds(one['deviation'])})" in lines[row + 1]
        assert points(one["accuracy"]["drop"]).partition(" ")[2] in lines[row + 1]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("width", [60, 80])
def test_a_column_is_left_out_before_a_word_is_broken(width: int) -> None:
    facts = constructed_facts()
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    document["classes"] = ["automobile", "an elastic transform", "Ankle boot", "T-shirt/top"]
    document["overall"]["failed"]["seen"] = 1
    lines = [line.strip() for line in printed(document, width).splitlines()]
    start = next(at for at, line in enumerate(lines) if line.startswith("Classes"))
    table = lines[start : lines.index("For the release notes:")]
    for name in document["classes"]:
        (row,) = (line for line in table if line.startswith(name))
        assert row.removeprefix(name).split()[1] == "%"
    assert "asked" not in " ".join(table).split()
    assert max(map(len, lines)) <= width
    wide = printed(document, 200)
    assert wide.count("by kernels") == wide.count("  asked") == wide.count("  failed")


def test_gates_are_the_last_thing_that_is_said() -> None:
    said = [line.rstrip() for line in printed(constructed_document()).splitlines()]
    *_, one, other, where = said
    assert one == "✖ gate rate<0.01 is not held: the rate is above 1 %"
    assert other == "✔ gate rate<0.9 under fog is held: the rate is below 90 %"
    assert where.startswith("Everything is in")
    assert (said.count(one), said.count(other)) == (2, 2)


def test_intervals_are_whole_below_long_headers() -> None:
    paired = {"both": 449, "only_now": 0, "only_before": 0, "p": 1.0, "p_corrected": 1.0}
    difference = {"estimate": 0.0, "low": -0.0029, "high": 0.0029}
    overall = {"condition": None, "test": "rates", "difference": difference, **paired}
    baseline = {"run": "runs/before", "overall": overall, "by_condition": []}
    lines = printed({**constructed_document(), "baseline": baseline}, width=80).splitlines()
    (row,) = (at for at, line in enumerate(lines) if line.split()[:3] == ["over", "all", "+0.00"])
    assert "(-0.29 to 0.29)" in lines[row + 1]
