"""Rare events within a survey whose device is lost, or changes, while it is asked about them."""

from __future__ import annotations

from concurrent.futures import Future

import numpy as np
import pytest
from numpy.typing import NDArray

from edgeflare.core.tensor import RawBatch
from edgeflare.errors import InfrastructureError
from edgeflare.models.evaluator import Evaluator
from laboratory import Laboratory
from scripted_health import scripted_device
from surveying import LaboratorySurvey, StoppingObserver
from wrapped_evaluators import WrappedEvaluator, with_outputs

ASKED = 100
"""Device queries before rare events: those of the survey."""


@pytest.fixture
def survey(laboratory: Laboratory) -> LaboratorySurvey:
    rng = np.random.default_rng(5)
    laboratory.images = rng.integers(0, 256, (60, 6, 6, 1), dtype=np.uint8)
    laboratory.monitored = (scripted_device(canary_every=100),)
    return LaboratorySurvey(
        laboratory, {"device_queries": ASKED, "rare_queries": 100, "findings": 0}
    )


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
    survey.run("whole")
    survey.run("lost", wrap_device=lambda inner: Fickle(inner, lost=2))
    assert len(survey.laboratory.recovered) == 2
    assert survey.rare("whole") == survey.rare("lost") is not None


def test_a_device_lost_for_good_leaves_a_survey_to_go_on_with(survey: LaboratorySurvey) -> None:
    survey.run("whole")

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


def test_a_device_whose_answers_change_is_asked_again(survey: LaboratorySurvey) -> None:
    whole = survey.run("whole")
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
    said = {warning for warning in resumed["warnings"] if warning not in whole["warnings"]}
    assert all("look after the device" in warning for warning in said)
    assert said


def test_the_checks_count_as_its_own_queries(survey: LaboratorySurvey) -> None:
    """One before all, one after the pilot, and one after each of ten repetitions."""
    watched = survey.run("watched")
    survey.laboratory.monitored = (scripted_device(canary_every=0),)
    survey.run("unwatched")
    found, plain = survey.rare("watched"), survey.rare("unwatched")
    assert found is not None
    assert plain is not None
    assert found["device_queries"] == plain["device_queries"] + 12
    assert found == {**plain, "device_queries": found["device_queries"]}
    (health,) = watched["health"]
    assert health["canaries"]["same"] == 1 + 12


def test_a_stop_within_it_keeps_no_half(survey: LaboratorySurvey) -> None:
    survey.run("whole")
    stopped = survey.run("cut", StoppingObserver(repetitions=3))
    assert stopped["stopped_by"] == "interrupt"
    assert survey.rare("cut") is None
    survey.run("cut", resume=True)
    assert survey.rare("whole") == survey.rare("cut")
