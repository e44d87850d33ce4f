"""What is said of answers that are right, and of kernels that are wrong in known ways."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, RunFailure, RunFailureKind
from edgeflare.conform.operator_graph import GraphValue, OperatorGraph, Option, Quantization
from edgeflare.conform.specification.activation_tensors import (
    OPERAND_STYLES,
    Operand,
    operand_values,
)
from edgeflare.conform.specification.exact_answer import ExactAnswer, bits, reals, steps
from edgeflare.conform.specification.operator_specification import OperatorSpecification
from edgeflare.conform.verdict.kernel_judgement import KernelJudgement
from edgeflare.conform.verdict.operator_verdict import judged

Answer = NDArray[Any]

TYPES = st.sampled_from(["float32", "int8", "uint8", "int32"])
SHAPES = st.lists(st.integers(0, 9), max_size=3).map(tuple)
SEEDS = st.integers(0, 1 << 30)
FACTOR = 0.37


@dataclass(frozen=True)
class Scaling:
    """An operator that multiplies by `FACTOR`; of int32 it is the identity, to the bit.

    Attributes:
        type: of what it reads and makes.
        shape: likewise.
        step: the scale of the result.

    """

    type: str
    shape: tuple[int, ...]
    step: float = 0.04
    operator = "MUL"

    @property
    def quantized(self) -> bool:
        return self.type in ("int8", "uint8")

    @property
    def zero_point(self) -> int:
        return 12 if self.type == "int8" else 140

    @property
    def graph(self) -> OperatorGraph:
        given = Quantization((0.1,), self.zero_point - 9) if self.quantized else None
        made = Quantization((self.step,), self.zero_point) if self.quantized else None
        values = (GraphValue(self.type, self.shape, one) for one in (given, made))
        return OperatorGraph.of_operator("MUL", [next(values)], [next(values)])

    def exact(
        self,
        options: Mapping[str, Option],  # noqa: ARG002 - those of all specifications
        operands: Sequence[Operand | None],
        results: Sequence[GraphValue],  # noqa: ARG002
    ) -> tuple[ExactAnswer, ...]:
        (given,) = operands
        assert given is not None
        if self.quantized:
            return (steps(given.real * FACTOR),)
        return (reals(given.real * FACTOR) if self.type == "float32" else bits(given.raw),)

    def in_steps(self, given: Answer) -> NDArray[np.float64]:
        """Return the exact answers in steps of the result."""
        return np.asarray(self.graph.values[0].real(given) * FACTOR / self.step) + self.zero_point

    def rounded(self, steps: NDArray[np.float64]) -> Answer:
        """Return steps saturated to the result's type."""
        known = np.iinfo(self.type)
        return np.clip(steps, known.min, known.max).astype(self.type)

    def right(self, given: Answer) -> Answer:
        """Return the answers that are rounded exactly."""
        if self.quantized:
            return self.rounded(np.rint(self.in_steps(given)))
        with np.errstate(all="ignore"):
            factor = FACTOR if self.type == "float32" else 1
            return np.asarray(given * np.asarray(factor, self.type))

    def judged(self, given: Answer, **answers: Answer | ModelAnswer) -> KernelJudgement:
        """Judge the answers of arms, by their names, to one operand: (rows, *shape) each."""
        known = {
            name: one if isinstance(one, ModelAnswer) else ModelAnswer((one,))
            for name, one in answers.items()
        }
        return judged(cast("OperatorSpecification", self), self.type, self.graph, (given,), known)


def operands(model: Scaling, seed: int = 1, rows: int = 4) -> Answer:
    """Return rows of all styles; only the last of four has what are no usual numbers."""
    rng = np.random.default_rng(seed)
    styles = [OPERAND_STYLES[row % 4] for row in range(rows)]
    return np.stack([operand_values(model.graph.values[0], style, rng) for style in styles])


def failed(kind: RunFailureKind, detail: str = "signal 11") -> ModelAnswer:
    return ModelAnswer(failure=RunFailure(kind, detail))


@given(TYPES, SHAPES, SEEDS, st.floats(0.01, 10))
def test_answers_that_are_rounded_exactly_are_right(
    type_: str, shape: tuple[int, ...], seed: int, step: float
) -> None:
    model = Scaling(type_, shape, step)
    inputs = operands(model, seed)
    right = model.right(inputs)
    said = model.judged(inputs, device=right, xnnpack=right, reference=right)
    assert (said.verdict, said.counted, said.wrong) == ("right", False, ())


@given(TYPES, SHAPES, SEEDS, st.booleans())
def test_equal_kernels_are_never_counted(
    type_: str, shape: tuple[int, ...], seed: int, others_are_right: bool
) -> None:
    model = Scaling(type_, shape)
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
    return np.rint(model.in_steps(inputs)).astype(np.int64).astype(model.type)


@pytest.mark.parametrize(
    ("wrong", "shape", "step", "symptom"),
    [
        (truncated, (25,), 0.1713, "biased"),
        (truncated, (5, 8, 8), 0.0271, "biased"),
        (truncated_to_zero_point, (25,), 0.1713, "biased"),
        (rounded_down, (25,), 0.1713, "biased"),
        (rounded_twice, (300,), 0.1713, "biased"),
        (off(1), (20,), 0.1713, "wrong-values"),
        (off(-2), (4,), 0.1713, "wrong-values"),
        (wrapped, (100,), 0.0271, "wrong-values"),
    ],
)
@pytest.mark.parametrize("type_", ["int8", "uint8"])
@pytest.mark.parametrize("seed", range(2))
def test_wrong_arithmetic_of_quantized_kernels_is_seen(
    wrong: Callable[[Scaling, Answer], Answer],
    shape: tuple[int, ...],
    step: float,
    symptom: str,
    type_: str,
    seed: int,
) -> None:
    # The steps have many different fractions; with the smaller scale some values saturate.
    model = Scaling(type_, shape, step)
    inputs = np.random.default_rng(seed).integers(0, 256, (4, *shape)).astype(type_)
    said = model.judged(inputs, device=wrong(model, inputs), xnnpack=model.right(inputs))
    assert (said.verdict, said.symptom, said.counted) == ("device", symptom, True)
    assert said.wrong == ("device",)
    assert "xnnpack is right" in said.detail
    assert said.worst > 0
    assert said.unit == "steps"


@given(TYPES, SEEDS, st.integers(1, 7))
def test_values_that_are_moved_or_left_out_are_seen(type_: str, seed: int, tail: int) -> None:
    model = Scaling(type_, (33,))
    inputs = np.random.default_rng(seed).integers(40, 120, (4, 33)).astype(type_)
    right = model.right(inputs)
    uncomputed = right.copy()
    uncomputed[:, -tail:] = 0
    stale = np.concatenate([right[:1], right[:-1]])
    for device in (np.roll(right, 1, axis=1), stale, uncomputed):
        said = model.judged(inputs, device=device, xnnpack=right, builtin=right)
        assert (said.verdict, said.symptom, said.counted) == ("device", "wrong-values", True)
    assert said.detail.startswith(f"{4 * tail} of 132 values are wrong")
    uncomputed[1:] = right[1:]
    uncomputed[0, :-1] = right[0, :-1]
    said = model.judged(inputs, device=uncomputed, xnnpack=right, builtin=right)
    assert said.detail.startswith("1 of 132 values is wrong")


def test_half_precision_is_seen() -> None:
    model = Scaling("float32", (10,))
    inputs = operands(model, rows=3)
    right = model.right(inputs)
    half = right.astype(np.float16).astype(np.float32)
    said = model.judged(inputs, device=half, xnnpack=right)
    assert (said.verdict, said.unit) == ("device", "ulp")
    assert said.worst > 100


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_number_in_place_of_one_is_a_deviation(value: float) -> None:
    model = Scaling("float32", (10,))
    inputs = operands(model, rows=3)
    right = model.right(inputs)
    device = right.copy()
    device[1, 3] = value
    said = model.judged(inputs, device=device, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", "not-finite", True)
    assert np.isfinite(said.worst)


def test_what_becomes_of_nan_and_infinities_is_judged_apart() -> None:
    model = Scaling("float32", (10,))
    inputs = operands(model)
    inputs[3, :3] = np.nan, np.inf, 1e-40
    right = model.right(inputs)
    device = right.copy()
    device[3, 0] = 0.0
    said = model.judged(inputs, device=device, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("undefined", "not-finite", False)
    assert model.judged(inputs, device=device, xnnpack=device).verdict == "right"
    assert model.judged(inputs, device=right, xnnpack=device).verdict == "right"
    # A deviation counts more.
    device[0, 0] = 100.0
    assert model.judged(inputs, device=device, xnnpack=right).verdict == "device"


def test_an_answer_within_a_step_is_rounding() -> None:
    model = Scaling("int8", (5,))
    inputs = np.array([[0, 1, 2, 3, 4]], np.int8)
    right, exact = model.right(inputs), model.in_steps(inputs)
    other = np.where(exact > right, right + 1, right - 1).astype(np.int8)
    said = model.judged(inputs, device=np.where([1, 0, 1, 0, 0], other, right), xnnpack=right)
    assert (said.verdict, said.worst, said.unit, said.counted) == ("rounding", 1.0, "steps", False)


def test_what_all_kernels_do_is_shared() -> None:
    model = Scaling("int8", (30,), 0.0271)
    inputs = operands(model)
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
    model = Scaling("int8", (30,), 0.0271)
    inputs = operands(model)
    right, wrong = model.right(inputs), off(3)(model, inputs)
    said = model.judged(inputs, device=right, xnnpack=right, reference=wrong)
    assert (said.verdict, said.counted, said.wrong) == ("host", False, ("reference",))
    assert "reference alone is wrong" in said.detail
    for kind, symptom in (("crash", "crash"), ("misshapen", "wrong-shape")):
        said = model.judged(inputs, device=right, xnnpack=failed(kind))  # type: ignore[arg-type]
        assert (said.verdict, said.symptom, said.wrong) == ("host", symptom, ("xnnpack",))


def test_a_kernel_set_that_takes_no_such_model_says_nothing() -> None:
    model = Scaling("int8", (30,), 0.0271)
    inputs = operands(model)
    right, wrong, refused = model.right(inputs), off(3)(model, inputs), failed("refused")
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
    model = Scaling("int8", (3,))
    inputs = operands(model)
    host = model.right(inputs) if twin is None else failed(twin)
    said = model.judged(inputs, device=failed(kind), xnnpack=host)
    assert (said.verdict, said.counted, said.detail) == (verdict, counted, "signal 11")


@pytest.mark.parametrize(
    ("size", "shared", "verdict"),
    [(3, False, "device"), (3, True, "shared"), (0, False, "undefined")],
)
def test_a_device_whose_answer_has_another_shape(size: int, shared: bool, verdict: str) -> None:
    model, misshapen = Scaling("int8", (size,)), failed("misshapen", "the result is int8 (1,)")
    inputs = operands(model)
    right = model.right(inputs)
    twin = misshapen if shared else right
    said = model.judged(inputs, device=misshapen, xnnpack=twin, builtin=right)
    assert (said.verdict, said.symptom) == (verdict, "wrong-shape")
    assert said.counted == (verdict == "device")
    assert said.wrong == (("device", "xnnpack") if shared else ("device",))


def test_a_model_that_makes_others_die_or_depends_on_them() -> None:
    model = Scaling("int8", (3,))
    inputs = operands(model)
    right = model.right(inputs)
    corrupting = replace(failed("crash"), corrupts=True)
    said = model.judged(inputs, device=corrupting, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("crash", "corrupts", True)
    beside = ModelAnswer((right,), neighbours=True)
    said = model.judged(inputs, device=beside, xnnpack=right)
    assert (said.verdict, said.symptom, said.counted) == ("device", "neighbours", True)
    said = model.judged(inputs, device=beside, xnnpack=beside)
    assert (said.verdict, said.counted) == ("shared", False)


@pytest.mark.parametrize(
    ("by", "tells"), [(0, True), (1, False)], ids=["right to the bit", "one step off"]
)
def test_an_answer_that_is_only_just_right_says_nothing_of_a_fault(by: int, tells: bool) -> None:
    model = Scaling("int8", (3,), 0.1 * FACTOR)  # every exact answer is a whole step
    inputs = np.array([[-7, 3, 11]] * 4, np.int8)
    right = model.right(inputs)
    said = model.judged(inputs, device=off(by)(model, inputs), xnnpack=right)
    assert said.verdict in ("right", "rounding")
    assert bool(said.telling) == tells
