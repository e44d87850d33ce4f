"""Boundary bisection on linear models, whose boundaries are known to be apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from driving import BeginSearch, Drive, Model, SearchCase, linear_model, quantized
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome
from edgeflare.strategies.boundary import Boundary, BoundaryMH
from edgeflare.strategies.strategy import SearchGenerator, Start
from edgeflare.strategies.surrogate_choice import EnsembleSurrogate, TwinThenNearTieSurrogate
from edgeflare_operators import built_in_operators

BOTH = pytest.mark.parametrize(
    "search", [Boundary().search, BoundaryMH().search], ids=["boundary", "boundary-mh"]
)

MIN_QUERIES = TwinThenNearTieSurrogate.MIN_QUERIES
MIN_QUERIES_IF_EQUAL = TwinThenNearTieSurrogate.MIN_QUERIES_IF_EQUAL
_RNG = np.random.default_rng(7)
WEIGHTS = _RNG.normal(0.0, 1.0, (4, 12 * 12))
SEEDS = list(_RNG.integers(256, size=(6, 12, 12, 1), dtype=np.uint8))
ORIGINAL = linear_model(WEIGHTS)


def bent(rng_seed: int) -> Model:
    """The original, its weights a little off and its logits rounded."""
    noise = np.random.default_rng(rng_seed).normal(0.0, 0.02, WEIGHTS.shape)
    return linear_model(WEIGHTS + noise, step=0.01)


COMPRESSED = {"linear": bent(1), "quantized": quantized(WEIGHTS)}


def compression(compressed: Model, seed: Input = SEEDS[0]) -> SearchCase:
    """A device on the twin's own kernels."""
    return SearchCase(seed, {Arm.ORIGINAL: ORIGINAL, Arm.TWIN: compressed, Arm.DEVICE: compressed})


def kernels(seed: Input = SEEDS[0], *, device: Model, **members: Model) -> SearchCase:
    """A device on other kernels than the twin's, and the members of the twin's ensemble."""
    models = {Arm.ORIGINAL: ORIGINAL, Arm.TWIN: bent(1), Arm.DEVICE: device}
    return SearchCase(seed, models, members)


def drives(
    search: BeginSearch, goal: Goal, benches: Iterator[SearchCase], steps: int
) -> list[Drive]:
    return [bench.drive(search, goal, k, steps) for k, bench in enumerate(benches)]


def on_all_seeds(bench: SearchCase) -> Iterator[SearchCase]:
    return (replace(bench, seed=seed) for seed in SEEDS)


@BOTH
@pytest.mark.parametrize("model", COMPRESSED)
def test_finds_what_compression_changed(search: BeginSearch, model: str) -> None:
    bench = compression(COMPRESSED[model])
    installed = {operator.name for operator in built_in_operators()}
    for drive in drives(search, Goal(), on_all_seeds(bench), 300):
        assert drive.finding is not None
        assert drive.finding.kind == "deviation"
        answers = drive.finding.outcome.answers
        assert answers[Arm.ORIGINAL].decision != answers[Arm.DEVICE].decision
        assert not answers[Arm.ORIGINAL].tied
        assert not answers[Arm.DEVICE].tied
        assert drive.finding.operators
        assert set(drive.finding.operators) <= installed


def test_the_device_confirms_and_is_asked_nothing_else() -> None:
    goal = Goal(Find.COMPRESSION)
    bench = compression(COMPRESSED["quantized"])
    for drive in drives(Boundary().search, goal, on_all_seeds(bench), 300):
        *host, last = drive.queries
        assert all(query.arms == (Arm.ORIGINAL, Arm.TWIN) for query in host)
        assert last.arms == (Arm.DEVICE,)
        assert last.again
        assert len(drive.on_device) == 1
        assert drive.finding is not None
        assert drive.finding.outcome == drive.answered[-1]


def test_a_device_that_is_not_the_twin_is_asked_wherever_the_twin_deviates() -> None:
    bench = kernels(device=ORIGINAL)  # so nothing that the twin does shows on it
    search = Boundary(weak_margin=0.0).search  # with it, the stronger of two is asked about
    drive = bench.drive(search, Goal(), steps=400)
    assert drive.finding is None
    goal = Goal()
    deviating = [
        goal.met(Outcome({**outcome.answers, Arm.DEVICE: outcome[Arm.TWIN]})) is not None
        for outcome in drive.answered
    ]
    asked = [Arm.DEVICE in outcome.answers for outcome in drive.answered]
    assert deviating[:MIN_QUERIES] == asked[:MIN_QUERIES]
    assert sum(asked[:MIN_QUERIES]) > 1
    # Later it is asked at near-ties too.
    assert not any(there and not here for there, here in zip(deviating, asked, strict=True))
    assert sum(asked) > sum(deviating)
    for outcome, here, there in zip(drive.answered, asked, deviating, strict=True):
        if here and not there:
            second, first = np.sort(outcome[Arm.TWIN].probabilities)[-2:]
            assert 0.0 < first - second < 0.2


def test_what_the_kernels_alone_cause_is_found_though_the_twin_is_the_original() -> None:
    models = {Arm.ORIGINAL: ORIGINAL, Arm.TWIN: ORIGINAL, Arm.DEVICE: bent(2)}
    found = drives(Boundary().search, Goal(), on_all_seeds(SearchCase(SEEDS[0], models)), 1500)
    assert sum(drive.finding is not None for drive in found) >= len(SEEDS) - 1
    for drive in found:
        assert not any(Arm.DEVICE in outcome.answers for outcome in drive.answered[:MIN_QUERIES])
        assert len(drive.on_device) < drive.inputs / 2


EQUAL = {
    "any": (Goal(), SearchCase(SEEDS[0], dict.fromkeys(Arm, ORIGINAL))),
    "compression": (Goal(Find.COMPRESSION), SearchCase(SEEDS[0], dict.fromkeys(Arm, ORIGINAL))),
    "kernel": (Goal(Find.KERNEL), kernels(device=bent(1), reference=bent(1))),
}


@pytest.mark.slow
@pytest.mark.parametrize("find", EQUAL)
def test_arms_that_never_differ_are_searched_to_the_end_of_the_budget(find: str) -> None:
    goal, bench = EQUAL[find]
    drive = bench.drive(Boundary().search, goal, steps=1500)
    assert drive.finding is None
    assert drive.inputs == 1500
    # The device is asked now and then whether it is still the twin, if that can be a finding.
    silent = {
        "any": MIN_QUERIES_IF_EQUAL,
        "compression": 1500,
        "kernel": EnsembleSurrogate.MOST_AGREEING,
    }[find]
    asked = [Arm.DEVICE in outcome.answers for outcome in drive.answered]
    assert not any(asked[: silent - 1])
    assert any(asked) == (find != "compression")
    assert sum(asked) < (1500 - silent) / 20 + 5


def test_a_constant_model_is_searched_to_the_end_of_the_budget() -> None:
    def constant(_image: Input) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.array([0.7, 0.2, 0.1])

    for find in Find:
        bench = SearchCase(SEEDS[0], dict.fromkeys(Arm, constant), {"reference": constant})
        drive = bench.drive(Boundary().search, Goal(find), steps=300)
        assert (drive.finding, drive.inputs, drive.on_device) == (None, 300, [])


def test_an_ensemble_that_foretells_the_device_spares_it() -> None:
    bench = kernels(device=bent(2), reference=bent(2))
    for drive in drives(Boundary().search, Goal(Find.KERNEL), on_all_seeds(bench), 1000):
        assert drive.finding is not None
        assert len(drive.on_device) <= 3
        for query in drive.queries:
            assert query.kernels == (() if query.again else ("reference",))
        assert drive.finding.outcome.members["reference"].decision == (
            drive.finding.outcome[Arm.DEVICE].decision
        )


def test_without_an_ensemble_near_ties_are_asked_about() -> None:
    found = drives(
        Boundary().search, Goal(Find.KERNEL), on_all_seeds(kernels(device=bent(2))), 1000
    )
    assert sum(drive.finding is not None for drive in found) >= len(SEEDS) - 2
    for drive in found:
        assert not any(query.kernels for query in drive.queries)
        assert 0 < len(drive.on_device) < drive.inputs / 2
        for outcome in drive.on_device:
            second, first = np.sort(outcome[Arm.TWIN].probabilities)[-2:]
            assert 0.0 < first - second < 0.3


@pytest.mark.slow
def test_an_ensemble_that_does_not_resemble_the_device_is_no_obstacle() -> None:
    # Wherever the device leans away from the twin, the member leans the other way.
    lean = np.random.default_rng(3).normal(0.0, 0.02, WEIGHTS.shape)
    twin, device, contrary = (linear_model(WEIGHTS + k * lean, step=0.01) for k in (0, 1, -1))
    models = {Arm.ORIGINAL: bent(1), Arm.TWIN: twin, Arm.DEVICE: device}
    bench = SearchCase(SEEDS[0], models, {"reference": contrary})
    unforeseen = 0
    for drive in drives(Boundary().search, Goal(Find.KERNEL), on_all_seeds(bench), 2000):
        assert drive.finding is not None
        outcome = drive.finding.outcome
        unforeseen += outcome.members["reference"].decision == outcome[Arm.TWIN].decision
    assert unforeseen > len(SEEDS) / 2


@pytest.mark.slow
def test_an_ensemble_that_foretells_nothing_is_no_obstacle() -> None:
    bench = kernels(device=bent(2), reference=bent(1))  # the member is the twin
    found = drives(Boundary().search, Goal(Find.KERNEL), on_all_seeds(bench), 2500)
    assert sum(drive.finding is not None for drive in found) >= len(SEEDS) - 1
    for drive in found:
        early = drive.answered[: EnsembleSurrogate.MOST_AGREEING - 1]
        assert not any(Arm.DEVICE in outcome.answers for outcome in early)


@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
def test_a_device_with_stages_of_its_own_answers_each_query(find: Find) -> None:
    def search(start: Start) -> SearchGenerator:
        return Boundary().search(replace(start, host_predicts=False))

    # Original, twin and member are one model, so none of them says where the device deviates.
    models = {Arm.ORIGINAL: ORIGINAL, Arm.TWIN: ORIGINAL, Arm.DEVICE: bent(2)}
    bench = SearchCase(SEEDS[0], models, {"reference": ORIGINAL})
    for drive in drives(search, Goal(find), on_all_seeds(bench), 200):
        assert drive.finding is not None
        assert {query.arms for query in drive.queries} == {Goal(find).needed}
        assert not any(query.again or query.kernels for query in drive.queries)


@pytest.mark.slow
def test_a_float_device_is_asked_about_margins_that_no_8_bit_model_has() -> None:
    models = {
        arm: linear_model(WEIGHTS + noise * WEIGHTS[::-1])
        for arm, noise in ((Arm.TWIN, 0.0), (Arm.DEVICE, 2e-4))
    }
    found = drives(
        Boundary().search, Goal(Find.KERNEL), on_all_seeds(SearchCase(SEEDS[0], models)), 1500
    )
    assert sum(drive.finding is not None for drive in found) >= len(SEEDS) - 1


def test_kernels_are_compared_without_an_original() -> None:
    bench = kernels(device=bent(2), reference=bent(2))
    models: dict[Arm, Model] = {Arm.TWIN: bent(1), Arm.DEVICE: bent(2)}
    for members in (bench.members, {}):
        alone = replace(bench, models=models, members=members)
        found = drives(Boundary().search, Goal(Find.KERNEL), on_all_seeds(alone), 2000)
        assert sum(drive.finding is not None for drive in found) >= len(SEEDS) - 2


@pytest.mark.parametrize("find", [Find.ANY, Find.KERNEL])
def test_a_device_that_crashes_on_a_doubted_input_is_a_finding(find: Find) -> None:
    sound = kernels(device=bent(1), reference=bent(2))  # nothing deviates but by crashing
    bench = replace(sound, crashes=lambda image: not np.array_equal(image, sound.seed))
    drive = bench.drive(Boundary().search, Goal(find), steps=500)
    assert drive.finding is not None
    assert drive.finding.kind == "crash"
    assert drive.finding.outcome[Arm.DEVICE].failure == "crash"
    assert len(drive.on_device) == 1


def test_weak_deviations_are_passed_over() -> None:
    bench = compression(COMPRESSED["linear"])
    goal = Goal(min_strength=0.02)
    for drive in drives(Boundary().search, goal, on_all_seeds(bench), 1500):
        if drive.finding is not None:
            assert goal.met(drive.finding.outcome) == "deviation"
        # The twin's strength is the device's; later it is asked whether it is still the twin.
        later = max(0, drive.inputs - MIN_QUERIES_IF_EQUAL)
        assert len(drive.on_device) <= 1 + (later / 20 + 5 if later else 0)


def test_a_leap_that_is_not_shortened_is_halved() -> None:
    # Without a preferred class, so that leaps change the decision, and no descent is needed.
    model = linear_model(WEIGHTS - WEIGHTS.mean(axis=1, keepdims=True))
    halved = 0
    for grid in (1, 2):
        for case in on_all_seeds(SearchCase(SEEDS[0], dict.fromkeys(Arm, model))):
            drive = case.drive(Boundary(shortening_grid=grid).search, Goal(), steps=8)
            decisions = [one[Arm.ORIGINAL].decision for one in drive.answered]
            home = model(case.seed).argmax()
            leaps = [at for at in range(Boundary().max_leaps) if decisions[at] != home]
            if leaps:
                leap, after = drive.queries[leaps[0]].input, drive.queries[leaps[0] + 1].input
                middle = (case.seed + leap.astype(np.float64)) / 2
                assert (np.abs(after - middle).max() <= 0.5) == (grid == 1)
                halved += 1
    assert halved


def test_a_weak_deviation_on_the_boundary_is_made_stronger() -> None:
    # The same draws until a deviation is found, so only what follows it can differ.
    goal = Goal()
    gains = []
    for case in on_all_seeds(compression(COMPRESSED["quantized"])):
        plain, deeper = (
            case.drive(Boundary(weak_margin=margin, deeper_target=0.1).search, goal, steps=300)
            for margin in (0.0, 0.1)
        )
        assert plain.finding is not None
        assert deeper.finding is not None
        assert plain.inputs <= deeper.inputs <= plain.inputs + 1
        before, after = (goal.strength(one.outcome) for one in (plain.finding, deeper.finding))
        gains.append((after or 0.0) - (before or 0.0))
    assert min(gains) == 0.0
    assert max(gains) > 0.0
