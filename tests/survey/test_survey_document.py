"""Tests of edgeflare.survey.survey_document: it keeps to its schema, and says what the facts do."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

from constructed_surveys import (
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    whole_sample,
    with_distances,
    without_original,
)
from edgeflare.survey.estimate.rate import Sample
from edgeflare.survey.items.survey_facts import SurveyFacts
from edgeflare.survey.survey_document import ABOUT, survey_document

SCHEMA = json.loads((files("edgeflare.survey.record") / "survey.schema.json").read_text("utf-8"))

FACTS = constructed_facts()


def nothing_asked(facts: SurveyFacts) -> Sample:
    sample = whole_sample(facts)
    return Sample(sample.stratum, sample.asked & False)


@pytest.mark.parametrize(
    ("facts", "sample"),
    [
        (FACTS, whole_sample(FACTS)),
        (FACTS, drawn_sample(FACTS, 0.2)),
        (FACTS, nothing_asked(FACTS)),
        (without_original(FACTS), drawn_sample(FACTS, 0.2)),
        (with_distances(FACTS), drawn_sample(FACTS, 0.2)),
        (with_distances(without_original(FACTS)), nothing_asked(FACTS)),
        (
            constructed_facts(conditions=(), groups=()),
            whole_sample(constructed_facts(conditions=())),
        ),
    ],
    ids=["all", "some", "none", "no original", "distances", "no answer", "unchanged alone"],
)
def test_it_keeps_to_its_schema(facts: SurveyFacts, sample: Sample) -> None:
    document = constructed_document(facts, sample)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(document, SCHEMA)
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_with_a_baseline_it_keeps_to_its_schema_too() -> None:
    sample = drawn_sample(FACTS, 0.3)
    document = survey_document(
        as_asked(FACTS, sample), sample, about_survey(), constructed_baseline(FACTS)
    )
    jsonschema.validate(document, SCHEMA)
    assert document["baseline"]["run"] == "before"
    assert [one["condition"] for one in document["baseline"]["by_condition"]] == ["fog", "dark"]


def test_it_has_what_was_said_of_the_survey_and_its_figures() -> None:
    document = constructed_document()
    about = about_survey()
    assert {key: document[key] for key in ABOUT} == about
    assert document["confidence"] == 0.95
    assert (document["inputs"], document["items"], document["asked"]) == (60, 420, 420)
    assert document["labelled"] == 48
    assert document["distance"] is None
    seen = int((FACTS.deviates & (FACTS.cell > 0)).sum())
    assert document["overall"]["deviation"]["seen"] == seen
    assert document["field"]["low"] < document["overall"]["deviation"]["low"]
    assert document["field"]["high"] > document["overall"]["deviation"]["high"]
    assert document["sentence"].startswith("On board, sneakers decides differently")


def test_every_key_of_the_schema_is_written() -> None:
    written: set[str] = set(constructed_document())
    assert written == set(SCHEMA["properties"]) == set(SCHEMA["required"])
    keys: dict[str, Any] = SCHEMA["$defs"]["slice"]["properties"]
    assert set(constructed_document()["overall"]) == set(keys)
