"""Shares of inputs, and differences of two shares of the same inputs, with intervals of 95 %.

- The interval of a share is exact (Clopper and Pearson).
- That of a paired difference is Wald's with a half of an input added to each cell: Bonett and
  Price, "Adjusted Wald confidence interval for a difference of binomial proportions based on paired
  data", Journal of Educational and Behavioral Statistics 37 (2012).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from math import ceil, sqrt
from typing import Final

import msgspec

from edgeflare.statistics.binomial import exact_interval
from edgeflare.statistics.distributions import normal_deviate


class ShareEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """A figure of some inputs, with an interval of 95 %.

    Attributes:
        value: what was seen.
        low: lower end of the interval.
        high: upper end of the interval.
        inputs: number of inputs.

    """

    value: float
    low: float
    high: float
    inputs: int

    def in_words(self) -> str:
        """Return the figure with its interval."""
        return f"{self.value:.2%} ({self.low:.2%} to {self.high:.2%})"


def share(hits: int, inputs: int) -> ShareEstimate:
    """Return a share of inputs; at least one."""
    low, high = exact_interval(hits, inputs)
    return ShareEstimate(value=hits / inputs, low=low, high=high, inputs=inputs)


def paired_difference(lost: int, won: int, inputs: int) -> ShareEstimate:
    """Return by how much one share exceeds another one of the same inputs; at least one.

    Args:
        lost: inputs that count for the first share alone.
        won: those that count for the second alone.
        inputs: all of them.

    """
    first, second = (lost + 1) / (inputs + 2), (won + 1) / (inputs + 2)
    middle = first - second
    half = normal_deviate() * sqrt((first + second - middle**2) / (inputs + 2))
    value = (lost - won) / inputs
    # The interval's middle is drawn to 0, so that of many inputs lost it could leave the value out.
    return ShareEstimate(
        value=value,
        low=max(-1.0, min(value, middle - half)),
        high=min(1.0, max(value, middle + half)),
        inputs=inputs,
    )


def wilson_interval(share: float, draws: float, confidence: float) -> tuple[float, float]:
    """Return Wilson's interval of a share of independent draws.

    Args:
        share: the share that was seen, from 0 to 1.
        draws: how many draws say as much; no whole number where it comes from a variance.
        confidence: confidence of the interval.

    """
    deviate = normal_deviate(confidence)
    middle = (share * draws + deviate**2 / 2.0) / (draws + deviate**2)
    spread = share * (1.0 - share)
    half = deviate / (draws + deviate**2) * (spread * draws + deviate**2 / 4.0) ** 0.5
    return middle - half, middle + half


def sample_size(half_width: float, confidence: float, items: int, rate: float) -> int:
    """Return how many of so many items a simple random sample needs for an interval of a rate.

    Args:
        half_width: half the width that the interval may have.
        confidence: confidence of the interval.
        items: items that the sample is drawn from, without replacement.
        rate: rate that is expected.

    """
    unbounded = rate * (1.0 - rate) * (normal_deviate(confidence) / half_width) ** 2
    return ceil(unbounded / (1.0 + unbounded / items))


def inputs_to_decide(at: Callable[[float], ShareEstimate], limit: float) -> int | None:
    """Return how many inputs would tell a figure like this from a limit; None where none would.

    Args:
        at: returns the figure of so many times as many inputs of the same kind.
        limit: value that the figure is to be told from.

    """
    times = 1.0
    while not _decides(at(times), limit):
        times *= 2.0
        if times > _MOST_TIMES:
            return None
    low, high = times / 2.0, times
    while high - low > _NEAR * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _decides(at(middle), limit) else (middle, high)
    return at(high).inputs


_MOST_TIMES: Final = 2.0**10
"""Times as many inputs, above which nobody brings so many."""

_NEAR: Final = 0.01
"""Share by which the number of inputs may be too large."""


def _decides(seen: ShareEstimate, limit: float) -> bool:
    return seen.low > limit or seen.high <= limit


def written_limit(text: str) -> float:
    """Return a limit that is written as a number or in percent; 0.07 % is 0.0007 to the last digit.

    Raises:
        ValueError: the text is no number.

    """
    if not text.endswith("%"):
        return float(text)
    try:
        return float(Decimal(text.removesuffix("%").strip()) / 100)
    except ArithmeticError:
        raise ValueError(f"{text} is no percentage") from None
