"""A survey's document: what it says, its schema, and what is damaged refused in a line."""

from __future__ import annotations

import io
import json
from copy import deepcopy
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

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
from damaged_documents import VALUES, Place, damage, places
from edgeflare.cli.survey_presentation import survey_csv, survey_suite
from edgeflare.errors import UserError
from edgeflare.pages.html_page import html_page
from edgeflare.pages.junit import junit_xml
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.items.survey_facts import Sample, SurveyFacts
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.record.survey_document import SurveyDocument, read_survey, survey_bytes
from edgeflare.survey.survey_derivation import survey_document
from parsed_pages import asks_for_nothing, well_formed

SCHEMA = json.loads((files("edgeflare.survey.record") / "survey.schema.json").read_text("utf-8"))
FACTS = constructed_facts()
UNCHANGED_ALONE = constructed_facts(conditions=(), groups=())


def plain(document: SurveyDocument) -> Any:
    """Return a document as it is in its file."""
    return json.loads(survey_bytes(document))


def nothing_asked(facts: SurveyFacts) -> Sample:
    sample = whole_sample(facts)
    return Sample(sample.stratum, sample.asked & False)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "sample"),
    [
        (FACTS, whole_sample(FACTS)),
        (FACTS, drawn_sample(FACTS, 0.2)),
        (FACTS, nothing_asked(FACTS)),
        (without_original(FACTS), drawn_sample(FACTS, 0.2)),
        (with_distances(FACTS), drawn_sample(FACTS, 0.2)),
        (with_distances(without_original(FACTS)), nothing_asked(FACTS)),
        (UNCHANGED_ALONE, whole_sample(UNCHANGED_ALONE)),
    ],
    ids=["all", "some", "none", "no original", "distances", "no answer", "unchanged alone"],
)
def test_it_keeps_to_its_schema(facts: SurveyFacts, sample: Sample) -> None:
    document = constructed_document(facts, sample)
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(plain(document), SCHEMA)
    assert msgspec.convert(plain(document), SurveyDocument) == document


def test_with_a_baseline_it_keeps_to_its_schema_too() -> None:
    jsonschema.validate(whole_document(), SCHEMA)
    assert whole_document()["baseline"]["run"] == "before"
    conditions = [one["condition"] for one in whole_document()["baseline"]["by_condition"]]
    assert conditions == ["fog", "dark"]


def test_it_has_what_was_said_of_the_survey_and_its_figures() -> None:
    document = constructed_document()
    about = msgspec.structs.asdict(about_survey())
    assert {key: getattr(document, key) for key in about} == about
    assert document.confidence == 0.95
    assert (document.inputs, document.items, document.asked) == (60, 420, 420)
    assert document.labelled == 48
    assert document.distance is None
    assert document.overall.deviation is not None
    assert document.overall.deviation.seen == int((FACTS.deviates & (FACTS.cell > 0)).sum())
    assert document.field.low < document.overall.deviation.low
    assert document.field.high > document.overall.deviation.high
    assert document.sentence.startswith("On board, sneakers decides differently")


def test_every_key_of_the_schema_is_written() -> None:
    document = plain(constructed_document())
    assert set(document) == set(SCHEMA["properties"]) == set(SCHEMA["required"])
    assert set(document["overall"]) == set(SCHEMA["$defs"]["SurveySlice"]["properties"])


DOCUMENT = plain(constructed_document())


def written(folder: Path, document: Any) -> RunDirectory:
    (folder / "survey.json").write_text(json.dumps(document))
    return RunDirectory(folder)


def refusal_of(directory: RunDirectory) -> str:
    """Return the line that a survey is refused with, or nothing where it is read."""
    said = ""
    try:
        read_survey(directory)
    except UserError as error:
        said = str(error)
    assert "\n" not in said
    return said


def test_what_was_written_is_read(tmp_path: Path) -> None:
    assert read_survey(written(tmp_path, DOCUMENT)) == constructed_document()


def test_a_folder_without_one_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"has no survey\.json.*--resume"):
        read_survey(RunDirectory(tmp_path))


def test_a_file_that_is_no_json_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "survey.json").write_bytes(b"{")
    assert "is damaged" in refusal_of(RunDirectory(tmp_path))


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (("schema",), "edgeflare.survey/v9", "is not of the schema edgeflare.survey/v1"),
        (("overall", "deviation", "low"), 2, "overall.deviation.low is 2"),
        (("overall", "deviation"), 2, "overall.deviation is 2: expected object | null"),
        (("overall", "deviation", "alone"), {"low": 1}, "overall.deviation.alone has no value"),
        (("overall", "kernel"), None, "overall.kernel is null"),
        (("rare",), [], "rare is []: expected object | null"),
        (("pair",), {"fingerprint": "f"}, "pair has no name"),
        (("overall", "deviation"), None, "overall.deviation is null, and has_original says"),
        (("by_condition", "slices", 0, "items"), "9", 'by_condition.slices[0].items is "9"'),
        (("gates", 0, "state"), "maybe", 'gates[0].state is "maybe"'),
        (("plan", "earlier"), [{}], "plan.earlier[0]"),
        (("findings", 0, "else"), 1, 'findings[0] has the unknown key "else"'),
        (("devices",), [], "devices is []"),
        (("by_cell", "slices"), [], "by_cell.slices is empty"),
        (("by_cell", "slices", 1, "severity"), None, "by_cell.slices[1].severity is null"),
        (("by_group", "slices", 0, "group"), None, "by_group.slices[0].group is null"),
        (("unchanged", "condition"), None, "unchanged.condition is null"),
        (("overall", "accuracy", "original"), None, "overall.accuracy has one of original and"),
    ],
)
def test_damage_is_a_line_with_the_place(
    tmp_path: Path, place: Place, value: Any, says: str
) -> None:
    inner: Any = (document := deepcopy(DOCUMENT))
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    assert says in refusal_of(written(tmp_path, document))


@cache
def whole_document() -> dict[str, Any]:
    """A survey with all parts that one can have, as it is in its file."""
    facts = constructed_facts(inputs=40)
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(inputs=40, rng_seed=1))
    document = survey_document(as_asked(facts, sample), sample, about_survey(), baseline)
    made: dict[str, Any] = plain(document)
    return made


@st.composite
def damaged(draw: st.DrawFn) -> Any:
    place: Place = draw(st.sampled_from(list(places(whole_document()))))
    how = draw(st.sampled_from(("put", "put", "take", "more")))
    return damage(whole_document(), place, how, draw(st.sampled_from(VALUES)))


@pytest.mark.slow
@given(changed=damaged())
def test_damage_is_refused_in_a_line_or_shown(changed: Any, tmp_path_factory: Any) -> None:
    directory = written(tmp_path_factory.mktemp("damaged"), changed)
    if refusal := refusal_of(directory):
        assert "survey.json" in refusal
        return
    read = read_survey(directory)
    page = survey_page(read)
    print_page(Console(file=io.StringIO()), page, "runs/survey")
    markdown_page(page).encode()
    survey_csv(read).encode()
    junit_xml(survey_suite(read))
    asks_for_nothing(well_formed(html_page(page)))
