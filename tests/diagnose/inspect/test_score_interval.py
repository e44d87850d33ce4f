"""Intervals of scores cover what they should, for single inputs and for groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgeflare.diagnose.inspect.hypothesis_targets import hypothesis_targets
from edgeflare.diagnose.inspect.score_interval import (
    INFLUENCES,
    half_width,
    limits,
    share_influence,
)
from edgeflare.diagnose.inspect.unit_measures import MEASURES, as_they_are, unit_forms

TRIALS = 300


def score(measure: str, unit: np.ndarray, said: np.ndarray) -> tuple[float, np.ndarray]:
    targets = hypothesis_targets(said[:, None])
    forms = unit_forms(unit[:, None].astype(np.float32))
    column: Any = {"correlation": targets.standard, "mutual information": targets.bins}
    chosen = column.get(measure, targets.split)[:, 0].astype(np.float64)
    value = MEASURES[measure](forms, targets, as_they_are(len(unit)))[0, 0, 0]
    return float(value), INFLUENCES[measure](unit, chosen)


def drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    unit = rng.normal(size=n)
    return unit, (unit + 1.5 * rng.normal(size=n) > 0).astype(np.float64)


@pytest.mark.parametrize("measure", list(INFLUENCES))
@pytest.mark.parametrize("times", [1, 4], ids=["single inputs", "groups of four copies"])
def test_intervals_cover(measure: str, times: int) -> None:
    rng = np.random.default_rng(0)
    truth = score(measure, *drawn(rng, 200_000))[0]
    held = 0
    for _ in range(TRIALS):
        unit, said = (np.repeat(one, times) for one in drawn(rng, 200))
        groups = np.repeat(np.arange(200), times)
        value, influence = score(measure, unit, said)
        assert influence.mean() == pytest.approx(0.0, abs=1e-9)
        held += abs(value - truth) <= half_width(influence, groups)
    assert held / TRIALS >= 0.9


def test_limits_stay_within_what_a_measure_can_be() -> None:
    assert limits("auc", 0.98, 0.05) == (0.98 - 0.05, 1.0)
    assert limits("mutual information", 0.01, 0.02) == (0.0, 0.03)
    assert limits("mean difference", -3.0, 1.0) == (-4.0, -2.0)


def test_the_interval_of_a_share_covers_it() -> None:
    rng, held = np.random.default_rng(1), 0
    for _ in range(TRIALS):
        own = rng.normal(0, np.sqrt(0.31), 200)
        errors = own + rng.normal(0, np.sqrt(0.69), 200)
        share = np.cov(own, errors)[0, 1] / errors.var(ddof=1)
        held += abs(share - 0.31) <= half_width(share_influence(own, errors), np.arange(200))
    assert held / TRIALS >= 0.92
