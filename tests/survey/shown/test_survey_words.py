"""Tests of edgeflare.survey.shown.survey_words."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from constructed_surveys import constructed_document, constructed_facts, without_original
from edgeflare.survey.rates.rate_words import bounds, interval, percent, points
from edgeflare.survey.shown.survey_words import (
    accuracy_sentence,
    cut_off,
    ending,
    headline,
    method_sentences,
    release_sentence,
)


def rate(estimate: float, low: float, high: float, seen: int = 5) -> dict[str, Any]:
    return {
        "estimate": estimate, "low": low, "high": high, "items": 47500, "asked": 500, "seen": seen,
    }  # fmt: skip


@pytest.fixture
def document() -> dict[str, Any]:
    """A survey whose figures over all are chosen."""
    made = constructed_document()
    made |= {"inputs": 500, "field": {"low": 0.0112, "high": 0.0391, "draws": 480.0}}
    share = {"share": 0.9, "count": 900, "items": 1000}
    made["overall"] |= {
        "items": 47500,
        "deviation": rate(0.0231, 0.0205, 0.026, seen=12),
        "deviation_strict": rate(0.0131, 0.0105, 0.016, seen=5),
        "accuracy": {
            "original": share,
            "twin": share,
            "device": rate(0.88, 0.87, 0.89),
            "drop": {"estimate": 0.02, "low": 0.01, "high": 0.03},
            "harmed": rate(0.03, 0.02, 0.04),
            "helped": rate(0.01, 0.0, 0.02),
            "distance": None,
        },
    }
    return made | {"device_queries": 512}


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


def test_intervals_have_one_scale() -> None:
    assert interval(rate(0.0231, 0.0205, 0.026)) == "2.31 % (2.05–2.60)"
    assert bounds(rate(0.0, 0.0, 0.0362)) == "0.00–3.62"
    assert bounds({"estimate": 0.0, "low": -0.001, "high": 0.0042}) == "-0.10 to 0.42"
    assert points({"estimate": 0.0042, "low": -0.001, "high": 0.0093}) == "+0.42 (-0.10 to 0.93)"
    assert interval(rate(0.00067, 0.0007, 0.0035)) == "0.07 % (0.07–0.35)"
    assert interval(rate(0.00001, 0.0, 0.0035)) == "0.001 % (0.000–0.350)"
    assert interval(rate(0.0002, 0.000012, 0.0006)) == "0.020 % (0.001–0.060)"
    assert interval(rate(1e-9, 0.0, 0.0035)) == "0.00 % (0.00–0.35)"
    assert interval(None) == points(None) == "–"


def test_what_is_exact_has_no_interval() -> None:
    assert interval(rate(0.0429, 0.0429, 0.0429)) == "4.29 %"
    assert points({"estimate": -0.0042, "low": -0.0042, "high": -0.0042}) == "-0.42"


def test_the_headline_has_rate_interval_inputs_conditions_and_queries(
    document: dict[str, Any],
) -> None:
    assert headline(document) == (
        "deviates on 2.31 % (2.05–2.60) of 500 images under 2 conditions in 3 severities"
        " (47,500 items), of 12 deviations seen 7 by a tie; 512 device queries"
    )


def test_the_accuracy_of_each_arm_stands_beside_harm_and_help(document: dict[str, Any]) -> None:
    assert accuracy_sentence(document) == (
        "Right by labels or targets: original 90.00 %, twin 90.00 %, device 88.00 %; the device"
        " loses 3.00 % (2.00–4.00) that the original has right, and gains 1.00 % (0.00–2.00)."
    )
    document["overall"]["accuracy"] = None
    assert accuracy_sentence(document) == ""


def test_where_nothing_was_seen_the_headline_says_at_most(document: dict[str, Any]) -> None:
    document["overall"]["deviation_strict"] = rate(0.0, 0.0, 0.006, seen=0)
    document["overall"]["deviation"] = rate(0.0, 0.0, 0.006, seen=0)
    assert headline(document).startswith("deviates on at most 0.60 % of 500 images under")
    document["overall"]["deviation"] = rate(0.0, 0.0, 0.0, seen=0)
    assert headline(document).startswith("deviates on 0.00 % of")


def test_the_sentence_for_release_notes_names_device_and_model(document: dict[str, Any]) -> None:
    assert release_sentence(document) == (
        "On board, sneakers decides differently from the original model on 2.31 % of 500 images"
        " under 2 conditions in 3 severities (47,500 items), with a 95 % interval of 2.05–2.60 %"
        " (512 device queries), of 12 deviations seen 7 by a tie. If the 500"
        " images were drawn at random from the field, the rate there lies within 1.12–3.91 %. Its"
        " accuracy on those surveyed is 88.00 %, the original's"
        " 90.00 %: a drop of 2.00 points (1.00–3.00)."
    )


def test_the_sentence_says_how_far_device_and_original_are_from_targets(
    document: dict[str, Any],
) -> None:
    document["truth_measure"] = "mean IoU"
    far = {"original": 0.91, "twin": 0.9, "device": {"estimate": 0.872, "low": 0.8, "high": 0.9}}
    document["overall"]["accuracy"]["distance"] = far
    said = release_sentence(document)
    assert said.endswith(" Its mean IoU is 0.872 on average, the original's 0.91.")


def test_several_devices_are_said_to_share_the_inputs(document: dict[str, Any]) -> None:
    document["devices"] = [{"name": name} for name in ("board", "phone", "watch")]
    said = release_sentence(document)
    assert said.startswith("On board, phone and watch, each with its share of the images, sneakers")


def test_the_sentence_says_what_so_few_inputs_leave_possible_in_the_field() -> None:
    facts = constructed_facts(conditions=())
    never = np.zeros(facts.items, bool)
    flags = ("compression", "compression_tied", "deviates", "deviates_tied", "kernel", "failed")
    calm: dict[str, Any] = dict.fromkeys(flags, never)
    said = release_sentence(constructed_document(replace(facts, **calm)))
    assert "on 0.00 % of 60 images as they are, which is exact, since the device was asked" in said
    assert "points, exact of these images alone." in said
    assert "the rate there lies within 0.00–6.02 %" in said


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


def test_one_query_is_no_queries(document: dict[str, Any]) -> None:
    assert headline(document | {"device_queries": 1}).endswith("; 1 device query")


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
    document: dict[str, Any], why: str | None, says: str, cut: bool
) -> None:
    document["stopped_by"] = why
    assert (ending(document), cut_off(document)) == (says, cut)


def test_the_method_says_what_was_asked_of_whom(document: dict[str, Any]) -> None:
    document["asked"] = 300
    said = " ".join(method_sentences(document))
    assert "answered all 420 items on the host: 500 images" in said
    assert "The device was asked about 300 of them" in said
    assert "95 % confidence" in said
    assert (
        f"drawn at random from the field, the rate there lies within {bounds(document['field'])}"
        in said
    )
    assert "hang on a tie" in said


def test_the_method_promises_no_intervals_where_all_was_asked(document: dict[str, Any]) -> None:
    said = " ".join(method_sentences(document))
    assert "rates, drops and differences are exact and have no interval" in said
    assert "95 % confidence" not in said
    assert "pools" not in said


def test_more_accuracy_is_a_gain(document: dict[str, Any]) -> None:
    drop = document["overall"]["accuracy"]["drop"]
    drop |= {"estimate": -0.001, "low": -0.0066, "high": 0.0}
    assert release_sentence(document).endswith(": a gain of 0.10 points (0.00–0.66).")
    drop |= {"estimate": -0.00001}
    assert ": a drop of 0.00 points (-0.66 to 0.00)." in release_sentence(document)
