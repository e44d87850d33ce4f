"""Tests of edgeflare.repair.boundary_set and edgeflare.repair.run_to_repair."""

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
from edgeflare.devices.profile import find_profiles
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.repair.boundary_set import NEAR, BoundarySet, gather
from edgeflare.repair.fresh_inputs import FreshInputs, ask_fresh, load_fresh
from edgeflare.repair.run_to_repair import (
    KnownInputs,
    RunToRepair,
    evaluate_known_inputs,
    open_run_to_repair,
    require_enough,
)
from edgeflare.replay.past_run import PastRun
from edgeflare.run.begin_or_resume import begin_run
from edgeflare.run.plan import Plan

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "fashion_lenet4"
SEEDS = 30


@pytest.fixture(scope="module")
def subject(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunToRepair]:
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
def known(subject: RunToRepair) -> KnownInputs:
    return evaluate_known_inputs(subject)


@pytest.fixture(scope="module")
def near(subject: RunToRepair, known: KnownInputs) -> BoundarySet:
    return gather(subject, known, 1, lambda _done, _total: None)


def test_triggers_deviate_and_their_seeds_do_not(known: KnownInputs) -> None:
    assert len(known.triggers) == len(known.seeds) == SEEDS - known.not_reproduced
    assert known.triggers.deviating.all()
    assert not known.seeds.deviating.any()
    assert (known.triggers.seed_ids == known.seeds.seed_ids).all()
    assert (known.triggers.seed_labels == known.seeds.labels).all()


def test_what_is_gathered_is_near_the_boundary(near: BoundarySet) -> None:
    for samples in (near.led, near.unled):
        assert len(samples) > 50
        assert samples.margins.max() < NEAR
    assert near.queries > len(near.led) + len(near.unled)


def test_a_search_for_triggers_finds_more_of_them_than_come_by_themselves(
    near: BoundarySet,
) -> None:
    strict = near.unled.take(near.unled.margins > 0.0)
    assert near.led.margins.min() > 0.0
    assert near.led.deviating.mean() > 2 * strict.deviating.mean()


def test_the_same_run_gives_the_same_set(
    subject: RunToRepair, known: KnownInputs, near: BoundarySet
) -> None:
    told: list[tuple[int, int]] = []
    again = gather(subject, known, 1, lambda *far: told.append(far))
    assert again.queries == near.queries
    for one, other in ((again.led, near.led), (again.unled, near.unled)):
        assert (one.raw == other.raw).all()
        assert (one.originals == other.originals).all()
        assert (one.seed_ids == other.seed_ids).all()
    assert told[-1] == (2 * len(known.seeds), 2 * len(known.seeds))
    assert all(a <= b for (a, _), (b, _) in pairwise(told))


def fresh_of(subject: RunToRepair, path: Path) -> FreshInputs:
    return ask_fresh(subject, path, load_fresh(subject, path), lambda _done, _total: None)


def test_fresh_data_before_and_after(subject: RunToRepair, tmp_path: Path) -> None:
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        np.savez(tmp_path / "test.npz", images=arrays["images"], labels=arrays["labels"])
    fresh = fresh_of(subject, tmp_path / "test.npz")
    assert (fresh.before().deviations, fresh.before().strict) == (0, 0)
    worst = fresh.after_labels(lambda samples: samples.seconds)
    assert worst.deviations == len(fresh.samples) == 200
    right = fresh.before().accuracy
    assert worst.accuracy is not None
    assert right is not None
    assert worst.accuracy < right


def test_an_image_without_a_label_is_neither_right_nor_wrong(
    subject: RunToRepair, tmp_path: Path
) -> None:
    path = tmp_path / "test.npz"
    with np.load(EXAMPLE / "seeds.npz") as arrays:
        images, labels = arrays["images"][:40], arrays["labels"][:40].astype(np.int64)
    np.savez(path, images=images[:20], labels=labels[:20])
    labelled = fresh_of(subject, path).before().accuracy
    labels[20:30], labels[30:] = -1, 10
    np.savez(path, images=images, labels=labels)
    assert fresh_of(subject, path).before().accuracy == labelled
    np.savez(path, images=images[20:], labels=labels[20:])
    assert fresh_of(subject, path).before().accuracy is None


def test_too_few_triggers_are_refused() -> None:
    require_enough(25, "runs/a")
    with pytest.raises(UserError, match="runs/a has 24 triggering inputs to learn from"):
        require_enough(24, "runs/a")


def _only(subject: RunToRepair, rows: list[int]) -> RunToRepair:
    return replace(
        subject,
        entries=[subject.entries[row] for row in rows],
        seed_images=subject.seed_images[rows],
        trigger_images=subject.trigger_images[rows],
    )


def test_one_class_only_is_refused(
    subject: RunToRepair, known: KnownInputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgeflare.repair.run_to_repair.LEAST_TRIGGERS", 1)
    # Whatever the original says of the triggers: of these it gives another class.
    moved = known.triggers.originals != known.seeds.originals
    label = int(known.seeds.originals[moved][0])
    kept = set(known.seeds.seed_ids[known.seeds.originals == label].tolist())
    rows = [row for row, seed_id in enumerate(subject.seed_ids.tolist()) if seed_id in kept]
    with pytest.raises(UserError, match="one class only"):
        evaluate_known_inputs(_only(subject, rows))


def test_a_trigger_that_no_longer_deviates_is_left_out_with_its_seed(
    subject: RunToRepair, known: KnownInputs
) -> None:
    images = subject.trigger_images.copy()
    images[0] = subject.seed_images[0]
    found = evaluate_known_inputs(replace(subject, trigger_images=images))
    assert found.not_reproduced == known.not_reproduced + 1
    assert int(subject.seed_ids[0]) not in found.seeds.seed_ids
