from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgeflare.core.arm import Arm
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal
from edgeflare.errors import UserError
from edgeflare.search.gradient_sign_attacks import FGSM, PGD
from edgeflare.search.strategy import Strategy
from two_linear_models import TwoLinearModels, two_linear_models


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


@pytest.mark.parametrize("attack", [FGSM, PGD])
@given(
    radius=st.floats(0.1, 300.0), linf=st.none() | st.floats(1.0, 50.0), rng_seed=st.integers(0, 99)
)
def test_every_input_lies_within_the_radius_and_the_bounds(
    attack: type[Strategy], radius: float, linf: float | None, rng_seed: int
) -> None:
    models, bounds = two_linear_models(margin=30.0), Bounds(max_linf=linf, max_l2=500.0)
    models.drive(attack(radius=radius), bounds=bounds, rng_seed=rng_seed)  # type: ignore[call-arg]
    for one in models.judged:
        assert bounds.holds(one, models.seed)
        assert Bounds(max_linf=radius).holds(one, models.seed)


def test_pgd_raises_the_loss_step_by_step_and_judges_each_point() -> None:
    models = two_linear_models(margin=30.0)
    models.drive(PGD(radius=40, step=4, iterations=15, random_start=False))
    assert len(models.judged) == 1 + 15
    seen = losses(models)
    assert seen[0] == min(seen)
    assert seen[-1] > 3 * seen[1]
    assert np.abs(models.judged[-1].astype(int) - models.seed).max() == 40


def test_pgd_begins_at_a_random_point_of_the_ball() -> None:
    def first(rng_seed: int) -> bytes:
        models = two_linear_models(margin=30.0)
        models.drive(PGD(iterations=1), rng_seed=rng_seed)
        assert len(models.judged) == 3
        return models.judged[1].tobytes()

    assert first(1) == first(1)
    assert first(1) != first(2)


def test_no_gradient_of_the_twin_is_asked_for() -> None:
    models = two_linear_models(margin=30.0)
    models.drive(PGD())
    assert {one.arm for one in models.gradients} == {Arm.ORIGINAL}


def test_what_it_meets_deviates_on_the_arms() -> None:
    found = []
    for margin in np.linspace(0.1, 3.0, 40):
        models = two_linear_models(float(margin))
        trigger = models.drive(PGD(radius=6, step=0.5))
        if trigger is not None:
            assert Goal().met(trigger.outcome) == trigger.kind
            assert trigger.operators == ("pgd",)
            assert np.array_equal(models.judged[-1], trigger.input)
            found.append(margin)
    assert found


def test_a_device_that_contradicts_the_twin_is_no_finding() -> None:
    for margin in np.linspace(0.1, 3.0, 40):
        models = two_linear_models(float(margin))
        models.device = Arm.ORIGINAL
        assert models.drive(PGD(radius=6, step=0.5)) is None


@pytest.mark.parametrize(
    ("name", "value"), [("radius", 0.0), ("step", -1.0), ("iterations", 0), ("radius", np.inf)]
)
def test_bad_parameters_are_refused(name: str, value: float) -> None:
    with pytest.raises(UserError, match=f"parameter {name}="):
        PGD(**{name: value})  # type: ignore[arg-type]
