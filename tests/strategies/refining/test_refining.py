"""How triggers are refined: who is asked, what is learned of gradients and borders, and cosines."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from numpy.typing import NDArray

from driving import SearchCase
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input, Real
from edgeflare.core.query import Arm, Outcome, Query
from edgeflare.strategies.refining.decision_boundary import (
    DecisionBoundary,
    find_crossing,
    seed_distance,
    step_towards_seed,
)
from edgeflare.strategies.refining.gradient_estimate import FIRST_PROBES, DCTBasis, GradientEstimate
from edgeflare.strategies.refining.trigger_refinement import (
    PATIENCE,
    EvaluatedInput,
    RefinementOver,
    TriggerRefinement,
)
from refinement_loop import CLASSES, SEEDS, WEIGHTS, bench, everyone, like_the_twin, trigger_of


def trial_of(of: SearchCase, goal: Goal, budget: int = 10) -> TriggerRefinement:
    return TriggerRefinement(trigger_of(of, goal), of.start(goal), budget)


def arms_asked(refinement: TriggerRefinement) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    (query,) = next(refinement.evaluate([refinement.start.seed]))
    return query.arms, query.kernels


@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_the_twin_stands_in_where_it_deviates_too(find: Find) -> None:
    refinement = trial_of(like_the_twin(bench()), Goal(find))
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.TWIN), ())


def test_where_only_the_device_deviates_it_is_asked_itself() -> None:
    of = bench()
    trusted = trigger_of(like_the_twin(of), Goal())
    models = {**of.models, Arm.TWIN: of.models[Arm.ORIGINAL], Arm.DEVICE: of.models[Arm.TWIN]}
    of = replace(of, models=models)
    trigger = replace(trusted, outcome=everyone(of, trusted.input))
    refinement = TriggerRefinement(trigger, of.start(Goal()), 10)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def test_of_the_members_one_that_shows_the_trigger_stands_in() -> None:
    of = bench()
    members = {"reference": of.models[Arm.TWIN], "builtin": of.models[Arm.DEVICE]}
    refinement = trial_of(replace(of, members=members), Goal(Find.KERNEL))
    assert arms_asked(refinement) == ((Arm.TWIN,), ("builtin",))


def test_who_did_not_answer_about_the_trigger_does_not_stand_in() -> None:
    of = like_the_twin(bench())
    trigger = trigger_of(of, Goal())
    told = {arm: trigger.outcome[arm] for arm in (Arm.ORIGINAL, Arm.DEVICE)}
    trigger = replace(trigger, outcome=structs.replace(trigger.outcome, answers=told))
    refinement = TriggerRefinement(trigger, of.start(Goal()), 10)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def test_no_more_is_asked_than_is_left_and_within_the_bounds() -> None:
    of = replace(like_the_twin(bench()), bounds=Bounds(250.0, 1500.0))
    refinement = trial_of(of, Goal(), budget=3)
    far = [255 - of.seed, *SEEDS]
    asked = next(refinement.evaluate(far))
    assert len(asked) == 3
    assert all(of.bounds.holds(query.input, of.seed) for query in asked)
    assert refinement.left == 0
    with pytest.raises(RefinementOver):
        next(refinement.evaluate(far))


def test_probes_ask_the_first_side_alone_and_spend_as_evaluations_do() -> None:
    of = like_the_twin(bench())
    refinement = trial_of(of, Goal(), budget=2)
    part = refinement.probe([of.seed, 255 - of.seed, of.seed])
    asked = next(part)
    assert [(query.arms, query.kernels) for query in asked] == [((Arm.ORIGINAL,), ())] * 2
    with pytest.raises(StopIteration) as end:
        part.send([of.evaluate(query.input, query.arms) for query in asked])
    assert all(
        probed.first.equals(of.evaluate(query.input, query.arms)[Arm.ORIGINAL])
        for probed, query in zip(end.value.value, asked, strict=True)
    )
    assert refinement.left == 0


def kept(refinement: TriggerRefinement, of: SearchCase, seen: EvaluatedInput, better: bool) -> bool:
    part = refinement.keep(seen, lambda _outcome: better)
    try:
        asked = next(part)
        part.send([of.evaluate(query.input, query.arms) for query in asked])
    except StopIteration as end:
        return bool(end.value)
    raise AssertionError("asked twice")


def test_what_is_kept_deviates_on_the_device_and_is_better() -> None:
    of = like_the_twin(bench())
    refinement = trial_of(of, Goal())
    found = refinement.at_trigger()
    host = {arm: found.outcome[arm] for arm in (Arm.ORIGINAL, Arm.TWIN)}
    seen = replace(found, outcome=structs.replace(found.outcome, answers=host))
    before = refinement.trigger

    assert not kept(refinement, of, seen, better=False)
    assert refinement.trigger is before
    assert kept(refinement, of, seen, better=True)
    assert refinement.trigger is not before
    assert refinement.trigger.outcome.answers.keys() == set(Arm)
    assert not kept(refinement, contradicting(of), seen, better=True)
    assert np.array_equal(refinement.trigger.input, before.input)


def test_a_host_that_is_contradicted_again_and_again_is_no_longer_heard() -> None:
    of = like_the_twin(bench())
    refinement = trial_of(of, Goal())
    found = refinement.at_trigger()
    host = {arm: found.outcome[arm] for arm in (Arm.ORIGINAL, Arm.TWIN)}
    seen = replace(found, outcome=structs.replace(found.outcome, answers=host))
    for _ in range(PATIENCE):
        assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.TWIN), ())
        assert not kept(refinement, contradicting(of), seen, better=True)
    assert arms_asked(refinement) == ((Arm.ORIGINAL, Arm.DEVICE), ())


def contradicting(of: SearchCase) -> SearchCase:
    """The same with a device that answers as the original."""
    return replace(of, models={**of.models, Arm.DEVICE: of.models[Arm.ORIGINAL]})


T = TypeVar("T")
BENCH = like_the_twin(bench())


def told(part: Generator[Sequence[Query], Sequence[Outcome], T]) -> T:
    try:
        asked = next(part)
        while True:
            asked = part.send([BENCH.evaluate(query.input, query.arms) for query in asked])
    except StopIteration as end:
        result: T = end.value
        return result


@pytest.fixture
def refinement() -> TriggerRefinement:
    return TriggerRefinement(trigger_of(BENCH, Goal()), BENCH.start(Goal()), 1000)


@pytest.fixture
def boundary(refinement: TriggerRefinement) -> DecisionBoundary:
    home = int(refinement.at_seed().first.scores.argmax())
    return DecisionBoundary(home, tuple(label for label in range(CLASSES) if label != home))


Crossing = Callable[..., EvaluatedInput | None]


@pytest.fixture
def crossing(refinement: TriggerRefinement, boundary: DecisionBoundary) -> Crossing:
    """Find the border on a way from the seed; on that to the trigger, unless told otherwise."""

    def find(way: Real | None = None, longest: float = 1e9) -> EvaluatedInput | None:
        if way is None:
            way = refinement.at_trigger().input.astype(np.float64) - BENCH.seed
        estimate = GradientEstimate(BENCH.seed, CLASSES)
        return told(find_crossing(refinement, boundary, estimate, way, longest))

    return find


def test_the_border_is_crossed_by_little_or_not_at_all(
    refinement: TriggerRefinement, boundary: DecisionBoundary, crossing: Crossing
) -> None:
    there = crossing()
    assert there is not None
    assert boundary.margin(refinement.at_seed().first) > 0
    assert -0.5 < boundary.margin(there.first) <= 0
    assert refinement.left < 1000
    assert crossing(np.zeros(BENCH.seed.shape)) is None
    assert crossing(SEEDS[1].astype(np.float64) - BENCH.seed, 1.0) is None


def test_the_next_place_is_nearer_and_beyond_the_border_too(
    refinement: TriggerRefinement, boundary: DecisionBoundary, crossing: Crossing
) -> None:
    here, estimate = crossing(), GradientEstimate(BENCH.seed, CLASSES)
    assert here is not None
    there = here
    for _ in range(5):
        before = there
        there = told(step_towards_seed(refinement, boundary, estimate, before))
        assert seed_distance(refinement, there) <= seed_distance(refinement, before)
        assert boundary.margin(there.first) <= 0
    assert seed_distance(refinement, there) < 0.8 * seed_distance(refinement, here)


@pytest.mark.parametrize(("share", "asked"), [(1.0, 0), (0.5, 1)])
def test_the_gradient_is_probed_around_a_place_between_the_seed_and_the_border(
    refinement: TriggerRefinement,
    boundary: DecisionBoundary,
    crossing: Crossing,
    share: float,
    asked: int,
) -> None:
    here, estimate = crossing(), GradientEstimate(BENCH.seed, CLASSES)
    assert here is not None
    part = step_towards_seed(refinement, boundary, estimate, here, share)
    queries, between = next(part), BENCH.seed + share * (here.input.astype(float) - BENCH.seed)
    if asked:
        assert [np.abs(query.input - between).max() <= 1.0 for query in queries] == [True]
        queries = part.send([BENCH.evaluate(query.input, query.arms) for query in queries])
    assert len(queries) > 1
    apart = [np.abs(query.input - between).mean() for query in queries]
    far = [np.abs(query.input.astype(float) - BENCH.seed).mean() for query in queries]
    assert np.mean(apart) < np.mean(far)


def test_the_margin_is_that_over_the_best_rival() -> None:
    answer = BENCH.evaluate(BENCH.seed, tuple(BENCH.models)).answers
    for one in answer.values():
        boundary = DecisionBoundary(2, (0, 3))
        rows = boundary.contrasts(4) @ one.scores
        assert boundary.margin(one) == pytest.approx(rows.min())


def seen(image: Input) -> EvaluatedInput:
    outcome = BENCH.evaluate(image, tuple(Arm))
    return EvaluatedInput(
        image, outcome[Arm.ORIGINAL], outcome[Arm.DEVICE], outcome, deviates=False
    )


def likeness(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one.ravel(), other.ravel()
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def learned(probes: int) -> GradientEstimate:
    estimate, here = GradientEstimate(BENCH.seed, CLASSES), seen(BENCH.seed)
    rng = np.random.default_rng(1)
    for _ in range(probes):
        estimate.learn(here, seen(estimate.probes(here.input, 1, rng)[0]))
    return estimate


def test_probes_teach_the_gradient() -> None:
    truth = (WEIGHTS[0] - WEIGHTS[1]) / 255.0
    contrast = np.array([1.0, -1.0, 0.0, 0.0])
    few, many = (
        likeness(learned(n).linear_model(BENCH.seed).gradient(contrast), truth)
        for n in (10, FIRST_PROBES)
    )
    assert 0.4 < few < many
    assert many > 0.8


def test_what_is_learned_foretells_scores_elsewhere() -> None:
    here, there = seen(BENCH.seed), seen(SEEDS[1])
    contrasts = np.array([[1.0, -1.0, 0.0, 0.0]])
    estimate = learned(FIRST_PROBES)
    scores = contrasts @ here.first.scores
    assert np.allclose(estimate.linear_model(here.input).at_seed(scores, contrasts), scores)
    estimate.learn(here, there)
    told = estimate.linear_model(there.input).at_seed(contrasts @ there.first.scores, contrasts)
    assert np.allclose(told, scores, atol=0.5)


def test_the_scores_are_flat_where_nothing_was_learned() -> None:
    here = seen(BENCH.seed)
    estimate = GradientEstimate(BENCH.seed, CLASSES)
    estimate.learn(here, replace(here, first=replace(here.first, decision=None, failure="crash")))
    model, contrasts = estimate.linear_model(here.input), np.eye(1, CLASSES)
    scores = contrasts @ here.first.scores
    assert np.array_equal(model.at_seed(scores, contrasts), scores)
    assert not model.gradient(contrasts[0]).any()


def test_nothing_is_learned_from_an_arm_that_failed_or_a_step_of_no_length() -> None:
    estimate, here = learned(5), seen(BENCH.seed)
    before = estimate.linear_model(here.input).slopes
    broken = replace(here.first, decision=None, failure="crash")
    estimate.learn(here, replace(seen(SEEDS[1]), first=broken))
    estimate.learn(here, here)
    assert np.array_equal(estimate.linear_model(here.input).slopes, before)


IMAGES = st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([1, 3, 4]))
OF_ONE_AXIS = st.tuples(st.integers(1, 900)) | st.tuples(st.integers(1, 300), st.integers(1, 20))
CLIPS = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(1, 12), st.integers(1, 3))

SHAPES = (
    st.tuples(IMAGES, st.just(2))
    | st.tuples(OF_ONE_AXIS, st.just(1))
    | st.tuples(CLIPS, st.just(3))
)
"""Shapes of inputs, and how many of their axes number cells."""


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(SHAPES, st.integers(0, 2**32 - 1))
def test_coefficients_come_back_from_their_input(
    of: tuple[tuple[int, ...], int], rng_seed: int
) -> None:
    shape, cell_axes = of
    cosines = DCTBasis(shape, cell_axes)
    coefficients = np.random.default_rng(rng_seed).normal(size=len(cosines))
    image = cosines.values(coefficients)
    assert image.shape == shape
    assert cosines.of(image) == pytest.approx(coefficients)
    assert np.linalg.norm(image) == pytest.approx(np.linalg.norm(coefficients))


def test_the_lowest_frequency_is_the_mean_and_differences_between_channels_are_not_low() -> None:
    cosines = DCTBasis((28, 28, 3))
    lowest = np.zeros(len(cosines))
    lowest[cosines.frequencies.argmin()] = 1.0
    assert np.ptp(cosines.values(lowest)) == pytest.approx(0.0)
    assert (cosines.frequencies < 0.25).sum() < len(cosines) / 10


@pytest.mark.parametrize(
    ("shape", "cell_axes", "count"),
    [
        ((28, 30, 3), 2, 768),
        ((16_000,), 1, 256),
        ((7,), 1, 7),
        ((300, 6), 1, 1536),
        ((1_501, 2), 1, 512),
        ((9, 8, 7, 2), 3, 432),
    ],
)
def test_inputs_of_every_shape_have_their_lowest_cosines(
    shape: tuple[int, ...], cell_axes: int, count: int
) -> None:
    cosines = DCTBasis(shape, cell_axes)
    assert len(cosines) == count
    chosen = np.argsort(cosines.frequencies)[:3]
    waves = cosines.waves(chosen)
    assert waves.shape == (len(chosen), *shape)
    units = np.eye(count)[chosen]
    assert cosines.of(waves) == pytest.approx(units, abs=1e-9)
    for unit, wave in zip(units, waves, strict=True):
        assert cosines.of(wave) == pytest.approx(unit, abs=1e-9)
        assert cosines.values(unit) == pytest.approx(wave)


@pytest.mark.parametrize(("samples", "highest"), [(16_000, 256), (100, 100)])
def test_the_cosines_of_a_sound_are_those_of_its_lowest_frequencies(
    samples: int, highest: int
) -> None:
    cosines = DCTBasis((samples,), 1)
    assert cosines.frequencies == pytest.approx(np.arange(highest) / samples)
    turns = np.diff(np.signbit(cosines.waves(np.array([highest - 1]))[0])).sum()
    assert turns == highest - 1
