"""A conformance run in words."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from conformed_runs import HALF_TRIED, constructed_conformance, finding_entry
from edgeflare.conform.shown.conform_words import (
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

SCHEMA = json.loads((files("edgeflare.conform.record") / "conform.schema.json").read_bytes())
SHARED = finding_entry(verdict="shared", counted=False)
KNOWN = finding_entry(known="wraps")


@pytest.mark.parametrize(
    ("findings", "said"),
    [
        ([], "no fault, in"),
        ([SHARED], "no fault, in"),
        ([KNOWN], "no fault that is not known, 1 known, in"),
        ([finding_entry()], "1 fault in 1 operator, in"),
        ([finding_entry(), finding_entry(2), KNOWN], "2 faults in 1 operator, 1 known, in"),
        ([finding_entry(), finding_entry(2, operator="MUL")], "2 faults in 2 operators, in"),
    ],
)
def test_the_headline_counts_what_counts(findings: list[dict[str, Any]], said: str) -> None:
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
    assert [one.id for one in sections] == ["new", "known", "shared", "undefined", "host"]
    shown = [finding for one in sections for finding in one.findings]
    assert sorted(map(id, shown)) == sorted(map(id, findings))
    assert finding_sections(constructed_conformance([])) == []


@pytest.mark.parametrize("reason", SCHEMA["properties"]["stopped_by"]["enum"])
def test_each_reason_to_end_has_a_sentence(reason: str) -> None:
    assert ending_sentence(constructed_conformance(stopped_by=reason)).endswith(".")


@pytest.mark.parametrize("verdict", SCHEMA["$defs"]["finding"]["properties"]["verdict"]["enum"])
def test_each_verdict_has_a_sentence(verdict: str) -> None:
    assert verdict_words(finding_entry(verdict=verdict)).endswith(".")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "255 steps"),
        ({"worst": 12345.678, "unit": "ulp"}, "1.23e+04 ulp"),
        ({"worst": 0.25, "unit": ""}, "25% of the values"),
        ({"worst": 0.0004, "unit": ""}, "less than 1 % of the values"),
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
    assert settings_words({"settings": settings}) == [
        ("shape", "2 × 3"),
        ("axes", "scalar"),
        ("bias", "yes"),
        ("scale", "0.11445246"),
        ("size", "3"),
    ]


def test_pairs_are_spoken_of_where_they_were_tried() -> None:
    document = constructed_conformance()
    assert coverage_sentence(document) == (
        "Covered, of what the device takes: 100.0 % (2 of 2) of operators and types, 75.0 %"
        " (90 of 120) of ranges of parameters."
    )
    document["coverage"]["pairs"] = {"covered": 1000, "of": 4000, "refused": 0}
    assert "25.0 % (1,000 of 4,000) of pairs of operators" in coverage_sentence(document)
    document["coverage"]["cells"] = {"covered": 0, "of": 0, "refused": 3}
    assert "all (0 of 0) of operators and types" in coverage_sentence(document)


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
