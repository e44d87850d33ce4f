"""Who was right: by the seed's label, for every pair of compared arms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from documents import finding, run_document
from edgeflare.core.answer import NO_VALUES, Answer
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.outcome import Outcome
from edgeflare.report.entry_names import worst_first
from edgeflare.report.figure_lines import who_was_right
from edgeflare.run.gate import counting
from edgeflare.run.harm import HARMFUL, HARMS, count_harms, harm_of, harm_of_entry, is_harmful, rank
from edgeflare.run.run_document import Finding
from edgeflare.tasks.value_decoder import Measure, ValueAnswer

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


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (0.0, "both-right"),
        (-1.0, "original-right"),
        (1.0, "device-right"),
        (5.0, "both-wrong"),
    ],
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


def test_who_failed_was_neither_right_nor_wrong() -> None:
    assert harm_of(Goal(), outcome(0, 0, None), answer(0)) is None
    assert harm_of(Goal(), None, answer(0)) is None


def entry(harm: str | None, strength: float | None = 0.5, kind: str = "deviation") -> Finding:
    return finding(harm=harm, kind=kind, strength=strength, cause="mixed")


def test_failures_and_what_has_no_label_count_as_harmful() -> None:
    crash, unlabelled, lost = entry(None, None, "crash"), entry(None), entry("original-right")
    harmless = [entry(harm) for harm in ("device-right", "both-right", "both-wrong")]
    document = run_document(
        deviating_seeds=[crash, harmless[0]], findings=[lost, unlabelled, *harmless[1:]]
    )
    assert counting(document, "harmful") == [crash, lost, unlabelled]
    assert len(counting(document, "any")) == 6


@given(
    st.lists(
        st.builds(
            entry,
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


def test_a_word_for_tables() -> None:
    words = {"original-right": "original", "both-right": "both", "both-wrong": "neither"}
    assert {harm: who_was_right(entry(harm)) for harm in words} == words
    assert who_was_right(entry(None)) is None
