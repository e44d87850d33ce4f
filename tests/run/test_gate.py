"""The laws of the exit code, and who was right by the seed's label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from documents import finding, run_document
from edgeflare.core.answer import NO_VALUES, Answer
from edgeflare.core.goal import Find, Goal
from edgeflare.core.query import Arm, Outcome
from edgeflare.report.entry_words import worst_first
from edgeflare.run.gate import counting, deviation_rate, exceeds, tie_harm, ties_count
from edgeflare.run.harm import HARMFUL, HARMS, count_harms, harm_of, harm_of_entry, is_harmful, rank
from edgeflare.run.run_document import Finding, RunDocument
from edgeflare.statistics.binomial import sign_test
from edgeflare.tasks.value_decoder import Measure, ValueAnswer

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
choices: st.SearchStrategy[str] = st.sampled_from(["any", "kernel", "none"])


@given(document=documents(), fail_on=choices, one=rates, other=rates)
def test_more_fails_where_less_is_allowed_and_more_counts(
    document: RunDocument, fail_on: str, one: float, other: float
) -> None:
    less, more = sorted((one, other))
    assert exceeds(document, fail_on, less) >= exceeds(document, fail_on, more)
    assert exceeds(document, "any", one) >= exceeds(document, "kernel", one)
    assert not exceeds(document, "none", one)
    assert not exceeds(document, fail_on, 1.0)
    assert exceeds(document, "any", 0.0) == bool(document.deviations)
    share = [deviation_rate(document, choice) for choice in ("none", "kernel", "any")]
    assert 0.0 == share[0] <= share[1] <= share[2] <= 1.0
    sure = replace(document, flaky=(), unverified=())
    assert exceeds(document, fail_on, one) == exceeds(sure, fail_on, one)


DEVIATION: dict[str, Any] = {
    "distortion": {"l2": 5.0},
    "kind": "deviation",
    "labels": {"original": 0, "twin": 1, "device": 1},
}


@pytest.mark.parametrize("kind", ["crash", "hang", "invalid-output"])
@pytest.mark.parametrize("cause", ["mixed", "compression"])
def test_where_the_device_alone_fails_its_kernels_are_to_blame(kind: str, cause: str) -> None:
    failed = finding(kind=kind, cause=cause, labels={"original": 0, "twin": 1, "device": None})
    elsewhere = replace(failed, labels={"original": None, "twin": 1, "device": 1})
    shared = replace(
        failed, cause="compression", labels={"original": 0, "twin": None, "device": None}
    )
    document = run_document(findings=[failed, elsewhere, shared], totals={"seeds": 10})
    assert counting(document, "kernel") == [failed]
    assert counting(document, "any") == [failed, elsewhere, shared]
    assert exceeds(document, "kernel", 0.0)


def tied(images: int, ties: int, harm: dict[str, int] | None) -> RunDocument:
    """A run with a seed that deviates by a tie, one that does strictly, and a finding by a tie."""
    figures = {
        "inputs": images, "deviating": 2, "by_tie": 1, "tied": ties, "rate": 0.1, "low": 0.0,
        "high": 0.2, "harm": harm, "harm_by_tie": harm, "labelled": images, "right": None,
    }  # fmt: skip
    seeds = {"kind": "deviation", "distortion": {"l2": 0.0}}
    return run_document(
        deviating_seeds=[{"by_tie": by_tie, **seeds} for by_tie in (True, False)],
        findings=[{"by_tie": True}],
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


@pytest.mark.parametrize("arm", ["original-right", "twin-right"])
def test_six_that_are_harmed_and_none_helped_are_no_chance(arm: str) -> None:
    assert not ties_count(tied(200, 8, {arm: 5}))
    assert ties_count(tied(200, 8, {arm: 6}))
    # Without labels ties count only where they are many.
    assert not ties_count(tied(100, 10, None))
    assert ties_count(tied(100, 11, None))


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
    assert not exceeds(run_document(totals={"seeds": 0}), "any", 0.0)


@given(document=documents(), fail_on=choices, reason=st.sampled_from(["within", "strong"]))
def test_what_is_far_or_weak_counts_only_if_it_failed_or_is_a_seed(
    document: RunDocument, fail_on: str, reason: str
) -> None:
    before = counting(document, fail_on)
    judged = replace(
        document,
        deviating_seeds=tuple(replace(one, **{reason: False}) for one in document.deviating_seeds),
        findings=tuple(replace(one, **{reason: False}) for one in document.findings),
    )
    kept = [one for one in before if one.kind != "deviation" or one.distortion.l2 == 0.0]
    assert counting(judged, fail_on) == [replace(one, **{reason: False}) for one in kept]


CLASSES = 4


def answer(label: int | None) -> Answer:
    values = np.zeros(CLASSES)
    return Answer(label, False, values, values, "crash" if label is None else None)


def outcome(original: int | None, twin: int, device: int | None) -> Outcome:
    labels = {Arm.ORIGINAL: original, Arm.TWIN: twin, Arm.DEVICE: device}
    return Outcome({arm: answer(label) for arm, label in labels.items()}, {})


@pytest.mark.parametrize(
    ("find", "label", "expected"),
    [
        (Find.ANY, 0, "original-right"),
        (Find.ANY, 2, "device-right"),
        (Find.ANY, 1, "both-wrong"),
        (Find.COMPRESSION, 0, "original-right"),
        (Find.KERNEL, 1, "twin-right"),
        (Find.KERNEL, 2, "device-right"),
        (Find.KERNEL, 0, "both-wrong"),
        (Find.ANY, None, None),
    ],
)
def test_the_label_says_which_compared_arm_is_right(
    find: Find, label: int | None, expected: str | None
) -> None:
    truth = None if label is None else answer(label)
    assert harm_of(Goal(find), outcome(0, 1, 2), truth) == expected
    # Who failed was neither right nor wrong.
    assert harm_of(Goal(find), outcome(0, 0, None), truth) is None
    assert harm_of(Goal(find), None, truth) is None


@pytest.mark.parametrize(
    ("target", "expected"),
    [(0.0, "both-right"), (-1.0, "original-right"), (1.0, "device-right"), (5.0, "both-wrong")],
)
def test_values_on_either_side_of_a_target_may_both_be_right(target: float, expected: str) -> None:
    """They deviate by 1.5 tolerances from each other."""
    measure = Measure(1.0, "absolute")
    below, above, truth = (
        ValueAnswer(0, False, NO_VALUES, NO_VALUES, values=np.full((1, 1), value), measure=measure)
        for value in (-0.75, 0.75, target)
    )
    arms = {Arm.ORIGINAL: below, Arm.TWIN: above, Arm.DEVICE: above}
    assert harm_of(Goal(), Outcome(arms, {}), truth) == expected


def harmed(harm: str | None, strength: float | None = 0.5, kind: str = "deviation") -> Finding:
    return finding(harm=harm, kind=kind, strength=strength, cause="mixed")


def test_failures_and_what_has_no_label_count_as_harmful() -> None:
    crash, unlabelled, lost = harmed(None, None, "crash"), harmed(None), harmed("original-right")
    harmless = [harmed(harm) for harm in ("device-right", "both-right", "both-wrong")]
    document = run_document(
        deviating_seeds=[crash, harmless[0]], findings=[lost, unlabelled, *harmless[1:]]
    )
    assert counting(document, "harmful") == [crash, lost, unlabelled]
    assert len(counting(document, "any")) == 6


@given(
    st.lists(
        st.builds(
            harmed,
            st.sampled_from([*HARMS, None]),
            st.floats(0, 1),
            st.sampled_from(["deviation", "crash"]),
        )
    )
)
def test_the_most_harmful_come_first(entries: list[Any]) -> None:
    ordered = worst_first(entries)
    assert [rank(one) for one in ordered] == sorted(map(rank, entries))
    harmful = [is_harmful(one) for one in ordered]
    assert harmful == sorted(harmful, reverse=True)
    counted = count_harms(map(harm_of_entry, entries))
    assert sum(counted.values()) == len(entries)
    assert sum(counted.get(name, 0) for name in HARMFUL) == sum(
        one.harm in HARMFUL for one in entries
    )
