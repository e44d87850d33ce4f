"""Tests of edgeflare.repair.shifts.boundary_set and edgeflare.repair.shifts.run_to_repair."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from edgeflare.campaign.campaign import Interrupt
from edgeflare.campaign.observer import Unobserved
from edgeflare.campaign.opened_pair import open_pair
from edgeflare.campaign.recorded_campaign import run_recorded_campaign
from edgeflare.campaign.run_description import describe_run
from edgeflare.core.goal import Goal
from edgeflare.devices.profile_lookup import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.shifts.boundary_set import NEAR_MARGIN, BoundarySet, gather
from edgeflare.repair.shifts.fresh_inputs import FreshInputs, ask_fresh, load_fresh
from edgeflare.repair.shifts.run_to_repair import (
    RunInputs,
    RunToRepair,
    evaluate_run_inputs,
    open_run_to_repair,
    require_enough,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.begin_or_resume import begin_run
from edgeflare.run.plan import Plan

pytestmark = pytest.mark.slow

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
        _, journal = begin_run(run, header, SEEDS, overwrite=False)
        stack.callback(journal.close)
        run_recorded_campaign(
            opened, header.plan, journal, observer=Unobserved(), interrupt=Interrupt()
        )
    past = PastRun.open(run)
    with ExitStack() as stack:
        yield open_run_to_repair(past, past.pair(), profiles, stack)


@pytest.fixture(scope="module")
def run_inputs(run: RunToRepair) -> RunInputs:
    return evaluate_run_inputs(run)


@pytest.fixture(scope="module")
def boundary_set(run: RunToRepair, run_inputs: RunInputs) -> BoundarySet:
    return gather(run, run_inputs, 1, lambda _done, _total: None)


def test_triggers_deviate_and_their_seeds_do_not(run_inputs: RunInputs) -> None:
    assert len(run_inputs.triggers) == len(run_inputs.seeds) == SEEDS - run_inputs.not_reproduced
    assert run_inputs.triggers.deviating.all()
    assert not run_inputs.seeds.deviating.any()
    assert (run_inputs.triggers.seed_ids == run_inputs.seeds.seed_ids).all()
    assert (run_inputs.triggers.seed_labels == run_inputs.seeds.labels).all()


def test_what_is_gathered_is_near_the_boundary(boundary_set: BoundarySet) -> None:
    for samples in (boundary_set.bisected, boundary_set.sampled):
        assert len(samples) > 50
        assert samples.margins.max() < NEAR_MARGIN
    assert boundary_set.queries > len(boundary_set.bisected) + len(boundary_set.sampled)


def test_a_search_for_triggers_finds_more_of_them_than_come_by_themselves(
    boundary_set: BoundarySet,
) -> None:
    strict = boundary_set.sampled.take(boundary_set.sampled.margins > 0.0)
    assert boundary_set.bisected.margins.min() > 0.0
    assert boundary_set.bisected.deviating.mean() > 2 * strict.deviating.mean()


def test_the_same_run_gives_the_same_set(
    run: RunToRepair, run_inputs: RunInputs, boundary_set: BoundarySet
) -> None:
    told: list[tuple[int, int]] = []
    again = gather(run, run_inputs, 1, lambda *far: told.append(far))
    assert again.queries == boundary_set.queries
    for one, other in (
        (again.bisected, boundary_set.bisected),
        (again.sampled, boundary_set.sampled),
    ):
        assert (one.raw == other.raw).all()
        assert (one.originals == other.originals).all()
        assert (one.seed_ids == other.seed_ids).all()
    assert told[-1] == (2 * len(run_inputs.seeds), 2 * len(run_inputs.seeds))
    assert all(a <= b for (a, _), (b, _) in pairwise(told))


def fresh_of(run: RunToRepair, path: Path) -> FreshInputs:
    return ask_fresh(run, path, load_fresh(run, path), lambda _done, _total: None)


def test_fresh_data_before_and_after(run: RunToRepair, tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "test.npz", images=arrays["images"], labels=arrays["labels"])
    fresh = fresh_of(run, tmp_path / "test.npz")
    assert (fresh.before().deviations, fresh.before().strict) == (0, 0)
    worst = fresh.after_labels(lambda samples: samples.seconds)
    assert worst.deviations == len(fresh.samples) == 200
    right = fresh.before().accuracy
    assert worst.accuracy is not None
    assert right is not None
    assert worst.accuracy < right


def test_an_image_without_a_label_is_neither_right_nor_wrong(
    run: RunToRepair, tmp_path: Path
) -> None:
    path = tmp_path / "test.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images, labels = arrays["images"][:40], arrays["labels"][:40].astype(np.int64)
    np.savez(path, images=images[:20], labels=labels[:20])
    labelled = fresh_of(run, path).before().accuracy
    labels[20:30], labels[30:] = -1, 10
    np.savez(path, images=images, labels=labels)
    assert fresh_of(run, path).before().accuracy == labelled
    np.savez(path, images=images[20:], labels=labels[20:])
    assert fresh_of(run, path).before().accuracy is None


def test_too_few_triggers_are_refused() -> None:
    require_enough(25, "runs/a")
    with pytest.raises(UserError, match="runs/a has 24 triggering inputs to learn from"):
        require_enough(24, "runs/a")


def _only(run: RunToRepair, rows: list[int]) -> RunToRepair:
    return replace(
        run,
        entries=[run.entries[row] for row in rows],
        seed_images=run.seed_images[rows],
        trigger_images=run.trigger_images[rows],
    )


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


def test_a_trigger_that_no_longer_deviates_is_left_out_with_its_seed(
    run: RunToRepair, run_inputs: RunInputs
) -> None:
    images = run.trigger_images.copy()
    images[0] = run.seed_images[0]
    found = evaluate_run_inputs(replace(run, trigger_images=images))
    assert found.not_reproduced == run_inputs.not_reproduced + 1
    assert int(run.seed_ids[0]) not in found.seeds.seed_ids


def test_what_is_gathered_does_not_depend_on_the_batches(
    run: RunToRepair,
    run_inputs: RunInputs,
    boundary_set: BoundarySet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("edgeflare.repair.shifts.boundary_set._BATCH", 7)
    again = gather(run, run_inputs, 1, lambda _done, _total: None)
    assert again.queries == boundary_set.queries
    for here, there in (
        (again.bisected, boundary_set.bisected),
        (again.sampled, boundary_set.sampled),
    ):
        assert here.seed_ids.tolist() == there.seed_ids.tolist()
        assert here.raw.tolist() == there.raw.tolist()
