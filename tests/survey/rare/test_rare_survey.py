"""Rare events of a real pair on an emulated device, beside brute force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from edgeflare.campaign.opened_pair import OpenedPair, open_pair
from edgeflare.conditions.condition import Condition
from edgeflare.core.arm import Arm
from edgeflare.core.goal import Find, Goal
from edgeflare.core.input import Input
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import UserError
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.survey.rare.rare_event import RareEvent
from edgeflare.survey.rare.rare_points import RarePoint, RarePoints
from edgeflare.survey.rare.rare_rate import RarePlan, RareProgress
from edgeflare.survey.rare.rare_survey import RareArms, headline_event, survey_rare_event
from edgeflare.survey.rare.splitting import SplittingPlan
from networks import write_pair
from small_pairs import write_score_pair

pytestmark = pytest.mark.slow

SMALL = SplittingPlan(first=160, particles=80, moves=3)


def grain(one: Input, severity: float, rng: np.random.Generator) -> Input:
    noisy = one + rng.normal(scale=8.0 * severity, size=one.shape)
    return np.asarray(np.clip(np.rint(noisy), 0, 255)).astype(one.dtype)


def dusk(one: Input, severity: float, _rng: np.random.Generator) -> Input:
    return (one / (1.0 + 0.2 * severity)).astype(one.dtype)


CONDITIONS = (
    Condition("grain", "image", (), "noise", grain),
    Condition("dusk", "image", (), "less light", dusk),
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenedPair]:
    folder = write_pair(tmp_path_factory.mktemp("pair"), "resnet")
    with ExitStack() as stack:
        yield opened_pair(folder, stack)


def opened_pair(folder: Path, stack: ExitStack, find: Find = Find.ANY) -> OpenedPair:
    plan = Plan("boundary", Goal(find), ("emulated-builtin",))
    return open_pair(load_pair(folder), plan, [find_profile("emulated-builtin")], stack)


def brute_force(opened: OpenedPair, event: RareEvent, count: int) -> np.ndarray:
    """Return at which of as many points the event happens."""
    arms = RareArms(opened, event, lambda: False)
    images = opened.seeds.inputs
    space = opened.pair.interface.domain.space
    points = RarePoints(images, CONDITIONS, space, np.arange(len(images)), arms.levels)
    drawn: list[RarePoint] = points.draw(count, np.random.default_rng(99))
    return arms.happened([points.changed(one) for one in drawn], [one.input for one in drawn])


@pytest.mark.parametrize("event", [RareEvent(Arm.ORIGINAL, 0.05), RareEvent(Arm.TWIN)])
def test_splitting_and_brute_force_agree(opened: OpenedPair, event: RareEvent) -> None:
    happened = brute_force(opened, event, 6000)
    told: list[RareProgress] = []
    plan = RarePlan(SMALL, repetitions=6, device_queries=600)
    survey = survey_rare_event(
        opened, CONDITIONS, event, plan, np.random.default_rng(0), progress=told.append
    )
    assert survey.rate is not None
    error = np.sqrt(happened.mean() / len(happened))
    assert survey.rate.low - 3 * error < happened.mean() < survey.rate.high + 3 * error
    assert 0 < survey.rate.estimate < 0.1
    assert survey.conditions == ("grain", "dusk")
    assert survey.inputs == len(opened.seeds)
    assert survey.host_queries > 10 * survey.rate.device_queries
    assert told[-1].device_queries == survey.rate.device_queries < 750


def test_the_same_seed_finds_the_same(opened: OpenedPair) -> None:
    plan = RarePlan(
        SplittingPlan(first=60, particles=30, moves=1), repetitions=2, device_queries=100
    )
    event = RareEvent(Arm.ORIGINAL, 0.02)
    first, second = (
        survey_rare_event(opened, CONDITIONS, event, plan, np.random.default_rng(3))
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize("calls", [0, 40])
def test_a_stop_leaves_no_half_of_a_rate(opened: OpenedPair, calls: int) -> None:
    left = iter(range(calls))
    survey = survey_rare_event(
        opened,
        CONDITIONS,
        RareEvent(Arm.ORIGINAL, 0.02),
        RarePlan(SMALL),
        np.random.default_rng(0),
        stopped=lambda: next(left, None) is None,
    )
    assert survey.rate is None


def test_the_original_is_asked_for_levels_where_there_is_one(opened: OpenedPair) -> None:
    images, event = list(opened.seeds.inputs[:8]), RareEvent(Arm.TWIN)
    alone = replace(opened, pair=replace(opened.pair, original=None))
    found = [
        RareArms(one, event, lambda: False).levels(images, range(8)) for one in (opened, alone)
    ]
    arms = ((Arm.ORIGINAL, Arm.TWIN), (Arm.TWIN,))
    for levels, asked in zip(found, arms, strict=True):
        answers = opened.evaluate(images, range(8), asked)
        assert np.array_equal(levels, [event.level(one.outcome) for one in answers])
    assert not np.array_equal(found[0], found[1])


def test_the_headline_is_about_the_original(opened: OpenedPair) -> None:
    assert headline_event(opened) == RareEvent(Arm.ORIGINAL)
    pair = replace(opened.pair, original=None)
    assert headline_event(replace(opened, pair=pair)) == RareEvent(Arm.TWIN)


def test_each_batch_for_the_device_waits_until_it_is_cool(opened: OpenedPair) -> None:
    waits: list[None] = []
    arms = RareArms(opened, RareEvent(Arm.ORIGINAL), lambda: False, lambda: waits.append(None))
    images = list(opened.seeds.inputs[:3])
    arms.levels(images, range(3))
    assert not waits
    arms.happened(images, range(3))
    assert len(waits) == 1


def test_conditions_are_needed(opened: OpenedPair) -> None:
    with pytest.raises(UserError, match="--conditions"):
        survey_rare_event(opened, (), RareEvent(Arm.TWIN), RarePlan(), np.random.default_rng(0))


def test_a_task_without_margins_is_refused(tmp_path: Path) -> None:
    values = '[inputs.values]\ndomain = "array"\narray = "inputs"\nlowest = -4.0\nhighest = 4.0\n'
    folder = write_score_pair(
        tmp_path / "pair", f'{values}[task]\nname = "regression"\ntolerance = 0.5\n'
    )
    tilt = Condition("tilt", "array", (), "nothing", lambda one, _severity, _rng: one)
    with ExitStack() as stack:
        opened = opened_pair(folder, stack)
        with pytest.raises(UserError, match="have none"):
            survey_rare_event(
                opened, (tilt,), RareEvent(Arm.TWIN), RarePlan(), np.random.default_rng(0)
            )
