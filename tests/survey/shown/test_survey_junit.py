"""Tests of edgeflare.survey.shown.survey_junit: valid, and what is not held fails."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema

from constructed_surveys import constructed_document, constructed_facts, gate_entry, rare_entry
from edgeflare.survey.shown.survey_junit import survey_junit

SCHEMAS = [
    xmlschema.XMLSchema(Path(__file__).parents[2] / "report" / name)
    for name in ("junit-10.xsd", "junit.xsd")
]


def suite_of(document: dict[str, Any]) -> ElementTree.Element:
    """The one suite, once the whole is valid."""
    data = survey_junit(document)
    for schema in SCHEMAS:
        schema.validate(data.decode())
    suite = ElementTree.fromstring(data).find("testsuite")  # noqa: S314 - ours
    assert suite is not None
    return suite


def failures(suite: ElementTree.Element) -> dict[str, str]:
    return {
        case.attrib["name"]: failure.attrib["message"]
        for case in suite.iter("testcase")
        if (failure := case.find("failure")) is not None
    }


def gate(text: str, state: str, conditions: Sequence[str] | None = None) -> dict[str, Any]:
    return gate_entry(text, state, f"it is {state}", conditions)


def test_each_gate_and_each_condition_is_a_case() -> None:
    suite = suite_of(constructed_document())
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names == [
        "gate rate<0.01", "gate rate<0.9 under fog",
        "condition unchanged", "condition fog", "condition dark",
    ]  # fmt: skip
    assert failures(suite) == {
        "gate rate<0.01": "gate rate<0.01 is not held: the rate is above 1 %"
    }
    assert (suite.attrib["tests"], suite.attrib["failures"]) == ("5", "1")
    assert suite.attrib["time"] == "12.500"


@pytest.mark.parametrize(
    ("state", "then"),
    [
        ("not held", ""),
        (
            "undecided",
            "; the same command with --out RUN --resume and a smaller --precision goes on",
        ),
    ],
)
def test_a_condition_fails_with_a_gate_about_it(state: str, then: str) -> None:
    text = "accuracy-drop<0.1 under fog at severity 3"
    suite = suite_of(
        constructed_document(gates=[gate("rate<0.9 under fog", "held"), gate(text, state)])
    )
    message = f"gate {text} is {state}: it is {state}{then}"
    assert failures(suite) == {
        f"gate {text}": message,
        "condition fog": message,
    }
    assert suite.attrib["failures"] == "2"


def test_all_conditions_of_a_set_fail_with_a_gate_about_it() -> None:
    suite = suite_of(
        constructed_document(gates=[gate("rate<0.1 under weather", "not held", ("dark", "fog"))])
    )
    assert set(failures(suite)) == {
        "gate rate<0.1 under weather", "condition fog", "condition dark",
    }  # fmt: skip
    assert suite.attrib["failures"] == "3"


def test_the_name_of_a_group_is_no_condition() -> None:
    text = "rate<0.1 for group seen under fog"
    suite = suite_of(constructed_document(gates=[gate(text, "not held")]))
    assert set(failures(suite)) == {f"gate {text}"}


def test_without_gates_nothing_fails() -> None:
    suite = suite_of(constructed_document(gates=[]))
    assert failures(suite) == {}
    assert suite.attrib["tests"] == "3"


def test_the_rates_and_the_sentence_are_properties() -> None:
    document = constructed_document()
    document["plan"]["inputs"]["path"] = "/secret/place/images.npz"
    suite = suite_of(document)
    said = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert said["plan inputs path"] == "images.npz"
    assert said["sentence"] == document["sentence"]
    assert set(said) >= {"rate unchanged", "rate fog", "rate dark", "device board machine"}


def test_rare_events_are_properties() -> None:
    suite = suite_of(constructed_document(rare=rare_entry()))
    said = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
    assert "the device deviates on 0.015 % (0.010–0.022) of images" in said["rare events found"]
    assert said["rare events estimate"] == "0.00015"
    assert said["rare events ceiling"] == "0.0021"
    assert said["rare events device queries"] == "2,011"
    assert not [name for name in said if "repetitions" in name]
    plain = {one.attrib["name"] for one in suite_of(constructed_document()).iter("property")}
    assert not [name for name in plain if name.startswith("rare")]


def test_hostile_names_stay_text() -> None:
    name = "<b>&\x00\x1b]]>\ufffe"
    document = constructed_document(constructed_facts(conditions=(name,)))
    document["pair"]["name"] = name
    suite = suite_of(document)
    assert "<b>&" in suite.attrib["name"]
    assert len(next(iter(suite))) > 3
