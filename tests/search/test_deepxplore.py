from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Find, Goal
from edgeflare.core.gradient_query import TranslatedQuery
from edgeflare.errors import UserError
from edgeflare.search.deepxplore import CONSTRAINTS, DeepXplore
from edgeflare.search.strategy_registry import DISPLAY_ORDER
from two_linear_models import TwoLinearModels, two_linear_models

DARK_ROWS = {1, 4}

SPOT = {"blackout_height": 2, "blackout_width": 3}


def changes(models: TwoLinearModels) -> NDArray[np.int64]:
    """Return the change of each judged input from the seed, (inputs, rows, columns, 1)."""
    moved = np.stack(models.judged[1:]).astype(np.int64)
    return moved - models.seed.astype(np.int64)


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


def test_the_threshold_says_what_is_covered() -> None:
    models = two_linear_models()
    models.drive(DeepXplore(threshold=0.9, iterations=1))
    first, *others = (one for one in models.asked if isinstance(one, TranslatedQuery))
    assert first.coverage == 0.9
    assert [one.coverage for one in others] == [None]


def test_any_neuron_is_taken_where_the_seed_covers_all() -> None:
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


@pytest.mark.parametrize("find", [Find.ANY, Find.COMPRESSION])
def test_what_it_finds_deviates_on_the_arms(find: Find) -> None:
    models, goal = two_linear_models(), Goal(find)
    trigger = models.drive(DeepXplore(constraint="none", lambda1=2.0), goal)
    assert trigger is not None
    assert goal.met(trigger.outcome) == trigger.kind
    assert trigger.operators == ("deepxplore-none",)
    (query,) = models.queries
    assert query.arms == goal.needed
    assert np.array_equal(query.input, trigger.input)
    assert np.array_equal(models.judged[-1], trigger.input)


def test_a_device_that_contradicts_the_twin_is_no_finding() -> None:
    models = two_linear_models()
    models.device = Arm.ORIGINAL
    assert models.drive(DeepXplore(constraint="none", lambda1=2.0)) is None
    assert models.queries
    assert len(models.judged) == 1 + 50


def test_the_bounds_of_a_run_hold() -> None:
    models, bounds = two_linear_models(margin=50.0), Bounds(max_linf=30, max_l2=100)
    models.drive(DeepXplore(constraint="none", iterations=20), bounds=bounds)
    assert all(bounds.holds(one, models.seed) for one in models.judged)
    assert np.abs(changes(models)).max() > 20


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_generator_alone_decides(constraint: str) -> None:
    def judged(rng_seed: int) -> list[bytes]:
        models = two_linear_models(margin=50.0)
        given: dict[str, Any] = {"constraint": constraint, **SPOT}
        models.drive(DeepXplore(**given), rng_seed=rng_seed)
        return [one.tobytes() for one in models.judged]

    assert judged(1) == judged(1)
    if constraint == "blackout":
        assert judged(1) != judged(2)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"constraint": "rain"}, "constraint=rain: expected one of light, occl, blackout, none"),
        ({"target": "device"}, "target=device: expected one of original, twin"),
        ({"lambda1": -1.0}, "lambda1=-1.0: expected a number, at least 0"),
        ({"lambda2": float("nan")}, "lambda2=nan"),
        ({"threshold": 1.5}, "threshold=1.5: expected a number, at least 0, at most 1"),
        ({"step": 0.0}, "step=0.0: expected a number, above 0"),
        ({"iterations": 0}, "iterations=0"),
        ({"occl_height": 0}, "occl_height=0"),
    ],
)
def test_bad_parameters_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        DeepXplore(**given)


@pytest.mark.parametrize("place", [{"occl_top": 8}, {"occl_left": 9}])
def test_a_rectangle_outside_of_the_input_is_refused(place: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="lies outside of inputs of 8 × 9 × 1"):
        two_linear_models().drive(DeepXplore(**place))
    two_linear_models().drive(DeepXplore(constraint="light", **place))


def test_it_is_shown_behind_the_strategy_gradient() -> None:
    assert DISPLAY_ORDER[-4:] == ("gradient", "deepxplore", "fgsm", "pgd")
