"""A survey as tables, in the terminal, as Markdown, CSV and JUnit XML."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from rich.console import Console

from changed_documents import changed, known
from constructed_surveys import (
    CONDITIONS,
    RARE,
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    gate_entry,
    with_distances,
    with_targets,
    without_original,
)
from edgeflare.cli.survey_presentation import COLUMNS, survey_csv, survey_suite
from edgeflare.pages.html_page import html_page
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.page import Table
from edgeflare.pages.terminal import print_page
from edgeflare.survey.gates.gate_judgement import DescribedGate, State
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_tables import (
    WORST,
    WORST_CLASSES,
    baseline_tables,
    class_table,
    group_tables,
    rate_tables,
    slice_table,
    worst_first,
)
from edgeflare.survey.presentation.survey_words import (
    accuracy_sentence,
    field_sentence,
    headline,
    release_sentence,
)
from edgeflare.survey.rates.rate_interval import SignedEstimate
from edgeflare.survey.rates.rate_words import bounds, interval, percent, points
from edgeflare.survey.record.survey_document import PairedItems, SurveyComparison, SurveyDocument
from edgeflare.survey.survey_derivation import survey_document
from junit_suites import parsed_suite


@pytest.fixture
def document() -> SurveyDocument:
    """A survey whose device was asked about all items."""
    return constructed_document()


def test_a_slice_has_its_rates_in_its_row(document: SurveyDocument) -> None:
    one, accuracy = document.overall, known(document.overall.accuracy)
    table = slice_table(document, "All", [one])
    assert dict(zip(table.header, table.rows[0], strict=True)) == {
        "": "over all",
        "deviates": interval(one.deviation),
        "without ties": interval(one.deviation_strict),
        "by kernels": interval(one.kernel),
        "by compression": percent(known(one.compression).share),
        "failed": interval(one.failed),
        "original right": percent(known(accuracy.original).share),
        "twin right": percent(accuracy.twin.share),
        "device right": interval(accuracy.device),
        "drop, points": points(accuracy.drop),
        "harmed": interval(accuracy.harmed),
        "helped": interval(accuracy.helped),
        "items": "360",
        "asked": "360",
    }


def test_each_table_and_each_report_says_with_what_confidence_intervals_hold(
    document: SurveyDocument, sampled: SurveyDocument
) -> None:
    alone = "Confidence of intervals: 95 %"
    notes = ["Confidence of intervals: 95 % for all together, 97.47 % for each", alone, alone]
    exact = ["", "Exact of these inputs alone", "Exact of these inputs alone"]
    for said, expected in ((sampled, notes), (document, exact)):
        conditions = said.by_condition
        table = slice_table(said, "", conditions.slices, each=conditions.confidence)
        _, *differences = group_tables(said)
        assert [one.note for one in (table, *differences)] == expected
    page = html_page(survey_page(sampled))
    for report in (printed(sampled), summary(sampled), page):
        assert "Confidence of intervals: 95 % for all together, 98.3 % for each" in report
    assert "Confidence of intervals: 95 % for all together, 99.27 % for each." in page, "the map"


def test_columns_that_say_nothing_are_left_out() -> None:
    document = constructed_document(with_distances(without_original(constructed_facts())))
    one = changed(document.overall, failed__seen=0)
    table = slice_table(document, "All", [one])
    assert tuple(table.header) == (
        "", "without ties", "by kernels", "mean IoU to the device", "items", "asked",
    )  # fmt: skip
    assert slice_table(document, "None", []).rows == []


def test_how_far_arms_are_from_targets_has_columns_of_its_own() -> None:
    measured = constructed_document(with_targets(constructed_facts()))
    table = slice_table(measured, "All", [measured.overall])
    row = dict(zip(table.header, table.rows[0], strict=True))
    far = known(known(measured.overall.accuracy).distance)
    assert row["mean IoU, original"] == f"{far.original:.4g}"
    assert row["mean IoU, device"] == f"{known(far.device).value:.4g}"


def test_the_worst_slices_come_first_and_of_equal_rates_by_limits_and_counts(
    document: SurveyDocument,
) -> None:
    figures = [(0.1, 0.3, 1), (0.2, 0.3, 1), (0.1, 0.3, 2), (0.1, 0.4, 0), (0.1, 0.3, 2)]
    rate = known(document.overall.deviation)
    rates = [replace(rate, value=one, high=high, seen=seen) for one, high, seen in figures]
    slices = [
        replace(document.overall, name=str(at), deviation=one) for at, one in enumerate(rates)
    ]
    assert [slice_.name for slice_ in worst_first(slices)] == ["1", "3", "2", "4", "0"]


def test_groups_are_compared_by_rates_and_by_decisions() -> None:
    facts = constructed_facts(groups=("a", "b", "c", "d"))
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    _, rates, decisions = group_tables(document)
    assert len(rates.rows) == len(decisions.rows) == 6
    pairs = {f"{one.first} − {one.second}": one for one in known(document.groups).pairs}
    sizes = [abs(pair.deviation.value) for pair in pairs.values()]
    for (name, deviation, drop), size in zip(rates.rows, sorted(sizes, reverse=True), strict=True):
        pair = pairs[str(name)]
        assert abs(pair.deviation.value) == size
        assert deviation == points(pair.deviation)
        assert drop == points(pair.accuracy_drop)
    for row in decisions.rows:
        cells = dict(zip(decisions.header, row, strict=True))
        gap = known(known(pairs[str(row[0])].aaod).device)
        named = document.classes[gap.label]
        assert cells["AAOD, device"] == f"{interval(gap)} of {named}"
        exact = known(known(pairs[str(row[0])].spd).twin)
        assert str(cells["SPD, twin"]).startswith(f"{percent(exact.value)} of ")


def test_groups_and_baseline_are_absent_where_nothing_was_asked() -> None:
    document = constructed_document(constructed_facts(groups=()))
    assert [table.title for table in group_tables(document) if table] == []
    assert baseline_tables(document) == []


def test_a_baseline_has_a_row_over_all_and_one_for_each_condition() -> None:
    facts = constructed_facts()
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(rng_seed=1))
    document = survey_document(as_asked(facts, sample), sample, about_survey(), baseline)
    document = changed(document, baseline__run="/secret/place/before")
    (table,) = baseline_tables(document)
    assert table.title == "Against before"
    assert [row[0] for row in table.rows] == ["over all", "fog", "dark"]
    found = known(document.baseline).overall
    counts = (f"{count:,}" for count in (found.both, found.only_now, found.only_before))
    assert tuple(table.rows[0][1:5]) == (points(found.difference), *counts)


def printed(document: SurveyDocument, width: int = 200) -> str:
    text = io.StringIO()
    page = survey_page(document, where="runs/survey")
    print_page(Console(file=text, width=width), page, "runs/survey")
    return text.getvalue()


def summary(document: SurveyDocument) -> str:
    return markdown_page(survey_page(document))


def test_the_terminal_has_the_headline_first_gates_again_at_its_end_and_all_between(
    document: SurveyDocument,
) -> None:
    lines = [line.rstrip() for line in printed(document).splitlines()]
    gates = [
        "✖ rate<0.01 is not held: the rate is above 1 %",
        "✔ rate<0.9 under fog is held: the rate is below 90 %",
    ]
    assert lines[:8] == [
        "EdgeFlare survey: sneakers on board",
        f"sneakers {headline(document)}",
        accuracy_sentence(document),
        field_sentence(document),
        "It ended when the precision asked for was reached.",
        *gates,
        "warning: the pair's seeds are surveyed",
    ]
    assert lines[-3:-1] == gates
    assert lines[-1].startswith("Everything is in")
    said = " ".join(" ".join(lines).split())
    for name in ("unchanged", *CONDITIONS, "severity 3", "young", "old − young", "bee"):
        assert name in said
    assert release_sentence(document) in said
    assert "edgeflare report runs/survey --html" in said


def conditions(document: SurveyDocument) -> Table:
    _, table, *_ = rate_tables(document)
    return table


def test_of_many_conditions_the_worst_are_listed_and_those_of_gates() -> None:
    names = tuple(f"condition-{n}" for n in range(14))
    facts = constructed_facts(conditions=names, severities=(2,))
    document = constructed_document(facts, gates=())
    ordered = [slice_.name for slice_ in worst_first(document.by_condition.slices)]
    table = conditions(document)
    assert table.brief_title() == "By condition, the worst 10 of 14"
    assert [row[0] for row in table.rows] == ordered
    assert [row[0] for row in table.listed()] == ordered[:WORST]
    named = gate_entry(f"rate<0.9 under {ordered[-1]}", "pass", "it is")
    of_a_set = gate_entry("rate<0.9 under weather", "pass", "it is", names)
    gated = conditions(constructed_document(facts, gates=(named, of_a_set)))
    assert [row[0] for row in gated.listed()] == [*ordered[:WORST], ordered[-1]]


def test_of_many_classes_the_worst_are_listed() -> None:
    document = constructed_document(classes=tuple(f"class {n}" for n in range(12)))
    one = document.by_class.slices[0]
    slices = (changed(one, label=n, deviation__value=n % 4 / 10) for n in range(12))
    document = changed(document, by_class__slices=tuple(slices))
    table = class_table(document)
    assert table.brief_title() == f"By class, the worst {WORST_CLASSES} of 12"
    assert [row[0] for row in table.listed()] == [f"class {n}" for n in (3, 7, 11, 2, 6)]


def test_nothing_but_unchanged_inputs_is_one_row() -> None:
    document = constructed_document(constructed_facts(conditions=(), groups=()), gates=())
    titles = [one.title for one in (*rate_tables(document), class_table(document)) if one]
    assert titles == ["All inputs", "By class"]
    assert "over all" not in printed(document)


def against(run: str) -> SurveyComparison:
    """What a document says of a baseline from which nothing differs."""
    overall = PairedItems(
        condition=None, both=449, only_now=0, only_before=0, p=1.0, p_corrected=1.0,
        difference=SignedEstimate(0.0, -0.0029, 0.0029),
    )  # fmt: skip
    return SurveyComparison(run=run, overall=overall, by_condition=())


def test_names_and_intervals_are_whole_in_a_narrow_terminal(sampled: SurveyDocument) -> None:
    """elastic-transform is the longest name of ours."""
    slices = tuple(
        changed(
            slice_,
            failed__seen=0,  # no column of it
            name=f"{slice_.name}-{'x' * (len('elastic-transform') - len(slice_.name) - 1)}",
        )
        for slice_ in sampled.by_condition.slices
    )
    document = changed(sampled, baseline=against("runs/before"), by_condition__slices=slices)
    lines = [line.strip() for line in printed(document, width=80).splitlines()]
    for one in slices:
        (row,) = (at for at, line in enumerate(lines) if line.startswith(one.name))
        assert f"({bounds(one.rate)})" in lines[row + 1]
        assert points(known(one.accuracy).drop).partition(" ")[2] in lines[row + 1]
    (row,) = (at for at, line in enumerate(lines) if line.split()[:3] == ["over", "all", "+0.00"])
    assert "(-0.29 to 0.29)" in lines[row + 1]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize("width", [60, 80])
def test_a_column_is_left_out_before_a_word_is_broken(sampled: SurveyDocument, width: int) -> None:
    classes = ("automobile", "an elastic transform", "Ankle boot", "T-shirt/top")
    sampled = changed(sampled, classes=classes, overall__failed__seen=1)
    lines = [line.strip() for line in printed(sampled, width).splitlines()]
    start = next(at for at, line in enumerate(lines) if line.startswith("Classes"))
    table = lines[start : lines.index("Groups")]
    for name in classes:
        first, *_ = words = name.split()
        (row,) = (line for line in table if line.split()[:1] == [first])
        assert re.search(r"\d %", row)
        assert set(words) <= set(" ".join(table).split())
    assert "no room for: without ties, by compression" in " ".join(table)
    assert max(map(len, lines[:-1])) <= width
    wide = printed(sampled, 200)
    assert wide.count(" kernels") == wide.count("  asked") == wide.count("  failed")


def test_the_summary_has_the_headline_the_gates_the_tables_and_the_sentence(
    document: SurveyDocument,
) -> None:
    said = summary(document)
    assert said.startswith("## EdgeFlare survey: sneakers\n\n❌ sneakers deviates on ")
    assert "❌ rate\\<0.01 is not held: the rate is above 1 %" in said
    assert "✅ rate\\<0.9 under fog is held" in said
    assert "> [!WARNING]\n> the pair's seeds are surveyed" in said
    fog = next(slice_ for slice_ in document.by_condition.slices if slice_.name == "fog")
    assert f"| fog | {interval(fog.deviation)} |" in said
    assert said.rstrip().endswith(document.sentence)


def test_the_summary_marks_what_is_undecided_and_warns_of_what_was_cut_off_first() -> None:
    gates = [gate_entry("rate<0.1", "open", "too few were asked")]
    said = summary(constructed_document(gates=tuple(gates), stopped_by="interrupt"))
    assert "\n\n⚠️ sneakers deviates on" in said
    assert "⚠️ rate\\<0.1 is undecided: too few were asked" in said
    cut_off = "This is not the whole survey: it was stopped by Ctrl-C before its end."
    assert said.index(cut_off) < said.index("the pair's seeds are surveyed")


def csv_rows(document: SurveyDocument) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(survey_csv(document))))


def test_each_slice_is_a_row_of_csv_with_its_figures(sampled: SurveyDocument) -> None:
    rows = csv_rows(sampled)
    assert len(rows) == 2 + 2 + 3 + 7 + 4 + 2
    assert tuple(rows[0]) == COLUMNS
    overall = sampled.overall
    assert rows[0]["table"] == "overall"
    assert float(rows[0]["deviation"]) == overall.rate.value
    assert float(rows[0]["kernel_high"]) == overall.kernel.high
    assert int(rows[0]["failed_seen"]) == overall.failed.seen
    assert float(rows[0]["accuracy_drop_low"]) == known(known(overall.accuracy).drop).low
    assert float(rows[0]["compression"]) == known(overall.compression).share
    cells = [row for row in rows if row["table"] == "by_cell"]
    assert [(row["condition"], row["severity"]) for row in cells[:3]] == [
        ("unchanged", "0"), ("fog", "1"), ("fog", "3"),
    ]  # fmt: skip
    assert {float(row["confidence"]) for row in cells} == {sampled.by_cell.confidence}
    assert [row["class"] for row in rows if row["table"] == "by_class"] == [*sampled.classes]


def test_what_is_null_stays_empty_in_csv() -> None:
    facts = with_distances(without_original(constructed_facts()))
    first = csv_rows(constructed_document(facts))[0]
    empty = ("deviation", "deviation_low", "deviation_seen", "compression", "labelled")
    assert {first[name] for name in (*empty, "device_accuracy", "twin_distance")} == {""}
    assert float(first["device_distance"]) > 0


def test_how_far_arms_are_from_targets_is_beside_their_accuracy_in_csv() -> None:
    facts = with_targets(constructed_facts())
    document = constructed_document(facts, drawn_sample(facts, 0.3))
    first, accuracy = csv_rows(document)[0], known(document.overall.accuracy)
    assert float(first["accuracy_drop"]) == known(accuracy.drop).value
    far = known(accuracy.distance)
    for name in ("original", "twin"):
        assert float(first[f"{name}_truth_distance"]) == getattr(far, name)
    assert float(first["device_truth_distance_high"]) == known(far.device).high


def test_rare_events_are_the_last_row_of_csv() -> None:
    *slices, last = csv_rows(constructed_document(rare=RARE))
    assert (last["table"], last["name"], last["confidence"]) == ("rare", "rare events", "0.95")
    figures = [last[f"deviation{end}"] for end in ("", "_low", "_high")]
    assert figures == ["0.00015", "0.0001", "0.000225"]
    assert (last["ceiling"], last["unseen_share"], last["asked"]) == ("0.0021", "0.9", "2011")
    assert {row["ceiling"] for row in slices} == {""}
    plain = constructed_document(without_original(constructed_facts()), rare=RARE)
    *_, last = csv_rows(plain)
    assert (last["deviation"], last["kernel"]) == ("", "0.00015")


def suite_of(document: SurveyDocument) -> ElementTree.Element:
    return parsed_suite(survey_suite(document))


def failures(suite: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: failure.attrib["message"]
        for case in suite.iter("testcase")
        if (failure := case.find("failure")) is not None
    }


def properties(document: SurveyDocument) -> dict[str, str]:
    return {
        entry.attrib["name"]: entry.attrib["value"] for entry in suite_of(document).iter("property")
    }


def gate(text: str, state: State, conditions: Sequence[str] | None = None) -> DescribedGate:
    return gate_entry(text, state, f"it is {state}", conditions)


def test_each_gate_and_each_condition_is_a_case_of_junit(document: SurveyDocument) -> None:
    suite = suite_of(document)
    assert [case.attrib["name"] for case in suite.iter("testcase")] == [
        "gate rate<0.01", "gate rate<0.9 under fog",
        "condition unchanged", "condition fog", "condition dark",
    ]  # fmt: skip
    assert failures(suite) == {
        "gate rate<0.01": "gate rate<0.01 is not held: the rate is above 1 %"
    }
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("5", "1")
    assert suite.attrib["time"] == "12.500"
    ungated = suite_of(changed(document, gates=()))
    assert (failures(ungated), ungated.attrib["tests"]) == ({}, "3")


GOES_ON = "; the same command with --out RUN --resume and a smaller --precision goes on"


@pytest.mark.parametrize(
    ("one", "state", "then", "fails"),
    [
        (gate("accuracy-drop<0.1 under fog at severity 3", "fail"), "not held", "", {"fog"}),
        (gate("rate<0.1 under fog", "open"), "undecided", GOES_ON, {"fog"}),
        (
            gate("rate<0.1 under weather", "fail", ("dark", "fog")),
            "not held",
            "",
            {"fog", "dark"},
        ),
        (gate("rate<0.1 for group seen under fog", "fail"), "not held", "", set()),
    ],
    ids=["a severity", "undecided", "a set", "the name of a group is no condition"],
)
def test_conditions_fail_with_a_gate_about_them(
    one: DescribedGate, state: str, then: str, fails: set[str]
) -> None:
    suite = suite_of(constructed_document(gates=(gate("rate<0.9 under fog", "pass"), one)))
    message = f"gate {one.gate} is {state}: it is {one.state}{then}"
    names = {f"gate {one.gate}", *(f"condition {name}" for name in fails)}
    assert failures(suite) == dict.fromkeys(names, message)
    assert suite.attrib["failures"] == str(len(names))


def test_the_rates_and_the_sentence_are_properties_of_junit(document: SurveyDocument) -> None:
    said = properties(changed(document, plan__inputs__path="/secret/place/images.npz"))
    assert said["plan inputs path"] == "images.npz"
    assert said["sentence"] == document.sentence
    assert set(said) >= {"rate unchanged", "rate fog", "rate dark", "device board machine"}
    assert not [name for name in said if name.startswith("rare")]


def test_rare_events_are_properties_of_junit() -> None:
    said = properties(constructed_document(rare=RARE))
    assert "the device deviates on 0.015 % (0.010–0.022) of images" in said["rare events found"]
    assert said["rare events value"] == "0.00015"
    assert said["rare events ceiling"] == "0.0021"
    assert said["rare events device queries"] == "2,011"
    assert not [name for name in said if "repetitions" in name]
