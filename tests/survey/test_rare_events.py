"""Which answers are a rare event, how far from it others are, and points of the field."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.conditions.condition import Condition
from edgeflare.core.answer import Answer, Failure
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input, InputSpace
from edgeflare.core.query import Arm, EvaluatedQuery, Outcome
from edgeflare.core.tensor import Tensor
from edgeflare.survey.items.survey_items import ItemJudgement
from edgeflare.survey.rare_events.rare_survey import RareEvent, RarePoint, RarePoints
from edgeflare.tasks.classification import ClassDecoder

SCORES = st.lists(st.integers(-20, 20), min_size=3, max_size=3)
STRENGTHS = st.sampled_from([None, 0.0, 0.05, 0.3])
REFERENCES = (Arm.ORIGINAL, Arm.TWIN)
of_both = pytest.mark.parametrize("reference", REFERENCES)


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
    one, other = (answer(*(score / 10 for score in scores)) for scores in (original, twin))
    like_the_twin = outcome(one, other, other)
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


@given(SCORES, SCORES, SCORES, STRENGTHS, st.sampled_from(REFERENCES))
def test_an_event_is_any_deviation_or_a_strict_one_above_the_strength(
    original: list[int], twin: list[int], device: list[int], strength: float | None, reference: Arm
) -> None:
    told = outcome(answer(*original), answer(*twin), answer(*device))
    one, other = told[reference], told[Arm.DEVICE]
    expected = one.differs(other)
    if strength is not None:
        strict = expected and not one.differs_by_tie(other)
        expected = strict and (one.strength_against(other) or 0.0) > strength
    assert RareEvent(reference, strength).happened(told) == expected


@of_both
def test_a_device_that_fails_is_an_event(reference: Arm) -> None:
    sure, weak = answer(5, 0, 0), answer(1, 1, 0)
    event = RareEvent(reference, 0.9)
    assert event.happened(outcome(sure, sure, failed("crash")))
    assert event.happened(outcome(weak, weak, failed("hang")))
    assert not event.happened(outcome(failed("crash"), failed("crash"), sure))


@of_both
@pytest.mark.parametrize(
    ("host", "device"),
    [
        (failed("invalid-output"), answer(5, 0, 0)),
        (failed("invalid-output"), failed("invalid-output")),
        (failed("invalid-output"), failed("crash")),
        (answer(5, 0, 0), failed("crash")),
        (answer(5, 0, 0), answer(0, 5, 0)),
        (answer(5, 0, 0), answer(5, 0, 0)),
    ],
)
def test_an_event_is_what_the_headline_of_a_survey_counts(
    reference: Arm, host: Answer, device: Answer
) -> None:
    """Also where the host's arms have no answer."""
    told = outcome(host, host, device)
    goal = Goal(Find.ANY if reference is Arm.ORIGINAL else Find.KERNEL, ties=True)
    decoder = ClassDecoder((Tensor("scores", (1, 3), "float32"),), 0, "logits")
    row = ItemJudgement(goal, decoder).of_device(0, EvaluatedQuery(told, {}, 0.0))
    counted = row.deviates if reference is Arm.ORIGINAL else row.kernel
    assert RareEvent(reference).happened(told) == counted


@of_both
@given(twin=SCORES, less=st.integers(1, 5))
def test_the_event_is_nearer_where_the_margin_is_smaller(
    reference: Arm, twin: list[int], less: int
) -> None:
    best = int(np.argmax(twin))
    assume(sorted(twin)[-1] - sorted(twin)[-2] > less)
    nearer = [score - less if at == best else score for at, score in enumerate(twin)]
    far, near = (
        RareEvent(reference).level(outcome(answer(*twin), answer(*one), answer(0, 0, 0)))
        for one in (twin, nearer)
    )
    assert near < far


@of_both
@pytest.mark.parametrize("strength", [None, 0.0, 0.1])
def test_the_event_is_nearer_where_the_original_nearly_decides_it(
    reference: Arm, strength: float | None
) -> None:
    twin, event = answer(1.0, 0.6, 0.0), RareEvent(reference, strength)
    levels = [
        event.level(outcome(answer(2.0, score, 0.0), twin, twin)) for score in (1.4, 1.0, 0.6)
    ]
    assert levels[0] < levels[1] < levels[2]


def test_the_level_is_the_change_of_scores_that_is_needed() -> None:
    """Of two classes whose probabilities differ by .2, the other way round."""
    less = 2.0 * np.arctanh(0.2)
    both = answer(1.5, 0.0)
    told = Outcome({Arm.ORIGINAL: both, Arm.TWIN: both})
    assert RareEvent(Arm.ORIGINAL, 0.2).level(told) == pytest.approx(1.5 + less)
    assert RareEvent(Arm.ORIGINAL).level(told) == pytest.approx(1.5)
    alone = Outcome({Arm.TWIN: answer(1.0, 0.6, 0.0)})
    assert RareEvent(Arm.TWIN).level(alone) == pytest.approx(0.4)


def test_what_the_original_hardly_prefers_is_no_event() -> None:
    """However near the twin is, the original's own part of the strength is missing."""
    original, twin = answer(1.0, 0.9, -2.0), answer(1.0, 1.2, -2.0)
    far = answer(1.0, -2.0, -2.0)
    event = RareEvent(Arm.ORIGINAL, 0.1)
    assert event.level(outcome(original, twin, twin)) > event.level(outcome(far, twin, twin))
    assert RareEvent(Arm.ORIGINAL, 0.9).level(outcome(original, twin, twin)) == inf


INPUTS = 40
SPACE = InputSpace("uint8", 0.0, 255.0, 2)


def brighter(one: Input, severity: float, rng: np.random.Generator) -> Input:
    shift = 10.0 * severity + rng.integers(0, 5)
    return np.asarray(np.clip(one + shift, 0, 255)).astype(np.uint8)


def darker(one: Input, severity: float, _rng: np.random.Generator) -> Input:
    return (one / severity).astype(np.uint8)


@pytest.fixture
def points() -> RarePoints:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (INPUTS, 4, 4, 1), dtype=np.uint8)
    conditions = [
        Condition("brighter", "image", (), "more light", brighter),
        Condition("darker", "image", (), "less light", darker),
    ]

    def level_of(inputs: Sequence[Input], ids: Sequence[int]) -> NDArray[np.float64]:
        return np.asarray([one.mean() + 1000.0 * of for one, of in zip(inputs, ids, strict=True)])

    return RarePoints(images, conditions, SPACE, rng.permutation(INPUTS), level_of)


@pytest.mark.slow
def test_moves_leave_the_distribution_as_it_is(points: RarePoints) -> None:
    """What is drawn uniformly is uniform after moves that are all accepted."""
    rng = np.random.default_rng(1)
    moved: Sequence[RarePoint] = points.draw(8000, rng)
    for _ in range(6):
        moved = points.proposals(moved, rng)
    severities = np.sort([one.severity for one in moved])
    uniform = 1.0 + 4.0 * (np.arange(8000) + 0.5) / 8000
    assert np.abs(severities - uniform).max() < 4.0 * 1.63 / np.sqrt(8000)  # Kolmogorov, 1 %
    counts = np.bincount([one.input for one in moved], minlength=INPUTS)
    assert ((counts - 200.0) ** 2 / 200.0).sum() < 62.4  # chi squared, 39 degrees, 1 %
    assert abs(sum(one.condition for one in moved) - 4000) < 2.6 * np.sqrt(2000)


@pytest.mark.slow
def test_moving_back_is_as_likely_as_moving_there(points: RarePoints) -> None:
    rng = np.random.default_rng(2)
    there, back = np.zeros((2, INPUTS))
    for start, counts in ((3, there), (11, back)):
        begun = [RarePoint(start, 0, 2.0, 7)] * 20_000
        for one in points.proposals(begun, rng):
            counts[one.input] += 1
    assert there[11] > 20
    assert abs(there[11] - back[3]) < 3.3 * np.sqrt(there[11] + back[3])


def test_inputs_move_to_those_of_about_the_same_level(points: RarePoints) -> None:
    rng = np.random.default_rng(3)
    rank = np.argsort(points.order)
    begun = points.draw(4000, rng)
    moves = [
        (rank[to.input] - rank[of.input]) % INPUTS
        for of, to in zip(begun, points.proposals(begun, rng), strict=True)
        if to.input != of.input
    ]
    away = np.minimum(moves, INPUTS - np.asarray(moves))
    assert np.median(away) <= 5
    assert set(away) >= {1, 2, 3, INPUTS // 2}


def test_one_thing_moves_at_a_time(points: RarePoints) -> None:
    rng = np.random.default_rng(4)
    kinds = set()
    parts = ("input", "condition", "severity", "draw")
    for of in points.draw(300, rng):
        (to,) = points.proposals([of], rng)
        kinds.add(tuple(name for name in parts if getattr(of, name) != getattr(to, name)))
        assert 1.0 <= to.severity <= 5.0
    assert kinds == {(), *((name,) for name in parts)}


def test_a_point_is_one_input_whatever_was_drawn_before(points: RarePoints) -> None:
    rng = np.random.default_rng(5)
    for one in points.draw(20, rng):
        first = points.changed(one)
        points.changed(replace(one, draw=one.draw // 2))
        assert np.array_equal(first, points.changed(one))
        condition = points.conditions[one.condition]
        drawn = np.random.default_rng(one.draw)
        expected = condition(points.inputs[one.input], one.severity, drawn)
        assert np.array_equal(first, expected)


def test_levels_are_those_of_the_changed_inputs_in_their_order(points: RarePoints) -> None:
    drawn = points.draw(1500, np.random.default_rng(6))  # more than are in memory together
    levels = points.levels(drawn)
    expected = [points.changed(one).mean() + 1000.0 * one.input for one in drawn]
    assert levels == pytest.approx(expected)
    assert points.levels([]).shape == (0,)
