"""A conformance run in words: sentences, on a terminal, in a summary, and as JUnit."""

from __future__ import annotations

import io
import json
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from rich.console import Console

from conformed_runs import BOARD, HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.cli.conformance_presentation import conform_suite
from edgeflare.conform.presentation.conform_page import conform_page
from edgeflare.conform.presentation.conform_terminal import RetryLine, print_retry
from edgeflare.conform.presentation.conform_words import (
    condition_words,
    coverage_sentence,
    ending_sentence,
    finding_sections,
    headline,
    model_sentence,
    settings_words,
    title_of,
    verdict_words,
    worst_words,
    wrong_words,
)
from edgeflare.conform.record.conform_document import (
    ConformDocument,
    CoveredShare,
    FoundFault,
    TriedGraphs,
)
from edgeflare.pages.markdown import CARDS, markdown_page
from edgeflare.pages.page import Cards
from edgeflare.pages.terminal import print_page
from junit_suites import parsed_suite

SCHEMA = json.loads((files("edgeflare.conform.record") / "conform.schema.json").read_bytes())
SHARED = finding_entry(verdict="shared", counted=False)
KNOWN = finding_entry(accepted="wraps")


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([], "no fault, in"),
        ([SHARED], "no fault, in"),
        ([KNOWN], "no fault that is not accepted, 1 accepted, in"),
        ([finding_entry()], "1 fault in 1 operator, in"),
        ([finding_entry(), finding_entry(2), KNOWN], "2 faults in 1 operator, 1 accepted, in"),
        ([finding_entry(), finding_entry(2, operator="MUL")], "2 faults in 2 operators, in"),
    ],
)
def test_the_headline_counts_what_counts(findings: list[FoundFault], said: str) -> None:
    line = headline(constructed_conformance(findings))
    assert said in line
    assert line.startswith("board (tflite-runtime 2.14.0, builtin): ")
    assert line.endswith("96 models of 2 operators and types")


def test_each_finding_is_in_one_section_and_those_that_count_come_first() -> None:
    findings = [
        finding_entry(6, verdict="host", counted=False),
        finding_entry(5, verdict="crash", symptom="crash", counted=False),
        finding_entry(4, verdict="undefined", counted=False),
        SHARED,
        KNOWN,
        finding_entry(),
    ]
    sections = finding_sections(constructed_conformance(findings))
    assert [section.id for section in sections] == [
        "new",
        "accepted",
        "shared",
        "undefined",
        "host",
    ]
    shown = [finding for section in sections for finding in section.findings]
    assert sorted(one.number for one in shown) == sorted(one.number for one in findings)
    assert finding_sections(constructed_conformance([])) == []


@pytest.mark.parametrize("reason", SCHEMA["properties"]["stopped_by"]["enum"])
def test_each_reason_to_end_has_a_sentence(reason: str) -> None:
    assert ending_sentence(constructed_conformance(stopped_by=reason)).endswith(".")


@pytest.mark.parametrize("verdict", SCHEMA["$defs"]["FoundFault"]["properties"]["verdict"]["enum"])
def test_each_verdict_has_a_sentence(verdict: str) -> None:
    assert verdict_words(finding_entry(verdict=verdict)).endswith(".")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "255 steps"),
        ({"worst": 12345.678, "unit": "ulp"}, "12,346 ulp"),
        ({"worst": 1.0}, "1 step"),
        ({"worst": 0.25, "unit": None}, "25% of the values"),
        ({"worst": 0.01, "unit": None}, "1% of the values"),
        ({"worst": 0.0004, "unit": None}, "less than 1 % of the values"),
        ({"worst": None}, "not finite"),
        ({"symptom": "crash"}, ""),
        ({"symptom": "neighbours"}, ""),
    ],
)
def test_how_wrong_it_is_has_its_unit(changed: dict[str, Any], said: str) -> None:
    assert worst_words(finding_entry(**changed)) == said


def test_a_finding_is_named_with_its_condition() -> None:
    finding = finding_entry()
    assert title_of(finding) == "ADD uint8"
    assert condition_words(finding) == "size ≥ 8, sum_ratio_log2 ≥ 7"
    assert condition_words(finding_entry(condition=[])) == "always"
    assert wrong_words(finding) == "device, builtin"


def test_settings_are_written_as_people_write_them() -> None:
    settings = {"shape": [2, 3], "axes": [], "bias": True, "scale": 0.11445245891809464, "size": 3}
    (node,) = finding_entry().smallest.operators
    assert settings_words(msgspec.structs.replace(node, settings=settings)) == [
        ("shape", "2 × 3"),
        ("axes", "scalar"),
        ("bias", "yes"),
        ("scale", "0.11445246"),
        ("size", "3"),
    ]


def test_graphs_are_spoken_of_where_they_were_tried() -> None:
    document = constructed_conformance()
    assert coverage_sentence(document) == (
        "Covered, of what the device takes: 100.0 % (2 of 2) of operators and types, 75.0 %"
        " (90 of 120) of ranges of parameters."
    )
    coverage = msgspec.structs.replace(
        document.coverage,
        cells=CoveredShare(covered=0, total=0, refused=3),
    )
    graphs = TriedGraphs(tried=1200, pairs=1, in_turn=0, verdicts={"right": 1200})
    said = coverage_sentence(msgspec.structs.replace(document, coverage=coverage, graphs=graphs))
    assert said.endswith(" 1,200 graphs tried, of 1 pair of operators.")
    assert "all (0 of 0) of operators and types" in said
    alone = msgspec.structs.replace(graphs, pairs=0)
    assert coverage_sentence(msgspec.structs.replace(document, graphs=alone)).endswith(
        " 1,200 graphs tried."
    )
    turned = msgspec.structs.replace(alone, in_turn=300)
    assert coverage_sentence(msgspec.structs.replace(document, graphs=turned)).endswith(
        " 1,200 graphs tried, 300 also in turns."
    )


def test_what_was_tried_of_a_model_is_told_of() -> None:
    assert model_sentence(constructed_conformance()) == []
    (said,) = model_sentence(constructed_conformance(model={**HALF_TRIED, "untried": []}))
    assert said == "Of the operators of kws.tflite, tried 2 of 3 as they stand."


@pytest.mark.parametrize(
    ("tried", "of", "said"),
    [
        (0, 1000, "nothing that computes in {}; no fault in"),
        (1, 1000, "less than 1 % of the arithmetic of {}; no fault in"),
        (499, 1000, "50 % of the arithmetic of {}; no fault in"),
        (500, 1000, "50 % of the arithmetic of {}; no fault, "),
        (999, 1000, "more than 99 % of the arithmetic of {}; no fault, "),
        (1000, 1000, "all of the arithmetic of {}; no fault, "),
        (0, 0, "{}; no fault, in 96 models"),
    ],
)
def test_the_headline_says_first_how_much_of_a_model_was_tried(
    tried: int, of: int, said: str
) -> None:
    model = {**HALF_TRIED, "arithmetic": of, "arithmetic_tried": tried}
    line = headline(constructed_conformance([], model=model))
    told = said.format("kws.tflite was tried (3 of 4 operators)")
    assert line.startswith(f"board (tflite-runtime 2.14.0, builtin): {told}")


def markdown_of(document: ConformDocument) -> str:
    return markdown_page(conform_page(document))


def printed(document: ConformDocument, width: int = 80) -> str:
    written = io.StringIO()
    print_page(Console(file=written, width=width), conform_page(document), "runs/one")
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def test_what_fails_comes_first_on_a_terminal_with_its_whole_condition() -> None:
    shared = finding_entry(
        2, operator="TRANSPOSE_CONV", type="int16x8", verdict="shared", counted=False, failing=1,
        condition=["bias is yes", "a_very_long_name_of_a_setting ≥ another_very_long_name"],
    )  # fmt: skip
    said = printed(constructed_conformance([finding_entry(), shared]))
    assert said.startswith("EdgeFlare kernel conformance: board\nboard (tflite-runtime 2.14.0,")
    assert "1 ADD uint8: wrong values\n" in said
    assert "  when: size ≥ 8, sum_ratio_log2 ≥ 7; worst: 255 steps; wrong: device," in said
    assert "a_very_long_name_of_a_setting" in said
    assert "another_very_long_name" in said
    assert "models: 1; known issue: none is known: `edgeflare export" in " ".join(said.split())
    assert said.index("The device fails") < said.index("Device and twin fail alike")
    assert said.endswith("see it: edgeflare report runs/one --html")
    known = printed(constructed_conformance([finding_entry(accepted="a vendor's")]))
    assert "accepted: a vendor's" in known


def test_a_crash_has_no_size_and_an_infinity_is_named() -> None:
    crash = finding_entry(verdict="crash", symptom="crash", unit=None, worst=0.0, condition=[])
    infinite = finding_entry(2, worst=None, unit="ulp", symptom="not-finite")
    nothing = finding_entry(3, worst=0.0, unit="ulp", symptom="not-finite")
    said = printed(constructed_conformance([crash, infinite, nothing]))
    assert said.count("worst: not finite; wrong: device") == 2
    assert (
        "1 ADD uint8: crash\n  when: always; worst: –; wrong: device, builtin; models: 50" in said
    )


def test_many_findings_are_cut_and_warnings_and_what_was_not_tried_are_shown() -> None:
    most = Cards(()).most
    many = [finding_entry(number) for number in range(1, most + 3)]
    document = constructed_conformance(many, warnings=["take care"], model=HALF_TRIED)
    said = printed(document, 200)
    assert f"{most} ADD uint8" in said
    assert f"{most + 1} ADD uint8" not in said
    assert "and 2 more" in said
    assert "warning: take care" in said
    assert "Mfcc × 2 (52 % of the arithmetic, the operator is not known)" in said.splitlines()[2]


def test_of_findings_that_were_tried_again_those_that_fail_come_first() -> None:
    written = io.StringIO()
    lines = [
        RetryLine(finding_entry(1), "mended", ""),
        RetryLine(finding_entry(2, accepted="a vendor's"), "still", "14 of 68 values are wrong"),
        RetryLine(finding_entry(3), "refused", "unknown \x1b[2J version"),
        RetryLine(finding_entry(4), "otherwise", "crash, crash: SIGSEGV"),
    ]
    print_retry(Console(file=written, width=80), "board", lines)
    said = [line.strip() for line in written.getvalue().splitlines()]
    assert said[0] == "board: findings that fail: 2 of 4, mended: 1, refused: 1"
    titles = ["Still fails", "Fails in another way", "The device refuses the model", "Mended"]
    places = [said.index(title) for title in titles]
    assert places == sorted(places)
    assert "2 ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7" in said
    assert "now: 14 of 68 values are wrong; accepted: a vendor's" in said
    assert "now: crash, crash: SIGSEGV" in said
    assert "\x1b" not in written.getvalue()


def test_a_summary_has_the_headline_the_findings_and_what_was_covered() -> None:
    said = markdown_of(constructed_conformance())
    assert said.startswith("## EdgeFlare kernel conformance: board\n\n❌ board (tflite-runtime")
    assert "### The device fails" in said
    row = (
        "| 1 | ADD uint8: wrong values | size ≥ 8, sum\\_ratio\\_log2 ≥ 7 | 255 steps"
        " | device, builtin | 50 |"
    )
    assert row in said
    assert "75.0 % (90 of 120) of ranges of parameters" in said
    assert "The device refused models of 1 operator and type, and all models of 1." in said
    many = [finding_entry(number) for number in range(1, CARDS + 4)]
    assert "and 3 more" in markdown_of(constructed_conformance(many))


@pytest.mark.parametrize(
    ("changed", "mark", "said"),
    [
        ({}, "✅", "### The device fails, as is accepted"),
        ({"stopped_by": "sigterm"}, "⚠️", "It ended when it was stopped by SIGTERM."),
        ({"model": HALF_TRIED}, "⚠️", "Mfcc × 2 (52 % of the arithmetic, the operator is not"),
        ({"model": {**HALF_TRIED, "arithmetic_tried": 500}}, "✅", "Mfcc × 2"),
    ],
)
def test_a_summary_passes_a_whole_run_without_new_findings(
    changed: dict[str, Any], mark: str, said: str
) -> None:
    known = [finding_entry(accepted="a vendor's")]
    summary = markdown_of(constructed_conformance(known, **changed))
    assert f"\n{mark} board" in summary
    assert said in summary


def test_names_break_out_of_no_table_and_no_terminal_obeys_them() -> None:
    hostile = finding_entry(detail="\x1b[2J", condition=["a|b\n<c>\x1b]0;x\x07"])
    document = constructed_conformance([hostile], warnings=["\x1b[31m"])
    assert "\x1b" not in printed(document)
    hostile = finding_entry(condition=["a|b\n<c>"])
    assert "| a\\|b \\<c\\> |" in markdown_of(constructed_conformance([hostile]))


def suite_of(document: ConformDocument) -> ElementTree.Element:
    return parsed_suite(conform_suite(document))


def outcomes(suite: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: "" if (child := case.find("*")) is None else child.attrib["message"]
        for case in suite.iter("testcase")
    }


def test_each_operator_and_type_is_a_case_and_what_counts_fails() -> None:
    suite = suite_of(constructed_conformance())
    assert outcomes(suite) == {
        "ADD uint8": "ADD uint8: wrong values when size ≥ 8, sum_ratio_log2 ≥ 7",
        "EXP int8": "",
        "SIGN float32": "the device refused all models",
    }
    figures = [suite.attrib[name] for name in ("tests", "failures", "skipped", "errors", "time")]
    assert figures == ["3", "1", "1", "0", "12.500"]
    text = suite.findtext("testcase/failure") or ""
    assert "by up to 255 steps; wrong: device, builtin; 50 models" in text
    assert "findings/000001.tflite" in text


def test_what_is_known_or_shared_passes() -> None:
    known = finding_entry(accepted="a vendor's")
    shared = finding_entry(2, verdict="shared", counted=False)
    suite = suite_of(constructed_conformance([known, shared]))
    assert (suite.attrib["failures"], outcomes(suite)["ADD uint8"]) == ("0", "")


def test_what_was_not_tried_of_a_model_is_skipped_with_the_reason() -> None:
    suite = suite_of(constructed_conformance(model=HALF_TRIED))
    said = "Mfcc × 2 (52 % of the arithmetic, the operator is not known)"
    assert outcomes(suite)["kws.tflite Mfcc 0, 2"] == said
    assert [suite.attrib[name] for name in ("tests", "skipped")] == ["4", "2"]
    suite = suite_of(constructed_conformance([], cells=[]))
    assert set(outcomes(suite).values()) == {"no model was tried"}


def test_several_findings_of_a_cell_are_one_failure_and_joined_operators_have_their_own() -> None:
    joined = finding_entry(3, operator="CONV_2D, ADD", type="float32", condition=[])
    several = [finding_entry(), finding_entry(2, condition=[]), joined]
    suite = suite_of(constructed_conformance(several))
    assert outcomes(suite)["ADD uint8"].endswith(", and 1 more")
    assert "2. ADD uint8: wrong values always" in (suite.findtext("testcase/failure") or "")
    assert outcomes(suite)["CONV_2D, ADD float32"] == "CONV_2D, ADD float32: wrong values always"
    assert suite.attrib["tests"] == "4"


def test_hostile_names_stay_text() -> None:
    hostile = "<b>&\x00\x1b]]>\ufffe"
    board = {**BOARD.to_json(), "name": hostile}
    found = finding_entry(detail=hostile, condition=[hostile])
    document = constructed_conformance([found], device=board)
    suite = suite_of(document)
    assert "<b>&" in suite.attrib["name"]
    assert suite.attrib["failures"] == "1"
