"""Which answers are the event, and how far from it others are."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgeflare.core.answer import Answer, Failure
from edgeflare.core.arm import Arm
from edgeflare.core.outcome import Outcome
from edgeflare.survey.rare.rare_event import RareEvent

SCORES = st.lists(st.integers(-20, 20), min_size=3, max_size=3)
STRENGTHS = st.sampled_from([None, 0.0, 0.05, 0.3])
REFERENCES = st.sampled_from([Arm.ORIGINAL, Arm.TWIN])


def answer(*scores: float) -> Answer:
    values = np.asarray(scores, dtype=np.float64)
    exponents = np.exp(values - values.max())
    tied = int((values == values.max()).sum()) > 1
    return Answer(int(values.argmax()), tied, exponents / exponents.sum(), values)


def failed(why: Failure) -> Answer:
    return Answer(None, False, np.zeros(3), np.zeros(3), why)


def outcome(original: Answer, twin: Answer, device: Answer) -> Outcome:
    return Outcome({Arm.ORIGINAL: original, Arm.TWIN: twin, Arm.DEVICE: device})


@given(SCORES, SCORES, STRENGTHS)
def test_the_host_foretells_what_a_device_like_the_twin_does(
    original: list[int], twin: list[int], strength: float | None
) -> None:
    event = RareEvent(Arm.ORIGINAL, strength)
    tenths = [[score / 10 for score in one] for one in (original, twin)]
    like_the_twin = outcome(answer(*tenths[0]), answer(*tenths[1]), answer(*tenths[1]))
    assert (event.level(like_the_twin) < 0.0) == event.happened(like_the_twin)


@given(SCORES, SCORES, STRENGTHS)
def test_of_kernels_the_host_foretells_nothing(
    twin: list[int], device: list[int], strength: float | None
) -> None:
    event = RareEvent(Arm.TWIN, strength)
    told = outcome(answer(0, 0, 0), answer(*twin), answer(*device))
    assert event.level(told) >= 0.0
    if answer(*twin).tied and strength is not None:
        assert event.level(told) == inf


@given(SCORES, SCORES, SCORES, STRENGTHS, REFERENCES)
def test_an_event_is_any_deviation_or_a_strict_one_above_the_strength(
    original: list[int],
    twin: list[int],
    device: list[int],
    strength: float | None,
    reference: Arm,
) -> None:
    told = outcome(answer(*original), answer(*twin), answer(*device))
    one, other = told[reference], told[Arm.DEVICE]
    expected = one.differs(other)
    if strength is not None:
        strict = expected and not one.differs_by_tie(other)
        expected = strict and (one.strength_against(other) or 0.0) > strength
    assert RareEvent(reference, strength).happened(told) == expected


@given(SCORES, st.integers(1, 5))
def test_the_event_is_nearer_where_the_margin_is_smaller(twin: list[int], less: int) -> None:
    best = int(np.argmax(twin))
    assume(sorted(twin)[-1] - sorted(twin)[-2] > less)
    nearer = [score - less if at == best else score for at, score in enumerate(twin)]
    for reference in (Arm.ORIGINAL, Arm.TWIN):
        far, near = (
            RareEvent(reference).level(outcome(answer(*twin), answer(*one), answer(0, 0, 0)))
            for one in (twin, nearer)
        )
        assert near < far


@pytest.mark.parametrize("reference", [Arm.ORIGINAL, Arm.TWIN])
def test_a_device_that_fails_is_an_event(reference: Arm) -> None:
    sure, weak = answer(5, 0, 0), answer(1, 1, 0)
    event = RareEvent(reference, 0.9)
    assert event.happened(outcome(sure, sure, failed("crash")))
    assert event.happened(outcome(weak, weak, failed("hang")))
    assert not event.happened(outcome(failed("crash"), failed("crash"), sure))


@pytest.mark.parametrize("reference", [Arm.ORIGINAL, Arm.TWIN])
@pytest.mark.parametrize("strength", [None, 0.0, 0.1])
def test_the_event_is_nearer_where_the_original_nearly_decides_it(
    reference: Arm, strength: float | None
) -> None:
    twin, event = answer(1.0, 0.6, 0.0), RareEvent(reference, strength)
    levels = [
        event.level(outcome(answer(2.0, score, 0.0), twin, twin)) for score in (1.4, 1.0, 0.6)
    ]
    assert levels == sorted(levels)
    assert levels[0] < levels[1] < levels[2]


def test_the_level_is_the_change_of_scores_that_is_needed() -> None:
    """Of two classes whose probabilities differ by .2, the other way round."""
    less = 2.0 * np.arctanh(0.2)
    both = answer(1.5, 0.0)
    told = Outcome({Arm.ORIGINAL: both, Arm.TWIN: both})
    assert RareEvent(Arm.ORIGINAL, 0.2).level(told) == pytest.approx(1.5 + less)
    assert RareEvent(Arm.ORIGINAL).level(told) == pytest.approx(1.5)


def test_what_the_original_hardly_prefers_is_no_event() -> None:
    """However near the twin is, the original's own part of the strength is missing."""
    original, twin = answer(1.0, 0.9, -2.0), answer(1.0, 1.2, -2.0)
    far = answer(1.0, -2.0, -2.0)
    event = RareEvent(Arm.ORIGINAL, 0.1)
    assert event.level(outcome(original, twin, twin)) > event.level(outcome(far, twin, twin))
    assert RareEvent(Arm.ORIGINAL, 0.9).level(outcome(original, twin, twin)) == inf


def test_a_level_needs_no_original() -> None:
    twin = answer(1.0, 0.6, 0.0)
    assert RareEvent(Arm.TWIN).level(Outcome({Arm.TWIN: twin})) == pytest.approx(0.4)
