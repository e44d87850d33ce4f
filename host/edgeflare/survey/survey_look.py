"""What a survey would take, measured on a few of its items; nothing of it is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

import numpy as np

from edgeflare.core.arm import Arm
from edgeflare.survey.survey_run import Survey

_MOST_ITEMS = 96
"""Enough for a second or two of most models, and for a look at each condition."""

_MOST_DEVICE_ITEMS = 16


@dataclass(frozen=True, slots=True)
class SurveyLook:
    """What a survey would take.

    Attributes:
        items: that the host answers.
        host_seconds: that this takes, about.
        device_seconds: of one device query, about.
        most_queries: device queries at most.
        plain_queries: device queries that plain sampling takes to the precision at a rate of 5 %;
            None where precision does not end the survey.

    """

    items: int
    host_seconds: float
    device_seconds: float
    most_queries: int
    plain_queries: int | None


def look_at(survey: Survey) -> SurveyLook:
    """Make and evaluate a few items, spread over all conditions, and say what all would take.

    Raises:
        InfrastructureError: a device or a worker process is lost for good.

    """
    items, plan = len(survey.items), survey.plan
    chosen = np.unique(np.linspace(0, items - 1, _MOST_ITEMS).astype(np.int64)).tolist()
    hosts = tuple(arm for arm in survey.opened.panel.arms if arm is not Arm.DEVICE)
    on_host = _seconds(survey, chosen, hosts) / len(chosen)
    few = chosen[:_MOST_DEVICE_ITEMS]
    on_device = _seconds(survey, few, (Arm.DEVICE,)) / len(few)
    budget = plan.device_queries
    plain = None if plan.precision is None else _plain(plan.precision, plan.confidence, items)
    return SurveyLook(
        items=items,
        host_seconds=on_host * items,
        device_seconds=on_device,
        most_queries=items if budget is None else min(budget, items),
        plain_queries=plain,
    )


def _seconds(survey: Survey, items: list[int], arms: tuple[Arm, ...]) -> float:
    """Return how long it takes to make some items and have arms answer them."""
    begun = time.monotonic()
    inputs = [survey.items.make(item) for item in items]
    for _ in survey.opened.evaluate(inputs, [survey.items.input_of(item) for item in items], arms):
        pass
    return time.monotonic() - begun


def _plain(precision: float, confidence: float, items: int, rate: float = 0.05) -> int:
    """Return how many of the items a simple random sample needs, by the normal approximation."""
    deviate = NormalDist().inv_cdf(0.5 + confidence / 2)
    unbounded = rate * (1.0 - rate) * (deviate / precision) ** 2
    return ceil(unbounded / (1.0 + unbounded / items))
