"""What is said of answers that are right, and of kernels that are wrong in known ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure, RunFailureKind
from edgeflare.conform.specification.operand_values import OPERAND_STYLES, operand_values
from scaling_operator import FACTOR, Scaling, scaling

Answer = NDArray[Any]

TYPES = st.sampled_from(["float32", "int8", "uint8", "int32"])
SHAPES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
SEEDS = st.integers(0, 1 << 30)


def operands(model: Scaling, seed: int, rows: int = 4) -> Answer:
    """Return rows of all styles."""
    rng = np.random.default_rng(seed)
    styles = [OPERAND_STYLES[row % 4] for row in range(rows)]
    return np.stack([operand_values(model.graph.values[0], one, rng) for one in styles])


@given(TYPES, SHAPES, SEEDS, st.floats(0.01, 10))
def test_answers_that_are_rounded_exactly_are_right(
    type_: str, shape: tuple[int, ...], seed: int, step: float
) -> None:
    model = scaling(type_, shape, step)
    inputs = operands(model, seed)
    right = model.right(inputs)
    said = model.judged(inputs, device=right, xnnpack=right, reference=right)
    assert (said.verdict, said.counted, said.wrong) == ("right", False, ())


@given(TYPES, SHAPES, SEEDS, st.booleans())
def test_equal_kernels_are_never_counted(
    type_: str, shape: tuple[int, ...], seed: int, others_are_right: bool
) -> None:
    model = scaling(type_, shape)
    rng = np.random.default_rng(seed)
    inputs = operands(model, seed)
    right = model.right(inputs)
    noise = rng.integers(-2, 3, right.shape) * rng.integers(0, 2, right.shape)
    wrong = (right + noise).astype(right.dtype)
    other = right if others_are_right else wrong[::-1]
    said = model.judged(inputs, device=wrong, xnnpack=wrong, builtin=other)
    assert not said.counted
    assert said.verdict in ("right", "shared", "host")


def truncated(model: Scaling, inputs: Answer) -> Answer:
    return model.rounded(np.trunc(model.in_steps(inputs)))


def truncated_to_zero_point(model: Scaling, inputs: Answer) -> Answer:
    middle = model.zero_point
    return model.rounded(np.trunc(model.in_steps(inputs) - middle) + middle)


def rounded_down(model: Scaling, inputs: Answer) -> Answer:
    return model.rounded(np.floor(model.in_steps(inputs)))


def rounded_twice(model: Scaling, inputs: Answer) -> Answer:
    halves = np.floor(2 * model.in_steps(inputs) + 0.5)
    return model.rounded(np.floor(halves / 2 + 0.5))


def off(by: int) -> Callable[[Scaling, Answer], Answer]:
    return lambda model, inputs: model.rounded(np.rint(model.in_steps(inputs)) + by)


def wrapped(model: Scaling, inputs: Answer) -> Answer:
    return np.rint(model.in_steps(inputs)).astype(np.int64).astype(model.made.dtype)


@pytest.mark.parametrize(
    ("wrong", "shape", "step", "symptom"),
    [
        (truncated, (25,), 0.1713, "biased"),
        (truncated, (5, 8, 8), 0.0271, "biased"),
        (truncated_to_zero_point, (25,), 0.1713, "biased"),
        (rounded_down, (25,), 0.1713, "biased"),
        (rounded_twice, (300,), 0.1713, "biased"),
        (off(1), (20,), 0.1713, "wrong values"),
        (off(2), (4,), 0.1713, "wrong values"),
        (off(-2), (4,), 0.1713, "wrong values"),
        (wrapped, (100,), 0.0271, "wrong values"),
    ],
)
@pytest.mark.parametrize("type_", ["int8", "uint8"])
@pytest.mark.parametrize("seed", range(5))
def test_wrong_arithmetic_of_quantized_kernels_is_seen(
    wrong: Callable[[Scaling, Answer], Answer],
    shape: tuple[int, ...],
    step: float,
    symptom: str,
    type_: str,
    seed: int,
) -> None:
    # The steps have many different fractions; with the smaller scale some values saturate.
    model = scaling(type_, shape, step)
    inputs = np.random.default_rng(seed).integers(0, 256, (4, *shape)).astype(type_)
    right = model.right(inputs)
    said = model.judged(inputs, device=wrong(model, inputs), xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", symptom, True)
    assert said.wrong == ("device",)
    assert "xnnpack is right" in said.detail
    assert said.worst > 0
    assert said.unit == "steps"


@given(TYPES, SEEDS)
def test_values_in_another_order_are_seen(type_: str, seed: int) -> None:
    model = scaling(type_, (40,))
    inputs = np.random.default_rng(seed).permutation(40 * 4).reshape(4, 40).astype(type_)
    right = model.right(inputs)
    said = model.judged(inputs, device=np.roll(right, 1, axis=1), xnnpack=right)
    assert (said.verdict, said.symptom) == ("device", "wrong values")


@given(TYPES, st.integers(1, 7), SEEDS)
def test_a_tail_that_is_not_computed_is_seen(type_: str, tail: int, seed: int) -> None:
    model = scaling(type_, (33,))
    inputs = np.random.default_rng(seed).integers(40, 120, (4, 33)).astype(type_)
    right = model.right(inputs)
    device = right.copy()
    device[:, -tail:] = 0
    said = model.judged(inputs, device=device, xnnpack=right, builtin=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", "wrong values", True)
    assert said.detail.startswith(f"{4 * tail} of 132 values are wrong")


@given(TYPES, SEEDS)
def test_the_answer_to_the_row_before_is_seen(type_: str, seed: int) -> None:
    model = scaling(type_, (20,))
    inputs = np.random.default_rng(seed).integers(0, 120, (4, 20)).astype(type_)
    right = model.right(inputs)
    stale = np.concatenate([right[:1], right[:-1]])
    said = model.judged(inputs, device=stale, xnnpack=right)
    assert (said.verdict, said.symptom) == ("device", "wrong values")


def test_half_precision_is_seen() -> None:
    model = scaling("float32", (10,))
    inputs = operands(model, 1, rows=3)
    right = model.right(inputs)
    half = right.astype(np.float16).astype(np.float32)
    said = model.judged(inputs, device=half, xnnpack=right)
    assert (said.verdict, said.unit) == ("device", "ulp")
    assert said.worst > 100


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_in_place_of_one_is_a_deviation(value: float) -> None:
    model = scaling("float32", (10,))
    inputs = operands(model, 1, rows=3)
    right = model.right(inputs)
    device = right.copy()
    device[1, 3] = value
    said = model.judged(inputs, device=device, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", "not finite", True)
    assert np.isfinite(said.worst)


def test_what_becomes_of_nan_and_infinities_is_judged_apart() -> None:
    model = scaling("float32", (10,))
    inputs = operands(model, 1)
    inputs[3, :3] = np.nan, np.inf, 1e-40
    right = model.right(inputs)
    device = right.copy()
    device[3, 0] = 0.0
    said = model.judged(inputs, device=device, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("undefined", "not finite", False)
    assert model.judged(inputs, device=device, xnnpack=device).verdict == "right"
    assert model.judged(inputs, device=right, xnnpack=device).verdict == "right"


def test_a_deviation_counts_more_than_what_is_judged_apart() -> None:
    model = scaling("float32", (10,))
    inputs = operands(model, 1)
    inputs[3, 0] = np.nan
    right = model.right(inputs)
    device = right.copy()
    device[3, 0], device[0, 0] = 0.0, 100.0
    assert model.judged(inputs, device=device, xnnpack=right).verdict == "device"


def test_an_answer_within_a_step_is_rounding() -> None:
    model = scaling("int8", (5,))
    inputs = np.array([[0, 1, 2, 3, 4]], np.int8)
    right, exact = model.right(inputs), model.in_steps(inputs)
    other = np.where(exact > right, right + 1, right - 1).astype(np.int8)
    said = model.judged(inputs, device=np.where([1, 0, 1, 0, 0], other, right), xnnpack=right)
    assert (said.verdict, said.worst, said.unit, said.counted) == ("rounding", 1.0, "steps", False)


def test_what_all_kernels_do_is_shared() -> None:
    model = scaling("int8", (30,), 0.0271)
    inputs = operands(model, 1)
    right = model.right(inputs)
    wrong = off(3)(model, inputs)
    said = model.judged(inputs, device=wrong, xnnpack=wrong, reference=right)
    assert (said.verdict, said.counted, said.wrong) == ("shared", False, ("device", "xnnpack"))
    assert "reference is right" in said.detail
    # All are wrong, each in another way, and the device not by far the most.
    others = off(-3)(model, inputs)
    said = model.judged(inputs, device=wrong, xnnpack=others, reference=others)
    assert said.verdict == "shared"
    # A fault beside one that all share.
    worse = wrong.copy()
    worse[0, :7] = np.where(right[0, :7] < 0, right[0, :7] + 90, right[0, :7] - 90)
    said = model.judged(inputs, device=worse, xnnpack=wrong, reference=wrong)
    assert (said.verdict, said.counted) == ("device", True)
    assert said.detail.startswith("7 of 120")


def test_a_kernel_set_of_the_host_that_is_wrong_is_named() -> None:
    model = scaling("int8", (30,), 0.0271)
    inputs = operands(model, 1)
    right, wrong = model.right(inputs), off(3)(model, inputs)
    said = model.judged(inputs, device=right, xnnpack=right, reference=wrong)
    assert (said.verdict, said.counted, said.wrong) == ("host", False, ("reference",))
    assert "reference alone is wrong" in said.detail
    died = ModelAnswer(failure=RunFailure("crash", "SIGSEGV"))
    said = model.judged(inputs, device=right, xnnpack=died)
    assert (said.verdict, said.symptom, said.wrong) == ("host", "crash", ("xnnpack",))


def test_a_kernel_set_that_takes_no_such_model_says_nothing() -> None:
    model = scaling("int8", (30,), 0.0271)
    inputs = operands(model, 1)
    right, wrong = model.right(inputs), off(3)(model, inputs)
    refused = ModelAnswer(failure=RunFailure("refused", "no such operator"))
    assert model.judged(inputs, device=right, xnnpack=refused).verdict == "right"
    said = model.judged(inputs, device=wrong, xnnpack=refused)
    assert (said.verdict, said.counted) == ("device", True)
    assert "no kernel set of the host answers" in said.detail


@pytest.mark.parametrize(
    ("kind", "twin", "verdict", "counted"),
    [
        ("crash", None, "crash", True),
        ("crash", "crash", "crash", False),
        ("hang", None, "hang", True),
        ("hang", "hang", "hang", False),
        ("crash", "refused", "crash", True),
        ("refused", None, "refused", False),
        ("error", None, "refused", False),
    ],
)
def test_a_device_that_gives_no_answer(
    kind: RunFailureKind, twin: RunFailureKind | None, verdict: str, counted: bool
) -> None:
    model = scaling("int8", (3,))
    inputs = operands(model, 1)
    right = ModelAnswer((model.right(inputs),))
    host = right if twin is None else ModelAnswer(failure=RunFailure(twin, ""))
    device = ModelAnswer(failure=RunFailure(kind, "signal 11"))
    said = model.judged(inputs, device=device, xnnpack=host)
    assert (said.verdict, said.counted, said.detail) == (verdict, counted, "signal 11")


MISSHAPEN = ModelAnswer(failure=RunFailure("misshapen", "the result is int8 (1,)"))


@pytest.mark.parametrize(
    ("size", "twin", "verdict"),
    [(3, None, "device"), (3, MISSHAPEN, "shared"), (0, None, "undefined")],
)
def test_a_device_whose_answer_has_another_shape(
    size: int, twin: ModelAnswer | None, verdict: str
) -> None:
    model = scaling("int8", (size,))
    inputs = operands(model, 1)
    right = ModelAnswer((model.right(inputs),))
    said = model.judged(inputs, device=MISSHAPEN, xnnpack=twin or right, builtin=right)
    assert (said.verdict, said.symptom, said.counted) == (
        verdict,
        "wrong shape",
        verdict == "device",
    )
    assert said.wrong == (("device",) if twin is None else ("device", "xnnpack"))
    assert model.judged(inputs, device=MISSHAPEN, xnnpack=MISSHAPEN).counted is False


def test_a_kernel_set_whose_answer_has_another_shape_is_wrong() -> None:
    model = scaling("int8", (3,))
    inputs = operands(model, 1)
    said = model.judged(inputs, device=model.right(inputs), xnnpack=MISSHAPEN)
    assert (said.verdict, said.symptom, said.wrong) == ("host", "wrong shape", ("xnnpack",))


def test_a_model_that_makes_others_die_or_depends_on_them() -> None:
    model = scaling("int8", (3,))
    inputs = operands(model, 1)
    right = ModelAnswer((model.right(inputs),))
    device = ModelAnswer(failure=RunFailure("crash", "signal 11"), corrupts=True)
    said = model.judged(inputs, device=device, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("crash", "corrupts", True)
    beside = ModelAnswer(right.outputs, neighbours=True)
    said = model.judged(inputs, device=beside, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", "neighbours", True)
    said = model.judged(inputs, device=beside, xnnpack=beside)
    assert (said.verdict, said.counted) == ("shared", False)


@pytest.mark.parametrize(
    ("by", "tells"), [(0, True), (1, False)], ids=["right to the bit", "one step off"]
)
def test_an_answer_that_is_only_just_right_says_nothing_of_a_fault(by: int, tells: bool) -> None:
    model = scaling("int8", (3,), 0.1 * FACTOR)  # every exact answer is a whole step
    inputs = np.array([[-7, 3, 11]] * 4, np.int8)
    right = model.right(inputs)
    said = model.judged(inputs, device=off(by)(model, inputs), xnnpack=right)
    assert said.verdict in ("right", "rounding")
    assert bool(said.telling) == tells
