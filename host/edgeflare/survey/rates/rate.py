"""A rate over many items, of which the device was asked about some, with its interval."""

from __future__ import annotations

from dataclasses import dataclass

from edgeflare.record.json_types import Count, Share


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate, with an interval.

    Attributes:
        estimate, low, high: from 0 to 1.
        items: number of items that the rate is about.
        asked: items among them that the device was asked about.
        seen: items asked that the device said yes to.
        alone: what the answers to a pooled rate's own items say; null for other rates.

    """

    estimate: Share
    low: Share
    high: Share
    items: Count
    asked: Count
    seen: Count
    alone: Limits | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """An estimate and the limits of its interval."""

    estimate: Share
    low: Share
    high: Share


@dataclass(frozen=True, slots=True)
class SignedEstimate:
    """A figure with an interval, which may be negative."""

    estimate: float
    low: float
    high: float
