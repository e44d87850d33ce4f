"""The findings of a run: numbered, shrunk, named by the user or not, and stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest

from conforming import ADD, CLAMPED, HUNG, SUM, SeenProgress, conforming, faulty_arms
from drafting import relu_chain
from edgeflare.conform.drafts.draft import drafted
from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel
from edgeflare.conform.findings.known_findings import KnownFinding
from edgeflare.conform.record.conform_finding import ConformFinding
from edgeflare.conform.record.finding_files import load_finding
from edgeflare.conform.rounds.conform_rounds import ConformRounds
from edgeflare.conform.rounds.judged_draft import judge_drafts
from edgeflare.conform.rounds.judged_operators import judge_packed
from edgeflare.conform.rounds.smallest_models import found_findings
from edgeflare.conform.specification.settings import Configuration, dimensions
from edgeflare.run.run_directory import RunDirectory
from exact_arm import ExactArm, PlantedFault

KNOWN = (KnownFinding(*ADD, "device", "wrong values", "a fused clamp", ("activation is RELU6",)),)


def _found(
    rounds: ConformRounds,
    folder: Path,
    observer: SeenProgress | None = None,
    *,
    known: Sequence[KnownFinding] = (),
    over: bool = False,
) -> list[ConformFinding]:
    seen = observer or SeenProgress()
    return found_findings(rounds, RunDirectory(folder), known, seen, lambda: over)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ConformRounds]:
    """A run that has ended, with an ADD that is wrong and a SUM that hangs."""
    folder = tmp_path_factory.mktemp("run")
    with conforming(folder, faulty_arms(CLAMPED, HUNG), (ADD, SUM)) as (rounds, source):
        rounds.draw(source, 64)
    return folder, rounds


@pytest.mark.slow
def test_findings_are_shrunk_and_stored(run: tuple[Path, ConformRounds]) -> None:
    folder, rounds = run
    observer = SeenProgress()
    found = _found(rounds, folder, observer)
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
def test_the_files_have_all_answers(run: tuple[Path, ConformRounds]) -> None:
    folder, rounds = run
    first, second = (
        load_finding(RunDirectory(folder), one.smallest.file) for one in _found(rounds, folder)
    )
    (device,), (twin,) = first.answers("device"), first.answers("xnnpack")
    assert np.array_equal(device, ~twin)
    assert first.answers("exact")[0].shape == twin.shape
    assert second.answers("device") == ()
    assert len(second.answers("xnnpack")) == 1


def test_without_time_the_models_stay_as_they_were_drawn(
    run: tuple[Path, ConformRounds], tmp_path: Path
) -> None:
    _, rounds = run
    found = _found(rounds, tmp_path, over=True)
    assert [one.smallest.device_runs for one in found] == [0, 0]
    for one, group in zip(found, rounds.groups, strict=True):
        drawn = [rounds.state.nodes[group.key.operator, group.key.type][at] for at in group.failing]
        assert one.smallest.draft.nodes[0] in drawn


def test_a_finding_that_the_user_knows_does_not_count(
    run: tuple[Path, ConformRounds], tmp_path: Path
) -> None:
    _, rounds = run
    known, other = _found(rounds, tmp_path, known=KNOWN, over=True)
    assert (known.known, known.counts, known.judgement.counted) == ("a fused clamp", False, True)
    assert (other.known, other.counts) == (None, True)
    unlike = replace(KNOWN[0], condition=("activation is RELU",))
    assert _found(rounds, tmp_path, known=[unlike], over=True)[0].counts


def test_findings_that_count_are_numbered_first(tmp_path: Path) -> None:
    shared = PlantedFault("ADD", lambda one: one["activation"] == "RELU6")
    arms = (ExactArm("device", (shared, HUNG)), ExactArm("xnnpack", (shared,)))
    with conforming(tmp_path, arms, (ADD, SUM)) as (rounds, source):
        rounds.draw(source, 32)
        found = _found(rounds, tmp_path, over=True)
    assert [(one.number, one.operator, one.counts) for one in found] == [
        (1, "SUM", True),
        (2, "ADD", False),
    ]


def test_joined_operators_that_go_wrong_are_a_finding(tmp_path: Path) -> None:
    fused = PlantedFault("RELU", change=np.negative, joined=True)
    arms = faulty_arms(fused)
    draft = relu_chain([(2, 3), (2, 3)])
    with conforming(tmp_path, arms) as (rounds, _):
        (judged,) = judge_drafts([draft], arms, {})
        rounds.state.add(judged)
        (found,) = _found(rounds, tmp_path)
    assert (found.number, found.operator, found.type) == (1, "RELU then RELU", "float32")
    assert found.counts
    assert [node.operator for node in found.smallest.draft.nodes] == ["RELU", "RELU"]
    files = load_finding(RunDirectory(tmp_path), found.smallest.file)
    assert found.smallest.elements == sum(one.size for one in files.operands)
    assert not np.array_equal(files.answers("device")[0], files.answers("xnnpack")[0])


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


class BesideOthers(ExactArm):
    """A device whose ADD is wrong beside other models, and right alone."""

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        sound = [ExactArm().run([one])[0] for one in models]
        return [
            replace(one, neighbours=one.outputs[0].tobytes() != other.outputs[0].tobytes())
            for one, other in zip(sound, packed, strict=True)
        ]


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
    assert one.smallest.judgement.symptom == "wrong values"
    assert one.smallest.rows > 1


@pytest.mark.slow
def test_a_finding_that_does_not_fail_again_is_said_to_be_so(tmp_path: Path) -> None:
    device = ExactArm("device", (CLAMPED,))
    with conforming(tmp_path, (device, ExactArm("xnnpack"))) as (rounds, source):
        rounds.draw(source, 32)
        device.faults = ()
        (one,) = _found(rounds, tmp_path)
    assert not one.smallest.repeats
    assert one.judgement.symptom == "wrong values"
