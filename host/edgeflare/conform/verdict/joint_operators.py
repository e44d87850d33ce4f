"""Whether a graph of operators answers as its operators do, one after the other.

No tolerance is needed for that: each operator alone is given what the one before it answered, and
the results agree to the bit. Where they do not, a delegate has fused operators and rounds less
often; then the exact answer decides, with what lies between as it is and rounded to its type. In a
graph of one operator nothing can be fused, so that a quantized result has to be the same. What the
twin joins to the same bits does not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.execution.kernel_arm import ModelAnswer, PosedModel, RunFailure
from edgeflare.conform.operator_graph import (
    ABSENT,
    GraphNode,
    GraphValue,
    OperatorGraph,
    Values,
)
from edgeflare.conform.operators.operator_catalogue import known_operators
from edgeflare.conform.specification.activation_tensors import Operand, UnknownOperatorForm
from edgeflare.conform.specification.exact_answer import EPSILON, ExactAnswer
from edgeflare.conform.verdict.arm_comparison import DEVICE, TWIN
from edgeflare.conform.verdict.exact_rows import usual_rows
from edgeflare.conform.verdict.kernel_judgement import LOST, KernelJudgement
from edgeflare.conform.verdict.right_values import same_bits

_FLOAT_ROUNDINGS = 8
"""Roundings of float32 that a fused operator may add or leave out."""

_UNKNOWN = 1e-3
"""Share of the largest value by which fused float operators may be off whose exact answers are not
computed; each of a deep graph adds to it."""

_FEW = 12
"""Operators of a graph up to which exact answers are computed: in deeper ones roundings add up,
whether or not they are fused."""

_DEEP_STEPS = 32.0
"""How many times as far a result of a deeper graph may be off."""

_IMPRECISE = 64.0
"""How many times as far as float32 allows a sum may be off by itself that is imprecise, and not
wrong: up to 22 times were seen on a GPU in software."""

_FARTHER = 64.0
"""How many times as far a graph has to be off as its operators one after the other, where these are
imprecise: a subtraction or a root behind them makes more of an error, and of both."""

_DIFFERENT = 4.0
"""The error of a value that had to be equal, and is not."""

Errors = NDArray[np.float64]
"""Largest error of each of some rows, in steps of what is allowed, (rows,)."""

Places = NDArray[np.bool_]
"""Values of a result that are looked at."""

_LARGEST = float(np.finfo(np.float32).max)
_TINIEST = float(np.finfo(np.float32).tiny)
"""The least normal float32: kernels may answer zero in place of less."""


def judged_whole(
    model: PosedModel,
    answer: ModelAnswer,
    expected: Sequence[Values],
    twin: ModelAnswer | None = None,
) -> KernelJudgement:
    """Return what is said of a whole graph, each operator of which answers alone.

    Args:
        model: the graph with the values that it is given.
        answer: the device's.
        expected: what its operators answer one after the other: (rows, *shape) for each result.
        twin: the twin's answer to the whole graph; None where it was not asked, which it has to be
            before anything counts.

    """
    if answer.failure is not None:
        return _without_answer(answer.failure, twin)
    if all(map(_are_equal, answer.outputs, expected)):
        return KernelJudgement("right")
    rows = range(len(answer.outputs[0]))
    errors = _errors(model, answer.outputs, _otherwise(answer, None), rows, expected)
    usual = usual_rows(model.graph, model.operands, len(rows))
    if _worst(errors[usual]) > 1:
        places = np.flatnonzero(usual).tolist()
        own = _errors(model, answer.outputs, _otherwise(answer, twin), places, expected)
        return _wrong("device", own) if _worst(own) > 1 else _wrong("shared", errors[usual])
    if _worst(errors[~usual]) > 1:
        return _wrong("undefined", errors[~usual])
    worst = _worst(errors)
    return KernelJudgement("rounding", worst=worst, unit="steps", detail="operators are fused")


def is_own_fault(said: KernelJudgement, model: PosedModel, expected: Sequence[Values]) -> bool:
    """Return whether a graph is wrong by more than its operators are one after the other.

    A kernel that sums floats less exactly than float32 can is no excuse for an answer that is
    wrong by far: else it would hide all faults of the graphs that it is in.

    Args:
        said: what is said of the graph.
        model: the graph with the values that it is given.
        expected: what its operators answer one after the other: (rows, *shape) for each result.

    """
    if len(model.graph.nodes) == 1 or not _is_measured(model.graph):
        return True  # they are what the graph is compared with
    usual = np.flatnonzero(usual_rows(model.graph, model.operands, len(expected[0]))).tolist()
    everywhere = [np.ones(result.shape, np.bool_) for result in expected]
    alone = _worst(_errors(model, expected, everywhere, usual, expected))
    if alone <= 1:
        return True
    floats = all(model.graph.values[at].dtype == "float32" for at in model.graph.outputs)
    together = np.inf if said.verdict in LOST else said.worst
    return floats and alone <= _IMPRECISE and together > _FARTHER * alone


def wrong_outputs(
    model: PosedModel, answers: Sequence[Values], expected: Sequence[Values]
) -> tuple[int, ...]:
    """Return the places of the outputs by which a graph is wrong.

    Args:
        model: the graph with the values that it is given.
        answers: the answer, (rows, *shape) for each result.
        expected: what its operators answer one after the other, likewise.

    """
    rows = range(len(answers[0]))
    found = []
    for place, both in enumerate(zip(answers, expected, strict=True)):
        if _are_equal(*both):
            continue
        among = [np.full(values.shape, at == place) for at, values in enumerate(answers)]
        if _worst(_errors(model, answers, among, rows, expected)) > 1:
            found.append(place)
    return tuple(found)


def _is_measured(graph: OperatorGraph) -> bool:
    """Return whether exact answers are computed: operators are known, and few."""
    known = all(node.operator in known_operators() for node in graph.nodes)
    return known and len(graph.nodes) <= _FEW


def _without_answer(failure: RunFailure, twin: ModelAnswer | None) -> KernelJudgement:
    theirs = None if twin is None or twin.failure is None else twin.failure.kind
    if failure.kind == "misshapen":
        alike = theirs == "misshapen"
        verdict: Literal["device", "shared"] = "shared" if alike else "device"
        return KernelJudgement(
            verdict, "wrong-shape", not alike, wrong=_wrong_arms(alike), detail=failure.detail
        )
    kind = "crash" if failure.kind == "error" else failure.kind
    # Its operators alone were taken, so that a twin that refuses the whole is no excuse.
    lost = theirs in ("crash", "hang", "error")
    counted = kind != "refused" and not lost
    return KernelJudgement(kind, kind, counted, wrong=_wrong_arms(lost), detail=failure.detail)


def _wrong_arms(alike: bool) -> tuple[str, ...]:
    return (DEVICE, TWIN) if alike else (DEVICE,)


def _otherwise(answer: ModelAnswer, twin: ModelAnswer | None) -> list[Places]:
    """Return where the twin does not answer as the device does: everywhere if it was not asked."""
    if twin is None or [output.shape for output in twin.outputs] != [
        output.shape for output in answer.outputs
    ]:
        return [np.ones(output.shape, np.bool_) for output in answer.outputs]
    return [~same_bits(*both) for both in zip(answer.outputs, twin.outputs, strict=True)]


def _wrong(verdict: Literal["device", "shared", "undefined"], errors: Errors) -> KernelJudgement:
    worst = _worst(errors)
    return KernelJudgement(
        verdict=verdict,
        symptom="wrong-values" if worst < np.inf else "not-finite",
        counted=verdict == "device",
        worst=worst,
        unit="steps",
        wrong=_wrong_arms(verdict == "shared"),
        detail="the whole graph answers otherwise than its operators one after the other",
    )


def _worst(errors: Errors) -> float:
    return float(np.max(errors, initial=0.0))


def _are_equal(one: Values, other: Values) -> bool:
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@dataclass(frozen=True, slots=True)
class _Known:
    """A tensor of one row.

    Attributes:
        unrounded: as it would be if nothing before it were rounded.
        once: likewise, and rounded to the tensor's type.
        rounded: as it would be if all before it were rounded, and it too.
        slack: whether it follows from anything that is rounded.

    """

    unrounded: Operand
    once: Operand
    rounded: Operand
    slack: bool

    @classmethod
    def given(cls, value: GraphValue, raw: Values) -> _Known:
        """Return a constant, or what the graph is given."""
        operand = Operand(value, raw)
        return cls(operand, operand, operand, slack=False)


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a result of one row may be: the exact answers with all rounded in between, and nothing.

    Attributes:
        value: the tensor.
        ends: the two answers.
        equal: whether one of them has to be met to the bit.

    """

    value: GraphValue
    ends: tuple[ExactAnswer, ExactAnswer]
    equal: bool

    def error(self, raw: Values, among: Places) -> float:
        """Return how far an answer lies outside of the two, in steps of what is allowed.

        Args:
            raw: the answer.
            among: the values that are looked at.

        """
        if self.equal:
            same = np.logical_or(*(same_bits(raw, exact.values) for exact in self.ends))
            return _DIFFERENT if (among & ~same).any() else 0.0
        ends = [_raw_reals(self.value, exact) for exact in self.ends]
        low, high = np.minimum(*ends), np.maximum(*ends)
        answer = np.asarray(raw, np.float64)
        slack = self.ends[0].slack + self.ends[1].slack
        if self.value.quantization is None:
            far = np.maximum(np.abs(low), np.abs(high))
            step = slack + _FLOAT_ROUNDINGS * EPSILON * far + _TINIEST
        else:
            step = 1 + slack / self.value.quantization.spread(answer.ndim)
        outside = np.maximum(low - answer, answer - high)
        errors = np.where(np.isfinite(answer), np.maximum(outside, 0.0) / step, np.inf)
        # Where the exact answer is no number, or none that the type has, nothing is laid down.
        known = np.isfinite(low) & np.isfinite(high) & (np.maximum(-low, high) <= _LARGEST)
        return float(np.max(errors, where=known & among, initial=0.0))


def _errors(
    model: PosedModel,
    answers: Sequence[Values],
    among: Sequence[Places],
    rows: Sequence[int],
    expected: Sequence[Values],
) -> Errors:
    """Return the largest error of each of some rows, in steps of what is allowed.

    Args:
        model: the graph with the values that it is given.
        answers: answers to all rows.
        among: values of each result that are looked at: (rows, *shape).
        rows: some of them.
        expected: what its operators answer one after the other: (rows, *shape) for each result.

    """
    errors = [0.0 for _ in rows]
    measured = _is_measured(model.graph)
    if measured:
        try:
            errors = [_row_error(model, answers, among, row) for row in rows]
        except UnknownOperatorForm:  # such as whole numbers of 8 bits without a scale
            measured = False
    if len(model.graph.nodes) > 1 and measured:
        return np.array(errors)
    values = [model.graph.values[at] for at in model.graph.outputs]
    apart = [
        max((_apart(*both) for both in zip(values, by_row, strict=True)), default=0.0)
        for by_row in (
            [
                (answered[row], right[row], counted[row])
                for answered, right, counted in zip(answers, expected, among, strict=True)
            ]
            for row in rows
        )
    ]
    deep = len(model.graph.nodes) > _FEW
    return np.maximum(errors, np.asarray(apart) / (_DEEP_STEPS if deep else 1.0))


_Row = tuple[Values, Values, Places]


def _apart(value: GraphValue, one: _Row) -> float:
    """Return how far an answer lies from that of the operators one after the other.

    Of a float the largest difference over what is allowed of one whose arithmetic is not known; of
    a quantized result twice the steps, since none is allowed.
    """
    answer, expected, among = one
    if not among.any():
        return 0.0
    if value.dtype.startswith("float"):
        ends = np.asarray(expected, np.float64)
        size = float(np.max(np.abs(ends), where=np.isfinite(ends), initial=0.0))
        far = np.abs(np.asarray(answer, np.float64) - ends)[among & np.isfinite(ends)]
        return float(np.max(far, initial=0.0)) / (_UNKNOWN * size + _TINIEST)
    if answer.dtype.kind not in "iu":
        return _DIFFERENT if (among & (answer != expected)).any() else 0.0
    return 2 * float(np.max(np.abs(answer.astype(np.float64) - expected), where=among, initial=0.0))


def _row_error(
    model: PosedModel, answers: Sequence[Values], among: Sequence[Places], row: int
) -> float:
    graph = model.graph
    tensors = {
        at: _Known.given(value, value.values)
        for at, value in enumerate(graph.values)
        if value.values is not None
    }
    for at, raw in zip(graph.inputs, model.operands, strict=True):
        tensors[at] = _Known.given(graph.values[at], raw[row])
    expected: dict[int, _Expected] = {}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            _evaluate(graph, node, tensors, expected)
        errors = [
            expected[at].error(raw[row], places[row])
            if at in expected
            else _given_error(tensors[at], raw[row], places[row])
            for at, raw, places in zip(graph.outputs, answers, among, strict=True)
        ]
    return max(errors, default=0.0)


def _given_error(known: _Known, raw: Values, among: Places) -> float:
    """Return the error of a result that is what the graph is given."""
    return _DIFFERENT if (among & ~same_bits(raw, known.once.raw)).any() else 0.0


def _evaluate(
    graph: OperatorGraph,
    node: GraphNode,
    tensors: dict[int, _Known],
    expected: dict[int, _Expected],
) -> None:
    specification = known_operators()[node.operator]
    read = [None if at == ABSENT else tensors[at] for at in node.inputs]
    results = graph.results(node)
    operands = [None if result is None else result.rounded for result in read]
    tight = specification.exact(node.options, operands, results)
    # What moves or compares raw values has nothing to be given but raw values.
    raw_values = any(exact.kind == "bits" for exact in tight)
    operands = [
        None if result is None else result.once if raw_values else result.unrounded
        for result in read
    ]
    loose = specification.exact(node.options, operands, results)
    before = any(result is not None and result.slack for result in read)
    for at, value, *ends in zip(node.outputs, results, loose, tight, strict=True):
        equal = raw_values and not (before and _has_steps(value))
        expected[at] = _Expected(value, (ends[0], ends[1]), equal)
        once, rounded = (Operand(value, _raw(value, exact)) for exact in ends)
        unrounded = once
        if not raw_values:
            reals = np.asarray(ends[0].values, np.float64)
            unrounded = Operand(GraphValue("float64", value.shape), reals)
        tensors[at] = _Known(unrounded, once, rounded, before or not raw_values)


def _has_steps(value: GraphValue) -> bool:
    """Return whether a tensor's values can be near each other: floats and quantized ones."""
    return value.quantization is not None or value.dtype.startswith("float")


def _raw(value: GraphValue, exact: ExactAnswer) -> Values:
    """Return an exact answer rounded to the tensor's type."""
    if exact.kind == "bits":
        return np.asarray(exact.values)
    return np.asarray(_raw_reals(value, exact)).astype(value.dtype)


def _raw_reals(value: GraphValue, exact: ExactAnswer) -> NDArray[np.float64]:
    """Return an exact answer in steps of the tensor, saturated; of a float as it is."""
    real = np.asarray(exact.values, np.float64)
    if value.quantization is None or exact.kind == "bits":
        return real
    known = np.iinfo(value.dtype)
    steps = np.round(real / value.quantization.spread(real.ndim)) + value.quantization.zero_point
    return np.clip(steps, known.min, known.max)
