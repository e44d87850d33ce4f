"""What a survey says in words: its figures, its headline, its method, and rare events."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from changed_documents import changed
from constructed_surveys import RARE, constructed_document, constructed_facts, without_original
from documents import run_device
from edgeflare.pages.html_page import html_page
from edgeflare.pages.markdown import markdown_page
from edgeflare.pages.terminal import print_page
from edgeflare.survey.presentation.survey_page import survey_page
from edgeflare.survey.presentation.survey_words import (
    accuracy_sentence,
    cut_off,
    ending,
    headline,
    method_sentences,
    rare_release,
    rare_sentences,
    release_sentence,
)
from edgeflare.survey.rates.rate_interval import FieldInterval, Rate, SignedEstimate
from edgeflare.survey.rates.rate_words import bounds, interval, percent, points
from edgeflare.survey.rates.slices import ArmAccuracy, ExactShare, TruthDistance
from edgeflare.survey.record.survey_document import RareEstimate, SurveyDocument
from parsed_pages import well_formed


def rate(estimate: float, low: float, high: float, seen: int = 5) -> Rate:
    return Rate(estimate, low, high, items=47500, asked=500, seen=seen)


@pytest.fixture
def document() -> SurveyDocument:
    """A survey whose figures over all are chosen."""
    share = ExactShare(0.9, 900, 1000)
    return changed(
        constructed_document(device_queries=512),
        inputs=500,
        field=FieldInterval(0.0112, 0.0391, 480.0),
        overall__items=47500,
        overall__deviation=rate(0.0231, 0.0205, 0.026, seen=12),
        overall__deviation_strict=rate(0.0131, 0.0105, 0.016, seen=5),
        overall__accuracy=ArmAccuracy(
            original=share,
            twin=share,
            device=rate(0.88, 0.87, 0.89),
            drop=SignedEstimate(0.02, 0.01, 0.03),
            harmed=rate(0.03, 0.02, 0.04),
            helped=rate(0.01, 0.0, 0.02),
        ),
    )


@pytest.mark.parametrize(
    ("share", "says"),
    [
        (0.0231, "2.31 %"),
        (1.0, "100.00 %"),
        (0.0, "0.00 %"),
        (0.000412, "0.041 %"),
        (3e-7, "3.0e-05 %"),
    ],
)
def test_small_shares_keep_two_digits(share: float, says: str) -> None:
    assert percent(share) == says


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        ((0.0231, 0.0205, 0.026), "2.31 % (2.05–2.60)"),
        ((0.00067, 0.0007, 0.0035), "0.07 % (0.07–0.35)"),
        ((0.00001, 0.0, 0.0035), "0.001 % (0.000–0.350)"),
        ((0.0002, 0.000012, 0.0006), "0.020 % (0.001–0.060)"),
        ((1e-9, 0.0, 0.0035), "0.00 % (0.00–0.35)"),
        ((0.0429, 0.0429, 0.0429), "4.29 %"),
    ],
)
def test_intervals_have_one_scale_and_what_is_exact_has_none(
    figures: tuple[float, float, float], says: str
) -> None:
    assert interval(rate(*figures)) == says


def test_bounds_and_points_may_be_below_nothing() -> None:
    drop = SignedEstimate(0.0042, -0.001, 0.0093)
    assert bounds(rate(0.0, 0.0, 0.0362)) == "0.00–3.62"
    assert bounds(drop) == "-0.10 to 0.93"
    assert points(drop) == "+0.42 (-0.10 to 0.93)"
    assert points(SignedEstimate(-0.0042, -0.0042, -0.0042)) == "-0.42"
    assert interval(None) == points(None) == "–"


def test_the_headline_has_rate_interval_inputs_conditions_and_queries(
    document: SurveyDocument,
) -> None:
    said = headline(document)
    assert said == (
        "deviates on 2.31 % (2.05–2.60) of 500 images under 2 conditions in 3 severities"
        " (47,500 items), of 12 deviations seen 7 by a tie; 512 device queries"
    )
    one_query = headline(changed(document, device_queries=1))
    assert one_query == said.replace("512 device queries", "1 device query")


@pytest.mark.parametrize(("high", "says"), [(0.006, "at most 0.60 %"), (0.0, "0.00 %")])
def test_where_nothing_was_seen_the_headline_says_at_most(
    document: SurveyDocument, high: float, says: str
) -> None:
    nothing = rate(0.0, 0.0, high, seen=0)
    document = changed(document, overall__deviation=nothing, overall__deviation_strict=nothing)
    assert headline(document).startswith(f"deviates on {says} of 500 images under")


@pytest.mark.parametrize(
    ("conditions", "severities", "says"),
    [
        (("fog",), (3,), "60 images under 1 condition in 1 severity (60 items)"),
        (("fog",), (1, 3), "60 images under 1 condition in 2 severities (120 items)"),
        (("fog", "dark"), (5,), "60 images under 2 conditions in 1 severity (120 items)"),
        ((), (), "60 images as they are, of "),
    ],
)
def test_inputs_conditions_severities_and_items_are_counted_apart(
    conditions: tuple[str, ...], severities: tuple[int, ...], says: str
) -> None:
    facts = constructed_facts(conditions=conditions, severities=severities)
    assert says in headline(constructed_document(facts))


def test_the_accuracy_of_each_arm_stands_beside_harm_and_help(document: SurveyDocument) -> None:
    assert accuracy_sentence(document) == (
        "Right by labels or targets: original 90.00 %, twin 90.00 %, device 88.00 %; the device"
        " loses 3.00 % (2.00–4.00) that the original has right, and gains 1.00 % (0.00–2.00)."
    )
    assert accuracy_sentence(changed(document, overall__accuracy=None)) == ""


def test_the_sentence_for_release_notes_names_device_and_model(document: SurveyDocument) -> None:
    assert release_sentence(document) == (
        "On board, sneakers decides differently from the original model on 2.31 % of 500 images"
        " under 2 conditions in 3 severities (47,500 items), with a 95 % interval of 2.05–2.60 %"
        " (512 device queries), of 12 deviations seen 7 by a tie. If the 500"
        " images were drawn at random from the field, the rate there lies within 1.12–3.91 %. Its"
        " accuracy on those surveyed is 88.00 %, the original's"
        " 90.00 %: a drop of 2.00 points (1.00–3.00)."
    )
    named = map(run_device, ("board", "phone", "watch"))
    said = release_sentence(changed(document, devices=tuple(named)))
    assert said.startswith("On board, phone and watch, each with its share of the images, sneakers")


@pytest.mark.parametrize(
    ("drop", "says"),
    [
        ((-0.001, -0.0066, 0.0), ": a gain of 0.10 points (0.00–0.66)."),
        ((-0.00001, -0.0066, 0.0), ": a drop of 0.00 points (-0.66 to 0.00)."),
    ],
)
def test_more_accuracy_is_a_gain(
    document: SurveyDocument, drop: tuple[float, float, float], says: str
) -> None:
    gained = changed(document, overall__accuracy__drop=SignedEstimate(*drop))
    assert release_sentence(gained).endswith(says)


def test_the_sentence_says_how_far_device_and_original_are_from_targets(
    document: SurveyDocument,
) -> None:
    far = TruthDistance(0.91, 0.9, SignedEstimate(0.872, 0.8, 0.9))
    said = release_sentence(
        changed(document, truth_measure="mean IoU", overall__accuracy__distance=far)
    )
    assert said.endswith(" Its mean IoU is 0.872 on average, the original's 0.91.")


def test_the_sentence_says_what_so_few_inputs_leave_possible_in_the_field() -> None:
    facts = constructed_facts(conditions=())
    flags = ("compression", "compression_tied", "deviates", "deviates_tied", "kernel", "failed")
    calm: dict[str, Any] = dict.fromkeys(flags, np.zeros(facts.items, bool))
    said = release_sentence(constructed_document(replace(facts, **calm)))
    assert "on 0.00 % of 60 images as they are, which is exact, since the device was asked" in said
    assert "points, exact of these images alone." in said
    assert "the rate there lies within 0.00–6.02 %" in said


def test_without_an_original_the_twin_is_what_it_is_held_against() -> None:
    document = constructed_document(without_original(constructed_facts(conditions=())))
    assert headline(document).startswith("decides otherwise than its twin on ")
    assert " by a tie; 420 device queries" in headline(document)
    assert "differently from the same file on the host on" in release_sentence(document)
    assert "accuracy" not in release_sentence(document)
    assert next(method_sentences(document)).startswith("The twin answered all 60 items")


@pytest.mark.parametrize(
    ("why", "says", "cut"),
    [
        ("precision", "the precision asked for was reached", False),
        ("all-items", "the device had been asked about every item", False),
        ("interrupt", "stopped by Ctrl-C before its end", True),
        ("sigterm", "stopped by SIGTERM before its end", True),
        ("a full moon", "a full moon", False),
        (None, "", False),
    ],
)
def test_why_it_ended_is_said(
    document: SurveyDocument, why: str | None, says: str, cut: bool
) -> None:
    ended = changed(document, stopped_by=why)
    assert (ending(ended), cut_off(ended)) == (says, cut)


def test_the_method_says_what_was_asked_of_whom(document: SurveyDocument) -> None:
    said = " ".join(method_sentences(changed(document, asked=300)))
    for part in (
        "answered all 420 items on the host: 500 images",
        "The device was asked about 300 of them",
        "95 % confidence",
        "drawn at random from the field, the rate there lies within 1.12–3.91",
        "hang on a tie",
    ):
        assert part in said


def test_the_method_promises_no_intervals_where_all_was_asked(document: SurveyDocument) -> None:
    said = " ".join(method_sentences(document))
    assert "rates, drops and differences are exact and have no interval" in said
    assert "95 % confidence" not in said
    assert "pools" not in said


FOUND = changed(
    RARE, value=2.1e-5, low=1.2e-5, high=3.7e-5, ceiling=0.004, unseen_share=0.991,
    device_queries=2013, host_queries=140000,
)  # fmt: skip
NONE_FOUND = changed(FOUND, value=0.0, low=0.0, high=0.0, unseen_share=1.0)


def test_rate_ceiling_and_cost_of_rare_events_are_said() -> None:
    rate, ceiling, cost = rare_sentences(constructed_document(rare=FOUND))
    assert "the device deviates on 0.0021 % (0.0012–0.0037) of images" in rate
    assert "2 repetitions, and takes for granted that nothing happens where nothing" in rate
    assert "is 0.40 %; 99 % of it comes from where nothing was seen." in ceiling
    assert cost == "That took 2,013 device queries more, and 140,000 queries on the host."
    alone = constructed_document(without_original(constructed_facts()), rare=FOUND)
    assert "decides otherwise than its twin on 0.0021 %" in rare_sentences(alone)[0]


def test_where_nothing_rare_was_seen_nothing_is_promised() -> None:
    rate, ceiling, _ = rare_sentences(constructed_document(rare=NONE_FOUND))
    assert rate.endswith("the device showed none, which does not say that there is none.")
    assert "0.40 %; 100 % of it" in ceiling


def test_a_rate_that_is_not_rare_is_said_to_be_none() -> None:
    often = changed(FOUND, value=0.002, low=0.001, high=0.004)
    *_, last = rare_sentences(constructed_document(rare=often))
    assert last.startswith("Above 0.10 % nothing is rare: the survey's own rate")


def test_rare_events_that_were_asked_for_and_are_not_there_yet_are_said() -> None:
    document = constructed_document()
    assert rare_sentences(document) == ()
    document = changed(document, plan__rare_queries=2000)
    (said,) = rare_sentences(document)
    assert said.endswith("not estimated yet: the same command with --resume does.")
    assert "### Rare events\n\nThey were asked for" in markdown_page(survey_page(document))


def test_release_notes_name_rare_events_where_the_survey_saw_nothing() -> None:
    document = constructed_document(rare=FOUND)
    assert rare_release(document) not in release_sentence(document)
    document = changed(document, overall__deviation=rate(0.0, 0.0, 0.01, seen=0))
    said = "such decisions are those on 0.0021 % (0.0012–0.0037) of images."
    assert said in release_sentence(document)
    document = changed(document, rare=NONE_FOUND)
    assert "none were found, with a ceiling of 0.40 %." in release_sentence(document)
    assert rare_release(changed(document, rare=None)) == ""


@pytest.mark.parametrize("rare", [FOUND, None])
def test_terminal_summary_and_page_say_rare_events_where_there_are_any(
    rare: RareEstimate | None,
) -> None:
    document = constructed_document(rare=rare)
    page, text = survey_page(document), io.StringIO()
    print_page(Console(file=text, width=2000), page, "runs/survey")
    parsed = well_formed(html_page(page))
    for shown in (text.getvalue(), markdown_page(page), parsed.text):
        assert ("Rare events" in shown) == (rare is not None)
        assert all(one in shown for one in rare_sentences(document))
    assert ('href="#rare"' in parsed.page) == (rare is not None)
