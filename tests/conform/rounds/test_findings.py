"""The findings of a run: numbered, shrunk, named by the user or not, stored, and tried again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

from conformed_runs import constructed_conformance
from conforming import (
    ADD,
    CLAMPED,
    HUNG,
    SUM,
    BesideOthers,
    ExactArm,
    PlantedFault,
    SeenProgress,
    conforming,
    faulty_arms,
)
from drafting import chain
from edgeflare.cli.conformance_presentation import accepted_text
from edgeflare.conform.drafts.draft import Draft, drafted
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailureKind
from edgeflare.conform.finding_replay import retried_findings
from edgeflare.conform.findings.accepted_findings import AcceptedFinding, read_accepted
from edgeflare.conform.findings.known_issues import KnownFaults, KnownIssue
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.record.conform_finding import ConformFinding
from edgeflare.conform.record.finding_files import load_finding, stored_model
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.rounds.draft_verdict import judge_drafts, judge_packed
from edgeflare.conform.rounds.smallest_models import SmallestModels
from edgeflare.conform.specification.parameter import Configuration, dimensions
from edgeflare.run.run_directory import RunDirectory

KNOWN = (
    AcceptedFinding(*ADD, "device", "wrong-values", "a fused clamp", ("activation is RELU6",)),
)

ISSUES = (
    KnownIssue(
        "a fused clamp",
        *("ADD", ("float32", "int8", "uint8"), ("activation is RELU6",)),
        symptoms=("wrong-values",),
        kernel_sets=("builtin",),
        seen=("2.2.0",),
    ),
    KnownIssue(
        *("negates before it clamps", "RELU then NEG", ("float32",)),
        symptoms=("wrong-values",),
        kernel_sets=("builtin",),
        seen=("2.2.0",),
    ),
)


def _found(
    rounds: ConformRounds,
    folder: Path,
    observer: SeenProgress | None = None,
    *,
    accepted: Sequence[AcceptedFinding] = (),
    over: bool = False,
) -> list[ConformFinding]:
    seen = observer or SeenProgress()
    known = KnownFaults(accepted, ISSUES, "builtin", ("ai-edge-litert", "2.3.0"))
    smallest = SmallestModels(rounds, seen, lambda: over)
    smallest.shrink(())
    return smallest.findings(RunDirectory(folder), known)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ConformRounds]:
    """A run that has ended, with an ADD that is wrong and a SUM that hangs."""
    folder = tmp_path_factory.mktemp("run")
    with conforming(folder, faulty_arms(CLAMPED, HUNG), (ADD, SUM)) as (rounds, source):
        rounds.draw(source, 64)
    return folder, rounds


@dataclass(frozen=True)
class Stored:
    """The findings of that run, shrunk and stored, and what was seen of it."""

    found: list[ConformFinding]
    observer: SeenProgress


@pytest.fixture(scope="module")
def stored(run: tuple[Path, ConformRounds]) -> Stored:
    folder, rounds = run
    observer = SeenProgress()
    return Stored(_found(rounds, folder, observer), observer)


@pytest.mark.slow
def test_findings_are_shrunk_and_stored(run: tuple[Path, ConformRounds], stored: Stored) -> None:
    folder, rounds = run
    found, observer = stored.found, stored.observer
    assert [(one.number, one.operator, one.counts) for one in found] == [
        (1, "ADD", True),
        (2, "SUM", True),
    ]
    assert max(observer.shrinking) == (2, 2)
    for one, group, most in zip(found, rounds.groups, (300, 12), strict=True):
        assert one.failing == len(group.failing)
        assert one.condition == group.condition
        assert one.smallest.device_runs <= most
        (node,) = one.smallest.draft.nodes
        model = load_finding(RunDirectory(folder), one.smallest.file)
        graph = drafted(one.smallest.draft).graph
        ((said, _),) = judge_packed([node], [PosedModel(graph, model.operands)], rounds.arms)
        assert said == one.smallest.judgement
        assert (said.verdict, said.symptom) == (one.judgement.verdict, one.judgement.symptom)
    assert found[0].smallest.draft.nodes[0].configuration["activation"] == "RELU6"
    assert found[0].smallest.elements <= 4


@pytest.mark.slow
def test_the_files_have_all_answers(run: tuple[Path, ConformRounds], stored: Stored) -> None:
    first, second = (load_finding(RunDirectory(run[0]), one.smallest.file) for one in stored.found)
    (device,), (twin,) = first.answers("device"), first.answers("xnnpack")
    assert np.array_equal(device, ~twin)
    assert first.answers("exact")[0].shape == twin.shape
    assert second.answers("device") == ()
    assert len(second.answers("xnnpack")) == 1


@pytest.mark.slow
def test_without_time_the_models_stay_as_they_were_drawn(
    run: tuple[Path, ConformRounds], tmp_path: Path
) -> None:
    _, rounds = run
    found = _found(rounds, tmp_path, over=True)
    assert [one.smallest.device_runs for one in found] == [0, 0]
    for one, group in zip(found, rounds.groups, strict=True):
        drawn = [rounds.state.nodes[group.key.operator, group.key.type][at] for at in group.failing]
        assert one.smallest.draft.nodes[0] in drawn


@pytest.mark.slow
def test_a_finding_that_the_user_knows_does_not_count(
    run: tuple[Path, ConformRounds], tmp_path: Path
) -> None:
    _, rounds = run
    known, other = _found(rounds, tmp_path, accepted=KNOWN, over=True)
    assert (known.accepted, known.counts, known.judgement.counted) == ("a fused clamp", False, True)
    assert (other.accepted, other.counts) == (None, True)
    assert (known.issue, other.issue) == (ISSUES[0], None)
    assert known.entry().issue is not None
    unlike = replace(KNOWN[0], condition=("activation is RELU",))
    assert _found(rounds, tmp_path, accepted=[unlike], over=True)[0].counts


@pytest.mark.slow
def test_crashes_that_the_twin_shares_are_another_finding(tmp_path: Path) -> None:
    def clamps(settings: Configuration) -> bool:
        return settings["activation"] == "RELU6"

    def is_small(settings: Configuration) -> bool:
        return clamps(settings) and prod(dimensions(settings, "shape")) <= 8

    device = ExactArm("device", (PlantedFault("ADD", clamps, failure="crash"),))
    twin = ExactArm("xnnpack", (PlantedFault("ADD", is_small, failure="crash"),))
    with conforming(tmp_path, (device, twin)) as (rounds, source):
        rounds.draw(source, 64)
        own, shared = _found(rounds, tmp_path)
    assert (own.counts, shared.counts) == (True, False)
    assert own.smallest.judgement.wrong == ("device",)
    assert own.smallest.elements > 8
    assert shared.smallest.judgement.wrong == ("device", "xnnpack")


@pytest.mark.slow
def test_what_depends_on_neighbours_is_one_finding_and_shrunk(tmp_path: Path) -> None:
    arms = (BesideOthers("device", (PlantedFault("ADD"),)), ExactArm("xnnpack"))
    with conforming(tmp_path, arms) as (rounds, source):
        rounds.draw(source, 24)
        (one,) = _found(rounds, tmp_path)
    assert (one.judgement.symptom, one.counts) == ("neighbours", True)
    assert one.failing == sum(seen.judgement.is_finding for seen in rounds.state.observations[ADD])
    assert one.failing > 20
    assert one.smallest.judgement.symptom == "neighbours"
    assert one.smallest.elements <= 4


class UnsteadyDevice(ExactArm):
    """A device whose ADD of one row is wrong until it has settled."""

    settled = False

    def run(self, models: Sequence[PosedModel]) -> list[ModelAnswer]:
        answers = super().run(models)
        sound = ExactArm().run(models)
        small = [model.rows == 1 for model in models]
        return [
            right if self.settled and few else wrong
            for wrong, right, few in zip(answers, sound, small, strict=True)
        ]

    def run_alone(
        self,
        models: Sequence[PosedModel],  # noqa: ARG002
        packed: Sequence[ModelAnswer],
    ) -> list[ModelAnswer]:
        return list(packed)


@pytest.mark.slow
def test_a_model_that_does_not_fail_again_gives_place_to_one_that_does(tmp_path: Path) -> None:
    device = UnsteadyDevice("device", (PlantedFault("ADD"),))
    with conforming(tmp_path, (device, ExactArm("xnnpack"))) as (rounds, source):
        rounds.draw(source, 64)

        class Settling(SeenProgress):
            """Lets the device change when all is shrunk."""

            def shrunk(self, done: int, total: int) -> None:
                device.settled = done == total

        (one,) = _found(rounds, tmp_path, Settling())
    assert one.smallest.repeats
    assert one.smallest.judgement.symptom == "wrong-values"
    assert one.smallest.rows > 1


@pytest.mark.slow
def test_a_finding_that_does_not_fail_again_is_said_to_be_so(tmp_path: Path) -> None:
    device = ExactArm("device", (CLAMPED,))
    with conforming(tmp_path, (device, ExactArm("xnnpack"))) as (rounds, source):
        rounds.draw(source, 32)
        device.faults = ()
        (one,) = _found(rounds, tmp_path)
    assert not one.smallest.repeats
    assert one.judgement.symptom == "wrong-values"


def _wrong(values: Values) -> Values:
    """Return other values, which ABS and NEG do not make the same again."""
    return np.asarray(3 * values - 1, values.dtype)


FUSED = PlantedFault("NEG", change=_wrong, joined=True, after="RELU")
"""A kernel that runs RELU and NEG at once, and is wrong."""

OTHER = PlantedFault("ABS", change=_wrong, joined=True, after="NEG")
"""Likewise of NEG and ABS."""

DIES = PlantedFault("NEG", failure="crash", joined=True, after="RELU")
Arms = tuple[ExactArm, ExactArm]


def _arms(*faults: PlantedFault, twin: Sequence[PlantedFault] = ()) -> Arms:
    return ExactArm("device", faults), ExactArm("xnnpack", twin)


def _of_drafts(
    folder: Path, arms: Arms, *drafts: Draft, accepted: Sequence[AcceptedFinding] = ()
) -> list[ConformFinding]:
    """Return the findings of some drafts."""
    with conforming(folder, arms) as (rounds, _):
        for one in judge_drafts(drafts, arms, {}):
            rounds.state.add(one)
        return _found(rounds, folder, accepted=accepted)


def _names(found: Sequence[ConformFinding]) -> list[tuple[str, int]]:
    return [(one.operator, one.failing) for one in found]


LONGER = chain("ABS", "RELU", "NEG", "ABS", shape=(3, 4))


def test_a_fault_of_a_pair_is_one_small_finding(tmp_path: Path) -> None:
    (found,) = _of_drafts(tmp_path, _arms(FUSED), LONGER, chain("RELU", "NEG"))
    assert (found.number, found.operator, found.type) == (1, "RELU then NEG", "float32")
    assert found.issue == ISSUES[1]
    assert (found.judgement.verdict, found.judgement.symptom) == ("device", "wrong-values")
    assert (found.counts, found.failing) == (True, 2)
    small = found.smallest
    assert [node.operator for node in small.draft.nodes] == ["RELU", "NEG"]
    assert small.draft.nodes[1].sources == (0,)
    assert small.rows == 1
    assert 1 < small.device_runs <= 300
    files = load_finding(RunDirectory(tmp_path), small.file)
    assert small.elements == sum(one.size for one in files.operands)
    assert not np.array_equal(files.answers("device")[0], files.answers("xnnpack")[0])
    assert np.array_equal(files.answers("one by one")[0], files.answers("xnnpack")[0])


def test_what_the_twin_joins_alike_is_listed_and_does_not_count(tmp_path: Path) -> None:
    (found,) = _of_drafts(tmp_path, _arms(FUSED, twin=[FUSED]), LONGER)
    assert (found.operator, found.judgement.verdict) == ("RELU then NEG", "shared")
    assert not found.counts


def test_what_an_operator_does_wrong_alone_is_left_to_the_operators(tmp_path: Path) -> None:
    wrong = PlantedFault("NEG", change=_wrong)
    (found,) = _of_drafts(tmp_path, _arms(wrong), LONGER)
    assert found.operator == "NEG"


def test_graphs_with_the_operators_of_a_finding_may_fail_by_others(tmp_path: Path) -> None:
    other = chain("ABS", "NEG", "ABS")
    found = _of_drafts(tmp_path, _arms(FUSED, OTHER), chain("RELU", "NEG"), other)
    assert _names(found) == [("NEG then ABS", 1), ("RELU then NEG", 1)]


def test_a_fault_of_three_operators_keeps_three(tmp_path: Path) -> None:
    between = PlantedFault("NEG", change=_wrong, joined=True, after="RELU", least_operators=3)
    (found,) = _of_drafts(tmp_path, _arms(between), chain("ABS", "RELU", "NEG", "ABS", "RELU"))
    assert len(found.smallest.draft.nodes) == 3
    assert "RELU then NEG" in found.operator


@pytest.mark.parametrize(("failure", "most"), [("crash", 60), ("hang", 12)])
def test_what_takes_processes_or_time_is_shrunk_with_few_graphs(
    tmp_path: Path, failure: RunFailureKind, most: int
) -> None:
    (found,) = _of_drafts(tmp_path, _arms(replace(DIES, failure=failure)), LONGER)
    assert (found.operator, found.counts) == ("RELU then NEG", True)
    assert found.judgement.symptom == failure
    assert found.smallest.device_runs <= most


def test_what_counts_is_numbered_before_what_does_not(tmp_path: Path) -> None:
    wrong = PlantedFault("ABS", change=_wrong)
    arms = _arms(wrong, FUSED, twin=[wrong])
    found = _of_drafts(tmp_path, arms, chain("ABS"), chain("RELU", "NEG"))
    assert [(one.number, one.operator, one.counts) for one in found] == [
        (1, "RELU then NEG", True),
        (2, "ABS", False),
    ]
    assert [one.smallest.file for one in found] == [
        "findings/000001.tflite",
        "findings/000002.tflite",
    ]


def test_what_report_writes_is_known_in_the_next_run(tmp_path: Path) -> None:
    (found,) = _of_drafts(tmp_path, _arms(FUSED), LONGER)
    path = tmp_path / "accepted.toml"
    path.write_text(accepted_text(constructed_conformance([found.entry()])))
    (again,) = _of_drafts(tmp_path, _arms(FUSED), LONGER, accepted=read_accepted(path))
    assert (again.operator, again.counts) == ("RELU then NEG", False)
    assert again.accepted is not None


@pytest.mark.parametrize("fault", [FUSED, DIES])
def test_a_finding_that_is_tried_again_is_what_it_was(tmp_path: Path, fault: PlantedFault) -> None:
    (found,) = _of_drafts(tmp_path, _arms(fault), LONGER)
    stored = stored_model(RunDirectory(tmp_path), found.entry())
    (still,) = retried_findings([stored], _arms(fault))
    assert (still.outcome, still.counts) == ("still", True)
    assert {*still.answers} == {"device", "xnnpack"}
    (mended,) = retried_findings([stored], _arms())
    assert (mended.outcome, mended.counts) == ("mended", False)
    (both,) = retried_findings([stored], _arms(fault, twin=[fault]))
    assert not both.counts
    assert both.judgement.wrong == ("device", "xnnpack")
