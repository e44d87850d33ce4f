"""The laws of the exit code."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from documents import finding, run_document
from edgeflare.run.gate import (
    FailOn,
    counting,
    deviation_rate,
    exceeds,
    tie_harm,
    ties_count,
)
from edgeflare.run.run_document import RunDocument
from edgeflare.run.sign_test import sign_test

entries = st.lists(
    st.fixed_dictionaries(
        {
            "cause": st.sampled_from(["compression", "kernel", "mixed", None]),
            "kind": st.sampled_from(["deviation", "crash", "hang", "invalid-output"]),
            "labels": st.fixed_dictionaries({"device": st.sampled_from([None, 1])}),
            "distortion": st.fixed_dictionaries({"l2": st.sampled_from([0.0, 5.0])}),
            "within": st.sampled_from([True, None]),
            "strong": st.sampled_from([True, None]),
        }
    ),
    max_size=6,
)


@st.composite
def documents(draw: st.DrawFn) -> RunDocument:
    deviating, findings = draw(entries), draw(entries)
    seeds = draw(st.integers(len(deviating) + len(findings), 20))
    return run_document(
        deviating_seeds=deviating,
        findings=findings,
        flaky=draw(entries),
        unverified=draw(entries),
        totals={"seeds": seeds},
    )


rates = st.floats(0.0, 1.0)
choices: st.SearchStrategy[FailOn] = st.sampled_from(["any", "kernel", "none"])


@given(document=documents(), allowed=rates)
def test_with_none_nothing_fails(document: RunDocument, allowed: float) -> None:
    assert not exceeds(document, "none", allowed)


@given(document=documents(), fail_on=choices)
def test_with_all_allowed_nothing_fails(document: RunDocument, fail_on: FailOn) -> None:
    assert not exceeds(document, fail_on, 1.0)


@given(document=documents())
def test_with_nothing_allowed_one_is_enough(document: RunDocument) -> None:
    assert exceeds(document, "any", 0.0) == bool(document.deviations)


@given(document=documents(), allowed=rates)
def test_what_fails_for_its_kernels_fails_for_any_cause(
    document: RunDocument, allowed: float
) -> None:
    assert exceeds(document, "any", allowed) >= exceeds(document, "kernel", allowed)
    rates = [deviation_rate(document, choice) for choice in ("none", "kernel", "any")]
    assert 0.0 == rates[0] <= rates[1] <= rates[2] <= 1.0


@given(document=documents(), fail_on=choices, one=rates, other=rates)
def test_who_allows_more_fails_less(
    document: RunDocument, fail_on: FailOn, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert exceeds(document, fail_on, less) >= exceeds(document, fail_on, more)


@given(document=documents(), fail_on=choices, allowed=rates)
def test_what_is_flaky_or_not_verified_does_not_count(
    document: RunDocument, fail_on: FailOn, allowed: float
) -> None:
    sure = replace(document, flaky=(), unverified=())
    assert exceeds(document, fail_on, allowed) == exceeds(sure, fail_on, allowed)


DEVIATION: dict[str, Any] = {
    "distortion": {"l2": 5.0},
    "kind": "deviation",
    "labels": {"original": 0, "twin": 1, "device": 1},
}


@pytest.mark.parametrize("kind", ["crash", "hang", "invalid-output"])
@pytest.mark.parametrize("cause", ["mixed", "compression"])
def test_where_the_device_fails_its_kernels_are_to_blame(kind: str, cause: str) -> None:
    failed = finding(kind=kind, cause=cause, labels={"original": 0, "twin": 1, "device": None})
    elsewhere = replace(failed, labels={"original": None, "twin": 1, "device": 1})
    document = run_document(findings=[failed, elsewhere], totals={"seeds": 10})
    assert counting(document, "kernel") == [failed]
    assert counting(document, "any") == [failed, elsewhere]
    assert exceeds(document, "kernel", 0.0)


@pytest.mark.parametrize("kind", ["crash", "hang", "invalid-output"])
def test_a_failure_that_the_twin_shares_is_not_by_kernels(kind: str) -> None:
    shared = finding(
        kind=kind, cause="compression", labels={"original": 0, "twin": None, "device": None}
    )
    document = run_document(findings=[shared], totals={"seeds": 10})
    assert counting(document, "kernel") == []
    assert counting(document, "any") == [shared]


def tied(images: int, ties: int, harm: dict[str, int] | None) -> RunDocument:
    """A run with a seed that deviates by a tie, one that does strictly, and a finding by a tie."""
    entries = {
        "deviating_seeds": [{"by_tie": True}, {"by_tie": False}],
        "findings": [{"by_tie": True}],
    }
    figures = {
        "images": images, "deviating": 2, "by_tie": 1, "tied": ties, "rate": 0.1, "low": 0.0,
        "high": 0.2, "harm": harm, "harm_by_tie": harm, "labelled": images, "right": None,
    }  # fmt: skip
    seeds = {"kind": "deviation", "distortion": {"l2": 0.0}}
    return run_document(
        deviating_seeds=[one | seeds for one in entries["deviating_seeds"]],
        findings=entries["findings"],
        totals={"seeds": images},
        unmutated={"seeds": figures},
    )


@given(st.integers(1, 300), st.data())
def test_a_seed_that_deviates_by_a_tie_counts_where_ties_do_harm_or_are_many(
    images: int, data: st.DataObject
) -> None:
    ties = data.draw(st.integers(0, images))
    harmed, helped = data.draw(st.integers(0, 20)), data.draw(st.integers(0, 20))
    harm = {"original-right": harmed, "both-wrong": 3, "device-right": helped}
    document = tied(images, ties, harm)
    expected = ties > 0.1 * images or (harmed > helped and sign_test(helped, harmed) < 0.05)
    assert ties_count(document) == expected
    assert len(counting(document, "any")) == 2 + expected
    assert tie_harm(document.unmutated.seeds)[:2] == (helped, harmed)  # type: ignore[union-attr]


def test_without_labels_ties_count_only_where_they_are_many() -> None:
    assert not ties_count(tied(100, 10, None))
    assert ties_count(tied(100, 11, None))


@pytest.mark.parametrize("arm", ["original-right", "twin-right"])
def test_six_that_are_harmed_and_none_helped_are_no_chance(arm: str) -> None:
    assert not ties_count(tied(200, 8, {arm: 5}))
    assert ties_count(tied(200, 8, {arm: 6}))


def test_the_rate_itself_is_still_allowed() -> None:
    document = run_document(
        deviating_seeds=[{"cause": "kernel", **DEVIATION}],
        findings=[{"cause": "compression", **DEVIATION}],
        totals={"seeds": 10},
    )
    assert deviation_rate(document, "any") == 0.2
    assert deviation_rate(document, "kernel") == 0.1
    assert not exceeds(document, "any", 0.2)
    assert exceeds(document, "any", 0.19)


def test_a_run_without_seeds_fails_nothing() -> None:
    document = run_document(totals={"seeds": 0})
    assert not exceeds(document, "any", 0.0)


@given(document=documents(), fail_on=choices, reason=st.sampled_from(["within", "strong"]))
def test_what_is_far_or_weak_counts_only_if_it_failed_or_is_a_seed(
    document: RunDocument, fail_on: FailOn, reason: str
) -> None:
    before = counting(document, fail_on)
    judged = replace(
        document,
        deviating_seeds=tuple(replace(one, **{reason: False}) for one in document.deviating_seeds),
        findings=tuple(replace(one, **{reason: False}) for one in document.findings),
    )
    kept = [one for one in before if one.kind != "deviation" or one.distortion.l2 == 0.0]
    assert counting(judged, fail_on) == [replace(one, **{reason: False}) for one in kept]
