"""Rounds of a conformance run: what they have seen, and what is not run again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conforming import (
    ADD,
    CLAMPED,
    HUNG,
    SUM,
    ExactArm,
    PlantedFault,
    SeenProgress,
    an_addition,
    conforming,
    faulty_arms,
)
from drafting import relu_chain
from edgeflare.conform.drafts.cells import Cell
from edgeflare.conform.drafts.coverage import node_buckets
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.findings.grouping import FindingGroup
from edgeflare.conform.record.conform_journal import ConformJournal
from edgeflare.conform.rounds import conform_rounds, refinement
from edgeflare.conform.rounds.conform_rounds import (
    ConformClock,
    ConformRounds,
    drafts_digest,
    judged_from_json,
)
from edgeflare.conform.rounds.conformance import Conformance, settings_of
from edgeflare.conform.rounds.draft_verdict import JudgedDraft
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.errors import InfrastructureError, UserError

COUNT = 48
CELLS = (ADD, SUM)
DENSE = ("FULLY_CONNECTED", "int8")


@pytest.fixture(scope="module", autouse=True)
def _brief() -> Iterator[None]:
    """Have a refining round run fewer models for each finding, and a round pass over fewer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "_EACH", 12)
        patch.setattr(conform_rounds, "_MOST_LEFT_OUT", 64)
        yield


class LostArm(ExactArm):
    """A device that is lost after some rounds."""

    rounds_left = 0

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        """Answer, or be lost."""
        if self.rounds_left <= 0:
            raise InfrastructureError("the device is gone")
        self.rounds_left -= 1
        return super().run(models)


def _run(
    folder: Path, arms: Sequence[ExactArm], turns: int = 2, cells: Sequence[Cell] = CELLS
) -> ConformRounds:
    with conforming(folder, arms, cells) as (rounds, source):
        for _ in range(turns):
            rounds.draw(source, 32)
            rounds.refine()
        rounds.regroup()
    return rounds


def _told(rounds: ConformRounds) -> tuple[list[FindingGroup], object, object, object]:
    coverage = rounds.coverage
    return rounds.groups, coverage.figures(), coverage.uncovered(), rounds.state


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ConformRounds]:
    """Two rounds and what refines them, on a device with two faults."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, _run(folder, faulty_arms(CLAMPED, HUNG))


@pytest.mark.slow
def test_planted_faults_are_found_and_progress_is_shown(whole: tuple[Path, ConformRounds]) -> None:
    _, rounds = whole
    found = {
        (group.key.operator, group.key.verdict): str(group.condition) for group in rounds.groups
    }
    assert found.keys() == {("ADD", "device"), ("SUM", "hang")}
    assert "activation is RELU6" in found["ADD", "device"]
    assert found["SUM", "hang"] == "keep_dims is yes"
    for group in rounds.groups:
        observed = rounds.state.observations[group.key.operator, group.key.type]
        assert all(observed[at].judgement.verdict == group.key.verdict for at in group.failing)
        assert group.key.counted
    assert isinstance(rounds.observer, SeenProgress)
    models = [seen[0] for seen in rounds.observer.rounds]
    assert models == sorted(models)
    assert models[-1] == rounds.state.models
    assert rounds.observer.rounds[-1][1:] == (2, 2, 2)


@pytest.mark.slow
def test_a_run_that_is_resumed_runs_no_model_of_its_journal(
    whole: tuple[Path, ConformRounds],
) -> None:
    folder, rounds = whole
    arms = (LostArm("device"), LostArm("xnnpack"))
    again = _run(folder, arms)
    assert _told(again) == _told(rounds)
    assert not arms[0].models
    with pytest.raises(InfrastructureError, match="gone"):
        _run(folder, arms, turns=3)


@pytest.mark.slow
def test_a_run_that_is_cut_off_ends_as_one_that_is_not(
    whole: tuple[Path, ConformRounds], tmp_path: Path
) -> None:
    _, rounds = whole
    device, twin = LostArm("device", (CLAMPED, HUNG)), ExactArm("xnnpack")
    device.rounds_left = 2
    with pytest.raises(InfrastructureError, match="gone"):
        _run(tmp_path, (device, twin))
    run_before = len(device.models)
    assert run_before
    arms = faulty_arms(CLAMPED, HUNG)
    assert _told(_run(tmp_path, arms)) == _told(rounds)
    assert len(arms[0].models) + run_before == rounds.state.models


def test_rounds_of_other_models_are_refused(tmp_path: Path) -> None:
    _run(tmp_path, faulty_arms(), turns=1, cells=(ADD,))
    arms = faulty_arms()
    with pytest.raises(UserError, match="draws other models than those of round 0"):
        _run(tmp_path, arms, turns=1, cells=(SUM,))
    assert not arms[0].models


def test_a_round_without_its_outcomes_is_damaged(tmp_path: Path) -> None:
    with conforming(tmp_path, faulty_arms(), (ADD,)) as (rounds, source):
        rounds.journal.keep(0, drafts_digest(source.ask(COUNT)), [], 1.0)
    with (
        conforming(tmp_path, faulty_arms(), (ADD,)) as (rounds, source),
        pytest.raises(UserError, match=r"conform\.db is damaged"),
    ):
        rounds.draw(source, COUNT)


def test_what_rounds_of_the_journal_take_again_is_no_time_that_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with conforming(tmp_path, faulty_arms()) as (rounds, source):
        rounds.draw(source, COUNT)
        spent = rounds.journal.seconds_of_rounds()
    passed = 0.0

    def slowly(drafts: Sequence[Draft], values: Sequence[Mapping[str, Any]]) -> list[JudgedDraft]:
        nonlocal passed
        passed += 1000.0
        return judged_from_json(drafts, values)

    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed)
    monkeypatch.setattr(conform_rounds, "time", clock)
    monkeypatch.setattr(conform_rounds, "judged_from_json", slowly)
    with conforming(tmp_path, faulty_arms()) as (rounds, source):
        rounds.draw(source, COUNT)
        assert spent <= rounds.clock.spent < spent + 1000
        assert rounds.clock.total > 1000


def test_what_is_known_to_hang_is_run_no_more(tmp_path: Path) -> None:
    arms = faulty_arms(HUNG)
    with conforming(tmp_path, arms, (SUM,)) as (rounds, source):
        assert rounds.draw(source, COUNT) == COUNT
        assert len(arms[0].models) == COUNT
        (group,) = rounds.groups
        assert (str(group.condition), len(group.failing) >= 16) == ("keep_dims is yes", True)
        # Others are drawn in the place of those that would hang.
        assert rounds.draw(source, COUNT) == COUNT
        assert len(arms[0].models) == rounds.state.models == 2 * COUNT
        assert rounds.state.cells[SUM].verdicts["hang"] == len(group.failing)
        assert rounds.coverage.figures()["buckets"].refused == 0


@pytest.mark.slow
def test_where_all_hang_a_round_is_empty_and_covers_nothing(tmp_path: Path) -> None:
    arms = faulty_arms(PlantedFault(DENSE[0], failure="hang"))
    with conforming(tmp_path, arms, (DENSE,)) as (rounds, source):
        assert rounds.draw(source, 16) == 16
        covered = {one for node in rounds.state.nodes[DENSE] for one in node_buckets(node)}
        for _ in range(2):
            assert rounds.draw(source, 16) == 0
            assert rounds.refine() == 0
        assert not rounds.journal.has(1)
        figure = rounds.coverage.figures()["buckets"]
        assert (figure.covered, figure.refused) == (len(covered), 0)
        assert figure.covered < figure.known
        # They are no aim any more, so that what can be run is drawn.
        assert not rounds.coverage.new_buckets(DENSE)


def test_a_source_without_models_ends(tmp_path: Path) -> None:
    with conforming(tmp_path, faulty_arms(), ()) as (rounds, source):
        assert rounds.draw(source, COUNT) == 0
        assert rounds.refine() == 0
        assert not rounds.kept


RIGHT = KernelJudgement("right")


def _add(state: Conformance, *said: KernelJudgement) -> None:
    for one in said:
        state.add(JudgedDraft(Draft((an_addition(),)), (one,)))


def test_the_largest_rounding_and_all_refusals_are_kept() -> None:
    state = Conformance()
    _add(
        state,
        RIGHT,
        *(KernelJudgement("rounding", worst=one, unit="steps") for one in (1.0, 2.0, 0.5)),
    )
    _add(
        state,
        *(KernelJudgement("refused", "refused", detail=one) for one in ("no op", "size", "size")),
    )
    figures = state.cells[ADD]
    assert figures.verdicts == {"right": 1, "rounding": 3, "refused": 3}
    assert figures.rounding == (2.0, "steps")
    assert figures.refused == {"no op": 1, "size": 2}
    assert state.models == len(state.observations[ADD]) == len(state.nodes[ADD]) == 7


def test_a_model_is_observed_with_what_follows_from_its_settings() -> None:
    state = Conformance()
    _add(state, RIGHT)
    (observed,) = state.observations[ADD]
    assert observed.settings == settings_of(an_addition())
    assert observed.settings.items() >= an_addition().configuration.items()
    assert len(observed.settings) > len(an_addition().configuration)


def test_an_operator_that_was_not_run_is_not_observed() -> None:
    state = Conformance()
    state.add(JudgedDraft(relu_chain([(2,), (2,)]), (KernelJudgement("crash", "crash"), None)))
    assert state.cells["RELU", "float32"].verdicts == {"crash": 1}
    assert (state.models, state.joined) == (1, [])


def test_operators_of_a_model_were_run_as_they_stand_where_they_were_judged() -> None:
    state = Conformance()
    nodes = tuple(replace(one, given=at) for at, one in enumerate(relu_chain([(2,), (2,)]).nodes))
    state.add(JudgedDraft(Draft(nodes), (KernelJudgement("crash", "crash"), None)))
    _add(state, RIGHT)
    assert state.given([("RELU", "float32"), ADD, ("SUM", "int8")]) == {0}
    assert state.given([ADD]) == state.refused([("RELU", "float32")]) == set()
    state.add(JudgedDraft(Draft(nodes[1:]), (KernelJudgement("refused", "refused"),)))
    assert state.given([("RELU", "float32")]) == {0}
    assert state.refused([("RELU", "float32"), ADD]) == {1}


def test_only_joined_operators_that_fail_are_kept() -> None:
    state, draft = Conformance(), relu_chain([(2,), (2,)])
    wrong = KernelJudgement("device", "wrong-values", counted=True)
    for whole in (RIGHT, KernelJudgement("rounding"), KernelJudgement("refused"), wrong):
        state.add(JudgedDraft(draft, (RIGHT, RIGHT), whole))
    assert [one.whole for one in state.joined] == [wrong]


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let time pass, which stands still otherwise."""
    now = [50.0]
    monkeypatch.setattr(conform_rounds, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def later(seconds: float) -> None:
        now[0] += seconds

    return later


def test_all_processes_are_added_up(tmp_path: Path, wait: Callable[[float], None]) -> None:
    journal = ConformJournal.create(tmp_path / "conform.db", {})
    first = ConformClock(journal)
    wait(30)
    journal.keep(0, "", [], first.spent)
    wait(12)  # for shrinking, say
    first.note()
    wait(5)  # which is lost where the process is killed
    second = ConformClock(journal)
    wait(8)
    assert (first.total, second.total) == (55, 50)
    second.leave_out()  # what was done again
    wait(4)
    assert (second.spent, second.total) == (34, 54)
    journal.close()
