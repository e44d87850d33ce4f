"""Whether a whole graph answers as its operators do, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from conforming import ExactArm, an_addition
from drafting import binary, relu_chain
from edgeflare.conform.drafts.draft import FRESH, Draft, DraftNode, drafted
from edgeflare.conform.execution.kernel_arm import (
    ModelAnswer,
    PosedModel,
    RunFailure,
    RunFailureKind,
)
from edgeflare.conform.operator_graph import Values
from edgeflare.conform.specification.parameter import Setting
from edgeflare.conform.verdict.joint_operators import is_own_fault, judged_whole, wrong_outputs
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement

SHAPE = (3, 4)


SCALED_SUM = Draft((binary("MUL", FRESH, FRESH, shape=SHAPE), binary("ADD", 0, FRESH, shape=SHAPE)))
"""a · b + c, which a delegate computes with one rounding."""

QUANTIZED = Draft((an_addition(output_scale=4.0), an_addition(0, first_scale=4.0)))
"""(a + b) + c, the first sum of which is rounded to steps of 4."""


def _given(draft: Draft, seed: int = 0) -> PosedModel:
    rng = np.random.default_rng(seed)
    graph = drafted(draft).graph
    values = [graph.values[at] for at in graph.inputs]
    largest = 30 if values[0].dtype == "int8" else 8
    drawn = [rng.uniform(-largest, largest, (2, *one.shape)) for one in values]
    operands = (one.astype(value.dtype) for one, value in zip(drawn, values, strict=True))
    return PosedModel(graph, tuple(operands))


def _in_turn(model: PosedModel) -> tuple[Values, ...]:
    return ExactArm().run([model])[0].outputs


def _fused(model: PosedModel) -> Values:
    """Return what is rounded once, at the end: of `SCALED_SUM` or `QUANTIZED`."""
    first, second, third = (one.astype(np.float64) for one in model.operands)
    if model.operands[0].dtype == np.float32:
        return np.asarray((first * second + third).astype(np.float32))
    return np.clip(first + second + third, -128, 127).astype(np.int8)


def _said(model: PosedModel, answers: Sequence[Values]) -> KernelJudgement:
    return judged_whole(model, ModelAnswer(tuple(answers)), _in_turn(model))


@pytest.mark.parametrize("draft", [SCALED_SUM, QUANTIZED, relu_chain([SHAPE] * 8)])
def test_equal_bits_are_right(draft: Draft) -> None:
    model = _given(draft)
    assert _said(model, _in_turn(model)) == KernelJudgement("right")


@pytest.mark.parametrize("draft", [SCALED_SUM, QUANTIZED])
def test_a_fused_operator_rounds(draft: Draft) -> None:
    model = _given(draft)
    assert _fused(model).tobytes() != _in_turn(model)[0].tobytes()
    said = _said(model, [_fused(model)])
    assert (said.verdict, said.counted) == ("rounding", False)
    assert said.worst <= 2


@pytest.mark.parametrize("draft", [SCALED_SUM, QUANTIZED])
@pytest.mark.parametrize("off", [-5, 5])
def test_a_whole_that_is_neither_is_wrong(draft: Draft, off: int) -> None:
    model = _given(draft)
    (right,) = _in_turn(model)
    wrong = right.copy()
    wrong[1, 1, 2] += off
    said = _said(model, [wrong])
    assert (said.verdict, said.symptom, said.counted) == ("device", "wrong-values", True)
    assert said.wrong == ("device",)
    assert said.worst > 1


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_what_should_be_a_number_and_is_none_is_wrong(value: float) -> None:
    model = _given(SCALED_SUM)
    (right,) = _in_turn(model)
    wrong = right.copy()
    wrong[0, 1, 1] = value
    said = _said(model, [wrong])
    assert (said.verdict, said.symptom, said.counted) == ("device", "not-finite", True)


def test_what_becomes_of_nan_and_infinities_does_not_count() -> None:
    model = _given(SCALED_SUM)
    model.operands[0][0, 0, 0] = np.inf
    model.operands[2][0, 0, 0] = -np.inf
    (right,) = _in_turn(model)
    assert np.isnan(right[0, 0, 0])
    other = right.copy()
    other[0, 0, 0] = -np.inf
    assert not _said(model, [other]).counted
    # In the row that has usual numbers everything counts as it does elsewhere.
    other[1, 0, 0] += 1
    assert _said(model, [other]).verdict == "device"


def test_data_that_is_moved_after_a_fused_operator_may_be_rounded() -> None:
    settings = {"shape": SHAPE, "perm": (1, 0)}
    draft = Draft((*SCALED_SUM.nodes, DraftNode("TRANSPOSE", "float32", settings, 0, (1,))))
    model = _given(draft)
    fused = _fused(model).transpose(0, 2, 1)
    assert _said(model, [fused]).verdict == "rounding"
    assert _said(model, [fused[:, ::-1]]).verdict == "device"


@pytest.mark.parametrize(
    ("kind", "verdict", "counted"),
    [("hang", "hang", True), ("error", "crash", True), ("refused", "refused", False)],
)
def test_a_whole_without_answer(kind: RunFailureKind, verdict: str, counted: bool) -> None:
    model = _given(SCALED_SUM)
    answer = ModelAnswer(failure=RunFailure(kind, "SIGSEGV"))
    said = judged_whole(model, answer, _in_turn(model))
    assert (said.verdict, said.symptom, said.counted) == (verdict, verdict, counted)
    assert said.detail == "SIGSEGV"


@pytest.mark.parametrize("draft", [SCALED_SUM, QUANTIZED])
def test_the_device_is_held_to_where_the_twin_answers_otherwise(draft: Draft) -> None:
    model = _given(draft)
    (right,) = _in_turn(model)
    both = right.copy()
    both[1, 1, 2] += 5
    device, only = both.copy(), right.copy()
    device[0, 0, 0] += 3
    only[0, 0, 0] += 3
    twin = ModelAnswer((both,))
    said = judged_whole(model, ModelAnswer((both,)), _in_turn(model), twin)
    assert (said.verdict, said.counted, said.wrong) == ("shared", False, ("device", "xnnpack"))
    own = judged_whole(model, ModelAnswer((device,)), _in_turn(model), twin)
    assert (own.verdict, own.counted, own.wrong) == ("device", True, ("device",))
    assert own.worst == _said(model, [only]).worst


def test_moved_values_that_the_twin_moves_alike_do_not_count() -> None:
    settings: dict[str, Setting] = {"shape": SHAPE, "perm": (1, 0)}
    draft = Draft(
        (
            DraftNode("TRANSPOSE", "float32", settings, 0, (FRESH,)),
            DraftNode("TRANSPOSE", "float32", {**settings, "shape": SHAPE[::-1]}, 0, (0,)),
        )
    )
    model = _given(draft)
    (right,) = _in_turn(model)
    answer, other = ModelAnswer((right[:, ::-1],)), ModelAnswer((right,))
    assert judged_whole(model, answer, (right,), answer).verdict == "shared"
    assert judged_whole(model, answer, (right,), other).verdict == "device"


def test_a_twin_that_answers_in_another_shape_is_no_witness() -> None:
    model = _given(SCALED_SUM)
    (right,) = _in_turn(model)
    said = judged_whole(
        model, ModelAnswer((right + 5,)), (right,), ModelAnswer((right[:, :1] + 5,))
    )
    assert (said.verdict, said.counted) == ("device", True)


def test_a_kernel_that_is_imprecise_alone_hides_no_graph_that_is_wrong_by_far() -> None:
    model = _given(SCALED_SUM)
    (exact,) = _in_turn(model)
    imprecise = (exact * np.float32(1 + 1e-5),)
    unwritten = np.zeros_like(exact)
    near = judged_whole(model, ModelAnswer((exact * np.float32(1 - 1e-5),)), imprecise)
    far = judged_whole(model, ModelAnswer((unwritten,)), imprecise)
    assert (near.verdict, far.verdict) == ("device", "device")
    assert not is_own_fault(near, model, imprecise)
    assert is_own_fault(far, model, imprecise)
    assert not is_own_fault(far, model, (unwritten,))
    assert wrong_outputs(model, (unwritten,), imprecise) == (0,)
