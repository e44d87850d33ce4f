"""Rare events of a real pair beside brute force, and in surveys whose device is lost or changes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document
from edgeflare.campaign.pair_panel import OpenedPair, open_pair
from edgeflare.conditions.condition import Condition
from edgeflare.core.goal import Goal
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm
from edgeflare.core.tensor import RawBatch
from edgeflare.devices.profile_lookup import find_profile
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.models.pair import load_pair
from edgeflare.run.plan import Plan
from edgeflare.survey.rare_events.rare_rate import RarePlan, RareProgress
from edgeflare.survey.rare_events.rare_survey import (
    RareArms,
    RareEvent,
    RarePoint,
    RarePoints,
    headline_event,
    survey_rare_event,
)
from edgeflare.survey.rare_events.splitting import SplittingPlan
from laboratory import Laboratory
from linear_laboratory import linear_laboratory
from networks import write_pair
from scripted_health import scripted_device
from small_pairs import write_score_pair
from surveying import LaboratorySurvey, StoppingObserver
from wrapped_evaluators import WrappedEvaluator, with_outputs

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


def opened_pair(folder: Path, stack: ExitStack) -> OpenedPair:
    plan = Plan("boundary", Goal(), ("emulated-builtin",))
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
    happened = brute_force(opened, event, 2500)
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
    assert len(waits) == len(images)  # the first batches have an input each


def test_no_conditions_and_a_task_without_margins_are_refused(
    opened: OpenedPair, tmp_path: Path
) -> None:
    event, rng = RareEvent(Arm.TWIN), np.random.default_rng(0)
    with pytest.raises(UserError, match="--conditions"):
        survey_rare_event(opened, (), event, RarePlan(), rng)
    values = '[inputs.values]\ndomain = "array"\narray = "inputs"\nlowest = -4.0\nhighest = 4.0\n'
    folder = write_score_pair(
        tmp_path / "pair", f'{values}[task]\nname = "regression"\ntolerance = 0.5\n'
    )
    tilt = Condition("tilt", "array", (), "nothing", lambda one, _severity, _rng: one)
    with ExitStack() as stack:
        scores = opened_pair(folder, stack)
        with pytest.raises(UserError, match="have none"):
            survey_rare_event(scores, (tilt,), event, RarePlan(), rng)


ASKED = 100
"""Device queries before rare events: those of the survey."""


def watched_survey(laboratory: Laboratory) -> LaboratorySurvey:
    rng = np.random.default_rng(5)
    laboratory.images = rng.integers(0, 256, (60, 6, 6, 1), dtype=np.uint8)
    laboratory.monitored = (scripted_device(canary_every=100),)
    return LaboratorySurvey(
        laboratory, {"device_queries": ASKED, "rare_queries": 100, "findings": 0}
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    """The folder and the document of a survey that nothing stopped."""
    folder = tmp_path_factory.mktemp("surveyed")
    return folder / "whole", watched_survey(linear_laboratory(folder)).run("whole")


@pytest.fixture
def survey(laboratory: Laboratory, whole: tuple[Path, Document]) -> LaboratorySurvey:
    """A survey, beside a whole one of the same."""
    shutil.copytree(whole[0], laboratory.folder / "whole")
    return watched_survey(laboratory)


class Fickle(WrappedEvaluator):
    """Is lost, or names the classes the other way round, when it is asked about rare events.

    The queries of the survey before it are counted in inputs, since batches are as large as the
    machine is fast; the two checks of its one round, and the first one of rare events, are among
    them.
    """

    def __init__(
        self, inner: Evaluator, *, lost: int = 0, turned: int = 0, before: int = ASKED + 3
    ) -> None:
        """Wrap a device that does so in so many of the batches after the inputs before."""
        super().__init__(inner)
        self._before, self._lost, self._turned = before, lost, turned

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        if self._before > 0:
            self._before -= len(inputs)
        elif self._lost:
            self._lost -= 1
            self._lost_at = {self.calls + 1}
        elif self._turned:
            self._turned -= 1
            truth = super().submit(inputs).result()
            return with_outputs(truth, truth.outputs[:, ::-1])
        return super().submit(inputs)


def test_a_device_that_comes_back_changes_nothing(survey: LaboratorySurvey) -> None:
    survey.run("lost", wrap_device=lambda inner: Fickle(inner, lost=2))
    assert survey.laboratory.recovered  # once, where both losses are of batches under way together
    assert survey.rare("whole") == survey.rare("lost") is not None


def test_a_device_lost_for_good_leaves_a_survey_to_go_on_with(survey: LaboratorySurvey) -> None:
    def gone() -> None:
        raise InfrastructureError("it is gone")

    survey.laboratory.bring_back = gone
    with pytest.raises(InfrastructureError, match="it is gone"):
        survey.run("cut", wrap_device=lambda inner: Fickle(inner, lost=1))
    assert len(survey.device("cut")) == ASKED
    assert survey.rare("cut") is None
    resumed = survey.run("cut", resume=True)
    assert resumed["stopped_by"] is None
    assert survey.device("whole") == survey.device("cut")
    assert survey.rare("whole") == survey.rare("cut")


def test_a_device_whose_answers_change_is_asked_again(
    survey: LaboratorySurvey, whole: tuple[Path, Document]
) -> None:
    with pytest.raises(InfrastructureError, match="about input 0 has changed; what was answered"):
        survey.run("cut", wrap_device=lambda inner: Fickle(inner, turned=10**9))
    assert survey.rare("cut") is None
    asked: list[Fickle] = []

    def still_turned(inner: Evaluator) -> Evaluator:
        asked.append(Fickle(inner, turned=10**9, before=0))
        return asked[0]

    with pytest.raises(InfrastructureError, match="about input 0 has changed"):
        survey.run("cut", resume=True, wrap_device=still_turned)
    assert asked[0].calls == 2, "it is asked nothing else while it is not well"
    resumed = survey.run("cut", resume=True)
    assert survey.rare("whole") == survey.rare("cut") is not None
    assert survey.device("whole") == survey.device("cut")
    said = {warning for warning in resumed["warnings"] if warning not in whole[1]["warnings"]}
    assert all("look after the device" in warning for warning in said)
    assert said


def test_the_checks_count_as_its_own_queries(
    survey: LaboratorySurvey, whole: tuple[Path, Document]
) -> None:
    """One before all, one after the pilot, and one after each of ten repetitions."""
    survey.laboratory.monitored = (scripted_device(canary_every=0),)
    survey.run("unwatched")
    found, plain = survey.rare("whole"), survey.rare("unwatched")
    assert plain is not None
    assert found == {**plain, "device_queries": plain["device_queries"] + 12}
    (health,) = whole[1]["health"]
    assert health["canaries"]["same"] == 1 + 12


def test_a_stop_within_it_keeps_no_half(survey: LaboratorySurvey) -> None:
    stopped = survey.run("cut", StoppingObserver(repetitions=3))
    assert stopped["stopped_by"] == "interrupt"
    assert survey.rare("cut") is None
    survey.run("cut", resume=True)
    assert survey.rare("whole") == survey.rare("cut")
