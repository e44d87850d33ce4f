"""Whether slices differ in how often the device surprises."""

import numpy as np

from edgeflare.survey.estimate.pooling_check import PERMUTATIONS, pooling_p_value
from edgeflare.survey.estimate.rate import Fact, Sample

ITEMS = 2000


def _p(surprised: np.ndarray, seed: int = 0) -> float:
    everything = np.ones(ITEMS, dtype=bool)
    sample = Sample(np.arange(ITEMS) % 3, everything)
    slices = np.arange(ITEMS) // (ITEMS // 10)
    fact = Fact(~everything, surprised)
    return pooling_p_value(fact, sample, slices, np.random.default_rng(seed))


def test_slices_that_do_not_differ_have_p_values_of_all_sizes() -> None:
    rng = np.random.default_rng(1)
    values = [_p(rng.random(ITEMS) < 0.05, seed) for seed in range(30)]
    assert 0.25 < np.mean(values) < 0.75
    assert sum(value < 0.1 for value in values) <= 9


def test_a_slice_that_surprises_oftener_is_noticed() -> None:
    surprised = np.random.default_rng(1).random(ITEMS) < 0.02
    surprised[:200] |= np.random.default_rng(2).random(200) < 0.2
    assert _p(surprised) == 1.0 / (1 + PERMUTATIONS)


def test_without_surprises_there_is_no_difference() -> None:
    assert _p(np.zeros(ITEMS, dtype=bool)) == 1.0
