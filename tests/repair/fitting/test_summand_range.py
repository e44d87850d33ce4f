"""The range of a summand, judged by the sum that an activation leaves."""

from __future__ import annotations

import numpy as np

from edgeflare.models.quantized_range import QuantizedRange, least_error_range
from edgeflare.repair.fitting.summand_range import summand_range


def test_summands_that_are_all_zero_keep_the_known_range() -> None:
    known = QuantizedRange(-1.0, 2.0)
    assert summand_range(np.zeros(10), np.ones(10), (0.0, np.inf), known) == known


def test_what_an_activation_cuts_off_of_a_sum_gets_no_steps() -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=20_000)
    others = np.maximum(rng.normal(size=20_000), 0) / 4
    known = QuantizedRange(float(values.min()), float(values.max()))
    alone = least_error_range(values, known)
    found = summand_range(values, others, (0.0, np.inf), known)
    assert alone.low < 0.8 * values.min()
    assert found.low > 0.6 * values.min()

    def error(tried: QuantizedRange) -> float:
        made = np.maximum(tried.nearest(values) + others, 0)
        return float(((made - np.maximum(values + others, 0)) ** 2).sum())

    assert error(found) < 0.7 * error(alone)
