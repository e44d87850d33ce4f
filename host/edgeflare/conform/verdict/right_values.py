"""The values that are right for one result of a model, and how far from them an answer lies.

What an answer may be off by has its table of exceptions here, each with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgeflare.conform.operator_graph import GraphValue, Quantization, Values
from edgeflare.conform.specification.exact_answer import EPSILON, AnswerKind, ExactAnswer
from edgeflare.conform.verdict.kernel_judgement import Unit

_USUAL_STEPS = 1.0
"""Steps of quantization that an answer may be off: any rounding, of an argument that is known to
about half a step."""

_USUAL_ULP = 4.0
"""Units in the last place that a float may be off besides what its sums lose."""

_USUAL_MEAN = 0.1
"""Steps that quantized answers may be off on average. Rounding to the nearest is off by nothing,
truncation by half a step."""

_UNITS: Mapping[AnswerKind, Unit] = {"bits": "", "steps": "steps", "reals": "ulp"}

_EXCEPTIONS: Mapping[tuple[str, str], Allowance] = {}
"""Allowances by operator and type. What one kernel set alone needs belongs in no exception: it is
a deviation."""

_DIFFERENT = 4.0
"""The offence of a value that had to be equal, and is not."""

_EXACT_ARITHMETIC = 1e-6
"""Steps that float64 may lose: an answer that is one step off to the bit is one step off."""

_TINIEST = float(np.finfo(np.float32).tiny)
"""The least normal float32: kernels may answer zero in place of less."""

_ALIKE: dict[AnswerKind, float] = {"bits": 0.0, "steps": 1.0, "reals": 1000.0}
"""How far answers to operands that are no usual numbers may lie from each other."""

_FAR_SMALLER = 2.0**-10
"""Share of the largest exact value below which a value is measured in units in the last place of
that share."""


@dataclass(frozen=True)
class RightValues:
    """What is right for one result.

    An *offence* is the error of a value by what is allowed: above 1 the value is wrong.

    Attributes:
        value: the result's tensor.
        exact: the exact answers, (rows, *shape).
        allowance: the operator's allowance.

    """

    value: GraphValue
    exact: ExactAnswer
    allowance: Allowance

    @property
    def unit(self) -> Unit:
        """What errors are measured in: "steps", "ulp", or "" where values are equal or not."""
        return _UNITS[self.exact.kind]

    @property
    def finite(self) -> NDArray[np.bool_]:
        """Where the exact answer is a number that the result's type has."""
        values, slack = self.exact.values, self.exact.slack
        if self.exact.kind == "bits":
            numbers = values.dtype.kind != "f"
            return np.ones(values.shape, bool) if numbers else np.asarray(np.isfinite(values))
        known = np.isfinite(values) & np.isfinite(slack)
        return np.asarray(known & (np.abs(values) <= _largest(self.value.dtype)))

    def errors(self, answer: Values) -> NDArray[np.float64]:
        """Return how far the values of an answer lie from the exact ones, in `unit`."""
        if self.exact.kind == "bits":
            return (~same_bits(answer, self.exact.values)).astype(np.float64)
        if self.exact.kind == "steps":
            low, high = self._ends
            outside = np.maximum(np.maximum(low - answer, answer - high), 0.0)
            return np.where(np.isnan(outside), 0.0, outside)
        with np.errstate(all="ignore"):
            errors = np.abs(answer.astype(np.float64) - self.exact.values) / self._ulp
        errors = np.where(np.isnan(errors), inf, errors)
        return np.where(_both_same(answer, self.exact.values), 0.0, errors)

    def offences(self, errors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return errors by what is allowed."""
        if self.exact.kind == "bits":
            return errors * _DIFFERENT
        if self.exact.kind == "steps":
            return np.asarray(errors / (self.allowance.steps + _EXACT_ARITHMETIC))
        allowed = self.allowance.ulp * np.abs(self.exact.values) * EPSILON
        with np.errstate(all="ignore"):
            by_allowed = errors * self._ulp / (allowed + self.exact.slack + _TINIEST)
        return np.where(np.isinf(errors), inf, np.nan_to_num(by_allowed, nan=0.0))

    def allowed_range(self) -> tuple[Values, Values]:
        """Return the lowest and the highest answers that are no offence, raw ones as float64.

        Both are the exact answer, in its own dtype, where an answer has to be equal; and where it
        is NaN or an infinity.
        """
        exact = self.exact.values
        if self.exact.kind == "bits":
            return exact, exact
        if self.exact.kind == "steps":
            margin = self.allowance.steps + _EXACT_ARITHMETIC
            low, high = self._ends
            return np.nan_to_num(low - margin, nan=-inf), np.nan_to_num(high + margin, nan=inf)
        with np.errstate(all="ignore"):
            allowed = self.allowance.ulp * np.abs(exact) * EPSILON + self.exact.slack + _TINIEST
            allowed = np.nan_to_num(allowed, nan=inf, posinf=inf)
            rounded = exact.astype(self.value.dtype).astype(np.float64)
            low, high = np.minimum(exact - allowed, rounded), np.maximum(exact + allowed, rounded)
        return np.where(np.isfinite(exact), low, exact), np.where(np.isfinite(exact), high, exact)

    def differences(self, one: Values, other: Values) -> NDArray[np.float64]:
        """Return how far two answers lie from each other, in `unit`; infinity for NaN of one."""
        if self.exact.kind == "bits":
            return (~same_bits(one, other)).astype(np.float64)
        with np.errstate(all="ignore"):
            apart = np.abs(one.astype(np.float64) - other.astype(np.float64))
        if self.exact.kind == "reals":
            apart = np.where(same_bits(one, other), 0.0, apart / self._ulp)
        return np.where(np.isnan(apart), inf, apart)

    def alike(self, one: Values, other: Values) -> NDArray[np.bool_]:
        """Return where two answers are one, but for the rounding of kernels."""
        return np.asarray(self.differences(one, other) <= _ALIKE[self.exact.kind])

    @cached_property
    def in_steps(self) -> NDArray[np.float64]:
        """The exact answers in steps of a quantized result, before rounding and saturation."""
        return self.exact.values / self._step + self.zero_point

    @cached_property
    def slack_in_steps(self) -> NDArray[np.float64]:
        """What is allowed besides rounding, in steps of a quantized result."""
        return self.exact.slack / self._step

    @cached_property
    def _ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        known = np.iinfo(self.value.dtype)
        with np.errstate(invalid="ignore"):  # of an infinity without bounds nothing is laid down
            low, high = self.in_steps - self.slack_in_steps, self.in_steps + self.slack_in_steps
        return low.clip(known.min, known.max), high.clip(known.min, known.max)

    @cached_property
    def _ulp(self) -> NDArray[np.float64]:
        size = np.abs(self.exact.values)
        size = np.where(size <= _largest(self.value.dtype), size, 0.0)
        # Of each row by itself: one of them has the largest numbers that there are.
        largest = np.max(size, axis=tuple(range(1, size.ndim)), initial=0.0, keepdims=True)
        return np.asarray(np.maximum(size, np.maximum(largest * _FAR_SMALLER, _TINIEST)) * EPSILON)

    @property
    def zero_point(self) -> int:
        """Of a quantized result."""
        return self._quantization.zero_point

    @property
    def _step(self) -> NDArray[np.float64]:
        return self._quantization.spread(len(self.value.shape))

    @property
    def _quantization(self) -> Quantization:
        if self.value.quantization is None:
            raise ValueError("a result that is held to steps has to be quantized")
        return self.value.quantization


def same_bits(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where two answers of one dtype agree to the bit; NaN is NaN, whatever its bits."""
    if one.dtype.kind != "f":
        return np.asarray(one == other)
    return np.asarray((_bits(one) == _bits(other)) | (np.isnan(one) & np.isnan(other)))


def _bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats as the whole numbers that have their bits, in their shape."""
    whole = np.ascontiguousarray(values).view(f"u{values.dtype.itemsize}")
    return whole.reshape(values.shape)


def _both_same(answer: NDArray[Any], exact: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return where a float is what an exact value, NaN and infinities among them, becomes."""
    with np.errstate(all="ignore"):
        rounded = exact.astype(answer.dtype)
    return np.asarray((answer == rounded) | (np.isnan(answer) & np.isnan(rounded)))


def _largest(dtype: str) -> float:
    """Return the largest number that a result may have; quantized ones saturate beyond it."""
    return float(np.finfo(dtype).max) if dtype.startswith("float") else inf


@dataclass(frozen=True, slots=True)
class Allowance:
    """How far from the exact answers of an operator an answer may lie.

    Attributes:
        reason: why these figures are not the usual ones.
        steps: steps of quantization, for one value.
        ulp: ulp of float32, for one value, besides the exact answer's slack.
        mean: steps of quantization, for the mean of a model's values.

    """

    reason: str
    steps: float = _USUAL_STEPS
    ulp: float = _USUAL_ULP
    mean: float = _USUAL_MEAN


_USUAL = Allowance("")


def allowance(operator: str, type_: str) -> Allowance:
    """Return how far from the exact answers of an operator the answers of a type may lie."""
    return _EXCEPTIONS.get((operator, type_), _USUAL)
