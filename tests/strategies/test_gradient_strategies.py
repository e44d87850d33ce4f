"""Strategies by gradients: DeepXplore, FGSM and PGD.

They search on two linear models with known gradients. The rules of DeepXplore are held to what its
published functions return: `recorded/deepxplore_rules.npz` was recorded by running `normalize`,
`constraint_light`, `constraint_occl`, `constraint_black`, `scale` and `update_coverage` of
`MNIST/utils.py`, and `constraint_light` of `ImageNet/utils.py`, from
https://github.com/peikexin9/deepxplore, commit 7ab6a0246c9244195f11ce37ed60b35a1132208e, on random
arrays, with numpy's functions in the place of Keras's and layers of random values in the place of a
network's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driving import answer
from edgeflare.core.bounds import UNBOUNDED, Bounds
from edgeflare.core.goal import Find, Goal, Trigger
from edgeflare.core.input_space import Input
from edgeflare.core.query import (
    Arm,
    GradientQuery,
    Outcome,
    Query,
    TranslatedOutcome,
    TranslatedQuery,
    WhiteboxQuery,
)
from edgeflare.errors import UserError
from edgeflare.strategies.baselines.deepxplore import (
    CONSTRAINTS,
    DeepXplore,
    Rectangle,
    blackout,
    lighting,
    normalized,
    occlusion,
    random_rectangle,
)
from edgeflare.strategies.baselines.gradient_sign_attacks import FGSM, PGD
from edgeflare.strategies.strategy import AskTellSearch, Start, Strategy, WhiteboxAnswer
from edgeflare.whitebox.baselines.neuron_coverage import covered_neurons, scaled_means

DARK_ROWS = {1, 4}
SPOT = {"blackout_height": 2, "blackout_width": 3}


@dataclass
class TwoLinearModels:
    """Scores W x + b of the original, and those of weights rounded to multiples of the twin.

    Neurons are the rows of the image, each a mean. The device answers as the arm `device` does.
    """

    seed: Input
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    rounding: float
    device: Arm = Arm.TWIN
    asked: list[GradientQuery | TranslatedQuery] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)

    def weights_of(self, arm: Arm) -> NDArray[np.float64]:
        if (self.device if arm is Arm.DEVICE else arm) is Arm.ORIGINAL:
            return self.weights
        return np.rint(self.weights / self.rounding) * self.rounding

    def scores(self, arm: Arm, one: Input) -> NDArray[np.float64]:
        return self.weights_of(arm) @ one.ravel().astype(np.float64) + self.biases

    def outcome(self, one: Input, arms: Sequence[Arm]) -> Outcome:
        powers = {arm: np.exp(self.scores(arm, one)) for arm in arms}
        return Outcome({arm: answer(power / power.sum()) for arm, power in powers.items()})

    def translated(self, one: Input, coverage: float | None = None) -> TranslatedOutcome:
        arms = (Arm.ORIGINAL, Arm.TWIN)
        covered = one.mean((1, 2)) / 255.0 > (0.0 if coverage is None else coverage)
        return TranslatedOutcome(
            self.outcome(one, arms),
            {arm: self.scores(arm, one) for arm in arms},
            {} if coverage is None else dict.fromkeys(arms, covered),
        )

    def white_box(self, query: WhiteboxQuery) -> WhiteboxAnswer:
        self.asked.append(query)
        if isinstance(query, TranslatedQuery):
            return [self.translated(one, query.coverage) for one in query.inputs]
        gradient = (query.weights @ self.weights_of(query.arm)).reshape(query.input.shape)
        for neuron, weight in query.neurons.items():
            gradient[neuron] += weight / gradient[neuron].size
        return gradient

    def drive(
        self,
        strategy: Strategy,
        goal: Goal | None = None,
        bounds: Bounds = UNBOUNDED,
        rng_seed: int = 0,
    ) -> Trigger | None:
        """Search from the seed until the search ends."""
        goal = goal or Goal()
        outcome = self.outcome(self.seed, goal.needed)
        rng = np.random.default_rng(rng_seed)
        start = Start(self.seed, outcome, goal, rng, bounds)
        search = AskTellSearch(strategy.search(start), self.white_box)
        while asked := search.ask():
            self.queries.extend(asked)
            search.tell([self.outcome(query.input, query.arms) for query in asked])
        assert search.whitebox_seconds > 0.0
        return search.finding

    @property
    def gradients(self) -> list[GradientQuery]:
        """The gradients that were asked for."""
        return [one for one in self.asked if isinstance(one, GradientQuery)]

    @property
    def judged(self) -> list[Input]:
        """The inputs on which translations were evaluated, in their order: first the seed."""
        evaluated = [one for one in self.asked if isinstance(one, TranslatedQuery)]
        return [image for query in evaluated for image in query.inputs]


def two_linear_models(margin: float = 1.0) -> TwoLinearModels:
    """Models of three classes; the original gives a dark image the class 0, by this margin."""
    rng = np.random.default_rng(3)
    seed = rng.integers(0, 90, (8, 9, 1), dtype=np.uint8)
    seed[[1, 4]] = 0
    weights = rng.normal(0.0, 0.01, (3, seed.size))
    scores = weights @ seed.ravel()
    return TwoLinearModels(seed, weights, np.array([margin, 0.0, 0.0]) - scores, 0.004)


def changes(models: TwoLinearModels) -> NDArray[np.int64]:
    """Return the change of each judged input from the seed, (inputs, rows, columns, 1)."""
    return np.stack(models.judged[1:]).astype(np.int64) - models.seed.astype(np.int64)


FINDING = pytest.mark.parametrize(
    "strategy",
    [DeepXplore(constraint="none", lambda1=2.0), PGD(radius=6, step=0.5), FGSM(radius=6)],
    ids=["deepxplore", "pgd", "fgsm"],
)

MARGINS = [0.05, 0.1, 0.4, 1.0, 2.0]


@FINDING
@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_what_is_found_deviates_on_the_arms(strategy: Strategy, find: Find) -> None:
    goal, found = Goal(find), []
    for margin in MARGINS:
        models = two_linear_models(margin)
        trigger = models.drive(strategy, goal)
        if trigger is not None:
            assert goal.met(trigger.outcome) == trigger.kind
            assert trigger.operators[0].startswith(type(strategy).__name__.lower())
            assert [query.arms for query in models.queries] == [goal.needed]
            assert np.array_equal(models.queries[0].input, trigger.input)
            assert np.array_equal(models.judged[-1], trigger.input)
            found.append(margin)
    assert found


@FINDING
def test_a_device_that_contradicts_the_twin_is_no_finding(strategy: Strategy) -> None:
    asked = 0
    for margin in MARGINS:
        models = two_linear_models(margin)
        models.device = Arm.ORIGINAL
        assert models.drive(strategy) is None
        assert len(models.judged) > getattr(strategy, "iterations", 0)
        asked += len(models.queries)
    assert asked


@pytest.mark.parametrize("attack", [FGSM, PGD, DeepXplore])
@given(
    radius=st.floats(0.1, 300.0), linf=st.none() | st.floats(1.0, 50.0), rng_seed=st.integers(0, 99)
)
@settings(max_examples=15)
def test_every_input_lies_within_the_radius_and_the_bounds(
    attack: type[Strategy], radius: float, linf: float | None, rng_seed: int
) -> None:
    models, bounds = two_linear_models(margin=30.0), Bounds(max_linf=linf, max_l2=500.0)
    if attack is DeepXplore:
        models.drive(DeepXplore(constraint="none", iterations=20), bounds=bounds)
        assert np.abs(changes(models)).max() > (linf or 10.0) / 2
    else:
        strategy = attack(radius=radius)  # type: ignore[call-arg]
        models.drive(strategy, bounds=bounds, rng_seed=rng_seed)
        assert all(Bounds(max_linf=radius).holds(one, models.seed) for one in models.judged)
    assert all(bounds.holds(one, models.seed) for one in models.judged)


@pytest.mark.parametrize(
    ("strategy", "draws"),
    [
        (DeepXplore(constraint="light"), False),
        (DeepXplore(constraint="blackout", **SPOT), True),  # type: ignore[arg-type]
        (PGD(), True),
        (PGD(random_start=False), False),
    ],
)
def test_the_generator_alone_decides(strategy: Strategy, draws: bool) -> None:
    def judged(rng_seed: int) -> list[bytes]:
        models = two_linear_models(margin=50.0)
        models.drive(strategy, rng_seed=rng_seed)
        return [one.tobytes() for one in models.judged]

    assert judged(1) == judged(1)
    if draws:
        assert judged(1) != judged(2)


@pytest.mark.parametrize(
    ("strategy", "given", "message"),
    [
        (DeepXplore, {"constraint": "rain"}, "expected one of light, occl, blackout, none"),
        (DeepXplore, {"target": "device"}, "target=device: expected one of original, twin"),
        (DeepXplore, {"lambda1": -1.0}, "lambda1=-1.0: expected a number, at least 0"),
        (DeepXplore, {"lambda2": float("nan")}, "lambda2=nan"),
        (DeepXplore, {"threshold": 1.5}, "threshold=1.5: expected a number, at least 0, at most 1"),
        (DeepXplore, {"step": 0.0}, "step=0.0: expected a number, above 0"),
        (DeepXplore, {"iterations": 0}, "iterations=0"),
        (DeepXplore, {"occl_height": 0}, "occl_height=0"),
        (FGSM, {"radius": 0.0}, "parameter radius="),
        (PGD, {"radius": np.inf}, "parameter radius="),
        (PGD, {"step": -1.0}, "parameter step="),
        (PGD, {"iterations": 0}, "parameter iterations="),
    ],
)
def test_bad_parameters_are_refused(
    strategy: type[Strategy], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        strategy(**given)


@pytest.mark.parametrize("target", ["original", "twin"])
def test_the_target_loses_the_class_that_the_other_keeps(target: str) -> None:
    models = two_linear_models()
    models.drive(DeepXplore(target=target, lambda1=0.7, lambda2=0.2, iterations=3))
    assert len(models.gradients) == 2 * 3
    for query in models.gradients:
        assert query.weights.tolist() == [-0.7 if query.arm.value == target else 1.0, 0.0, 0.0]
        assert list(query.neurons.values()) == [0.2]


def test_one_uncovered_neuron_of_each_model_is_drawn_for_a_seed() -> None:
    drawn = set()
    for rng_seed in range(20):
        models = two_linear_models()
        models.drive(DeepXplore(iterations=3), rng_seed=rng_seed)
        for arm in (Arm.ORIGINAL, Arm.TWIN):
            (neuron,) = {tuple(one.neurons) for one in models.gradients if one.arm is arm}
            drawn.add((arm, *neuron))
    assert drawn == {(arm, row) for arm in (Arm.ORIGINAL, Arm.TWIN) for row in DARK_ROWS}


def test_the_threshold_says_what_is_covered_and_any_neuron_is_taken_where_all_are() -> None:
    models = two_linear_models()
    models.drive(DeepXplore(threshold=0.9, iterations=1))
    first, *others = (one for one in models.asked if isinstance(one, TranslatedQuery))
    assert first.coverage == 0.9
    assert [one.coverage for one in others] == [None]
    models = two_linear_models()
    models.seed = models.seed + np.uint8(1)
    models.drive(DeepXplore(iterations=1))
    assert all(len(one.neurons) == 1 for one in models.gradients)


def test_without_a_weight_no_neurons_are_asked_for() -> None:
    models = two_linear_models()
    models.drive(DeepXplore(lambda2=0.0, iterations=2))
    assert not any(one.neurons for one in models.gradients)
    assert all(one.coverage is None for one in models.asked if isinstance(one, TranslatedQuery))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_every_step_keeps_the_constraint(constraint: str) -> None:
    sizes = {"occl_top": 2, "occl_left": 3, "occl_height": 4, "occl_width": 5, **SPOT}
    given: dict[str, Any] = {"constraint": constraint, "step": 0.7, "iterations": 9, **sizes}
    models = two_linear_models(margin=50.0)
    models.drive(DeepXplore(**given))
    moved = changes(models)
    assert len(moved) == 9
    assert moved.any()
    if constraint == "light":
        assert len(set(moved[-1][models.seed.astype(int) + moved[-1] > 0].tolist())) == 1
    elif constraint == "occl":
        moved[:, 2:6, 3:8] = 0
        assert not moved.any()
    elif constraint == "blackout":
        assert moved.max() == 0
    else:
        assert (moved > 0).any()
        assert (moved < 0).any()


def test_steps_of_less_than_a_level_add_up() -> None:
    models = two_linear_models(margin=50.0)
    models.drive(DeepXplore(constraint="none", step=0.1, iterations=30))
    moved = np.abs(changes(models)).sum((1, 2, 3))
    assert moved[0] < moved[-1] / 10


@pytest.mark.parametrize("place", [{"occl_top": 8}, {"occl_left": 9}])
def test_a_rectangle_outside_of_the_input_is_refused(place: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="lies outside of inputs of 8 × 9 × 1"):
        two_linear_models().drive(DeepXplore(**place))
    two_linear_models().drive(DeepXplore(constraint="light", **place))


def losses(models: TwoLinearModels) -> list[float]:
    """Return the original's cross entropy at class 0 for each judged input."""
    scores = (models.scores(Arm.ORIGINAL, one) for one in models.judged)
    return [float(np.log(np.exp(one - one[0]).sum())) for one in scores]


def test_fgsm_judges_the_one_point_at_the_radius() -> None:
    models = two_linear_models()
    models.drive(FGSM(radius=6))
    (query,) = models.gradients
    assert query.arm is Arm.ORIGINAL
    shares = np.exp(models.scores(Arm.ORIGINAL, models.seed))
    shares /= shares.sum()
    by_input = (shares - np.eye(3)[0]) @ models.weights
    wanted = models.seed + 6 * np.sign(by_input).reshape(models.seed.shape)
    seed, judged = models.judged
    assert np.array_equal(seed, models.seed)
    assert np.array_equal(judged, np.clip(wanted, 0, 255))


def test_an_original_that_is_sure_is_attacked_all_the_same() -> None:
    models = two_linear_models(margin=500.0)
    models.drive(FGSM(radius=5))
    seed, judged = models.judged
    assert (judged != seed).mean() > 0.9
    before, after = losses(models)
    assert after >= before


def test_pgd_raises_the_loss_step_by_step_and_judges_each_point() -> None:
    models = two_linear_models(margin=30.0)
    models.drive(PGD(radius=40, step=4, iterations=15, random_start=False))
    assert len(models.judged) == 1 + 15
    assert {one.arm for one in models.gradients} == {Arm.ORIGINAL}
    seen = losses(models)
    assert seen[0] == min(seen)
    assert seen[-1] > 3 * seen[1]
    assert np.abs(models.judged[-1].astype(int) - models.seed).max() == 40


def test_pgd_judges_the_point_at_which_it_begins() -> None:
    def found_at_once(rng_seed: int) -> bool:
        models = two_linear_models(margin=0.05)
        return models.drive(PGD(), rng_seed=rng_seed) is not None and not models.gradients

    assert any(map(found_at_once, range(100)))


PUBLISHED = dict(np.load(Path(__file__).parent / "recorded" / "deepxplore_rules.npz"))
IMAGES = ("gray", "color")
LAYERS = [PUBLISHED[f"layer_{at}"] for at in range(4)]


def close(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return np.allclose(one, other, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("image", IMAGES)
def test_gradients_are_normalized_and_the_light_is_as_published(image: str) -> None:
    names = ("gradients", "normalized", "light", "light_imagenet")
    recorded = (PUBLISHED[f"{image}_{name}"] for name in names)
    for raw, gradient, digits, photographs in zip(*recorded, strict=True):
        assert close(normalized(raw), gradient)
        assert close(lighting(gradient), digits)
        assert close(1e4 * lighting(gradient), photographs)
    assert not normalized(np.zeros((2, 2, 1))).any()


@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.parametrize(
    "sides", [(0, 0, 10, 10), (2, 3, 4, 5), (8, 9, 10, 10)], ids=["published", "inner", "cut off"]
)
def test_an_occlusion_is_as_published(image: str, sides: tuple[int, int, int, int]) -> None:
    recorded = PUBLISHED[f"{image}_occl_" + "_".join(map(str, sides))]
    for gradient, wanted in zip(PUBLISHED[f"{image}_normalized"], recorded, strict=True):
        assert np.array_equal(occlusion(gradient, Rectangle(*sides)), wanted)


@pytest.mark.parametrize("image", IMAGES)
def test_a_blackout_is_as_published(image: str) -> None:
    gradients = np.concatenate([PUBLISHED[f"{image}_normalized"]] * 2)
    steps, places = PUBLISHED[f"{image}_blackout"], PUBLISHED[f"{image}_places"].tolist()
    assert 0 < sum(step.any() for step in steps) < len(steps)
    for gradient, (top, left), wanted in zip(gradients, places, steps, strict=True):
        assert np.array_equal(blackout(gradient, Rectangle(top, left, 6, 6)), wanted)


def test_layers_are_scaled_and_neurons_covered_as_published() -> None:
    for at, layer in enumerate(LAYERS):
        scaled = PUBLISHED[f"scaled_{at}"]
        assert close(scaled_means(layer), scaled.reshape(-1, scaled.shape[-1]).mean(0))
    for threshold, wanted in zip(PUBLISHED["thresholds"], PUBLISHED["covered"], strict=True):
        assert np.array_equal(covered_neurons(LAYERS, float(threshold)), wanted)


@given(
    rows=st.integers(1, 9),
    columns=st.integers(1, 9),
    height=st.integers(1, 12),
    width=st.integers(1, 12),
    rng_seed=st.integers(0, 2**32),
)
def test_a_random_rectangle_lies_in_the_input(
    rows: int, columns: int, height: int, width: int, rng_seed: int
) -> None:
    one = random_rectangle((rows, columns, 3), height, width, np.random.default_rng(rng_seed))
    part = np.zeros((rows, columns, 3))[one.of(np.zeros((rows, columns, 3)))]
    assert part.shape == (min(height, rows), min(width, columns), 3)


def test_all_places_of_a_rectangle_are_drawn() -> None:
    rng = np.random.default_rng(0)
    drawn = {(one.top, one.left) for one in (random_rectangle((3, 4), 2, 2, rng) for _ in "a" * 99)}
    assert drawn == {(top, left) for top in range(2) for left in range(3)}


def test_of_an_input_with_one_axis_a_rectangle_is_a_stretch() -> None:
    gradient = np.array([1.0, -2.0, -3.0, 4.0])
    assert occlusion(gradient, Rectangle(1, 7, 2, 1)).tolist() == [0, -2, -3, 0]
    assert blackout(gradient, Rectangle(1, 0, 2, 1)).tolist() == [0, -1, -1, 0]
    assert random_rectangle((4,), 4, 6, np.random.default_rng(0)) == Rectangle(0, 0, 4, 6)
