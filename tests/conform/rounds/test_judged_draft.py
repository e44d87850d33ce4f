"""Drafts judged operator by operator, on a device of which every fault is known."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from conforming import CLAMPED, an_addition, faulty_arms
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import (
    ModelAnswer,
    PosedModel,
    RunFailure,
    RunFailureKind,
)
from edgeflare.conform.rounds.judged_draft import JudgedDraft, judge_drafts
from exact_arm import ExactArm, PlantedFault

SOUND = Draft((an_addition(),))
FAULTY = Draft((an_addition(activation="RELU6"),))
JOINED = Draft((an_addition(), an_addition(0), an_addition(1, 0)))


JOINED_CRASH = PlantedFault("ADD", failure="crash", joined=True)


class DiesAlone(ExactArm):
    """Kernels that die in a fresh process only."""

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        """Answer nothing."""
        assert len(models) == len(packed)
        return [ModelAnswer(failure=RunFailure("crash", "SIGSEGV")) for _ in models]


def _judged(*drafts: Draft, faults: tuple[PlantedFault, ...] = (CLAMPED,)) -> list[JudgedDraft]:
    return judge_drafts(drafts, faulty_arms(*faults), {})


def test_each_draft_has_its_own_verdict() -> None:
    sound, faulty, chain, again = _judged(SOUND, FAULTY, JOINED, FAULTY)
    assert [one.draft for one in (sound, faulty, chain)] == [SOUND, FAULTY, JOINED]
    assert sound.nodes[0] is not None
    assert (sound.nodes[0].verdict, sound.whole) == ("right", None)
    assert [one and one.verdict for one in chain.nodes] == ["right"] * 3
    assert chain.whole is not None
    assert chain.whole.verdict == "right"
    assert faulty.nodes[0] is not None
    assert (faulty.nodes[0].verdict, faulty.nodes[0].symptom) == ("device", "wrong values")
    assert faulty.nodes[0].counted
    assert faulty.nodes == again.nodes


def test_an_operator_is_judged_by_what_it_was_given() -> None:
    first_wrong = Draft((an_addition(activation="RELU6"), an_addition(0)))
    (one,) = _judged(first_wrong)
    assert [node and node.verdict for node in one.nodes] == ["device", "right"]
    assert one.whole is not None
    # The whole graph goes wrong where its first operator does, and nowhere else.
    assert one.whole.verdict == "right"


def test_what_is_fed_by_a_failure_is_not_judged() -> None:
    crash = PlantedFault("ADD", lambda one: one["activation"] == "RELU6", failure="crash")
    draft = Draft((an_addition(activation="RELU6"), an_addition(0), an_addition()))
    (one,) = _judged(draft, faults=(crash,))
    assert [node and node.verdict for node in one.nodes] == ["crash", None, "right"]
    assert one.whole is None
    assert one.outcome.nodes == (True, None, True)
    assert not one.outcome.whole


def test_a_refused_operator_was_not_taken() -> None:
    refused = PlantedFault("ADD", lambda one: one["activation"] == "RELU6", failure="refused")
    sound, faulty = _judged(SOUND, FAULTY, faults=(refused,))
    assert (sound.outcome.nodes, sound.outcome.whole) == ((True,), True)
    assert (faulty.outcome.nodes, faulty.outcome.whole) == ((False,), False)


@pytest.mark.parametrize(("failure", "verdict"), [(None, "device"), ("crash", "crash")])
def test_a_fault_of_joined_operators_is_that_of_the_whole(failure: None, verdict: str) -> None:
    (one,) = _judged(JOINED, faults=(PlantedFault("ADD", failure=failure, joined=True),))
    assert [node and node.verdict for node in one.nodes] == ["right"] * 3
    assert one.whole is not None
    assert (one.whole.verdict, one.whole.counted) == (verdict, True)


@pytest.mark.parametrize(
    ("failure", "theirs", "verdict"),
    [
        (None, None, "shared"),
        ("crash", "crash", "crash"),
        ("crash", "hang", "crash"),
        ("hang", "hang", "hang"),
        ("error", "error", "crash"),
        ("misshapen", "misshapen", "shared"),
    ],
)
def test_what_the_twin_joins_alike_does_not_count(
    failure: RunFailureKind | None, theirs: RunFailureKind | None, verdict: str
) -> None:
    device = ExactArm("device", (PlantedFault("ADD", failure=failure, joined=True),))
    twin = ExactArm("xnnpack", (PlantedFault("ADD", failure=theirs, joined=True),))
    (one,) = judge_drafts([JOINED], (device, twin), {})
    assert one.whole is not None
    assert (one.whole.verdict, one.whole.counted) == (verdict, False)
    assert one.whole.wrong == ("device", "xnnpack")


@pytest.mark.parametrize(
    ("failure", "theirs", "verdict"),
    [
        (None, "crash", "device"),
        ("crash", None, "crash"),
        ("crash", "refused", "crash"),
        ("crash", "misshapen", "crash"),
        ("misshapen", None, "device"),
    ],
)
def test_what_the_twin_joins_otherwise_counts(
    failure: RunFailureKind | None, theirs: RunFailureKind | None, verdict: str
) -> None:
    device = ExactArm("device", (PlantedFault("ADD", failure=failure, joined=True),))
    twin = ExactArm("xnnpack", (PlantedFault("ADD", failure=theirs, joined=True),))
    (one,) = judge_drafts([JOINED], (device, twin), {})
    assert one.whole is not None
    assert (one.whole.verdict, one.whole.counted) == (verdict, True)


def test_a_crash_that_the_twin_survives_beside_others_alone_does_not_count() -> None:
    device, twin = ExactArm("device", (JOINED_CRASH,)), DiesAlone("xnnpack")
    (one,) = judge_drafts([JOINED], (device, twin), {})
    assert one.whole is not None
    assert (one.whole.verdict, one.whole.counted) == ("crash", False)


def test_the_twin_is_asked_for_wholes_that_would_count_alone() -> None:
    device, twin = faulty_arms()
    judge_drafts([JOINED, SOUND], (device, twin), {})
    assert {len(one.graph.nodes) for one in device.models} == {1, 3}
    assert {len(one.graph.nodes) for one in twin.models} == {1}


def test_some_deviating_models_are_run_again_alone() -> None:
    device, twin = faulty_arms(CLAMPED)
    drafts = [Draft((an_addition(shape=(at, 2), activation="RELU6"),)) for at in range(1, 7)]
    judged = judge_drafts([SOUND, *drafts], (device, twin), {})
    assert [one.nodes[0] and one.nodes[0].verdict for one in judged] == ["right"] + 6 * ["device"]
    assert 0 < len(device.alone) < len(drafts)
    assert not twin.alone
