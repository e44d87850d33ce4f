"""Inputs near the boundary: those of a run, and those that a search looks at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgeflare.campaign.campaign_record import describe_run, search_into
from edgeflare.campaign.observer import Unobserved
from edgeflare.campaign.pair_panel import open_pair
from edgeflare.core.answer import Answer
from edgeflare.core.bounds import Bounds
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input
from edgeflare.core.interrupt import Interrupt
from edgeflare.core.query import Arm, Outcome
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.shifts.boundary_set import (
    NEAR_MARGIN,
    POINTS,
    BoundarySet,
    cross_boundary,
    gather,
)
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    require_enough,
    run_to_repair,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.plan import Plan
from edgeflare.strategies.operator_pool import built_in_pool
from edgeflare.strategies.strategy import AskTellSearch, Start

EXAMPLE = Path(__file__).parents[3] / "examples" / "fashion_lenet4"
SEEDS = 30


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunToRepair]:
    run = tmp_path_factory.mktemp("run") / "run"
    pair, profiles = load_pair(EXAMPLE), find_profiles(["emulated-xnnpack"])
    plan = Plan("boundary", Goal(), ("emulated-xnnpack",), limit=SEEDS)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        header = describe_run(opened, plan)
        search_into(run, opened, header, observer=Unobserved(), interrupt=Interrupt())
    past = PastRun.open(run)
    with ExitStack() as stack:
        opened = open_pair(pair, plan, profiles, stack)
        yield run_to_repair(past, opened, np.arange(SEEDS), 0)


@pytest.fixture(scope="module")
def run_inputs(run: RunToRepair) -> RunInputs:
    return evaluate_run_inputs(run)


@pytest.fixture(scope="module")
def boundary_set(run: RunToRepair, run_inputs: RunInputs) -> BoundarySet:
    return gather(run, run_inputs, 1, lambda _done, _total: None)


@pytest.mark.slow
def test_triggers_deviate_and_their_seeds_do_not(run_inputs: RunInputs) -> None:
    assert len(run_inputs.triggers) == len(run_inputs.seeds) == SEEDS - run_inputs.not_reproduced
    assert run_inputs.triggers.deviating.all()
    assert not run_inputs.seeds.deviating.any()
    assert (run_inputs.triggers.seed_ids == run_inputs.seeds.seed_ids).all()
    assert (run_inputs.triggers.seed_labels == run_inputs.seeds.labels).all()


@pytest.mark.slow
def test_what_is_gathered_is_near_the_boundary(boundary_set: BoundarySet) -> None:
    for samples in (boundary_set.bisected, boundary_set.sampled):
        assert len(samples) > 50
        assert samples.margins.max() < NEAR_MARGIN
    assert boundary_set.queries > len(boundary_set.bisected) + len(boundary_set.sampled)


@pytest.mark.slow
def test_a_search_for_triggers_finds_more_of_them_than_come_by_themselves(
    boundary_set: BoundarySet,
) -> None:
    strict = boundary_set.sampled.take(boundary_set.sampled.margins > 0.0)
    assert boundary_set.bisected.margins.min() > 0.0
    assert boundary_set.bisected.deviating.mean() > 2 * strict.deviating.mean()


@pytest.mark.slow
def test_another_generator_seed_gives_other_inputs(
    run: RunToRepair, run_inputs: RunInputs, boundary_set: BoundarySet
) -> None:
    other = gather(replace(run, rng_seed=1), run_inputs, 1, lambda _done, _total: None)
    assert other.sampled.raw.tolist() != boundary_set.sampled.raw.tolist()


@pytest.mark.slow
def test_only_triggers_from_the_seeds_to_fit_with_are_there(run: RunToRepair) -> None:
    fit = np.arange(25)
    found = run_to_repair(run.past, run.opened, fit, 0)
    assert found.seed_ids.tolist() == list(run.opened.seeds.seed_ids[:25])
    assert found.seed_ids.tolist() != fit.tolist()
    assert (found.trigger_images == run.trigger_images[:25]).all()
    assert (found.seed_images == run.opened.seeds.inputs[fit]).all()
    with pytest.raises(UserError, match="has 24 triggering inputs from the seeds to fit with"):
        run_to_repair(run.past, run.opened, fit[:24], 0)


@pytest.mark.slow
def test_too_few_triggers_are_refused() -> None:
    require_enough(25, "runs/a")
    with pytest.raises(UserError, match="runs/a has 24 triggering inputs from the seeds to fit"):
        require_enough(24, "runs/a")


def _only(run: RunToRepair, rows: list[int]) -> RunToRepair:
    return replace(
        run,
        entries=[run.entries[row] for row in rows],
        seed_images=run.seed_images[rows],
        trigger_images=run.trigger_images[rows],
    )


@pytest.mark.slow
def test_one_class_only_is_refused(
    run: RunToRepair, run_inputs: RunInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.repair.shifts.run_to_repair.LEAST_TRIGGERS", 1)
    # Whatever the original says of the triggers: of these it gives another class.
    moved = run_inputs.triggers.originals != run_inputs.seeds.originals
    label = int(run_inputs.seeds.originals[moved][0])
    kept = set(run_inputs.seeds.seed_ids[run_inputs.seeds.originals == label].tolist())
    rows = [row for row, seed_id in enumerate(run.seed_ids.tolist()) if seed_id in kept]
    with pytest.raises(UserError, match="one class only"):
        evaluate_run_inputs(_only(run, rows))


@pytest.mark.slow
def test_a_trigger_that_no_longer_deviates_is_left_out_with_its_seed(
    run: RunToRepair, run_inputs: RunInputs
) -> None:
    images = run.trigger_images.copy()
    images[0] = run.seed_images[0]
    found = evaluate_run_inputs(replace(run, trigger_images=images))
    assert found.not_reproduced == run_inputs.not_reproduced + 1
    assert int(run.seed_ids[0]) not in found.seeds.seed_ids


@pytest.mark.slow
def test_the_same_run_gives_the_same_set_whatever_the_batches(
    run: RunToRepair,
    run_inputs: RunInputs,
    boundary_set: BoundarySet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgeflare.repair.shifts.boundary_set._BATCH", 7)
    told: list[tuple[int, int]] = []
    again = gather(run, run_inputs, 1, lambda *far: told.append(far))
    assert again.queries == boundary_set.queries
    for here, there in (
        (again.bisected, boundary_set.bisected),
        (again.sampled, boundary_set.sampled),
    ):
        assert here.seed_ids.tolist() == there.seed_ids.tolist()
        assert (here.raw == there.raw).all()
        assert (here.originals == there.originals).all()
    total = 2 * len(run_inputs.seeds)
    assert (told[0], told[-1]) == ((0, total), (total, total))
    assert all(a <= b for (a, _), (b, _) in pairwise(told))


SEED = np.full((8, 8, 1), 128, np.uint8)


def answer(label: int) -> Answer:
    vector = np.array([1.0 - label, float(label)])
    return Answer(label, False, vector, vector)


def outcome(device: int, original: int) -> Outcome:
    return Outcome({Arm.ORIGINAL: answer(original), Arm.DEVICE: answer(device)})


def looks(device: Any, original: Any, bounds: Bounds | None = None) -> list[Input]:
    rng = np.random.default_rng(3)
    start = Start(
        SEED,
        outcome(0, 0),
        Goal(),
        rng,
        bounds or Bounds(250.0, 400.0),
        operators=built_in_pool("image"),
    )
    told = AskTellSearch(cross_boundary(start))
    seen = []
    while told.ask():
        (query,) = told.ask()
        seen.append(query.input)
        told.tell([outcome(device(query.input), original(query.input))])
    assert told.finding is None
    return seen


def far(image: Input) -> int:
    return int(np.linalg.norm(image.astype(float) - SEED) > 150)


def test_looks_lie_on_both_sides_of_the_devices_boundary_and_within_bounds() -> None:
    """The original is never heeded, and where no mutant changes the label nothing is looked at."""
    one, other = looks(far, far), looks(far, lambda image: 1 - far(image))
    assert len(one) > POINTS
    assert all((a == b).all() for a, b in zip(one, other, strict=True))
    sides = [far(image) for image in looks(far, far)[-POINTS:]]
    assert 0 < sum(sides) < POINTS
    bounds = Bounds(90.0, 200.0)
    seen = looks(far, far, bounds)
    assert all(bounds.holds(image, SEED) for image in seen)
    assert len(looks(lambda _: 0, far)) == 4
