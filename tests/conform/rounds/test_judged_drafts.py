"""Drafts posed, run and judged, operator by operator and whole, on devices of known faults."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conforming import CLAMPED, ExactArm, PlantedFault, an_addition, faulty_arms
from drafting import relu, relu_chain
from edgeflare.conform.drafts.draft import Draft
from edgeflare.conform.execution.kernel_arm import (
    ModelAnswer,
    PosedModel,
    RunFailure,
    RunFailureKind,
)
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.rounds.conform_rounds import (
    drafts_digest,
    judged_from_json,
    judged_to_json,
)
from edgeflare.conform.rounds.draft_verdict import (
    ROWS,
    JudgedDraft,
    JudgedOperator,
    PosedDraft,
    judge_alone,
    judge_drafts,
    judge_lost,
    judge_packed,
    posed,
)
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement, Symptom, Verdict

FAILED = ModelAnswer(failure=RunFailure("crash", "SIGSEGV"))


@pytest.fixture
def diamond() -> PosedDraft:
    """Two RELU of one more, and an ADD of int8 that is alone beside them."""
    return posed(Draft((relu((2, 3)), relu((2, 3), 0), relu((2, 3), 0), an_addition())), {})


def _bytes(several: tuple[Values, ...]) -> list[bytes]:
    return [one.tobytes() for one in several]


def test_a_draft_is_given_the_same_values_again(diamond: PosedDraft) -> None:
    again = posed(Draft(tuple(diamond.draft.nodes)), {})
    assert _bytes(again.whole.operands) == _bytes(diamond.whole.operands)
    alone = posed(Draft((an_addition(),)), {})
    # A node has its values wherever it is, and so fails alone as it fails among others.
    assert _bytes(alone.whole.operands) == _bytes(diamond.operands[3])


def test_the_whole_is_given_what_no_operator_feeds(diamond: PosedDraft) -> None:
    whole = diamond.whole
    assert [one.shape for one in whole.operands] == [(ROWS, 2, 3)] * 3
    assert [one.dtype for one in whole.operands] == [np.float32, np.int8, np.int8]
    for at, values in zip(whole.graph.inputs, whole.operands, strict=True):
        assert whole.graph.values[at].shape == values.shape[1:]
        assert whole.graph.values[at].dtype == values.dtype


def test_an_operator_is_given_the_answer_of_the_one_that_feeds_it(diamond: PosedDraft) -> None:
    made = np.full((ROWS, 2, 3), 5, np.float32)
    answers = [ModelAnswer((made,)), ModelAnswer((made + 1,))]
    third = diamond.alone(2, answers)
    assert third is not None
    assert _bytes(third.operands) == [made.tobytes()]
    fourth = diamond.alone(3, answers)
    assert fourth is not None
    assert _bytes(fourth.operands) == _bytes(diamond.operands[3])


@pytest.mark.parametrize("answer", [None, FAILED])
def test_what_an_operator_without_answer_feeds_is_not_run(
    diamond: PosedDraft, answer: ModelAnswer | None
) -> None:
    assert diamond.alone(1, [answer]) is None
    assert diamond.alone(3, [answer]) is not None
    made = ModelAnswer((np.zeros((ROWS, 2, 3), np.float32),))
    assert diamond.results([made, made, answer, made]) is None


def test_the_results_are_those_that_no_operator_reads() -> None:
    one = posed(relu_chain([(2, 3), (2, 3), (4,)]), {})
    arm = ExactArm()
    answers: list[ModelAnswer | None] = []
    for at in range(3):
        model = one.alone(at, answers)
        assert model is not None
        answers += arm.run([model])
    results = one.results(answers)
    assert results is not None
    assert [values.shape for values in results] == [(ROWS, 2, 3), (ROWS, 4)]
    (whole,) = arm.run([one.whole])
    assert _bytes(whole.outputs) == _bytes(results)


NODES = [an_addition(), an_addition(activation="RELU6"), an_addition()]
MODELS = [posed(Draft((node,)), {}).whole for node in NODES]
DIES = PlantedFault("ADD", lambda one: one["activation"] == "RELU6", failure="crash")
DEAD = ModelAnswer(failure=RunFailure("crash", "planted, alone"))


@dataclass
class ArmAlone(ExactArm):
    """An arm that answers exactly beside others, and otherwise alone."""

    otherwise: ModelAnswer | None = None
    depends: bool = False
    asked: list[PosedModel] = field(default_factory=list)

    def run_alone(
        self, models: Sequence[PosedModel], packed: Sequence[ModelAnswer]
    ) -> list[ModelAnswer]:
        self.asked += models
        if self.otherwise is not None:
            return [self.otherwise for _ in models]
        answers = super().run_alone(models, packed)
        return [replace(one, neighbours=self.depends) for one in answers]


def _judged_operators(device: ExactArm, *hosts: ExactArm) -> list[JudgedOperator]:
    arms = (device, *hosts)
    packed = judge_packed(NODES, MODELS, arms)
    deviating = [at for at, (one, _) in enumerate(packed) if one.verdict == "device"]
    alone = judge_alone(NODES, MODELS, packed, arms, deviating)
    return judge_lost(NODES, MODELS, alone, arms)


def test_models_of_other_numbers_of_rows_are_run_beside_each_other() -> None:
    fewer = tuple(values[:1] for values in MODELS[1].operands)
    models = [MODELS[0], replace(MODELS[1], operands=fewer), MODELS[2]]
    # `ExactArm.run` refuses models of unequal rows, as a file of many models does.
    judged = judge_packed(NODES, models, faulty_arms(CLAMPED))
    assert [one.verdict for one, _ in judged] == ["right", "device", "right"]
    assert [len(answers["device"].outputs[0]) for _, answers in judged] == [4, 1, 4]
    assert judge_packed([], [], faulty_arms()) == []


@pytest.mark.parametrize(("otherwise", "counted"), [(None, True), (DEAD, False)])
def test_a_crash_counts_where_the_twin_survives_alone_too(
    otherwise: ModelAnswer | None, counted: bool
) -> None:
    twin = ArmAlone("xnnpack", otherwise=otherwise)
    verdicts = [
        one for one, _ in _judged_operators(ExactArm(faults=[DIES]), twin, ExactArm("builtin"))
    ]
    assert [one.verdict for one in verdicts] == ["right", "crash", "right"]
    assert verdicts[1].counted == counted
    assert verdicts[1].wrong == (("device",) if counted else ("device", "xnnpack"))
    assert twin.asked == [MODELS[1]]


@pytest.mark.parametrize("depends", [False, True])
def test_what_depends_on_neighbours_counts_where_the_hosts_do_not(depends: bool) -> None:
    (right,) = ExactArm().run([MODELS[1]])
    device = ArmAlone(faults=[CLAMPED], otherwise=replace(right, neighbours=True))
    hosts = ArmAlone("xnnpack", depends=depends), ArmAlone("builtin")
    verdicts = [one for one, _ in _judged_operators(device, *hosts)]
    assert [one.symptom for one in verdicts] == ["", "neighbours", ""]
    assert verdicts[1].counted == (not depends)
    assert verdicts[1].verdict == ("shared" if depends else "device")
    assert [one.asked for one in (device, *hosts)] == [[MODELS[1]]] * 3


@pytest.mark.parametrize("depends", [False, True])
def test_what_is_wrong_alone_is_wrong_whatever_it_depends_on(depends: bool) -> None:
    device, twin = ArmAlone(faults=[CLAMPED], depends=depends), ArmAlone("xnnpack")
    verdicts = [one for one, _ in _judged_operators(device, twin)]
    assert [one.symptom for one in verdicts] == ["", "wrong-values", ""]
    assert device.asked == [MODELS[1]]
    assert twin.asked == []


SOUND = Draft((an_addition(),))
FAULTY = Draft((an_addition(activation="RELU6"),))
JOINED = Draft((an_addition(), an_addition(0), an_addition(1, 0)))
SOUND_TWIN = ExactArm("xnnpack")


def joining(failure: RunFailureKind | None) -> ExactArm:
    """Return a twin whose ADD fails where it is joined to others, or is wrong."""
    return ExactArm("xnnpack", (PlantedFault("ADD", failure=failure, joined=True),))


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
    assert (faulty.nodes[0].verdict, faulty.nodes[0].symptom) == ("device", "wrong-values")
    assert faulty.nodes[0].counted
    assert faulty.nodes == again.nodes


def test_an_operator_is_judged_by_what_it_was_given() -> None:
    first_wrong = Draft((an_addition(activation="RELU6"), an_addition(0)))
    (one,) = _judged(first_wrong)
    assert [node and node.verdict for node in one.nodes] == ["device", "right"]
    assert one.whole is not None
    # The whole graph goes wrong where its first operator does, and nowhere else.
    assert one.whole.verdict == "right"


def test_what_is_fed_by_a_failure_is_not_judged_and_what_is_refused_not_taken() -> None:
    draft = Draft((an_addition(activation="RELU6"), an_addition(0), an_addition()))
    (one,) = _judged(draft, faults=(DIES,))
    assert [node and node.verdict for node in one.nodes] == ["crash", None, "right"]
    assert one.whole is None
    assert one.outcome.nodes == (True, None, True)
    assert not one.outcome.whole
    sound, faulty = _judged(SOUND, FAULTY, faults=(replace(DIES, failure="refused"),))
    assert (sound.outcome.nodes, sound.outcome.whole) == ((True,), True)
    assert (faulty.outcome.nodes, faulty.outcome.whole) == ((False,), False)


@pytest.mark.parametrize(
    ("failure", "twin", "verdict", "counted"),
    [
        (None, joining(None), "shared", False),
        (None, joining("crash"), "device", True),
        (None, SOUND_TWIN, "device", True),
        ("crash", joining("crash"), "crash", False),
        ("crash", joining("hang"), "crash", False),
        ("crash", joining(None), "crash", True),
        ("crash", joining("refused"), "crash", True),
        ("crash", joining("misshapen"), "crash", True),
        ("crash", SOUND_TWIN, "crash", True),
        ("crash", ArmAlone("xnnpack", otherwise=DEAD), "crash", False),
        ("hang", joining("hang"), "hang", False),
        ("error", joining("error"), "crash", False),
        ("misshapen", joining("misshapen"), "shared", False),
        ("misshapen", joining(None), "device", True),
    ],
)
def test_a_fault_of_joined_operators_counts_where_the_twin_joins_them_otherwise(
    failure: RunFailureKind | None, twin: ExactArm, verdict: str, counted: bool
) -> None:
    device = ExactArm("device", joining(failure).faults)
    (one,) = judge_drafts([JOINED], (device, twin), {})
    assert [node and node.verdict for node in one.nodes] == ["right"] * 3
    assert one.whole is not None
    assert (one.whole.verdict, one.whole.counted) == (verdict, counted)
    assert one.whole.wrong == (("device",) if counted else ("device", "xnnpack"))


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
    assert len(device.alone) == 2
    assert not twin.alone


JUDGEMENTS = st.builds(
    KernelJudgement,
    verdict=st.sampled_from(get_args(Verdict)),
    symptom=st.sampled_from(get_args(Symptom)),
    counted=st.booleans(),
    worst=st.floats(0, allow_nan=False),
    unit=st.sampled_from(["", "steps", "ulp"]),
    wrong=st.lists(st.text()).map(tuple),
    detail=st.text(),
)


@settings(max_examples=15)
@given(
    st.lists(
        st.builds(
            JudgedDraft,
            draft=st.just(relu_chain([(2,), (2,)])),
            nodes=st.tuples(st.none() | JUDGEMENTS, st.none() | JUDGEMENTS),
            whole=st.none() | JUDGEMENTS,
        )
    )
)
def test_what_was_said_is_read_back(judged: list[JudgedDraft]) -> None:
    written = json.loads(json.dumps(judged_to_json(judged)))
    assert judged_from_json([one.draft for one in judged], written) == judged


def test_the_digest_tells_drafts_apart() -> None:
    node = an_addition()
    others = [
        [],
        [Draft((node,))],
        [Draft((node,)), Draft((node,))],
        [Draft((node, node))],
        [Draft((replace(node, constants_seed=8),))],
        [Draft((replace(node, sources=(0, -1)),))],
        [Draft((an_addition(output_scale=2.0),))],
    ]
    assert len({drafts_digest(one) for one in others}) == len(others)
    assert drafts_digest([Draft((an_addition(),))]) == drafts_digest([Draft((node,))])
