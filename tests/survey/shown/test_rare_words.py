"""Tests of edgeflare.survey.shown.rare_words: what is said of rare events, and where."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from constructed_surveys import constructed_document, constructed_facts, without_original
from edgeflare.run.run_directory import RunDirectory
from edgeflare.survey.shown.page.survey_page import render_survey
from edgeflare.survey.shown.rare_words import rare_release, rare_sentences
from edgeflare.survey.shown.survey_summary import survey_summary
from edgeflare.survey.shown.survey_terminal import print_survey
from edgeflare.survey.shown.survey_words import release_sentence
from parsed_pages import well_formed

FOUND: dict[str, Any] = {
    "estimate": 2.1e-5, "low": 1.2e-5, "high": 3.7e-5, "ceiling": 0.004, "unseen_share": 0.991,
    "repetitions": [1.9e-5, 2.3e-5], "thresholds": [0.5, 0.0], "device_queries": 2013,
    "host_queries": 140000, "seconds": 30.0,
}  # fmt: skip


def test_rate_ceiling_and_cost_are_said() -> None:
    rate, ceiling, cost = rare_sentences(constructed_document(rare=FOUND))
    assert "the device deviates on 0.0021 % (0.0012–0.0037) of images" in rate
    assert "2 repetitions, and takes for granted that nothing happens where nothing" in rate
    assert "is 0.40 %; 99 % of it comes from where nothing was seen." in ceiling
    assert cost == "That took 2,013 device queries more, and 140,000 queries on the host."


def test_without_an_original_it_is_about_the_twin() -> None:
    document = constructed_document(without_original(constructed_facts()), rare=FOUND)
    assert "decides otherwise than its twin on 0.0021 %" in rare_sentences(document)[0]


def test_where_nothing_was_seen_nothing_is_promised() -> None:
    nothing = {**FOUND, "estimate": 0.0, "low": 0.0, "high": 0.0, "unseen_share": 1.0}
    rate, ceiling, _ = rare_sentences(constructed_document(rare=nothing))
    assert rate.endswith("the device showed none, which does not say that there is none.")
    assert "0.40 %; 100 % of it" in ceiling


def test_a_rate_that_is_not_rare_is_said_to_be_none() -> None:
    often = {**FOUND, "estimate": 0.002, "low": 0.001, "high": 0.004}
    *_, last = rare_sentences(constructed_document(rare=often))
    assert last.startswith("Above 0.10 % nothing is rare: the survey's own rate")
    assert len(rare_sentences(constructed_document(rare=FOUND))) == 3


def test_what_was_asked_for_and_is_not_there_yet_is_said() -> None:
    document = constructed_document()
    document["plan"]["rare_queries"] = 2000
    (said,) = rare_sentences(document)
    assert said.endswith("not estimated yet: the same command with --resume does.")
    assert "### Rare events\n\nThey were asked for" in survey_summary(document)


def test_release_notes_name_them_where_the_survey_saw_nothing() -> None:
    document = constructed_document(rare=FOUND)
    assert rare_release(document) not in release_sentence(document)
    document["overall"]["deviation"] |= {"estimate": 0.0, "low": 0.0, "high": 0.01, "seen": 0}
    said = "such decisions are those on 0.0021 % (0.0012–0.0037) of images."
    assert said in release_sentence(document)
    document["rare"] = {**FOUND, "estimate": 0.0, "low": 0.0, "high": 0.0}
    assert "none were found, with a ceiling of 0.40 %." in release_sentence(document)
    assert rare_release({**document, "rare": None}) == ""


def test_terminal_summary_and_page_say_it(tmp_path: Path) -> None:
    document = constructed_document(rare=FOUND)
    said = " ".join(rare_sentences(document))
    text = io.StringIO()
    print_survey(Console(file=text, width=2000), document, "runs/survey")
    assert f"Rare events: {said}" in [line.rstrip() for line in text.getvalue().splitlines()]
    assert "### Rare events\n\nWith input, condition" in survey_summary(document)
    parsed = well_formed(render_survey(document, RunDirectory(tmp_path), None))
    assert 'href="#rare"' in parsed.page
    for one in rare_sentences(document):
        assert one in parsed.text


def test_nothing_is_said_where_nothing_was_asked(tmp_path: Path) -> None:
    document = constructed_document()
    assert rare_sentences(document) == ()
    text = io.StringIO()
    print_survey(Console(file=text, width=200), document, "runs/survey")
    page = render_survey(document, RunDirectory(tmp_path), None)
    for shown in (text.getvalue(), survey_summary(document), page):
        assert "Rare events" not in shown
