"""A survey from its first item to its findings, and gone on with wherever it was stopped."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import closing
from math import inf
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import NDArray

from documents import Document
from edgeflare.conditions.condition import Condition
from edgeflare.conditions.condition_choice import ChosenCondition
from edgeflare.core.answer import Answer
from edgeflare.core.input_space import Input
from edgeflare.core.query import Arm, Outcome, answers_by_arm
from edgeflare.core.tensor import RawBatch
from edgeflare.devices.connection import DeviceLost
from edgeflare.errors import InfrastructureError, UserError
from edgeflare.models.evaluator import Evaluator
from edgeflare.survey.gates.gate_judgement import JudgedGates
from edgeflare.survey.gates.survey_gate import parse_gate
from edgeflare.survey.phases.survey_observer import DeviceProgress
from edgeflare.survey.sampling_design import SamplingRounds
from laboratory import Laboratory, untimed
from linear_laboratory import linear_laboratory
from scripted_health import scripted_device
from surveying import CHOSEN, LaboratorySurvey, StoppingObserver
from wrapped_evaluators import WrappedEvaluator, with_outputs


def survey_of(laboratory: Laboratory, **plan: int) -> LaboratorySurvey:
    rng = np.random.default_rng(5)
    laboratory.images = rng.integers(0, 256, (120, 6, 6, 1), dtype=np.uint8)
    return LaboratorySurvey(laboratory, plan)


@pytest.fixture
def survey(laboratory: Laboratory) -> LaboratorySurvey:
    return survey_of(laboratory)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Document]:
    """The folder and the document of a survey of 400 device queries that nothing stopped."""
    folder = tmp_path_factory.mktemp("surveyed")
    return folder / "whole", survey_of(linear_laboratory(folder), device_queries=400).run("whole")


def test_the_device_asked_about_all_says_what_the_models_do(survey: LaboratorySurvey) -> None:
    document = survey.run("all")
    facts, items = survey.facts("all"), survey.items
    assert facts.asked.all()
    assert facts.items == 6 * 120

    def decisions(arm: Arm) -> NDArray[np.int64]:
        invoke = survey.laboratory.models[arm]
        made = (items.make(item) for item in range(len(items)))
        return np.array([int(np.argmax(invoke(one[None] / np.float32(255)))) for one in made])

    original, twin, device = map(decisions, Arm)
    assert np.array_equal(facts.compression, original != twin)
    assert np.array_equal(facts.deviates, original != device)
    assert np.array_equal(facts.kernel, twin != device)
    assert 0 < facts.kernel.sum() < facts.deviates.sum()
    found = [*document["findings"], *document["deviating_seeds"]]
    assert len(found) == 5
    assert not document["flaky"]
    assert len({one["seed_id"] for one in found}) == 5
    cells = {f"{cell.condition}:{cell.severity}" for cell in items.cells[1:]}
    assert document["findings"]
    for one in document["findings"]:
        (name,) = one["operators"]
        assert name in cells
        assert one["verified"]
    assert all(not one["operators"] for one in document["deviating_seeds"])
    assert "unmutated" not in document


@pytest.mark.parametrize(
    ("failure", "said"),
    [(IndexError("a mistake"), "error"), (OSError(28, "the disk is full"), "infrastructure")],
)
def test_what_fails_unexpectedly_is_noted(
    failure: Exception, said: str, survey: LaboratorySurvey
) -> None:
    whole = survey.run("whole")

    class Failing(StoppingObserver):
        def asked(self, progress: DeviceProgress) -> None:  # noqa: ARG002 - of the protocol
            raise failure

    with pytest.raises(type(failure)):
        survey.run("cut", Failing())
    written = survey.laboratory.folder / "cut" / "run.json"
    assert json.loads(written.read_bytes())["stopped_by"] == said
    _assert_same(survey, whole, survey.run("cut", resume=True))


@pytest.mark.parametrize(
    ("host", "device"), [(1, inf), (719, inf), (inf, 1), (inf, 250), (inf, 300)]
)
def test_a_stop_changes_nothing(
    host: float, device: float, survey: LaboratorySurvey, whole: tuple[Path, Document]
) -> None:
    """While the host answers, and within either of the rounds that the device is asked in."""
    shutil.copytree(whole[0], survey.laboratory.folder / "whole")
    survey.plan = {"device_queries": 400}
    stopped = survey.run("cut", StoppingObserver(host, device))
    assert stopped["stopped_by"] == "interrupt"
    assert (0 < len(survey.device("cut")) < 400) == (device < inf)
    assert not stopped["findings"]
    _assert_same(survey, whole[1], survey.run("cut", resume=True))


def test_a_lost_device_costs_time_only(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 300}
    whole = survey.run("whole")
    again = survey.run("cut", wrap_device=lambda inner: WrappedEvaluator(inner, {2, 5}))
    _assert_same(survey, whole, again)
    assert survey.laboratory.recovered
    del survey.laboratory.recovered[:]
    run_until_it_is_gone(survey, lambda inner: WrappedEvaluator(inner, {6}), "gone")
    assert 0 < len(survey.device("gone")) < 300
    _assert_same(survey, whole, survey.run("gone", resume=True), "gone")


def test_several_devices_share_the_inputs(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 300, "findings": 30}
    whole = survey.run("one")
    survey.laboratory.more_devices = (survey.laboratory.models[Arm.DEVICE],)
    shared = survey.run("two")
    assert survey.device("one") == survey.device("two")
    assert {one["device"] for one in shared["findings"]} == {"laboratory 0", "laboratory 1"}
    assert len(whole["findings"]) == len(shared["findings"])


def test_a_survey_ends_at_its_precision(survey: LaboratorySurvey) -> None:
    survey.plan = {"precision": 0.06}
    survey.run("run")
    assert 256 <= len(survey.device("run")) < 720


def test_a_survey_ends_when_its_gates_are_decided(survey: LaboratorySurvey) -> None:
    survey.gates = JudgedGates((parse_gate("rate<0.9"),))
    survey.plan = {"gates": ("rate<0.9",)}
    watching = StoppingObserver()
    survey.run("run", watching)
    assert len(survey.device("run")) == 256
    assert [one.ended for one in watching.shown[-2:]] == [False, True]
    assert watching.shown[-1].asked == 256
    assert {one.most for one in watching.shown} == {720}


def test_a_survey_that_goes_on_is_shown_from_where_it_was(survey: LaboratorySurvey) -> None:
    survey.run("run", StoppingObserver(device=400))
    asked = len(survey.device("run"))
    assert asked > 256  # beyond the first round
    watching = StoppingObserver()
    survey.run("run", watching, resume=True)
    shown = [one.asked for one in watching.shown]
    assert shown == sorted(shown)
    assert (shown[0], watching.shown[0].estimate is None) == (asked, False)
    assert shown[-1] == 720


def test_the_time_limit_ends_a_survey_for_good(survey: LaboratorySurvey) -> None:
    survey.plan = {"time_limit_seconds": 1e-9}
    watching = StoppingObserver()
    document = survey.run("run", watching)
    assert document["stopped_by"] is None
    asked = survey.device("run")
    assert len(asked) < 256
    assert (watching.shown[-1].asked, watching.shown[-1].ended) == (len(asked), True)
    survey.run("run", resume=True)
    assert survey.device("run") == asked


def test_a_survey_that_ended_goes_on_with_more_device_queries(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 300, "findings": 4}
    ended = survey.run("run")
    before = survey.device("run")
    survey.plan = {"device_queries": 600, "findings": 6}
    with pytest.raises(UserError, match="with --findings 4, not 6"):
        survey.run("run", resume=True)
    survey.plan = {"device_queries": 600, "findings": 4}
    stopped = survey.run("run", StoppingObserver(device=350), resume=True)
    assert stopped["stopped_by"] == "interrupt"
    assert 300 < len(survey.device("run")) < 600
    after = survey.run("run", resume=True)
    assert after["stopped_by"] is None
    assert len(survey.device("run")) == 600
    assert {row.item: row for row in before}.items() <= {
        row.item: row for row in survey.device("run")
    }.items()
    assert [one["seed_id"] for one in after["findings"]] == [
        one["seed_id"] for one in ended["findings"]
    ]


def test_an_undecided_gate_is_decided_by_going_on(survey: LaboratorySurvey) -> None:
    gate = parse_gate("rate<0.5")
    survey.gates = JudgedGates((gate,))
    survey.plan = {"gates": (gate.text,), "device_queries": 10}
    survey.run("run")
    first = survey.facts("run")
    (outcome,) = survey.gates.outcomes(first, SamplingRounds.replayed(first, 0, 10))
    assert (outcome.state, first.asked.sum()) == ("open", 10)
    survey.plan = {"gates": (gate.text,)}
    survey.run("run", resume=True)
    facts = survey.facts("run")
    rounds = SamplingRounds.replayed(facts, 0, None, (10,))
    (outcome,) = survey.gates.outcomes(facts, rounds)
    assert outcome.state != "open"
    assert 10 < facts.asked.sum() < facts.items


def test_further_findings_join_those_that_were_stored(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 20, "findings": 90}
    few = survey.run("run")
    survey.plan = {"device_queries": 600, "findings": 90}
    more = survey.run("run", resume=True)

    def seeds(document: Document) -> set[int]:
        found = (*document["findings"], *document["deviating_seeds"])
        return {one["seed_id"] for one in found}

    assert seeds(few) < seeds(more)


def test_the_time_limit_does_not_count_what_the_host_does_before(
    survey: LaboratorySurvey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look at the host's answers that takes a thousand seconds."""
    passed, now = [0.0], time.monotonic

    def look(outcomes: Sequence[Outcome]) -> dict[Arm, list[Answer]]:
        passed[0] += 1000.0
        return answers_by_arm(outcomes)

    clock = SimpleNamespace(monotonic=lambda: now() + passed[0])
    monkeypatch.setattr("edgeflare.campaign.campaign_context.time", clock)
    monkeypatch.setattr("edgeflare.survey.phases.host_phase.answers_by_arm", look)
    survey.plan = {"time_limit_seconds": 900.0, "device_queries": 20}
    totals = survey.run("run")["totals"]
    assert totals["wall_seconds"] < 900.0 < totals["setup_seconds"]
    assert len(survey.device("run")) == 20


def test_members_of_the_ensemble_say_what_is_doubtful(survey: LaboratorySurvey) -> None:
    survey.laboratory.members = {"reference": survey.laboratory.models[Arm.DEVICE]}
    survey.run("run")
    facts = survey.facts("run")
    assert facts.kernel.any()
    assert facts.doubtful[facts.kernel].all()
    assert not facts.kernel.all()


def test_a_device_whose_answers_change_is_asked_again(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 400}
    survey.laboratory.monitored = (scripted_device(canary_every=100),)
    whole = survey.run("whole")

    with pytest.raises(InfrastructureError, match="has changed"):
        survey.run("cut", wrap_device=Turning)
    assert len(survey.device("cut")) == 256
    resumed = survey.run("cut", resume=True)
    (warning,) = resumed.pop("warnings")
    assert "144 of this round's answers were dropped" in warning
    resumed["totals"]["overhead_queries"] -= 1  # the answer that had changed
    resumed["totals"]["overhead_device_queries"] -= 1
    _assert_same(survey, whole, {**resumed, "warnings": []})


@pytest.mark.parametrize("lost_after", [350, 402])
def test_a_device_that_was_reset_does_not_vouch_for_what_it_said_before(
    lost_after: int, survey: LaboratorySurvey
) -> None:
    """The device turns in the second round, and is lost in it, or when it is to vouch for it."""
    survey.plan = {"device_queries": 400}
    survey.laboratory.monitored = (scripted_device(canary_every=100),)
    whole = survey.run("whole")
    run_until_it_is_gone(survey, lambda inner: TurningAndLost(inner, lost_after))
    assert len(survey.device("cut")) == (400 if lost_after == 402 else pytest.approx(344, abs=16))
    assert not set(survey.device("cut")) <= set(survey.device("whole"))
    _assert_same(survey, whole, survey.run("cut", resume=True))


def test_what_was_vouched_for_is_not_asked_again(survey: LaboratorySurvey) -> None:
    """A stop within the second round, after which the device answers for what it said."""
    survey.plan = {"device_queries": 400, "findings": 0}
    survey.laboratory.monitored = (scripted_device(canary_every=100),)
    devices: list[CountingEvaluator] = []
    count = counting(devices)
    survey.run("cut", StoppingObserver(device=300), wrap_device=count)
    first = len(survey.device("cut"))
    assert 300 <= first < 400
    survey.run("cut", resume=True, wrap_device=count)
    vouching, vouching_later = 3, 1  # before the first round, after each
    assert [one.inputs for one in devices] == [first + vouching, 400 - first + vouching_later]


def test_of_a_device_that_was_lost_a_few_answers_are_asked_for_again(
    survey: LaboratorySurvey,
) -> None:
    survey.plan = {"device_queries": 400, "findings": 0}
    survey.laboratory.monitored = (scripted_device(canary_every=100),)
    run_until_it_is_gone(survey, lambda inner: WrappedEvaluator(inner, {9}))
    kept = len(survey.device("cut"))
    assert 0 < kept < 400
    devices: list[CountingEvaluator] = []
    survey.run("cut", resume=True, wrap_device=counting(devices))
    again, vouching = 8, 2 if kept < 256 else 1  # after each round
    assert [one.inputs for one in devices] == [400 - kept + again + vouching]


def test_a_round_in_which_one_of_two_devices_changed_is_dropped_whole(
    survey: LaboratorySurvey,
) -> None:
    """What is left has to be the first draws, and each device has every second input."""
    survey.plan = {"device_queries": 400}
    survey.laboratory.more_devices = (survey.laboratory.models[Arm.DEVICE],)
    survey.laboratory.monitored = tuple(scripted_device(canary_every=100) for _ in range(2))
    survey.run("whole")
    devices: list[Evaluator] = []

    def turn_the_second(inner: Evaluator) -> Evaluator:
        devices.append(inner)
        return Turning(inner, after=165) if len(devices) == 2 else inner

    with pytest.raises(InfrastructureError, match="input 1 has changed; 144 of this round's"):
        survey.run("cut", wrap_device=turn_the_second)
    assert len(survey.device("cut")) == 256
    survey.run("cut", resume=True)
    assert survey.device("whole") == survey.device("cut")


def test_a_condition_that_does_not_repeat_itself_is_refused(
    survey: LaboratorySurvey, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = np.random.default_rng(8)

    def change(one: Input, _severity: float, _rng: np.random.Generator) -> Input:
        changed: Input = drawn.integers(0, 256, one.shape, dtype=one.dtype)
        return changed

    fickle = Condition("fickle", "image", (), "another one each time", change)
    monkeypatch.setattr("surveying.CHOSEN", (ChosenCondition("fickle", fickle, (1,)),))
    survey.plan = {"device_queries": 200}
    with pytest.raises(UserError, match="'fickle' returned another input than before"):
        survey.run("run")


def test_a_survey_whose_condition_is_another_one_stays_as_it_was(
    survey: LaboratorySurvey, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey.plan = {"device_queries": 200}
    survey.run("run")
    before = survey.device("run")
    grain, dusk = CHOSEN
    other = ChosenCondition("grain", dusk.condition, grain.severities)
    monkeypatch.setattr("surveying.CHOSEN", (other, dusk))
    survey.plan = {"device_queries": 300}
    with pytest.raises(UserError, match="has other inputs under 'grain' at severity 1"):
        survey.run("run", resume=True)
    monkeypatch.undo()
    survey.plan = {"device_queries": 200}
    survey.run("run", resume=True)  # not refused: 300 were not noted
    assert survey.device("run") == before


def test_a_damaged_survey_is_not_gone_on_with(survey: LaboratorySurvey) -> None:
    survey.plan = {"device_queries": 20}
    survey.run("run")
    journal = survey.laboratory.folder / "run" / "run.db"
    with closing(sqlite3.connect(journal)) as db, db:
        db.execute("UPDATE survey_host SET margin = -1 WHERE item = 5")
    with pytest.raises(UserError, match=r"run\.db is damaged"):
        survey.run("run", resume=True)


class Turning(WrappedEvaluator):
    """Names the classes the other way round after so many inputs, by default in the second round.

    Batches are as large as the machine is fast, so it counts inputs and no calls.
    """

    def __init__(self, inner: Evaluator, after: int = 300) -> None:
        super().__init__(inner)
        self._left = after

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        answer = super().submit(inputs)
        self._left -= len(inputs)
        if self._left >= 0:
            return answer
        truth = answer.result()
        return with_outputs(truth, truth.outputs[:, ::-1])


class CountingEvaluator(WrappedEvaluator):
    """Counts its inputs."""

    def __init__(self, inner: Evaluator) -> None:
        super().__init__(inner)
        self.inputs = 0

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        self.inputs += len(inputs)
        return super().submit(inputs)


class TurningAndLost(Turning):
    """Is lost, too, after so many inputs."""

    def __init__(self, inner: Evaluator, lost_after: int) -> None:
        super().__init__(inner)
        self._until_lost = lost_after

    def submit(self, inputs: NDArray[np.generic]) -> Future[RawBatch]:
        self._until_lost -= len(inputs)
        if self._until_lost >= 0:
            return super().submit(inputs)
        lost: Future[RawBatch] = Future()
        lost.set_exception(DeviceLost("pulled the plug"))
        return lost


def counting(devices: list[CountingEvaluator]) -> Callable[[Evaluator], CountingEvaluator]:
    """Return what wraps a device in one that counts, and keeps it in a list."""

    def wrap(inner: Evaluator) -> CountingEvaluator:
        devices.append(CountingEvaluator(inner))
        return devices[-1]

    return wrap


def run_until_it_is_gone(
    survey: LaboratorySurvey, wrap_device: Callable[[Evaluator], Evaluator], name: str = "cut"
) -> None:
    """Run a survey whose device is lost, and does not come back."""

    def gone() -> None:
        raise InfrastructureError("it is gone")

    survey.laboratory.bring_back = gone
    with pytest.raises(InfrastructureError, match="it is gone"):
        survey.run(name, wrap_device=wrap_device)


def _assert_same(
    survey: LaboratorySurvey, whole: Document, resumed: Document, name: str = "cut"
) -> None:
    """Assert that a survey that was gone on with says what one that nothing stopped says."""
    assert survey.host("whole") == survey.host(name)
    assert survey.device("whole") == survey.device(name)
    assert resumed["stopped_by"] is None
    assert untimed(whole) == untimed(resumed)
