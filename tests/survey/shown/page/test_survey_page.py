"""Tests of edgeflare.survey.shown.page.survey_page: all of the survey is shown, and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from constructed_surveys import (
    about_survey,
    as_asked,
    constructed_baseline,
    constructed_document,
    constructed_facts,
    drawn_sample,
    gate_entry,
    with_distances,
    without_original,
)
from edgeflare.run.load_document import load_document
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.rates.rate_words import bounds, interval, percent
from edgeflare.survey.record.survey_file import read_survey
from edgeflare.survey.shown.page.survey_page import CLASSES, render_survey
from edgeflare.survey.shown.survey_words import field_sentence, headline
from edgeflare.survey.survey_document import survey_document
from parsed_pages import Parsed, asks_for_nothing, well_formed
from surveyed_runs import FINDINGS, surveyed_run

HOSTILE = "<script>alert('x')</script>\"><img src=http://localhost/x>\x1b[31m"


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return surveyed_run(tmp_path / "run")


def rendered(document: dict[str, Any], folder: Path) -> Parsed:
    """The page of a survey without a run, once it is well formed and asks for nothing."""
    parsed = well_formed(render_survey(document, RunDirectory(folder), None))
    asks_for_nothing(parsed)
    return parsed


def test_all_parts_are_in_it(directory: RunDirectory) -> None:
    document = read_survey(directory)
    parsed = well_formed(render_survey(document, directory, load_document(directory)))
    asks_for_nothing(parsed)
    assert "EdgeFlare survey on board" in parsed.text
    assert f"It {headline(document)}" in parsed.text
    assert field_sentence(document) in parsed.text
    assert "✖ rate<0.01 is not held. the rate is above 1 %" in parsed.text
    assert "the pair's seeds are surveyed" in parsed.text
    assert document["sentence"] in parsed.text
    assert "It ended when the precision asked for was reached." in parsed.text
    for table in ("by_condition", "by_severity", "by_group"):
        for one in document[table]["slices"]:
            assert f"{one['name']} {interval(one['deviation'])}" in parsed.text
    for name in document["classes"]:
        assert f"{name} " in parsed.text
    assert "machine aarch64" in parsed.text
    assert "inputs sha256" in parsed.text


def test_each_cell_of_the_map_has_its_figures_and_a_title(directory: RunDirectory) -> None:
    document = read_survey(directory)
    parsed = well_formed(render_survey(document, directory, None))
    titles = [str(one["title"]) for one in parsed.all("td") if one.get("class") == "heat"]
    cells = document["by_cell"]["slices"]
    assert len(titles) == len(cells) == 7
    for one, title in zip(cells, titles, strict=True):
        rate = one["deviation"]
        assert title.startswith(f"{one['name']}: {percent(rate['estimate'])}, interval")
        assert f"{percent(rate['estimate'])} {bounds(rate)}" in parsed.text


def test_the_stored_inputs_of_the_worst_conditions_are_drawn(directory: RunDirectory) -> None:
    document = read_survey(directory)
    parsed = well_formed(render_survey(document, directory, load_document(directory)))
    drawn = [one for one in parsed.all("img") if str(one["src"]).startswith("data:image/")]
    assert len(drawn) == 3 * 3 + 1
    assert len(parsed.all("article")) == len(FINDINGS)
    assert "severity 5" in parsed.text
    assert "yes → no" in parsed.text


def test_an_input_that_is_gone_is_missing_in_the_page(directory: RunDirectory) -> None:
    run = load_document(directory)
    (directory.path / run.findings[0].image).unlink()
    parsed = well_formed(render_survey(read_survey(directory), directory, run))
    assert parsed.text.count("its file is gone or damaged") == 1


def test_a_baseline_is_a_part_of_its_own(tmp_path: Path) -> None:
    facts = constructed_facts()
    sample = drawn_sample(facts, 0.3)
    baseline = constructed_baseline(constructed_facts(rng_seed=1))
    document = survey_document(as_asked(facts, sample), sample, about_survey(), baseline)
    parsed = rendered(document, tmp_path)
    assert "Against before" in parsed.text
    assert {"id": "baseline", "aria-labelledby": "baseline-title", "tabindex": "-1"} in parsed.all(
        "section"
    )


def test_a_survey_of_little_has_the_parts_that_it_can_have(tmp_path: Path) -> None:
    facts = without_original(constructed_facts(conditions=(), groups=()))
    document = constructed_document(facts, gates=[], warnings=[], stopped_by="interrupt")
    parsed = rendered(document, tmp_path)
    sections = [one["id"] for one in parsed.all("section")]
    assert sections == ["rates", "classes", "method", "ran"]
    assert not parsed.all("svg")
    assert "This is not the whole survey: it was stopped by Ctrl-C" in parsed.text


def test_a_task_without_classes_shows_distances(tmp_path: Path) -> None:
    parsed = rendered(constructed_document(with_distances(constructed_facts())), tmp_path)
    assert "mean IoU to the device" in parsed.text
    assert "classes" not in [one["id"] for one in parsed.all("section")]


def test_of_many_classes_the_worst_are_listed(tmp_path: Path) -> None:
    document = constructed_document()
    one = document["by_class"]["slices"][0]
    document["by_class"]["slices"] = [{**one, "label": n} for n in range(CLASSES + 5)]
    parsed = rendered(document, tmp_path)
    assert f"The worst {CLASSES} of {CLASSES + 5}; survey.csv has all of them." in parsed.text


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    facts = constructed_facts(conditions=(HOSTILE,), groups=(HOSTILE, "b"))
    gates = [gate_entry("rate<0.1", "held", HOSTILE) | {"gate": HOSTILE}]
    plain = rendered(constructed_document(constructed_facts(conditions=("c",))), tmp_path)
    parsed = rendered(
        constructed_document(
            facts,
            gates=gates,
            warnings=[HOSTILE],
            classes=4 * [HOSTILE],
            pair={"name": HOSTILE, "fingerprint": HOSTILE},
            devices=[{"name": HOSTILE, "provenance": {HOSTILE: HOSTILE}}],
            stopped_by=HOSTILE,
        ),
        tmp_path,
    )
    assert not parsed.all("script")
    assert parsed.all("img") == plain.all("img") == []
    assert "\x1b" not in parsed.page


def test_no_folder_of_this_machine_is_in_it(tmp_path: Path) -> None:
    document = constructed_document()
    document["plan"]["inputs"]["path"] = "/secret/place/images.npz"
    parsed = rendered(document, tmp_path)
    assert "secret" not in parsed.page
    assert "images.npz" in parsed.text
